// A revision: what was said of it, where it came from, and what it changed.

import { change, get, workspacePath } from "../lib/api.js";
import { button, h, link } from "../lib/dom.js";
import { ask, name as safe, newsBar, problemBox, toast, when } from "../lib/frame.js";
import { place } from "../lib/names.js";
import { lineage, oneLine, visible } from "../lib/text.js";
import { changesList } from "./changes.js";
import { conversation, notesOf, notesSection } from "./notes.js";
import { forkButton, heading, loaded, revertButton, shortId, tagButton, tarButton } from "./shared.js";

export async function revision({ route, signal, live, reload }) {
  const { name } = route;
  const { info, stored } = await loaded(route, signal);
  if (!stored) return h("div", { class: "page" }, heading(info, "files"), h("p", {}, "No revisions yet."));
  const [{ revisions: [found, ...older] }, { tags }] = await Promise.all([
    get(workspacePath(name, "/log"), { revision: route.rev, limit: 200 }, signal),
    get(workspacePath(name, "/tags"), {}, signal),
  ]);
  const talk = conversation(name, found, notesOf([found]));
  const news = newsBar(reload);
  live((event) => {
    if (event.kind === "tagged" && event.workspace === name) reload();
    else if (talk.isNews(event)) news.tell();
  });
  const parents = found.parents.map((id) => older.find((one) => one.id === id) ?? { id, name: shortId(id), workspace: name });
  const mine = tags.filter((tag) => tag.revision === found.id);
  const head = info.head?.id === found.id;
  return h("div", { class: "page" },
    heading(info, "history", found.name, [
      forkButton(name, found, "Fork from here"), !head && revertButton(name, found), tagButton(name, found, reload), tarButton(name, found.id),
    ]),
    h("section", { class: "about-revision" },
      h("h2", { class: "message" }, visible(found.message) || h("span", { class: "faint" }, "no message")),
      h("dl", {},
        fact("Revision", safe(found.name), head && h("span", { class: "badge on" }, "head"), mine.map((tag) => tagBadge(name, tag, reload))),
        fact("When", when(found.time)),
        (found.author || found.agent) && fact("By", oneLine([...new Set([found.author, found.agent].filter(Boolean))].join(", "))),
        fact("From", oneLine(lineage(found.lineage))),
        parents.length > 0 && fact(parents.length === 1 ? "Parent" : "Parents", parents.map((parent) => link(place("ws", { name: parent.workspace, rev: parent.name }), safe(parent.name)))),
        long("Id", h("code", {}, found.id)),
        long("Content", h("code", { title: "The same wherever the same files are." }, found.content)),
        found.trace_id && long("Trace", h("code", {}, oneLine(found.trace_id))),
        found.outputs.length > 0 && long("Narrowed to", found.outputs.map((path) => h("code", {}, oneLine(path), " "))),
        found.withheld.length > 0 && long("Withheld", found.withheld.map((path) => h("code", {}, oneLine(path), " "))))),
    h("div", { class: "bar small" }, h("h2", {}, parents.length > 1 ? "Changes against the first parent" : "Changes"),
      h("span", { class: "actions" },
        h("a", { class: "button", href: place("ws", { name, rev: found.name, path: "/" }) }, "Browse the files"),
        !head && info.head && h("a", { class: "button", href: place("diff", { name, rev: info.head.name, query: { against: found.name } }) }, "What happened since"))),
    await changes(name, found, talk, signal), news.bar, notesSection(talk, name));
}

async function changes(name, found, talk, signal) {
  try {
    const told = await get(workspacePath(name, "/diff"), { newer: found.id }, signal);
    return changesList(name, found.parents[0] ?? null, found.id, told, signal, talk);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    return problemBox(error);
  }
}

const fact = (label, ...what) => [h("dt", {}, label), h("dd", {}, what)];
const long = (label, ...what) => [h("dt", { class: "long" }, label), h("dd", { class: "long" }, what)];

function tagBadge(name, tag, after) {
  return h("span", { class: "badge tag", title: oneLine(tag.message) }, oneLine(tag.name),
    button("×", async () => {
      const done = await ask({
        title: `Remove the tag ${oneLine(tag.name)}`, label: "Remove", danger: true, text: "The revision stays, but is no longer kept for the tag's sake.",
        act: () => change("DELETE", workspacePath(name, `/tags/${encodeURIComponent(tag.name)}`)),
      });
      if (done) {
        toast(`${tag.name} is removed`);
        after();
      }
    }, { "aria-label": `Remove the tag ${tag.name}`, class: "tiny" }));
}
