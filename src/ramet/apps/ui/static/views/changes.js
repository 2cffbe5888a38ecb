// The changes between two states: a list of files, each with its diff, which is loaded when it is opened.

import { get, part, render, workspacePath } from "../lib/api.js";
import { button, h, link, refill } from "../lib/dom.js";
import { hunks } from "../lib/linediff.js";
import { name as safe, notice, problemBox } from "../lib/messages.js";
import { baseOf, decodeBytes, place } from "../lib/names.js";
import { painted } from "../lib/paint.js";
import { keep, kept } from "../lib/preferences.js";
import { linesOf, looksLikeText, plural, size } from "../lib/text.js";
import { elsewhere, noteForm, noteView } from "./notes.js";

const MOST = 1_000_000; // bytes of a file that is compared
const OPEN = 6; // files that begin open
const SHOWN = 300; // files
const ROWS = 1500; // lines of a file at a time
const NARROW = matchMedia("(max-width: 900px)"); // no room for two sides
const SIGNS = { added: "A", modified: "M", removed: "D", renamed: "R" };

/**
 * The changes of `GET /diff`. `before` and `after` are specs of the two states; `before` may be null for an empty
 * state. With `talk`, a conversation about `after`, files and lines can be commented on.
 */
export function changesList(name, before, after, { changes, total }, signal, talk = null) {
  talk?.listed(changes.slice(0, SHOWN).map((change) => change.path));
  if (!changes.length) return h("p", { class: "faint" }, "No file differs.");
  const form = { split: kept("diff") === "split", redraw: new Set() };
  const choices = [["Unified", false], ["Split", true]].map(([label, split]) => h("button", { type: "button", "aria-pressed": String(form.split === split), onclick: () => {
    form.split = split;
    keep("diff", split ? "split" : "");
    choices.forEach((one, at) => one.setAttribute("aria-pressed", String(Boolean(at) === split)));
    form.redraw.forEach((draw) => draw());
  } }, label));
  NARROW.addEventListener("change", () => form.split && form.redraw.forEach((draw) => draw()), { signal });
  let quiet = 0;
  const shown = changes.slice(0, SHOWN).map((change) => item({ name, before, after, signal, form, talk }, change, quiet++ < OPEN));
  return h("div", {},
    h("div", { class: "bar small summary" }, h("p", {}, ...summary(changes)),
      h("div", { class: "switch wide-only", role: "group", "aria-label": "Show differences" }, choices)),
    total > changes.length && notice(`${plural(total, "path")} changed; ${changes.length.toLocaleString("en")} are listed.`),
    shown,
    changes.length > SHOWN && notice(`${plural(changes.length - SHOWN, "more change")} not shown here; `, h("code", {}, `ramet diff ${name}`), " lists all."));
}

function summary(changes) {
  const found = Object.keys(SIGNS).map((what) => [what, changes.filter((change) => change.what === what).length]);
  return found.filter(([, number]) => number).map(([what, number], at) => [at ? ", " : "", h("span", { class: what }, `${number.toLocaleString("en")} ${what}`)]);
}

function item(context, change, open) {
  const { name, before, after, signal } = context;
  const body = h("div", { class: "body" });
  const tally = h("span", { class: "tally" });
  const where = change.what === "removed" ? { name, rev: before, path: change.old ?? change.path } : { name, rev: after, path: change.path };
  const shown = new Set(); // line numbers of the new side that the diff shows
  let asked = false;
  const load = async () => {
    if (asked) return;
    asked = true;
    refill(body, h("p", { class: "waiting" }, "Loading…"));
    try {
      const [old, now] = await Promise.all([
        change.what === "added" || before === null ? null : side(name, change.old ?? change.path, before, signal),
        change.what === "removed" ? null : side(name, change.path, after, signal),
      ]);
      const made = difference(context, change, old, now, tally, shown);
      refill(body, about(context, change, where, shown), made);
    } catch (error) {
      asked = false;
      if (error.name !== "AbortError") refill(body, problemBox(error));
    }
  };
  const made = h("details", { class: "change", open, ontoggle: () => made.open && load() },
    h("summary", {},
      h("span", { class: ["sign", change.what], title: change.what }, SIGNS[change.what], h("span", { class: "unseen" }, ` ${change.what}`)),
      h("span", { class: "path" }, change.old ? [safe(change.old), " → "] : null, safe(change.path)),
      tally),
    body);
  if (open) load();
  return made;
}

/** Load one side of a diff: the bytes of a file, or the kind of what is not a file. */
async function side(name, path, rev, signal) {
  try {
    const found = await part(name, path, rev, 0, MOST, signal);
    return { kind: "file", ...found };
  } catch (problem) {
    if (problem.status !== 404 || rev?.includes("@")) throw problem;
    const stat = await get(workspacePath(name, "/stat"), { path, revision: rev, follow: false }, signal);
    if (stat.kind === "file") throw problem;
    return { kind: stat.kind, target: stat.target };
  }
}

/** A link to the file, its comments, and a form for more; keyboard users comment on a line here. */
function about({ talk }, { path }, where, shown) {
  const view = link(place("ws", where), "Open");
  if (!talk) return h("div", { class: "about-file" }, h("div", { class: "bar" }, view));
  const list = h("div", { class: "notes" }, elsewhere(talk, path, (line) => shown.has(line)));
  const ask = button("Comment", () => {
    const done = () => {
      form.replaceWith(bar);
      ask.focus();
    };
    const form = noteForm(talk, { path, label: `Comment on ${baseOf(path)}`, choosesLine: true, closed: done, added: (note) => {
      list.append(noteView(note, note.line ? `line ${note.line}` : null));
      done();
    } });
    bar.replaceWith(form);
    form.querySelector("textarea").focus();
  }, { class: "say" });
  const bar = h("div", { class: "bar" }, ask, view);
  return h("div", { class: "about-file" }, list, bar);
}

function difference(context, change, old, now, tally, shown) {
  const odd = [old, now].find((one) => one && one.kind !== "file");
  if (odd) return h("p", { class: "faint" }, odd.kind === "dir" ? "A directory." : odd.kind === "link" ? ["A link to ", safe(odd.target ?? ""), "."] : `A ${odd.kind}.`);
  const sizes = [old, now].filter(Boolean).map((one) => size(one.total)).join(" → ");
  if ([old, now].some((one) => one && !looksLikeText(one.bytes))) return h("p", { class: "faint" }, `Binary: ${sizes}.`);
  if ([old, now].some((one) => one && one.total !== one.bytes.length)) return notice(`Too large to compare here (${sizes}; ${size(MOST)} at most).`);
  const [before, after] = [old, now].map((one) => (one ? decodeBytes(one.bytes) : ""));
  const found = hunks(linesOf(before), linesOf(after));
  const came = sum(found, "+");
  const gone = sum(found, "-");
  refill(tally, came > 0 && h("span", { class: "added" }, `+${came}`), gone > 0 && h("span", { class: "removed" }, `−${gone}`));
  if (!found.length) return h("p", { class: "faint" }, !old || !now ? "An empty file." : before === after ? "The content is the same." : "Only the newline at the end differs.");
  const ends = [[old, before, "before"], [now, after, "after"]].filter(([one, text]) => one && text && !text.endsWith("\n")).map(([, , label]) => label);
  found.forEach((hunk) => hunk.rows.forEach((row) => row.new && shown.add(row.new)));
  return [table(context, change, found, [before, after]), ends.length === 1 && old && now && h("p", { class: "faint" }, `No newline at the end ${ends[0]}.`)];
}

const sum = (found, sign) => found.reduce((total, hunk) => total + hunk.rows.filter((row) => row.sign === sign).length, 0);

/** A table of hunks, redrawn when the form changes, and colored when the server has answered. */
function table(context, change, found, texts) {
  const { form, signal } = context;
  const holder = h("div", {});
  const look = { shades: null, cells: [], path: change.path, talk: context.talk };
  const draw = () => {
    look.cells = [];
    refill(holder, drawn(look, found, form.split && !NARROW.matches));
  };
  form.redraw.add(draw);
  draw();
  colors(change, texts, signal).then((shades) => {
    look.shades = shades;
    look.cells.forEach(([cell, one]) => refill(cell, content(look, one)));
  }, () => null); // the user left the view
  return holder;
}

/** The tokens of the lines of both sides. */
async function colors({ path, old }, texts, signal) {
  const names = [baseOf(old ?? path), baseOf(path)];
  const told = await Promise.all(texts.map((text, at) => text && render("code", names[at], text, signal)));
  return told.map((one) => one?.lines ?? []);
}

function drawn(look, found, split) {
  const body = h("tbody");
  const rest = found.flatMap((hunk, at) => [at || hunk.oldStart > 1 || hunk.newStart > 1 ? { gap: hunk } : null, ...(split ? paired(hunk.rows) : hunk.rows)].filter(Boolean));
  const more = () => {
    for (const one of rest.splice(0, ROWS)) body.append(...(one.gap ? [gap(one.gap)] : split ? sides(look, one) : unified(look, one)));
    if (!rest.length) ending.remove();
    else refill(ending, button(`Show ${Math.min(ROWS, rest.length).toLocaleString("en")} of ${plural(rest.length, "more line")}`, more));
  };
  const ending = h("p", { class: "more" });
  const made = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Difference of ${baseOf(look.path)}` }, h("table", { class: ["diff", split && "split"] },
    split && h("colgroup", {}, h("col", { class: "at" }), h("col"), h("col", { class: "at" }), h("col")), body));
  more();
  return [made, rest.length ? ending : null];
}

const gap = (hunk) => h("tr", { class: "gap" }, h("td", { colspan: 2 }, "⋯"), h("td", { colspan: 2 }, `line ${hunk.newStart.toLocaleString("en")}`));
const KINDS = { "+": "came", "-": "gone", " ": "" };

function unified(look, one) {
  const line = h("tr", { class: KINDS[one.sign] }, h("td", { class: "at" }, one.old ?? ""), h("td", { class: "at" }, one.new ?? "", adder(look, one)), h("td", { class: "sign" }, one.sign), cell(look, one));
  return [line, ...notesAt(look, one)];
}

/** Pair removed lines with added ones. */
function paired(rows) {
  const out = [];
  for (let at = 0; at < rows.length; ) {
    if (rows[at].sign === " ") {
      out.push([rows[at], rows[at]]);
      at += 1;
      continue;
    }
    const from = at;
    while (at < rows.length && rows[at].sign !== " ") at += 1;
    const gone = rows.slice(from, at).filter((row) => row.sign === "-");
    const came = rows.slice(from, at).filter((row) => row.sign === "+");
    for (let pair = 0; pair < Math.max(gone.length, came.length); pair++) out.push([gone[pair] ?? null, came[pair] ?? null]);
  }
  return out;
}

function sides(look, [left, right]) {
  const side = (one, number, ...more) => (one ? [h("td", { class: ["at", KINDS[one.sign]] }, one[number], more), cell(look, one, KINDS[one.sign])] : [h("td", { class: "at none" }), h("td", { class: "none" })]);
  return [h("tr", {}, side(left, "old"), side(right, "new", right && adder(look, right))), ...(right ? notesAt(look, right) : [])];
}

function cell(look, one, kind = "") {
  const made = h("td", { class: ["text", kind] }, content(look, one));
  look.cells.push([made, one]);
  return made;
}

function content({ shades }, { text, part: range, old, new: now, sign }) {
  const tokens = shades && (sign === "-" ? shades[0][old - 1] : shades[1][now - 1]);
  return painted(text, tokens ?? [], range && range[0] < range[1] ? [range] : []);
}

// ------------------------------------------------------------------------------------------------------ comments

/** A button for pointers, outside of the tab order: the file has a form for keyboards. */
const adder = ({ talk, path }, one) => talk && one.new && h("button", { type: "button", class: "adder", tabindex: "-1", title: "Comment on this line", "aria-label": `Comment on line ${one.new}`, onclick: ({ currentTarget }) => {
  const line = currentTarget.closest("tr");
  const row = spanning(noteForm(talk, { path, line: one.new, label: `Comment on line ${one.new}`, closed: () => row.remove(), added: (note) => row.replaceWith(spanning(noteView(note))) }));
  line.after(row);
  row.querySelector("textarea").focus();
} }, "+");

const notesAt = ({ talk, path }, one) => (talk && one.new ? talk.about(path).filter((note) => talk.current(note) && note.line === one.new).map((note) => spanning(noteView(note))) : []);
const spanning = (inner) => h("tr", { class: "noted" }, h("td", { colspan: 4 }, inner));
