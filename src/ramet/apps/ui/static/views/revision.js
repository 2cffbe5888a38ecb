// A revision: its message, where it came from, the records behind it, what it changed, and comments.

import { change, get, workspacePath } from "../lib/api.js";
import { ask } from "../lib/dialog.js";
import { button, h, link } from "../lib/dom.js";
import { newsBar } from "../lib/live.js";
import { name as safe, problemBox, toast, when } from "../lib/messages.js";
import { place } from "../lib/names.js";
import { lineage, oneLine, visible } from "../lib/text.js";
import { changesList } from "./changes.js";
import { conversation, notesOf, notesSection } from "./notes.js";
import { recordList } from "./records.js";
import { empty, forkButton, heading, revertButton, shortId, tagButton, tarButton } from "./shared.js";

const PARENTS = 30; // revisions among which the names of parents are looked up
const RECORDS = 200;

export async function revision({ route, signal, workspace, live, later, reload }) {
  const { name } = route;
  const asked = [get(workspacePath(name, "/log"), { revision: route.rev, limit: PARENTS, brief: true }, signal), get(workspacePath(name, "/tags"), {}, signal)];
  const answers = Promise.allSettled(asked); // sent at once; a workspace without revisions refuses them
  const { info, stored } = await workspace;
  await answers;
  if (!stored) return h("div", { class: "page" }, heading(info, "files"), empty(`A ${info.kind} workspace has no revisions.`));
  const [{ revisions: [found, ...older] }, { tags }] = await Promise.all(asked);
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
      message(found.message),
      h("dl", {},
        fact("Revision", safe(found.name), head && h("span", { class: "badge on" }, "head"), mine.map((tag) => tagBadge(name, tag, reload))),
        fact("When", when(found.time)),
        (found.author || found.agent) && fact("By", found.author && safe(found.author), found.agent && found.agent !== found.author && link(place("agents", { name: found.workspace, query: { agent: found.agent } }), safe(found.agent))),
        fact("Origin", oneLine(lineage(found.lineage))),
        parents.length > 0 && fact(parents.length === 1 ? "Parent" : "Parents", parents.map((parent) => link(place("ws", { name: parent.workspace, rev: parent.name }), safe(parent.name)))),
        long("Id", h("code", {}, found.id)),
        long("Content", h("code", { title: "The same wherever the same files are." }, found.content)),
        found.trace_id && long("Trace", h("code", {}, oneLine(found.trace_id))),
        found.outputs.length > 0 && long("Narrowed to", found.outputs.map((path) => h("code", {}, oneLine(path), " "))),
        found.withheld.length > 0 && long("Withheld", found.withheld.map((path) => h("code", {}, oneLine(path), " "))))),
    later(behind(name, found, signal)),
    h("div", { class: "bar small" }, h("h2", {}, parents.length > 1 ? "Changes against the first parent" : "Changes"),
      h("span", { class: "actions" },
        h("a", { class: "button", href: place("ws", { name, rev: found.name, path: "/" }) }, "Browse the files"),
        !head && info.head && h("a", { class: "button", href: place("diff", { name, rev: info.head.name, query: { against: found.name } }) }, "Changes since"))),
    later(changes(name, found, talk, signal).then((changed) => [changed, news.bar, notesSection(talk, name)]), "Loading…"));
}

/** The first line as a heading, and the rest as text. */
function message(text) {
  const [, title, body] = /^([^\n]*)\n*([^]*)$/.exec(text);
  return [h("h2", { class: "message" }, visible(title) || h("span", { class: "faint" }, "no message")), body.trim() && h("p", { class: "message" }, visible(body.trimEnd()))];
}

/** The records that the revision holds. */
async function behind(name, { id, ops }, signal) {
  if (!ops || ops.last < ops.first) return null;
  const all = ops.last - ops.first + 1;
  const { commands } = await get(workspacePath(name, "/history"), { revision: id, last: Math.min(all, RECORDS) }, signal);
  const own = commands.filter((one) => ops.first <= one.number && one.number <= ops.last);
  return own.length > 0 && recordList(name, id, own, all > RECORDS && h("p", { class: "faint" }, `The newest ${RECORDS} of ${all.toLocaleString("en")} records.`));
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
        title: `Remove the tag ${oneLine(tag.name)}`, label: "Remove", danger: true, text: "The revision stays, but the tag no longer keeps it from expiring.",
        act: () => change("DELETE", workspacePath(name, `/tags/${encodeURIComponent(tag.name)}`)),
      });
      if (done) {
        toast(`${tag.name} is removed`);
        after();
      }
    }, { "aria-label": `Remove the tag ${tag.name}`, class: "tiny" }));
}
