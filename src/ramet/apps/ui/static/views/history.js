// The history of a workspace as a graph, newest first.

import { get, workspacePath } from "../lib/api.js";
import { button, h, refill, svg } from "../lib/dom.js";
import { lanes } from "../lib/graph.js";
import { poll } from "../lib/live.js";
import { name as safe, notice, problemBox, toast, when } from "../lib/messages.js";
import { place } from "../lib/names.js";
import { lineage, oneLine, plural } from "../lib/text.js";
import { counts, empty, forkButton, heading, makers, mergeButton, shortId, tarButton } from "./shared.js";

const STEP = 100; // revisions that are shown first, and more at a time
const PAGE = 200; // revisions of a request for those that were shown before
const OTHERS = 60; // workspaces among which forks are looked for
const ROW = 60; // pixels, as in the style sheet
const LANE = 16;

export async function history({ route, signal, workspace, live }) {
  const { name } = route;
  const forks = route.query.forks === true;
  const wanted = Number(route.query.limit) || STEP;
  const page = (offset, limit) => get(workspacePath(name, "/log"), { offset, limit, brief: true }, signal);
  const tagsOf = () => get(workspacePath(name, "/tags"), {}, signal);
  const asked = [page(0, forks ? wanted : STEP), tagsOf()];
  const answers = Promise.allSettled(asked); // sent at once; a workspace without revisions refuses them
  let { info, stored, known } = await workspace;
  await answers;
  if (!stored) {
    return h("div", { class: "page" }, heading(info, "history"),
      notice(`A ${info.kind} workspace has no revisions${info.kind === "sandbox" ? " while it runs" : ""}: see its `, h("a", { href: place("ws", { name, path: "/" }) }, "files"), "."));
  }
  let [{ revisions, more }, { tags }] = info.head ? await Promise.all(asked) : [{ revisions: [], more: false }, { tags: [] }];
  let others = forks ? await related(name, revisions, wanted, signal) : { revisions: [], left: 0 };
  const chosen = [];
  const picked = h("div", { class: "picked", hidden: true });
  const pick = (revision, box) => {
    if (box.checked) chosen.push({ revision, box });
    else chosen.splice(chosen.findIndex((one) => one.box === box), 1);
    if (chosen.length > 2) chosen.shift().box.checked = false;
    offer(picked, name, chosen.map((one) => one.revision));
  };
  const top = h("div");
  const list = h("ol", { class: "graph", role: "list" });
  const count = h("span", { class: "faint" });
  const bar = h("div", { class: "bar small" }, count,
    h("label", { class: "check" }, h("input", { type: "checkbox", checked: forks, onchange: (event) => {
      location.hash = place("ws", { name, query: { ...route.query, forks: event.target.checked } });
    } }), "Include forks"));
  const hint = h("div", { hidden: true }, empty("No revisions yet.", name));
  const ending = button(`Show ${STEP} more`, () => further(revisions.length + STEP, true));
  const failed = h("div", { hidden: true });
  const rows = new Map(); // the rows on the page by the id of their revision

  /** Make the page show what is known now; rows that stay the same are left alone. */
  let headed = null;
  function draw() {
    if (headed !== info) refill(top, heading(info, "history", "", [info.head && forkButton(name, info.head), info.head && mergeButton(name), info.head && tarButton(name, info.head.id)]));
    headed = info;
    count.textContent = `${more ? "The newest " : ""}${plural(revisions.length, "revision")}${others.revisions.length ? ` and ${others.revisions.length.toLocaleString("en")} of forks` : ""}`;
    bar.hidden = !revisions.length;
    show(list, rows, { name, revisions: others.revisions.length ? ordered([...revisions, ...others.revisions]) : revisions, tags, head: info.head?.id, pick });
    hint.hidden = Boolean(info.head);
    ending.hidden = !more;
  }

  let reading = Promise.resolve();
  /** Add older revisions until there are so many. */
  const further = (limit, remember = false) => (reading = reading.then(async () => {
    failed.hidden = true;
    while (more && revisions.length < limit) {
      const found = await page(revisions.length, Math.min(PAGE, limit - revisions.length));
      const seen = new Set(revisions.map((one) => one.id)); // a new revision shifts the pages
      revisions = [...revisions, ...found.revisions.filter((one) => !seen.has(one.id))];
      more = found.more;
      if (forks) others = await related(name, revisions, revisions.length, signal);
      draw();
    }
    if (remember) window.history.replaceState(null, "", place("ws", { name, query: { ...route.query, limit: revisions.length } }));
  }).catch((error) => {
    failed.hidden = error.name === "AbortError";
    if (!failed.hidden) refill(failed, problemBox(error));
  }));

  /** Add what is new above the others. */
  const fresh = () => (reading = reading.then(async () => {
    const [found, newest, tagged] = await Promise.all([get(workspacePath(name), {}, signal), page(0, STEP), tagsOf()]);
    [info, tags] = [found, tagged.tags];
    if (continues(newest.revisions, revisions)) {
      const ids = new Set(newest.revisions.map((one) => one.id));
      revisions = [...newest.revisions, ...revisions.filter((one) => !ids.has(one.id))];
    } else ({ revisions, more } = revisions.length > STEP ? await page(0, revisions.length) : newest);
    if (forks) others = await related(name, revisions, revisions.length, signal);
    draw();
  }).catch((error) => error.name !== "AbortError" && toast(`Cannot load what is new: ${error.message}`, "bad")));

  const again = poll(workspacePath(name), signal, fresh, 3, known);
  live((event) => {
    if (event.kind === "tagged" && event.workspace === name) fresh();
    else if (event.kind === "shown" || event.workspace === name) again();
  });
  draw();
  if (revisions.length < wanted) requestAnimationFrame(() => setTimeout(() => further(wanted))); // after these are painted
  return h("div", { class: "page" }, top, bar,
    others.left > 0 && notice(`Too many workspaces: ${plural(others.left, "workspace")} were not searched for forks.`),
    hint, list, failed, h("div", {}, ending), picked);
}

/** Whether the newest revisions only add to those that are known: none of what they bring is further down. */
function continues(newest, known) {
  const at = newest.findIndex((one) => one.id === known[0]?.id);
  const ids = new Set([...newest, ...known].map((one) => one.id));
  return at >= 0 && newest.slice(at).every((one, number) => one.id === known[number]?.id) && newest.slice(0, at).every((one) => one.parents.every((parent) => ids.has(parent)));
}

/** The revisions of other workspaces that share history with this one. */
async function related(name, revisions, limit, signal) {
  const { workspaces } = await get("/workspaces", {}, signal);
  const rest = workspaces.filter((info) => info.kind === "stored" && info.head && info.name !== name);
  const known = new Map(revisions.map((one) => [one.id, one]));
  const found = [];
  for (let at = 0; at < Math.min(rest.length, OTHERS); at += 6) {
    const logs = await Promise.all(rest.slice(at, at + 6).map((info) => get(workspacePath(info.name, "/log"), { limit, brief: true }, signal).catch(() => ({ revisions: [] }))));
    for (const { revisions: theirs } of logs) if (theirs.some((one) => known.has(one.id))) found.push(...theirs);
  }
  const fresh = new Map(found.filter((one) => !known.has(one.id)).map((one) => [one.id, one]));
  return { revisions: [...fresh.values()], left: Math.max(0, rest.length - OTHERS) };
}

/** Topological order, children first, then newest first. */
function ordered(revisions) {
  const byId = new Map(revisions.map((one) => [one.id, one]));
  const children = new Map(revisions.map((one) => [one.id, 0]));
  for (const one of revisions) for (const parent of one.parents) if (children.has(parent)) children.set(parent, children.get(parent) + 1);
  const ready = revisions.filter((one) => children.get(one.id) === 0);
  const out = [];
  while (ready.length) {
    let best = 0;
    for (let at = 1; at < ready.length; at++) if (ready[at].time > ready[best].time) best = at;
    const [one] = ready.splice(best, 1);
    out.push(one);
    for (const parent of one.parents) {
      if (!children.has(parent)) continue;
      children.set(parent, children.get(parent) - 1);
      if (children.get(parent) === 0) ready.push(byId.get(parent));
    }
  }
  return out;
}

/** Fill the list; a row is made again only when its revision is shown differently. */
function show(list, rows, { name, revisions, tags, head, pick }) {
  const drawn = lanes(revisions, head);
  list.style.setProperty("--lanes", `${Math.min(Math.max(...drawn.map((row) => row.width), 1), 14) * LANE + 8}px`);
  const tagged = new Map();
  for (const tag of tags) tagged.set(tag.revision, [...(tagged.get(tag.revision) ?? []), tag]);
  const left = new Set(rows.keys());
  let next = list.firstChild;
  revisions.forEach((revision, at) => {
    const shown = { revision, lines: drawn[at], tags: tagged.get(revision.id) ?? [], head: revision.id === head };
    const { column, color, top, through, bottom } = shown.lines;
    const key = `${column} ${color} ${top.join()} ${through.join()} ${bottom.join()} ${shown.tags.map((tag) => `${tag.name} ${tag.message}`)} ${shown.head} ${revision.notes.length}`;
    let known = rows.get(revision.id);
    left.delete(revision.id);
    if (known?.key !== key) {
      const made = row(name, shown, pick, known?.element.querySelector("input"));
      if (next === known?.element && next) next = next.nextSibling;
      known?.element.remove();
      rows.set(revision.id, (known = { key, element: made }));
    }
    if (known.element === next) next = next.nextSibling;
    else list.insertBefore(known.element, next);
  });
  for (const id of left) {
    rows.get(id).element.remove();
    rows.delete(id);
  }
}

/** The row of a revision; `chooser` is the box of a row that it replaces. */
function row(name, { revision, lines, tags, head }, pick, chooser = null) {
  const where = place("ws", { name: revision.workspace, rev: revision.name });
  const box = chooser ?? h("input", { type: "checkbox", "aria-label": `Compare ${revision.name}`, title: "Choose two to compare", onchange: () => pick(revision, box) });
  return h("li", { class: ["row", revision.workspace !== name && "other"] },
    picture(lines),
    h("div", { class: "about" },
      h("a", { class: "message", href: where }, oneLine(revision.message) || "no message"),
      h("div", { class: "meta" },
        h("span", { class: "rev" }, safe(revision.name)),
        head && h("span", { class: "badge on" }, "head"),
        tags.map((tag) => h("span", { class: "badge tag", title: oneLine(tag.message) }, oneLine(tag.name))),
        revision.lineage !== "root" && !revision.lineage.startsWith("fromClaim") && h("span", { class: "badge" }, oneLine(lineage(revision.lineage))),
        revision.notes.length > 0 && h("span", { class: "badge" }, plural(revision.notes.length, "comment")),
        makers(revision) && h("span", { class: "author" }, makers(revision)),
        when(revision.time))),
    h("div", { class: "changes" }, counts(revision.diff)),
    h("code", { class: "id", title: revision.id }, shortId(revision.id)),
    box);
}

function picture({ column, color, top, through, bottom }) {
  const x = (at) => Math.min(at, 13) * LANE + LANE / 2 + 4;
  const middle = ROW / 2;
  const line = (from, to, y0, y1, number) => svg("path", {
    class: `lane${number % 7}`,
    d: from === to ? `M${x(from)} ${y0}V${y1}` : `M${x(from)} ${y0}C${x(from)} ${(y0 + y1) / 2} ${x(to)} ${(y0 + y1) / 2} ${x(to)} ${y1}`,
  });
  return svg("svg", { class: "lanes", "aria-hidden": "true" },
    through.map(([from, to, number]) => line(from, to, 0, ROW, number)),
    top.map(([from, to, number]) => line(from, to, 0, middle, number)),
    bottom.map(([from, to, number]) => line(from, to, middle, ROW, number)),
    svg("circle", { class: `lane${color % 7}`, cx: x(column), cy: middle, r: 5 }));
}

function offer(bar, name, chosen) {
  bar.hidden = !chosen.length;
  if (chosen.length === 1) refill(bar, h("span", {}, "Choose another revision to compare ", h("b", {}, oneLine(chosen[0].name)), " with."));
  if (chosen.length < 2) return;
  const [older, newer] = [...chosen].sort((a, b) => a.time - b.time);
  const spec = (one) => (one.workspace === name ? one.name : `${one.workspace}@${one.name}`);
  refill(bar, h("span", {}, h("b", {}, oneLine(older.name)), " with ", h("b", {}, oneLine(newer.name))),
    h("a", { class: "button primary", href: place("diff", { name, rev: spec(newer), query: { against: spec(older) } }) }, "Compare"));
}
