// The terminal of a native workspace: a prompt with a line editor, and a PTY for its programs.

import { get, workspacePath } from "../lib/api.js";
import { h, put, refill } from "../lib/dom.js";
import { LineEditor, LineInput } from "../lib/lineeditor.js";
import { kept, keep } from "../lib/preferences.js";
import { openConnection } from "../lib/connection.js";
import { ask } from "../lib/dialog.js";
import { toast } from "../lib/messages.js";
import { oneLine, plural } from "../lib/text.js";
import { recall, remember, sessionField } from "./session.js";

const MOST = 256 << 10; // bytes that may be pasted
/** Resets what a program may have left on: a hidden cursor, mouse reports, colors, application keys. */
const SANE = "\x1b[0m\x1b[?25h\x1b[?1l\x1b>\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1004l\x1b[?2004l";

/** Answers of the emulator to queries in the output, such as its cursor position: for programs, never for the prompt. */
// eslint-disable-next-line no-control-regex
const REPORT = /^\x1b(?:\[[?>=]?[\d;]*[cnRy$]|[P\]])/;

/** The terminal over an open connection `first`; `ready` is the server's first frame. */
export function screen({ name, signal }, ready, first, session) {
  const holder = h("div", { class: "screen emulated", role: "group", "aria-label": "Terminal" });
  const past = recall(name);
  const stop = h("button", { type: "button", class: "danger", disabled: true, title: "Ends the command", onclick: () => interrupt() }, "Stop");
  const extra = [["Esc", "\x1b"], ["Tab", "\t"], ["↑", "\x1b[A"], ["↓", "\x1b[B"], ["Ctrl-C", "\x03"]].map(([label, keys]) => h("button", { type: "button", class: "extra", "aria-label": { "↑": "Up", "↓": "Down" }[label], onclick: () => {
    data(keys);
    terminal.focus();
  } }, label));
  const reader = h("input", { type: "checkbox", checked: kept("reader") === "on", onchange: () => {
    keep("reader", reader.checked ? "on" : "");
    terminal.options.screenReaderMode = reader.checked;
  } });
  let [terminal, connection, cwd, status] = [null, first, ready.cwd, 0];
  let [mode, given] = ["prompt", ""]; // or "waiting", "lines" (cooked) and "keys" (raw) while a command runs, or "closed"; input that arrived while waiting

  const write = (text) => terminal.write(text);
  const editor = new LineEditor({
    write, columns: () => terminal.cols, submit, interrupt: () => prompt(),
    leave: (backwards) => (backwards ? document.querySelector(".tabs a[aria-current]") : holder.parentElement.querySelector(".bar button:not(:disabled), .bar input"))?.focus(),
    complete: async (before) => {
      try {
        const { start, words } = await get(workspacePath(name, "/completions"), { line: before, session: session.id }, signal);
        return { start: [...before].slice(0, start).join("").length, words };
      } catch {
        return null; // the line stays as it is; running it shows the error
      }
    },
  }, past);
  const lines = new LineInput({ write, send: (text) => connection.type(text), interrupt: () => interrupt(), end: () => connection.say({ type: "end" }) });

  /** Start a new prompt at the beginning of a line. */
  function prompt(text = "") {
    mode = "waiting";
    stop.disabled = true;
    const begin = () => {
      mode = "prompt";
      editor.begin([[oneLine(name), "1;32"], [":"], [oneLine(cwd ?? "~"), "1;34"], status ? [` ${status}`, "31"] : ["", ""], ["$ "]], text);
      const early = given;
      given = "";
      if (early) data(early);
    };
    terminal.write("", () => (terminal.buffer.active.cursorX ? terminal.write("\r\n", begin) : begin()));
  }

  function submit(command) {
    if (!command.trim()) return prompt();
    remember(name, past, command);
    mode = "lines";
    stop.disabled = false;
    connection.say({ type: "run", command, rows: terminal.rows, columns: terminal.cols });
  }

  function interrupt() {
    if (mode === "keys") connection.type("\x03");
    else connection.say({ type: "stop" });
  }

  function data(text) {
    if (mode !== "keys" && REPORT.test(text)) return;
    if (mode === "prompt") {
      const rest = editor.feed(text);
      if (rest) data(rest);
    } else if (mode === "keys") type(text);
    else if (mode === "lines") lines.feed(text);
    else if (mode === "waiting") given += text;
    else if (text.includes("\r")) connect();
  }

  function type(text) {
    if (text.length > MOST) toast(`Too much to paste: ${plural(MOST, "character")} at most. Write it to a file instead.`, "bad");
    else connection.type(text);
  }

  const frames = {
    ready: (frame) => {
      [cwd, status] = [frame.cwd, 0];
      prompt();
    },
    raw: ({ on }) => terminal.write("", () => {
      if (on) {
        write("\x1b[20l");
        const typed = lines.take();
        if (typed) connection.type(typed);
      } else if (terminal.buffer.active.type === "alternate") write("\x1b[?1049l");
      if (!on) write(`${SANE}\x1b[20h`);
      if (mode === "lines" || mode === "keys") mode = on ? "keys" : "lines";
    }),
    incomplete: () => {
      editor.again();
      mode = "prompt";
      stop.disabled = true;
    },
    ended: (frame) => {
      [cwd, status] = [frame.cwd ?? cwd, frame.exit_code];
      if (frame.timed_out) write("\x1b[31mtimed out\x1b[0m\r\n");
      prompt(lines.take()); // type-ahead
    },
    problem: ({ cause, remediation }) => {
      terminal.write("", () => terminal.buffer.active.cursorX && terminal.write("\r\n"));
      write(`\x1b[31m${oneLine(cause)}\x1b[0m\r\n${remediation ? `\x1b[2m${oneLine(remediation)}\x1b[0m\r\n` : ""}`);
      status = 1;
      prompt();
    },
  };
  const acts = {
    frame: (frame) => frames[frame.type]?.(frame),
    output: (bytes, drawn) => terminal.write(bytes, drawn),
    closed: (reason) => {
      if (signal.aborted) return;
      mode = "closed";
      stop.disabled = true;
      write(`${SANE}\x1b[20h\r\n\x1b[33mNot connected${reason ? `: ${oneLine(reason)}` : ""}. Press Enter to connect again.\x1b[0m\r\n`);
    },
  };

  function connect() {
    mode = "waiting";
    connection.close();
    connection = openConnection(name, session.id, acts);
  }

  /** Whether the terminal handles a key; the browser handles copy, paste and F6. */
  function key(event) {
    if (event.type !== "keydown") return true;
    if (event.key === "F6") {
      event.preventDefault();
      (event.shiftKey ? document.querySelector(".tabs a[aria-current]") : stop.disabled ? reader : stop).focus();
      return false;
    }
    const copies = (event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "c" && terminal.hasSelection();
    if (copies) {
      navigator.clipboard?.writeText(terminal.getSelection());
      terminal.clearSelection();
      event.preventDefault();
      return false;
    }
    return !((event.ctrlKey && event.key.toLowerCase() === "v" && (event.shiftKey || mode !== "keys")));
  }

  async function open() {
    const { openTerminal } = await import("../lib/xterm.js");
    if (signal.aborted) return;
    put(document.head, document.querySelector("link[href='vendor/xterm.css']") ? null : styles());
    refill(holder);
    terminal = openTerminal(holder, {
      data, key, bytes: (text) => mode === "keys" && connection.type(Uint8Array.from(text, (letter) => letter.charCodeAt(0))),
      resized: ({ rows, cols }) => {
        connection.say({ type: "resize", rows, columns: cols });
        if (mode === "prompt") editor.resized();
      },
      follow: (address) => /^https?:/.test(address) && ask({
        title: "Open a link that a program shows?", text: oneLine(address), label: "Open", act: () => window.open(address, "_blank", "noopener,noreferrer"),
      }),
    }, signal, { screenReader: reader.checked });
    terminal.write("\x1b[20h");
    prompt();
    terminal.focus();
  }

  session.changed = () => {
    lines.take();
    connect();
  };
  signal.addEventListener("abort", () => connection.close());
  first.listen(acts);
  requestAnimationFrame(open);
  refill(holder, h("p", { class: "waiting" }, "Loading…"));
  return h("div", { class: "console" }, holder,
    h("div", { class: "bar small" }, stop, extra, sessionField(session), h("label", { class: "check" }, reader, "screen reader"),
      h("span", { class: "faint keys" }, "Tab completes · ↑ history · Ctrl-R searches · F6 leaves the terminal")));
}

const styles = () => {
  const made = document.createElement("link");
  made.rel = "stylesheet";
  made.href = "vendor/xterm.css";
  return made;
};
