// The changes that another workspace proposes, with the records behind them and comments: merge, reject, or resolve conflicts.

import { change, get, part, Problem, render, workspacePath } from "../lib/api.js";
import { ask } from "../lib/dialog.js";
import { button, h, link, refill } from "../lib/dom.js";
import { changed } from "../lib/linediff.js";
import { newsBar } from "../lib/live.js";
import { MARKER, merged } from "../lib/merge.js";
import { name as safe, notice, problemBox, toast } from "../lib/messages.js";
import { baseOf, decodeBytes, place } from "../lib/names.js";
import { painted } from "../lib/paint.js";
import { linesOf, looksLikeText, oneLine, plural, size, visible } from "../lib/text.js";
import { changesList } from "./changes.js";
import { conversation, notesOf, notesSection } from "./notes.js";
import { recordList } from "./records.js";
import { heading } from "./shared.js";

const MOST = 1 << 20; // bytes of a file that can be resolved by hand
const RECORDS = 50;
const PAGE = 1000;

export async function review({ route, signal, workspace, live, reload }) {
  const { name } = route;
  const other = String(route.query.other ?? "");
  const { info, stored } = await workspace;
  if (!stored || !other) throw new Problem({ code: "invalid_argument", cause: "nothing to review", remediation: "choose a workspace under Review" });
  const [theirName, theirRev = "head"] = other.split("@");
  const newer = await proposedRevisions(theirName, theirRev, info.head ? `${name}@head` : undefined, signal);
  const own = new Set(newer.map((one) => one.id));
  const from = newer.flatMap((one) => one.parents).find((id) => !own.has(id)); // the newest revision that both have
  const base = from ? (await get(workspacePath(theirName, "/log"), { revision: from, limit: 1 }, signal)).revisions[0] : null;
  const talk = newer.length ? conversation(theirName, newer[0], notesOf(newer)) : null;
  const news = newsBar(reload);
  live((event) => talk?.isNews(event) && news.tell());
  const resolving = h("div");
  const merge = (body) => async () => {
    const done = await ask({
      title: `Merge ${oneLine(other)} into ${name}`, label: "Merge", text: "The changes become a new revision, with both histories.",
      fields: [{ name: "message", label: "Message (optional)" }],
      act: async ({ message }) => {
        try {
          const { revision } = await change("POST", workspacePath(name, "/merge"), { other, message, ...body });
          toast(revision ? `${revision.name} is the newest revision now` : "There was nothing to merge");
        } catch (problem) {
          if (!problem.conflicts?.length) throw problem;
          refill(resolving, conflicts(problem.conflicts));
          requestAnimationFrame(() => resolving.firstChild?.scrollIntoView({ block: "start" }));
        }
      },
    });
    if (done && !resolving.childElementCount) location.hash = place("ws", { name });
    return done;
  };

  /** Both sides of every conflict, and a choice for each. */
  function conflicts(found) {
    const chosen = new Map();
    const edited = new Map();
    const go = button("Merge with these choices", async () => {
      const body = { take: Object.fromEntries(chosen), edited: Object.fromEntries([...edited].map(([path, read]) => [path, base64(read())])) };
      resolving.replaceChildren();
      const done = await merge(body)();
      if (!done) refill(resolving, conflicts(found));
    }, { class: "primary" });
    const left = h("span", { class: "faint", role: "status" });
    const count = () => {
      const open = found.filter(({ path }) => !chosen.has(path) && (!edited.has(path) || MARKER.test(edited.get(path)()))).length;
      go.disabled = open > 0;
      left.textContent = open ? `${plural(open, "conflict")} to decide; nothing is merged yet` : "all decided";
    };
    const rows = found.map((one) => conflict(one, { name, theirs: [theirName, theirRev], base: base?.id, otherName: other }, chosen, edited, count, signal));
    count();
    return h("section", { class: "conflicts" }, h("div", { class: "bar small" }, h("h2", {}, "Conflicts"), left, h("span", { class: "actions" }, go)), rows);
  }

  const title = h("div", { class: "bar small" }, h("h2", {}, "What ", link(place("ws", { name: theirName }), safe(other)), " proposes"),
    h("span", { class: "faint" }, newer.length ? `${plural(newer.length, "revision")} since ${base ? oneLine(base.name) : "the beginning"}` : "nothing new"),
    h("span", { class: "actions" },
      button("Reject", () => reject(theirName, name, newer.length > 0 && talk), { class: "danger" }),
      newer.length > 0 && button("Approve and merge", merge({}), { class: "primary" })));
  return h("div", { class: "page" }, heading(info, "review"), title, resolving, news.bar,
    newer.length > 0 && await commandsBehind(name, theirName, theirRev, base, signal),
    newer.length > 0 && [await proposed(theirName, base, newer[0], talk, signal), notesSection(talk, theirName)]);
}

/** The revisions of the other workspace that this one lacks, newest first. */
async function proposedRevisions(name, revision, without, signal) {
  const found = [];
  for (let more = true; more; ) {
    const page = await get(workspacePath(name, "/log"), { revision, without, offset: found.length, limit: PAGE }, signal);
    found.push(...page.revisions);
    more = page.more;
  }
  return found;
}

async function proposed(name, base, newest, talk, signal) {
  try {
    const told = await get(workspacePath(name, "/diff"), base ? { older: base.id, newer: newest.id } : { newer: newest.id }, signal);
    return changesList(name, base?.id ?? null, newest.id, told, signal, talk);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    return problemBox(error);
  }
}

/** The newest records of the other workspace that this one does not have. */
async function commandsBehind(mine, name, rev, base, signal) {
  const [{ commands, total }, { commands: own }] = await Promise.all([
    get(workspacePath(name, "/history"), { revision: rev === "head" ? undefined : rev, last: RECORDS }, signal),
    get(workspacePath(mine, "/history"), { last: 4 * RECORDS }, signal), // records before the fork that changed no file
  ]);
  const after = base?.ops?.last ?? 0;
  const shared = new Set(own.map((one) => `${one.number} ${one.started_at}`));
  const found = commands.filter((one) => one.number > after && one.kind !== "fork" && !shared.has(`${one.number} ${one.started_at}`));
  return found.length > 0 && recordList(name, "", found, total > found.length && found.length === RECORDS && notice(`Only the newest ${RECORDS} are listed. `, link(place("cmds", { name }), "All records")));
}

/** Reject a proposal with a reason; the workspace is kept or removed. */
async function reject(other, name, talk) {
  let removed = false;
  const done = await ask({
    title: `Reject ${oneLine(other)}`, label: "Reject", danger: true, text: "Nothing of it is merged. The reason becomes a comment on it.",
    fields: [
      ...(talk ? [{ name: "why", label: "Reason (optional)" }] : []),
      { name: "then", label: "The workspace", value: "keep", options: [["keep", "Keep it, so that it can be improved"], ["remove", "Remove it; it can be restored until the next collection"]] },
    ],
    act: async ({ why, then }) => {
      if (talk) await talk.add(why ? `Rejected: ${why}` : "Rejected.");
      if (then === "remove") await change("DELETE", workspacePath(other));
      removed = then === "remove";
    },
  });
  if (!done) return;
  toast(removed ? `${other} is rejected and removed` : `${other} is rejected`);
  location.hash = place("ws", { name });
}

// ---------------------------------------------------------------------------------------------------- conflicts

function conflict({ path, why }, { name, theirs: [theirName, theirRev], base, otherName }, chosen, edited, count, signal) {
  const sides = h("div", { class: "sides" }, h("p", { class: "waiting" }, "Loading…"));
  const decided = h("span", { class: "badge on", hidden: true });
  const decide = (label, side, read) => {
    chosen.delete(path);
    edited.delete(path);
    if (read) edited.set(path, read);
    else chosen.set(path, side);
    decided.hidden = false;
    decided.textContent = label;
    count();
  };
  const load = async () => {
    const [ours, theirs, before] = await Promise.all([
      content(name, path, "head", signal), content(theirName, path, theirRev, signal), base ? content(theirName, path, base, signal) : {},
    ]);
    const text = [ours, theirs].every((one) => one.text !== undefined);
    if (text) {
      const parts = changed(linesOf(ours.text), linesOf(theirs.text));
      ours.differs = parts.map(([from, to]) => [from, to]);
      theirs.differs = parts.map(([, , from, to]) => [from, to]);
    }
    const area = h("textarea", { class: "resolve", spellcheck: "false", "aria-label": `Resolution of ${path}`, rows: 14, hidden: true, oninput: count });
    const column = (label, one, side) => h("div", { class: "sidebyside" }, h("div", { class: "bar small" }, h("b", {}, label), h("span", { class: "actions" }, button(side === "ours" ? "Keep this" : "Take this", () => {
      area.hidden = true;
      decide(side === "ours" ? "ours" : "theirs", side);
    }))), one.text === undefined ? h("p", { class: "faint" }, one.told) : source(one, path, label, signal));
    refill(sides, column(`${name} (ours)`, ours, "ours"), column(`${oneLine(otherName)} (theirs)`, theirs, "theirs"),
      text && h("div", { class: "whole" }, button("Edit by hand", () => {
        area.hidden = false;
        if (!area.value) {
          area.value = merged(...[before, ours, theirs].map((one) => (one.text ?? "").split("\n")), [name, otherName]).join("\n");
          area.setSelectionRange(0, 0);
        }
        area.focus();
        decide("edited", "", () => area.value);
      }), area));
  };
  load().catch((error) => error.name !== "AbortError" && refill(sides, problemBox(error)));
  return h("div", { class: "change conflict" }, h("div", { class: "bar small" }, h("code", { class: "path" }, oneLine(path)), h("span", { class: "faint" }, oneLine(why)), decided), sides);
}

/** The text of a side with its differing lines marked, scrolled to the first of them; colored when the server has answered. */
function source({ text, differs = [] }, path, label, signal) {
  const lines = linesOf(text);
  const made = h("pre", { class: "text", tabindex: "0", role: "region", "aria-label": label });
  const stretch = (from, to, shades) => (shades ? lines.slice(from, to).map((line, at) => [painted(line, shades[from + at]), "\n"]) : visible(lines.slice(from, to).map((line) => `${line}\n`).join("")));
  const draw = (shades) => {
    const pieces = [];
    let at = 0;
    for (const [from, to] of differs) {
      pieces.push(stretch(at, from, shades), to > from && h("mark", {}, stretch(from, to, shades)));
      at = to;
    }
    refill(made, ...pieces, stretch(at, lines.length, shades));
  };
  draw(null);
  render("code", baseOf(path), text, signal).then((told) => told && draw(told.lines), () => null); // the user left the view
  requestAnimationFrame(() => {
    const first = made.querySelector("mark");
    if (first) made.scrollTop = first.offsetTop - made.offsetTop - 60;
  });
  return made;
}

/** Load a side of a conflict: its text, or what it is instead. */
async function content(name, path, rev, signal) {
  try {
    const { bytes, total } = await part(name, path, rev, 0, MOST, signal);
    if (total !== bytes.length) return { told: `Too large to edit here: ${size(total)}.` };
    return looksLikeText(bytes) ? { text: decodeBytes(bytes) } : { told: `Binary, ${size(total)}.` };
  } catch (problem) {
    if (problem.status === 404) return { told: "Removed." };
    if (problem.name === "AbortError") throw problem;
    return { told: visible(problem.message) };
  }
}

const base64 = (text) => btoa(Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join(""));
