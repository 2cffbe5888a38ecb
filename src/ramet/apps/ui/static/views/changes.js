// What changed between two states: a list of paths, each with its diff, loaded when opened.

import { get, part, workspacePath } from "../lib/api.js";
import { button, h, link, refill } from "../lib/dom.js";
import { name as safe, notice, problemBox } from "../lib/frame.js";
import { hunks } from "../lib/linediff.js";
import { decodeBytes, place } from "../lib/names.js";
import { linesOf, looksLikeText, plural, size, visible } from "../lib/text.js";

const MOST = 1 << 20;
const OPEN = 6;
const SHOWN = 300;
const ROWS = 1500;
const SIGNS = { added: "A", modified: "M", removed: "D", renamed: "R" };

/** The changes of `GET /diff`. `before` and `after` are specs of the two states; `before` may be null: nothing. */
export function changesList(name, before, after, { changes, total }, signal) {
  if (!changes.length) return h("p", { class: "faint" }, "No file differs.");
  let quiet = 0;
  const shown = changes.slice(0, SHOWN).map((change) => item(name, before, after, change, signal, quiet++ < OPEN));
  return h("div", {},
    h("p", { class: "summary" }, ...summary(changes)),
    total > changes.length && notice(`${plural(total, "path")} changed; ${changes.length.toLocaleString("en")} are listed.`),
    shown,
    changes.length > SHOWN && notice(`${plural(changes.length - SHOWN, "more change")} not shown here; `, h("code", {}, `ramet diff ${name}`), " lists all."));
}

function summary(changes) {
  const found = Object.keys(SIGNS).map((what) => [what, changes.filter((change) => change.what === what).length]);
  return found.filter(([, number]) => number).map(([what, number], at) => [at ? ", " : "", h("span", { class: what }, `${number.toLocaleString("en")} ${what}`)]);
}

function item(name, before, after, change, signal, open) {
  const body = h("div", { class: "body" });
  const tally = h("span", { class: "tally" });
  let asked = false;
  const load = async () => {
    if (asked) return;
    asked = true;
    refill(body, h("p", { class: "waiting" }, "Loading…"));
    try {
      const old = change.what === "added" || before === null ? null : await side(name, change.old ?? change.path, before, signal);
      const now = change.what === "removed" ? null : await side(name, change.path, after, signal);
      refill(body, difference(old, now, tally));
    } catch (error) {
      asked = false;
      if (error.name !== "AbortError") refill(body, problemBox(error));
    }
  };
  const where = change.what === "removed" ? { name, rev: before, path: change.old ?? change.path } : { name, rev: after, path: change.path };
  const made = h("details", { class: "change", open, ontoggle: () => made.open && load() },
    h("summary", {},
      h("span", { class: ["sign", change.what], title: change.what }, SIGNS[change.what], h("span", { class: "unseen" }, ` ${change.what}`)),
      h("span", { class: "path" }, change.old ? [safe(change.old), " → "] : null, safe(change.path)),
      tally, link(place("ws", where), "view")),
    body);
  if (open) load();
  return made;
}

/** One side of a difference: its bytes, or what it is instead of a file. */
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

function difference(old, now, tally) {
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
  return [unified(found), ends.length === 1 && old && now && h("p", { class: "faint" }, `No newline at the end ${ends[0]}.`)];
}

const sum = (found, sign) => found.reduce((total, hunk) => total + hunk.rows.filter((row) => row.sign === sign).length, 0);

function unified(found) {
  const body = h("tbody");
  const rest = found.flatMap((hunk, at) => [at || hunk.oldStart > 1 || hunk.newStart > 1 ? { gap: true, hunk } : null, ...hunk.rows].filter(Boolean));
  const more = () => {
    body.append(...rest.splice(0, ROWS).map(row));
    if (!rest.length) ending.remove();
    else refill(ending, button(`Show ${Math.min(ROWS, rest.length).toLocaleString("en")} of ${plural(rest.length, "more line")}`, more));
  };
  const ending = h("p", { class: "more" });
  const table = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Difference" }, h("table", { class: "diff" }, body));
  more();
  return [table, rest.length ? ending : null];
}

function row(one) {
  if (one.gap) return h("tr", { class: "gap" }, h("td", { colspan: 2 }, "⋯"), h("td", { colspan: 2 }, `line ${one.hunk.newStart.toLocaleString("en")}`));
  const kind = one.sign === "+" ? "came" : one.sign === "-" ? "gone" : "";
  return h("tr", { class: kind }, h("td", { class: "at" }, one.old ?? ""), h("td", { class: "at" }, one.new ?? ""), h("td", { class: "sign" }, one.sign), h("td", { class: "text" }, marked(one)));
}

function marked({ text, part: range }) {
  if (!range || range[0] === range[1]) return visible(text);
  return [visible(text.slice(0, range[0])), h("mark", {}, visible(text.slice(range[0], range[1]))), visible(text.slice(range[1]))];
}
