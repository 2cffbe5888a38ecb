// The commands that ran in a workspace: when, how they ended, and how their output began.

import { get, workspacePath } from "../lib/api.js";
import { button, h, link, refill } from "../lib/dom.js";
import { name as safe, notice, poll, when } from "../lib/frame.js";
import { decodeBytes, place } from "../lib/names.js";
import { duration, looksLikeText, oneLine, plural, size, visible } from "../lib/text.js";
import { heading, loaded } from "./shared.js";

const STEP = 200;

export async function commands({ route, signal, live }) {
  const { name } = route;
  const { info, stored, rev, label } = await loaded(route, signal);
  if (stored && !rev) return h("div", { class: "page" }, heading(info, "commands"), notice("No revisions yet: run a command to see it here."));
  const last = Number(route.query.last) || STEP;
  const asked = { revision: route.rev || undefined, last };
  let found = await get(workspacePath(name, "/history"), asked, signal);
  const list = h("div", { class: "cards" });
  const tally = h("span", { class: "faint" });
  const filter = h("input", { type: "search", placeholder: "Filter", "aria-label": "Filter the commands", oninput: () => fill() });
  const failed = h("input", { type: "checkbox", onchange: () => fill() });
  const opened = new Set();

  function fill() {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const text = (one) => `${one.command} ${one.session_id} ${one.agent_id} ${one.cwd}`.toLowerCase();
    const shown = found.commands.filter((one) => words.every((word) => text(one).includes(word)) && (!failed.checked || one.exit_code !== 0));
    tally.textContent = shown.length === found.total ? plural(found.total, "command") : `${shown.length.toLocaleString("en")} of ${plural(found.total, "command")}`;
    refill(list, shown.toReversed().map((one) => item(one, opened)), !shown.length && h("p", { class: "faint" }, found.total ? "No command matches." : "No commands yet."));
  }

  fill();
  if (!route.rev) {
    const fresh = async () => {
      found = await get(workspacePath(name, "/history"), asked, signal);
      fill();
    };
    // What lives in memory tells of its commands alone: nothing else about it changes.
    const again = stored ? poll(workspacePath(name), signal, fresh) : () => fresh().catch(() => {});
    live((event) => event.workspace === name && again());
  }
  return h("div", { class: "page" },
    heading(info, "commands", route.rev),
    h("div", { class: "bar small" }, tally, h("span", { class: "faint" }, ...(stored ? ["up to ", link(place("ws", { name, rev: label }), safe(label))] : ["since it began"])),
      h("label", { class: "check" }, failed, "failed only"), h("span", { class: "actions" }, filter)),
    list,
    found.total > found.commands.length && h("p", {}, button(`Show ${STEP} more`, () => {
      location.hash = place("cmds", { name, rev: route.rev, query: { last: last + STEP } });
    })));
}

function item(one, opened) {
  const body = h("div", { class: "body" });
  const key = `${one.number} ${one.started_at}`;
  const state = one.timed_out ? "timed out" : one.cancelled ? "stopped" : one.exit_code === 0 ? "ok" : `exit ${one.exit_code}`;
  const made = h("details", { class: "command", open: opened.has(key), ontoggle: () => {
    if (!made.open) return void opened.delete(key);
    opened.add(key);
    if (!body.childElementCount) refill(body, details(one));
  } },
  h("summary", {},
    h("span", { class: ["badge", state === "ok" ? "on" : "bad"] }, state),
    h("code", { class: "line" }, oneLine(one.command)),
    h("span", { class: "who" }, one.session_id !== "default" && oneLine(one.session_id)),
    h("span", { class: "date" }, when(one.started_at))),
  body);
  return made;
}

function details(one) {
  const bytes = (moved) => Object.entries(moved).map(([mount, number]) => `${size(number)} of ${oneLine(mount)}`).join(", ");
  const facts = [
    ["Took", duration((one.ended_at - one.started_at) * 1000)], ["In", oneLine(one.cwd)], ["Session", oneLine(one.session_id)],
    one.agent_id !== "default" && ["Agent", oneLine(one.agent_id)], ["Read", bytes(one.bytes_read)], ["Wrote", bytes(one.bytes_written)],
  ];
  return [
    h("pre", { class: "said" }, visible(one.command)),
    h("dl", {}, facts.filter((fact) => fact && fact[1]).map(([label, what]) => [h("dt", {}, label), h("dd", {}, what)])),
    output("Output", one.stdout, one.stdout_bytes), output("Errors", one.stderr, one.stderr_bytes),
  ];
}

function output(label, encoded, total) {
  if (!total) return null;
  const bytes = Uint8Array.from(atob(encoded), (character) => character.charCodeAt(0));
  return h("div", {}, h("p", { class: "faint" }, label, bytes.length < total && ": ", bytes.length < total && h("b", {}, `the first ${size(bytes.length)} of ${size(total)}`)),
    h("pre", { class: "out" }, looksLikeText(bytes) ? visible(decodeBytes(bytes)) : `binary, ${size(total)}`));
}
