// Compare any two states, also of different workspaces.

import { get, workspacePath } from "../lib/api.js";
import { h, put } from "../lib/dom.js";
import { problemBox } from "../lib/messages.js";
import { place } from "../lib/names.js";
import { oneLine } from "../lib/text.js";
import { changesList } from "./changes.js";
import { empty, heading } from "./shared.js";

const OFFERED = 200; // revisions in the list of states

export async function compare({ route, signal, workspace }) {
  const { name } = route;
  const { info, stored } = await workspace;
  if (!stored || !info.head) return h("div", { class: "page" }, heading(info, "compare"), empty("No revision to compare yet.", name));
  const after = route.rev || info.head.name;
  const [before, told] = await Promise.all([route.query.against || parentOf(name, after, signal), difference(name, route.query.against, after, signal)]);
  const options = h("datalist", { id: "states" });
  offer(options, name, signal).catch(() => null); // the fields work without the list
  const field = (label, value) => {
    const made = h("input", { list: "states", value, required: true, spellcheck: "false", autocomplete: "off" });
    return [h("label", {}, h("span", {}, label), made), made];
  };
  const [left, from] = field("From", before);
  const [right, to] = field("To", after);
  const go = (older, newer) => {
    location.hash = place("diff", { name, rev: newer.trim(), query: { against: older.trim() } });
  };
  const form = h("form", { class: "compare", onsubmit: (event) => {
    event.preventDefault();
    go(from.value, to.value);
  } }, left, h("button", { type: "button", class: "swap", title: "Swap", "aria-label": "Swap", onclick: () => go(to.value, from.value) }, "⇄"), right,
  h("button", { class: "primary" }, "Compare"), options,
  h("small", {}, "A revision, a tag, a number, ", h("code", {}, "head~2"), ", or another workspace as ", h("code", {}, "NAME@head"), "."));
  return h("div", { class: "page" }, heading(info, "compare", route.rev), form, told instanceof Error ? problemBox(told) : changesList(name, before || null, after, told, signal));
}

/** The first parent of a revision by its name; "" when it has none, or is not found. */
async function parentOf(name, revision, signal) {
  const { revisions: [one, next] } = await get(workspacePath(name, "/log"), { revision, limit: 2, brief: true }, signal).catch((problem) => {
    if (problem.status !== 404) throw problem;
    return { revisions: [] }; // the diff request reports it
  });
  const [parent = ""] = one?.parents ?? [];
  return parent && next?.id === parent ? next.name : parent;
}

/** Fill the list of states that can be compared. */
async function offer(options, name, signal) {
  const [{ revisions }, { workspaces }, { tags }] = await Promise.all([
    get(workspacePath(name, "/log"), { limit: OFFERED, brief: true }, signal), get("/workspaces", {}, signal), get(workspacePath(name, "/tags"), {}, signal),
  ]);
  put(options, tags.map((tag) => h("option", { value: tag.name }, `tag: ${oneLine(tag.message)}`)),
    revisions.map((one) => h("option", { value: one.name }, oneLine(one.message))),
    workspaces.filter((one) => one.kind === "stored" && one.head && one.name !== name).map((one) => h("option", { value: `${one.name}@head` }, `workspace: ${oneLine(one.head.message)}`)));
}

/** The differences, or the error. */
async function difference(name, older, newer, signal) {
  try {
    return await get(workspacePath(name, "/diff"), { older, newer }, signal);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    return error;
  }
}
