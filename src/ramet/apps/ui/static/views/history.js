// The history of a workspace as a graph, newest first.

import { get, workspacePath } from "../lib/api.js";
import { button, h, refill, svg } from "../lib/dom.js";
import { name as safe, newsBar, notice, poll, when } from "../lib/frame.js";
import { lanes } from "../lib/graph.js";
import { place } from "../lib/names.js";
import { lineage, oneLine, plural } from "../lib/text.js";
import { counts, empty, forkButton, heading, mergeButton, shortId, tarButton } from "./shared.js";

const STEP = 100; // revisions on the page, and more at a time
const OTHERS = 60; // workspaces among which forks are looked for
const ROW = 60; // pixels, as in the style sheet
const LANE = 16;

export async function history({ route, signal, workspace, live, reload }) {
  const { name } = route;
  const forks = route.query.forks === true;
  const limit = Number(route.query.limit) || STEP;
  const asked = [get(workspacePath(name, "/log"), { limit }, signal), get(workspacePath(name, "/tags"), {}, signal)];
  const answers = Promise.allSettled(asked); // sent at once; a workspace without revisions refuses them
  const { info, stored } = await workspace;
  await answers;
  if (!stored) {
    return h("div", { class: "page" }, heading(info, "history"),
      notice(`A ${info.kind} workspace has no revisions${info.kind === "sandbox" ? " while it runs" : ""}: see its `, h("a", { href: place("ws", { name, path: "/" }) }, "files"), "."));
  }
  const [log, { tags }] = info.head ? await Promise.all(asked) : [{ revisions: [], more: false }, { tags: [] }];
  const others = forks ? await related(name, log.revisions, limit, signal) : { revisions: [], left: 0 };
  const revisions = ordered([...log.revisions, ...others.revisions]);
  const tagged = Map.groupBy ? Map.groupBy(tags, (tag) => tag.revision) : grouped(tags);
  const chosen = [];
  const news = newsBar(reload);
  const fresh = () => {
    if (chosen.length) news.tell(); // a reload would lose the choice of what to compare
    else reload();
  };
  const again = poll(workspacePath(name), signal, fresh, 3);
  live((event) => {
    if (event.kind === "tagged" && event.workspace === name) fresh();
    else if (event.kind === "shown" || event.workspace === name) again();
  });
  const picked = h("div", { class: "picked", hidden: true });
  const pick = (revision, box) => {
    if (box.checked) chosen.push({ revision, box });
    else chosen.splice(chosen.findIndex((one) => one.box === box), 1);
    if (chosen.length > 2) chosen.shift().box.checked = false;
    offer(picked, name, chosen.map((one) => one.revision));
  };
  return h("div", { class: "page" },
    heading(info, "history", "", [info.head && forkButton(name, info.head), info.head && mergeButton(name), info.head && tarButton(name, info.head.id)]),
    !info.head && empty("No revisions yet.", name),
    revisions.length > 0 && h("div", { class: "bar small" },
      h("span", { class: "faint" }, log.more ? `The newest ${plural(log.revisions.length, "revision")}` : plural(log.revisions.length, "revision"), others.revisions.length > 0 && ` and ${others.revisions.length.toLocaleString("en")} of forks`),
      h("label", { class: "check" }, h("input", { type: "checkbox", checked: forks, onchange: (event) => {
        location.hash = place("ws", { name, query: { ...route.query, forks: event.target.checked } });
      } }), "Include forks")),
    others.left > 0 && notice(`Too many workspaces: ${plural(others.left, "workspace")} were not searched for forks.`),
    news.bar,
    h("ol", { class: "graph", role: "list" }, rows(name, revisions, tagged, info.head?.id, pick)),
    log.more && button(`Show ${STEP} more`, () => {
      location.hash = place("ws", { name, query: { ...route.query, limit: limit + STEP } });
    }),
    picked);
}

function grouped(tags) {
  const found = new Map();
  for (const tag of tags) found.set(tag.revision, [...(found.get(tag.revision) ?? []), tag]);
  return found;
}

/** The revisions of other workspaces that share history with this one. */
async function related(name, revisions, limit, signal) {
  const { workspaces } = await get("/workspaces", {}, signal);
  const rest = workspaces.filter((info) => info.kind === "stored" && info.head && info.name !== name);
  const known = new Map(revisions.map((one) => [one.id, one]));
  const found = [];
  for (let at = 0; at < Math.min(rest.length, OTHERS); at += 6) {
    const logs = await Promise.all(rest.slice(at, at + 6).map((info) => get(workspacePath(info.name, "/log"), { limit }, signal).catch(() => ({ revisions: [] }))));
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

function rows(name, revisions, tagged, head, pick) {
  const drawn = lanes(revisions, head);
  const width = Math.min(Math.max(...drawn.map((row) => row.width), 1), 14) * LANE + 8;
  return revisions.map((revision, at) => {
    const where = place("ws", { name: revision.workspace, rev: revision.name });
    const box = h("input", { type: "checkbox", "aria-label": `Compare ${revision.name}`, title: "Choose two to compare", onchange: () => pick(revision, box) });
    return h("li", { class: ["row", revision.workspace !== name && "other"] },
      picture(drawn[at], width),
      h("div", { class: "about" },
        h("a", { class: "message", href: where }, oneLine(revision.message) || "no message"),
        h("div", { class: "meta" },
          h("span", { class: "rev" }, safe(revision.name)),
          revision.id === head && h("span", { class: "badge on" }, "head"),
          (tagged.get(revision.id) ?? []).map((tag) => h("span", { class: "badge tag", title: oneLine(tag.message) }, oneLine(tag.name))),
          revision.lineage !== "root" && !revision.lineage.startsWith("fromClaim") && h("span", { class: "badge" }, oneLine(lineage(revision.lineage))),
          revision.notes.length > 0 && h("span", { class: "badge" }, plural(revision.notes.length, "comment")),
          (revision.author || revision.agent) && h("span", { class: "author" }, oneLine(revision.author || revision.agent)),
          when(revision.time))),
      h("div", { class: "changes" }, counts(revision.diff)),
      h("code", { class: "id", title: revision.id }, shortId(revision.id)),
      box);
  });
}

function picture({ column, color, top, through, bottom }, width) {
  const x = (at) => Math.min(at, 13) * LANE + LANE / 2 + 4;
  const middle = ROW / 2;
  const line = (from, to, y0, y1, number) => svg("path", {
    class: `lane${number % 7}`,
    d: from === to ? `M${x(from)} ${y0}V${y1}` : `M${x(from)} ${y0}C${x(from)} ${(y0 + y1) / 2} ${x(to)} ${(y0 + y1) / 2} ${x(to)} ${y1}`,
  });
  return svg("svg", { class: "lanes", width, height: ROW, viewBox: `0 0 ${width} ${ROW}`, "aria-hidden": "true" },
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
