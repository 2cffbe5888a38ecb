// The difference between any two states, also of other workspaces.

import { get, workspacePath } from "../lib/api.js";
import { h } from "../lib/dom.js";
import { notice, problemBox } from "../lib/frame.js";
import { place } from "../lib/names.js";
import { oneLine } from "../lib/text.js";
import { changesList } from "./changes.js";
import { heading, loaded } from "./shared.js";

export async function compare({ route, signal }) {
  const { name } = route;
  const { info, stored } = await loaded(route, signal);
  if (!stored || !info.head) return h("div", { class: "page" }, heading(info, stored ? "compare" : "files"), notice("No revision to compare."));
  const [{ revisions }, { workspaces }, { tags }] = await Promise.all([
    get(workspacePath(name, "/log"), { limit: 300 }, signal), get("/workspaces", {}, signal), get(workspacePath(name, "/tags"), {}, signal),
  ]);
  const after = route.rev || info.head.name;
  const before = route.query.against || revisions.find((one) => one.name === after || one.id === after)?.parents[0] || "";
  const known = new Map(revisions.map((one) => [one.id, one.name]));
  const options = h("datalist", { id: "states" },
    tags.map((tag) => h("option", { value: tag.name }, `tag: ${oneLine(tag.message)}`)),
    revisions.map((one) => h("option", { value: one.name }, oneLine(one.message))),
    workspaces.filter((one) => one.kind === "stored" && one.head && one.name !== name).map((one) => h("option", { value: `${one.name}@head` }, `workspace: ${oneLine(one.head.message)}`)));
  const field = (label, value) => {
    const made = h("input", { list: "states", value: known.get(value) ?? value, required: true, spellcheck: "false", autocomplete: "off" });
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
  return h("div", { class: "page" }, heading(info, "compare", route.rev), form, before ? await found(name, before, after, signal) : notice("This revision is the first: choose what to compare it with."));
}

async function found(name, before, after, signal) {
  try {
    const told = await get(workspacePath(name, "/diff"), { older: before, newer: after }, signal);
    return changesList(name, before, after, told, signal);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    return problemBox(error);
  }
}
