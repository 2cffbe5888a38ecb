// What views of records have in common: outcomes, sums, a list that links to them, and undo.

import { change, workspacePath } from "../lib/api.js";
import { ask } from "../lib/dialog.js";
import { button, h, link } from "../lib/dom.js";
import { name as safe, toast } from "../lib/messages.js";
import { place } from "../lib/names.js";
import { oneLine, plural } from "../lib/text.js";

export const sum = (moved) => Object.values(moved).reduce((total, bytes) => total + bytes, 0);
export const number = (value) => value.toLocaleString("en", { maximumFractionDigits: 4 });

/** What callers counted, such as tokens and money. */
export const metaKeys = (costs) => [...new Set(costs.flatMap((one) => Object.keys(one.meta)))].sort();

/** The run of a record: what its caller named, else the session. */
export const runOf = (record) => String(record.meta.run ?? record.session_id);

/** How a record ended, or what it is if it is no command, as a class of bars. */
export const outcome = (record) => (record.exit_code || record.timed_out || record.cancelled ? "bad" : record.kind === "command" ? "good" : "other");

/** The same as a badge. */
export function stateBadge(record) {
  const state = record.timed_out ? "timed out" : record.cancelled ? "stopped" : record.exit_code ? `exit ${record.exit_code}` : record.kind === "command" ? "ok" : record.kind;
  return h("span", { class: ["badge", { good: "on", bad: "bad" }[outcome(record)]] }, state);
}

/** Records that can be unfolded, each with a link; `more` stands below them. */
export function recordList(name, rev, records, more = null) {
  const agents = [...new Set(records.map((one) => one.agent_id))].map(oneLine).join(", ");
  return h("details", { class: "change behind" }, h("summary", {}, h("span", { class: "path" }, `${plural(records.length, "record")}${agents && ` by ${agents}`}`)),
    h("ol", { class: "records" }, records.map((one) => h("li", {}, stateBadge(one), h("b", {}, safe(one.agent_id)), link(place("cmds", { name, rev, query: { record: one.number } }), h("code", {}, oneLine(one.command)))))),
    more);
}

/** Take back what an agent or a run changed; what others changed later stays. */
export const undoButton = (name, by, who, after) => button("Undo", async () => {
  let made = null;
  const done = await ask({
    title: `Undo what ${oneLine(who)} changed`, label: "Undo", danger: true,
    text: "A new revision takes the changes back. What others changed stays. If their changes overlap, nothing happens and you see the paths. The history keeps everything.",
    fields: [{ name: "message", label: "Message (optional)" }],
    act: async ({ message }) => {
      made = (await change("POST", workspacePath(name, "/undo"), { [by]: who, message })).revision;
    },
  });
  if (!done) return;
  toast(made ? `${made.name} is the newest revision now` : "There was nothing to undo");
  after();
}, { "aria-label": `Undo what ${oneLine(who)} changed` });
