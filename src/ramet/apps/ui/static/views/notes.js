// Comments on revisions, files and lines. They are notes in the store, and never change.

import { change, workspacePath } from "../lib/api.js";
import { button, h, link, refill } from "../lib/dom.js";
import { name as safe, problemBox, when } from "../lib/messages.js";
import { place } from "../lib/names.js";
import { visible } from "../lib/text.js";

/** The notes of revisions, each with its revision, oldest first. */
export const notesOf = (revisions) => revisions.flatMap((revision) => revision.notes.map((note) => ({ ...note, revision }))).sort((a, b) => a.time - b.time);

/**
 * The notes about a revision, and how to add one. `about(path)` returns those of a file, or of the revision itself for "".
 * A note of an older revision may mean another line.
 */
export function conversation(workspace, revision, notes) {
  const said = [...notes];
  let listed = new Set(); // files whose notes are shown with their diffs
  let mine = 0; // notes of this page whose events are to be ignored
  return {
    isNews: (event) => event.kind === "noted" && event.workspace === workspace && (mine ? (mine -= 1, false) : true),
    about: (path) => said.filter((one) => one.path === path),
    listed: (paths) => (listed = new Set(paths)),
    unlisted: () => said.filter((one) => one.path && !listed.has(one.path)),
    current: (note) => note.revision.id === revision.id,
    add: async (message, path = "", line = 0) => {
      mine += 1;
      const made = await change("POST", workspacePath(workspace, "/notes"), { message, revision: revision.id, ...(path && { path, line }) }).catch((problem) => {
        mine -= 1;
        throw problem;
      });
      const note = { ...made.notes[made.notes.length - 1], revision };
      said.push(note);
      return note;
    },
  };
}

/** Show a note; `where` names its subject when it does not stand next to it. */
export const noteView = (note, where = null) => h("article", { class: "note" },
  h("p", { class: "faint" }, h("b", {}, note.author ? safe(note.author) : "someone"), " ", when(note.time), where && [" · ", where]),
  h("p", { class: "words" }, visible(note.message)));

/** A form for a note; calls `added` with the note, and `closed` on cancel. */
export function noteForm(talk, { path = "", line = 0, label = "Comment", choosesLine = false, added, closed = null }) {
  const text = h("textarea", { rows: 2, required: true, "aria-label": label, placeholder: label, maxlength: 60_000 });
  const number = choosesLine && h("input", { type: "number", min: 1, size: 6, class: "line-number", "aria-label": "Line, if it is about one" , placeholder: "line" });
  const told = h("div");
  const go = h("button", { class: "primary" }, "Comment");
  const form = h("form", { class: "note-form", onsubmit: async (event) => {
    event.preventDefault();
    if (go.hasAttribute("aria-disabled")) return;
    go.setAttribute("aria-disabled", "true");
    refill(told);
    try {
      const note = await talk.add(text.value.trim(), path, line || Number(number && number.value) || 0);
      text.value = "";
      added(note);
    } catch (problem) {
      refill(told, problemBox(problem));
    } finally {
      go.removeAttribute("aria-disabled");
    }
  }, onkeydown: (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
    else if (event.key === "Escape" && closed) closed();
    else return;
    event.preventDefault();
    event.stopPropagation();
  } }, text, told, h("div", { class: "buttons" }, number, closed && button("Cancel", closed), go));
  return form;
}

/** The notes on a revision as a whole, and a form. */
export function notesSection(talk, workspace, title = "Comments") {
  const list = h("div", { class: "notes" }, talk.about("").map((note) => noteView(note, noted(talk, note))),
    talk.unlisted().map((note) => noteView(note, [link(place("ws", { name: workspace, rev: note.revision.name, path: note.path, query: { line: note.line || "" } }), safe(`${note.path}${note.line ? `:${note.line}` : ""}`)), " ", noted(talk, note)])));
  return h("section", { class: "talk", "aria-label": title }, h("h2", {}, title), list,
    noteForm(talk, { label: "Comment on all of it", added: (note) => list.append(noteView(note)) }));
}

const noted = (talk, note) => (talk.current(note) ? null : ["on ", safe(note.revision.name)]);

/** The notes on a file that do not stand at a line of its diff. */
export const elsewhere = (talk, path, isShown) => talk.about(path).filter((note) => !(talk.current(note) && note.line && isShown(note.line)))
  .map((note) => noteView(note, [note.line > 0 && `line ${note.line} `, !talk.current(note) && ["of ", safe(note.revision.name)]]));
