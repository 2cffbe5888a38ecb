// One file: as text with line numbers, an image, a document, a table or hex; a large one in parts. Nothing in it runs.

import { get, part, render, RENDERED, workspacePath } from "../lib/api.js";
import { delimiterOf } from "../lib/csv.js";
import { button, gradually, h, link, put, refill } from "../lib/dom.js";
import { name as safe, notice, problemBox, when } from "../lib/messages.js";
import { baseOf, decodeBytes, place } from "../lib/names.js";
import { painted } from "../lib/paint.js";
import { hexDump, imageType, linesOf, looksLikeText, mode, oneLine, plural, size, visible } from "../lib/text.js";
import { document_, isMarkdown } from "./markdown.js";
import { download } from "./shared.js";
import { sheet } from "./sheet.js";

const PART = 250_000; // bytes that are shown at a time
const HEX = 16 << 10;
const IMAGE = 20_000_000;
const PADDING = 10; // pixels above the first line, as in the style sheet
const KEPT = 24; // parts below each other, before the page asks to download instead

export async function fileView({ route, signal, later }, state, path, stat, revision, at) {
  const { name, rev, stored } = state;
  const { query } = route;
  const line = Number(query.line) || 0;
  const blame = query.blame === true && stored;
  const form = isMarkdown(path) ? "Rendered" : delimiterOf(path) ? "Table" : null;
  const source = query.source === true || line > 0;
  const bar = (text, made = false) => h("div", { class: "bar small file" },
    made && h("div", { class: "switch", role: "group", "aria-label": "Show as" },
      [[form, {}, !source && !blame], ["Source", { source: true }, source && !blame]].map(([label, to, on]) => h("a", { href: at(to), "aria-current": on && "true" }, label))),
    h("span", { class: "faint" }, [size(stat.size), mode(stat.mode, stat.kind)].filter(Boolean).join(" · "), h("span", { class: "language" })),
    h("span", { class: "actions" },
      stored && text && h("a", { class: "button", href: at({ blame: !blame || null }), "aria-current": blame && "true" }, "Blame"),
      stored && revision.parents.length > 0 && h("a", { class: "button", href: place("diff", { name, rev: revision.name }) }, "Changes"),
      button("Download", () => download(workspacePath(name, "/file"), { path, revision: rev }, baseOf(path)))));
  if (blame) {
    const found = blamed(name, path, rev, signal); // takes its time where thousands of revisions changed the file
    const read = stat.size <= PART && await part(name, path, rev, 0, PART, signal);
    return [bar(true, form), later(found, read && looksLikeText(read.bytes) ? unattributed(linesOf(decodeBytes(read.bytes))) : "Loading…")];
  }
  if (stat.size === 0) return [bar(false), h("p", { class: "faint" }, "An empty file.")];
  const first = await part(name, path, rev, 0, PART, signal);
  const type = imageType(first.bytes);
  if (type) return [bar(false), await image(name, path, rev, first, type, signal)];
  if (!looksLikeText(first.bytes)) return [bar(false), hex(name, path, rev, first, signal)];
  const heading = bar(true, form);
  if (form === "Table" && !source) return [heading, sheet(name, path, rev, first, signal)];
  const document = form === "Rendered" && !source && await rendered(state, path, first, signal);
  if (document) return [heading, document];
  const unmade = form === "Rendered" && !source && notice("Too large or too slow to render: this is the source.");
  return [heading, unmade, text(name, path, rev, first, signal, line, at, heading.querySelector(".language"))];
}

/** A Markdown file as a document; null if it is too large. */
export async function rendered({ name, rev, spec }, path, { bytes, total }, signal) {
  return total === bytes.length ? document_(decodeBytes(bytes), { name, rev, spec, path }, signal) : null;
}

// ------------------------------------------------------------------------------------------------------- text

function text(name, path, rev, first, signal, line, at, language) {
  if (!first.bytes.length) return h("p", { class: "faint" }, "An empty file.");
  const numbers = h("pre", { class: "numbers", "aria-hidden": "true", title: "Click for a link to the line", onclick: (event) => {
    const found = Math.floor((event.offsetY - PADDING) / height()) + 1;
    if (found < 1 || found > lines) return;
    window.history.replaceState(null, "", at({ line: found }));
    point(found);
  } });
  const body = h("pre", { class: "text" });
  const holder = h("div");
  const told = h("div");
  const ending = h("p", { class: "more" });
  let [shown, lines, parts, rest, broken] = [0, 0, 0, new Uint8Array(0), false];
  const add = ({ bytes, total }) => {
    // An incomplete last line waits for its rest, so that line numbers and characters are right.
    const all = new Uint8Array(rest.length + bytes.length);
    all.set(rest);
    all.set(bytes, rest.length);
    shown += bytes.length;
    parts += 1;
    const over = total !== null && shown >= total;
    const cut = over ? all.length : all.lastIndexOf(10) + 1 || all.length;
    rest = all.slice(cut);
    const content = decodeBytes(all.subarray(0, cut));
    const begun = linesOf(content).length - (broken ? 1 : 0); // a line longer than a part continues in the next one
    put(numbers, Array.from({ length: begun }, (_, number) => `${lines + number + 1}\n`).join(""));
    put(body, visible(content));
    lines += begun;
    broken = !content.endsWith("\n");
    refill(ending);
    refill(told);
    if (over) return;
    const next = total !== null && parts < KEPT;
    put(told, h("p", { class: "bar small paging", role: "note" }, h("span", {}, `Large file: the first ${size(shown)} of ${total === null ? "more" : size(total)}. `), !next && "Download it to see the rest. ",
      next && moreButton(total), total !== null && button("Show the end", () => refill(holder, end(name, path, rev, total, signal)))));
    put(ending, next && moreButton(total));
  };
  const moreButton = (total) => button(`Show ${size(Math.min(PART, total - shown))} more`, more);
  const more = async () => {
    try {
      add(await part(name, path, rev, shown, shown + PART, signal));
    } catch (error) {
      put(ending, problemBox(error));
    }
  };
  add(first);
  if (first.total === first.bytes.length) color(body, path, decodeBytes(first.bytes), language, signal);
  else language.textContent = " · too large for colors";
  const mark = h("div", { class: "line-mark", hidden: true });
  const code = h("div", { class: "code", tabindex: "0", role: "region", "aria-label": "Content" }, numbers, body, mark);
  const height = () => parseFloat(getComputedStyle(body).lineHeight);
  const point = (number) => {
    mark.hidden = false;
    mark.style.top = `${PADDING + (number - 1) * height()}px`;
  };
  const seek = async () => {
    while (lines < line && ending.childElementCount && parts < KEPT) await more();
    if (line > lines) return;
    point(line);
    code.scrollTop = mark.offsetTop - code.clientHeight / 2;
  };
  if (line) requestAnimationFrame(seek);
  return put(holder, told, code, ending);
}

/** Color the text when the server has answered. */
async function color(body, path, content, language, signal) {
  const told = await render("code", baseOf(path), content, signal).catch(() => null);
  if (told === null) language.textContent = " · no colors: too large, or too slow";
  if (!told?.language) return;
  language.textContent = ` · ${told.language}`;
  refill(body, linesOf(content).map((line, at) => [at > 0 && "\n", painted(line, told.lines[at])]));
}

/** The end of a file, without line numbers, because the lines before it were not read. */
function end(name, path, rev, total, signal) {
  const holder = h("div", {}, h("p", { class: "waiting" }, "Loading…"));
  const from = Math.max(0, total - PART);
  part(name, path, rev, from, total, signal).then(({ bytes }) => {
    const start = bytes.indexOf(10) + 1;
    const found = linesOf(decodeBytes(bytes.subarray(start)));
    refill(holder, h("p", { class: "bar small paging", role: "note" }, `The last ${plural(found.length, "line")} of ${size(total)}, without line numbers.`),
      h("div", { class: "code", tabindex: "0", role: "region", "aria-label": "Content" }, h("pre", { class: "text" }, found.map(visible).join("\n"))));
  }, (error) => error.name !== "AbortError" && refill(holder, problemBox(error)));
  return holder;
}

// ---------------------------------------------------------------------------------------- images and the rest

async function image(name, path, rev, first, type, signal) {
  if (first.total === null || first.total > IMAGE) return notice(`This image has ${size(first.total)}, too much to show here (${size(IMAGE)} at most). Download it.`);
  const { bytes } = first.total <= first.bytes.length ? first : await part(name, path, rev, 0, first.total, signal);
  const href = URL.createObjectURL(new Blob([bytes], { type }));
  signal.addEventListener("abort", () => URL.revokeObjectURL(href));
  const shown = h("img", { src: href, alt: oneLine(baseOf(path)) });
  const facts = h("figcaption", { class: "faint" }, type);
  shown.addEventListener("load", () => refill(facts, `${type} · ${shown.naturalWidth} × ${shown.naturalHeight}`));
  shown.addEventListener("error", () => refill(facts, `${type}: the browser cannot show it; the file may be damaged`));
  return h("figure", { class: "image" }, shown, facts);
}

function hex(name, path, rev, first, signal) {
  const dump = h("pre", { class: "text hex" });
  const where = h("span");
  const total = first.total ?? first.bytes.length;
  let from = 0;
  const go = async (to) => {
    from = Math.max(0, Math.min(to, Math.floor((total - 1) / HEX) * HEX));
    const { bytes } = from + HEX <= first.bytes.length || from === 0 ? { bytes: first.bytes.subarray(from, from + HEX) } : await part(name, path, rev, from, from + HEX, signal);
    refill(dump, hexDump(bytes, from));
    refill(where, `Binary: bytes ${from.toLocaleString("en")} to ${(from + bytes.length).toLocaleString("en")} of ${total.toLocaleString("en")}`, first.total === null && " (at least)");
  };
  go(0);
  return h("div", {},
    h("p", { class: "bar small paging" }, where, total > HEX && [button("First", () => go(0)), button("Back", () => go(from - HEX)), button("Next", () => go(from + HEX)), button("Last", () => go(total))]),
    h("div", { class: "code", tabindex: "0", role: "region", "aria-label": "Content" }, dump));
}

// ------------------------------------------------------------------------------------------------------ blame

async function blamed(name, path, rev, signal) {
  const { lines, revisions } = await get(workspacePath(name, "/blame"), { path, revision: rev, brief: true }, signal);
  const times = new Map(revisions.map((one) => [one.id, one.time]));
  if (!lines.length) return h("p", { class: "faint" }, "An empty file.");
  const cells = new Map(); // of the lines on the page
  let told = null;
  if (lines.reduce((sum, line) => sum + line.text.length + 1, 0) <= RENDERED) {
    render("code", baseOf(path), lines.map((line) => line.text).join("\n"), signal).then((found) => {
      told = found;
      cells.forEach((cell, line) => refill(cell, painted(line.text, told?.lines[line.number - 1])));
    }, () => null); // the user left the view
  }
  const shades = new Map();
  const shade = (revision) => shades.get(revision) ?? (shades.set(revision, shades.size % 7), shades.get(revision));
  const body = h("tbody");
  const rest = [...lines];
  let last = null;
  const row = (line) => {
    const same = last && last.revision === line.revision && last.record === line.record;
    const who = line.agent || line.principal;
    last = line;
    const cell = h("td", { class: "text" }, painted(line.text, told?.lines[line.number - 1]));
    cells.set(line, cell);
    return h("tr", { class: [!same && "first", `shade${shade(line.revision)}`] },
      h("td", { class: "by" }, !same && h("span", {}, who && link(place("agents", { name, query: { agent: who } }), h("b", {}, safe(who))),
        line.command ? link(place("cmds", { name, rev: line.revision, query: { record: line.record } }), h("code", { title: oneLine(line.command) }, oneLine(line.command))) : h("span", { class: "faint" }, "unknown"))),
      h("td", { class: "when" }, !same && [link(place("ws", { name, rev: line.revision }), safe(line.revision)), when(times.get(line.id))]),
      h("td", { class: "at" }, line.number), cell);
  };
  const ending = h("p", { class: "more" });
  const more = () => {
    gradually(body, rest.splice(0, 2000), row);
    refill(ending, rest.length > 0 && button(`Show more of ${plural(rest.length, "line")}`, more));
  };
  more();
  return h("div", {}, blameTable(body), ending);
}

const blameTable = (body) => h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Who wrote each line" }, h("table", { class: "diff blame" }, body));

/** The lines before the server has found who wrote them. */
const unattributed = (lines) => blameTable(gradually(h("tbody"), lines.slice(0, 2000), (line, at) => h("tr", { class: at === 0 && "first" },
  h("td", { class: "by" }, at === 0 && h("span", {}, h("span", { class: "faint" }, "Loading…"))), h("td", { class: "when" }), h("td", { class: "at" }, at + 1), h("td", { class: "text" }, visible(line)))));
