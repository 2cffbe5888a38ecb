// Workspaces that have changes to review: forks of this one, and what it was forked from, when they have revisions that it lacks.

import { get, workspacePath } from "../lib/api.js";
import { h, link } from "../lib/dom.js";
import { poll } from "../lib/live.js";
import { name as safe, notice, when } from "../lib/messages.js";
import { place } from "../lib/names.js";
import { oneLine, plural } from "../lib/text.js";
import { empty, heading, makers, mergeButton } from "./shared.js";

const AHEAD = 100; // revisions that are counted
const MOST = 60; // workspaces that are looked at
const AT_ONCE = 6;
const FORK = /^fromWorkspaceRevision:(.+)-\d+$/; // lineage of the first revision of a fork

export async function proposals({ route, signal, workspace, reload }) {
  const { name } = route;
  const [{ info, stored }, { workspaces }] = await Promise.all([workspace, get("/workspaces", {}, signal)]);
  if (!stored || !info.head) return h("div", { class: "page" }, heading(info, "review"), empty("Nothing to compare with yet.", name));
  const others = workspaces.filter((one) => one.kind === "stored" && one.head && one.name !== name).sort((a, b) => b.head.time - a.head.time);
  const found = [];
  for (let at = 0; at < Math.min(others.length, MOST); at += AT_ONCE) {
    found.push(...await Promise.all(others.slice(at, at + AT_ONCE).map((one) => ahead(one, name, signal))));
  }
  const shown = found.filter(Boolean);
  const origin = FORK.exec((await get(workspacePath(name, "/log"), { revision: "1", limit: 1 }, signal)).revisions[0]?.lineage ?? "")?.[1];
  const above = others.find((one) => one.name === origin);
  poll("/workspaces", signal, reload);
  return h("div", { class: "page" }, heading(info, "review", "", [mergeButton(name, "Review another workspace")]),
    h("p", { class: "faint" }, "Workspaces that share history with this one and have revisions that it lacks."),
    above && h("p", {}, safe(name), " is a fork of ", link(place("ws", { name: above.name }), safe(above.name)), ". ", link(place("review", { name: above.name, query: { other: name } }), "Review what it proposes there")),
    others.length > MOST && notice(`Only the ${MOST} workspaces that changed last were looked at, of ${others.length.toLocaleString("en")}.`),
    shown.length ? h("div", { class: "cards" }, shown.map((one) => row(name, one))) : empty("No other workspace has changes for this one. Fork it to propose some."));
}

/** What another workspace has that this one lacks; null when that is nothing, or they share no history. */
async function ahead(other, name, signal) {
  const { revisions, more } = await get(workspacePath(other.name, "/log"), { revision: "head", without: `${name}@head`, limit: AHEAD }, signal);
  if (!revisions.length) return null;
  const own = new Set(revisions.map((one) => one.id));
  const below = revisions.some((one) => one.parents.some((parent) => !own.has(parent)));
  const related = more ? (await get(workspacePath(other.name, "/log"), { revision: "1", limit: 1 }, signal)).revisions[0]?.parents.length > 0 : below;
  return related ? { name: other.name, head: other.head, count: more ? `more than ${AHEAD} revisions` : plural(revisions.length, "revision"), revisions } : null;
}

function row(name, { name: other, head, count, revisions }) {
  const notes = revisions.reduce((total, one) => total + one.notes.length, 0);
  const rejected = revisions[0].notes.some((note) => note.message.startsWith("Rejected"));
  return h("a", { class: "card proposal", href: place("review", { name, query: { other } }) },
    h("span", { class: "what" }, h("span", { class: "name" }, safe(other)), rejected && h("span", { class: "badge bad" }, "rejected"), notes > 0 && h("span", { class: "badge" }, plural(notes, "comment"))),
    h("span", { class: "message" }, oneLine(head.message) || h("span", { class: "faint" }, "no message")),
    h("span", { class: "who" }, makers(head)),
    h("span", { class: "number" }, count),
    h("span", { class: "date" }, when(head.time)));
}
