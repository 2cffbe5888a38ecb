// The terminal view: a form that runs commands and streams their output, or a full terminal for native workspaces.

import { get, run, workspacePath } from "../lib/api.js";
import { Painter } from "../lib/ansi.js";
import { button, h, refill } from "../lib/dom.js";
import { common } from "../lib/lineeditor.js";
import { place } from "../lib/names.js";
import { greeted } from "../lib/connection.js";
import { name as safe, notice, problemBox } from "../lib/messages.js";
import { duration, oneLine, plural, visible } from "../lib/text.js";
import { screen } from "./screen.js";
import { recall, remember, sessionField } from "./session.js";
import { heading } from "./shared.js";

const KEPT = 200_000; // characters of one command's output that stay on the page
const OFFERED = 100; // completions that are listed

export async function terminal({ route, signal, workspace }) {
  const { name, rev } = route;
  const { info } = await workspace;
  const session = { id: "default", changed: () => null };
  const found = rev ? null : await greeted(name, session.id, signal);
  const [ready, connection] = found ?? [{ cwd: null }, null];
  if (connection && !ready.native) connection.close();
  return h("div", { class: "page term" },
    heading(info, "terminal", rev), where(info, name, rev),
    ready.native ? screen({ name, signal }, ready, connection, session) : lineTerminal({ name, rev, signal }, ready, session));
}

/** One command after the other: for workspaces without native programs, and for past revisions. */
function lineTerminal({ name, rev, signal }, ready, session) {
  const screen_ = h("div", { class: "screen", role: "log", "aria-label": "Output", tabindex: "0" });
  const prompt = h("label", { class: "prompt", for: "command" }, ready.cwd ? `${oneLine(ready.cwd)} $` : "$");
  const field = h("textarea", { id: "command", rows: 1, spellcheck: "false", autocomplete: "off", autocapitalize: "off", "aria-label": "Command", "aria-describedby": "offered", "data-first": true, placeholder: "Type a command, e.g. ls -la" });
  const offered = h("div", { id: "offered", class: "offered", role: "status", hidden: true });
  const stop = h("button", { type: "button", class: "danger", disabled: true, title: "Ctrl-C" }, "Stop");
  const known = h("datalist", { id: "sessions" });
  const past = recall(name);
  let running = null;
  let at = past.length;
  let asked = 0;

  const grow = () => {
    field.rows = Math.min(10, field.value.split("\n").length);
  };
  const set = (text) => {
    field.value = text;
    grow();
    field.setSelectionRange(text.length, text.length);
  };
  const interrupt = () => running?.abort();
  stop.addEventListener("click", interrupt);
  signal.addEventListener("abort", interrupt);

  async function submit() {
    const command = field.value;
    if (!command.trim() || running) return;
    say("");
    remember(name, past, command);
    at = past.length;
    set("");
    running = new AbortController();
    stop.disabled = false;
    const block = h("div", { class: "ran" }, h("pre", { class: "said" }, h("span", { class: "prompt" }, `${prompt.textContent} `), visible(command)));
    screen_.append(block);
    await execute(block, name, { command, session: session.id, ...(rev && { revision: rev }) }, running.signal, screen_);
    running = null;
    stop.disabled = true;
    if (!rev && !signal.aborted) await located();
    bottom(screen_);
    field.focus();
  }

  async function located() {
    try {
      const { sessions } = await get(workspacePath(name, "/sessions"), {}, signal);
      refill(known, sessions.map((one) => h("option", { value: one.id })));
      const mine = sessions.find((one) => one.id === session.id);
      if (mine) prompt.textContent = `${oneLine(mine.cwd)} $`;
    } catch {
      prompt.textContent = "$"; // cosmetic
    }
  }

  async function complete() {
    const mine = (asked += 1);
    const { value, selectionStart: cursor } = field;
    const before = value.slice(0, cursor);
    let found;
    try {
      found = await get(workspacePath(name, "/completions"), { line: before, session: session.id, revision: rev }, signal);
    } catch (error) {
      if (error.name !== "AbortError") say(`Cannot complete: ${error.message}`);
      return;
    }
    if (mine !== asked || field.value !== value || field.selectionStart !== cursor) return;
    const start = [...before].slice(0, found.start).join("").length;
    const head = common(found.words);
    if (head.length > cursor - start || found.words.length === 1) {
      field.setRangeText(head, start, cursor, "end");
      grow();
    } else say(found.words.length ? found.words.slice(0, OFFERED).map((word) => /[^/]*\/?$/.exec(word.trimEnd())[0]).join("   ") + (found.words.length > OFFERED ? `   and ${plural(found.words.length - OFFERED, "more")}` : "") : "Nothing completes this.");
  }
  const say = (text) => {
    offered.hidden = !text;
    offered.textContent = text && visible(text);
  };

  field.addEventListener("input", () => {
    grow();
    say("");
  });
  field.addEventListener("keydown", (event) => {
    const plain = !event.ctrlKey && !event.altKey && !event.metaKey;
    const { value, selectionStart: start, selectionEnd: end } = field;
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) submit();
    else if (event.key === "Tab" && !event.shiftKey && plain && value) complete();
    else if (event.key === "Escape" && !offered.hidden) say("");
    else if (event.key === "c" && event.ctrlKey && start === end) running ? interrupt() : set("");
    else if (event.key === "l" && event.ctrlKey) refill(screen_);
    else if (event.key === "ArrowUp" && plain && !value.slice(0, start).includes("\n")) set(past[(at = Math.max(0, at - 1))] ?? value);
    else if (event.key === "ArrowDown" && plain && !value.slice(end).includes("\n")) set(past[(at = Math.min(past.length, at + 1))] ?? "");
    else return;
    event.preventDefault();
  });
  session.changed = () => located();
  return h("div", { class: "console" }, screen_, offered,
    h("div", { class: "entry-line" }, prompt, field),
    h("div", { class: "bar small" }, stop, button("Clear", () => refill(screen_)), !rev && sessionField(session, known), h("span", { class: "faint keys" }, "Enter runs · Shift-Enter new line · Tab completes · ↑ ↓ history · Ctrl-C stops")));
}

/** How a command affects other writers. */
function where(info, name, rev) {
  const copy = h("a", { href: place("term", { name, rev: "head" }) }, "a copy of the newest revision");
  if (rev) return notice("Each command runs on its own copy of ", h("b", {}, safe(rev)), "; its changes are discarded. ", h("a", { href: place("term", { name }) }, "Work on the workspace itself"));
  if (info.kind !== "stored" || info.open) return null;
  if (info.busy) return notice("Another program writes to it: commands wait for that to end. Look around on ", copy, " instead.");
  return h("p", { class: "faint" }, "A command opens the workspace; no other writer can open it until it is idle", info.head ? ["; ", copy, " does not block it."] : ".");
}

/** Run a command and stream its output into a block. */
async function execute(block, name, command, signal, screen) {
  const painters = { 1: new Painter(), 2: new Painter() };
  const output = h("pre", { class: "out" });
  let [length, dropped] = [0, 0];
  const waiting = ticking();
  block.append(output, waiting.line);
  const trim = () => {
    while (length > KEPT && output.childNodes.length > 1) {
      const first = output.firstChild;
      length -= first.textContent.length;
      dropped += first.textContent.length;
      first.remove();
    }
  };
  try {
    for await (const told of run(name, command, signal)) {
      waiting.heard();
      if (told.result) {
        ended(block, told.result);
        continue;
      }
      const near = isBottom(screen);
      for (const { text, classes } of painters[told.fd].feed(told.text)) {
        for (let at = 0; at < text.length; at += KEPT / 4) {
          const piece = text.slice(at, at + KEPT / 4);
          output.append(h("span", { class: [told.fd === 2 && "stderr", classes] }, visible(piece)));
          length += piece.length;
        }
      }
      trim();
      if (near) bottom(screen);
    }
  } catch (error) {
    block.append(error.name === "AbortError" ? h("p", { class: "ended bad" }, "stopped") : problemBox(error));
  }
  waiting.end();
  if (dropped) block.prepend(notice(`${plural(dropped, "character")} of output above are not shown any more: redirect it to a file to keep it.`));
}

/** A line that shows the running time after a second, and whether output has arrived. */
function ticking() {
  const began = performance.now();
  const line = h("p", { class: "ended", hidden: true });
  let silent = true;
  const timer = setInterval(() => {
    line.hidden = false;
    line.textContent = `${silent ? "waiting" : "running"} · ${duration(performance.now() - began)} · leaving this page stops it`;
  }, 1000);
  return { line, heard: () => (silent = false), end: () => {
    clearInterval(timer);
    line.remove();
  } };
}

function ended(block, { exit_code: code, timed_out: late, truncated, duration_ms: took }) {
  const time = duration(took);
  if (truncated) block.append(notice("The output was longer than the server allows, and is cut."));
  block.append(h("p", { class: ["ended", code && "bad"] }, late ? `timed out after ${time}` : code ? `exit ${code} · ${time}` : time));
}

const isBottom = (screen) => screen.scrollHeight - screen.scrollTop - screen.clientHeight < 40;
const bottom = (screen) => screen.scrollTo(0, screen.scrollHeight);
