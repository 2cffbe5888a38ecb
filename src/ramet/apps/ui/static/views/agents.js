// Who did what and what it cost: totals per agent, session, run or principal, and their records on a line of time.

import { change, get, workspacePath } from "../lib/api.js";
import { button, h, link, put, refill, svg } from "../lib/dom.js";
import { ask, name as safe, notice, poll, toast, when } from "../lib/frame.js";
import { place } from "../lib/names.js";
import { duration, moment, oneLine, plural, size } from "../lib/text.js";
import { heading, loaded } from "./shared.js";

const BY = [["agent", "Agents"], ["run", "Runs"], ["session", "Sessions"], ["principal", "Principals"]];
const SHOWN = 400; // records on the line of time
const GAP = 0.04; // share of the width that a pause takes, however long it was

export async function agents({ route, signal, live, reload }) {
  const { name } = route;
  const { info, stored, rev } = await loaded(route, signal);
  if (stored && !rev) return h("div", { class: "page" }, heading(info, "agents"), notice("No revisions yet: nothing has run here."));
  const by = BY.some(([key]) => key === route.query.by) ? route.query.by : "agent";
  const [{ costs }, { commands, total }] = await Promise.all([
    get(workspacePath(name, "/costs"), { revision: route.rev, by }, signal),
    get(workspacePath(name, "/history"), { revision: route.rev, last: SHOWN }, signal),
  ]);
  if (!route.rev) {
    const again = stored ? poll(workspacePath(name), signal, reload) : reload;
    live((event) => event.workspace === name && again());
  }
  const keys = [...new Set(costs.flatMap((one) => Object.keys(one.meta)))].sort();
  return h("div", { class: "page" },
    heading(info, "agents", route.rev),
    h("div", { class: "bar small" },
      h("nav", { class: "choices", "aria-label": "Total by" }, BY.map(([key, label]) =>
        h("a", { class: "button", href: place("agents", { name, rev: route.rev, query: { by: key } }), "aria-current": key === by && "true" }, label))),
      h("span", { class: "faint" }, plural(total, "record"))),
    costs.length ? h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Totals" }, table(name, route.rev, by, costs, keys, reload)) : h("p", { class: "faint" }, "Nothing has run here."),
    commands.length > 0 && timeline(name, route.rev, by, commands, total));
}

const total = (moved) => Object.values(moved).reduce((sum, bytes) => sum + bytes, 0);
const number = (value) => value.toLocaleString("en", { maximumFractionDigits: 4 });

function table(name, rev, by, costs, keys, reload) {
  const networked = costs.some((one) => one.network_requests > 0);
  const heads = [["", BY.find(([key]) => key === by)[1].slice(0, -1)], ["n", "Records"], ["n", "Failed"], ["n", "Time"], ["n", "CPU"], ["n", "Read"], ["n", "Written"], ...(networked ? [["n", "Requests"]] : []), ...keys.map((key) => ["n", oneLine(key)]), ["n", "Last"], ["", h("span", { class: "unseen" }, "Undo")]];
  return h("table", { class: "totals" },
    h("thead", {}, h("tr", {}, heads.map(([kind, label]) => h("th", { class: kind, scope: "col" }, label)))),
    h("tbody", {}, costs.map((one) => h("tr", {},
      h("th", { scope: "row" }, link(place("cmds", { name, rev, query: { [by]: one.name } }), safe(one.name || "none"))),
      h("td", { class: "n" }, one.commands.toLocaleString("en")),
      h("td", { class: "n" }, one.failures ? link(place("cmds", { name, rev, query: { [by]: one.name, failed: true } }), one.failures.toLocaleString("en")) : "0"),
      h("td", { class: "n" }, duration(one.seconds * 1000)),
      h("td", { class: "n" }, duration(one.cpu * 1000)),
      h("td", { class: "n", title: where(one.bytes_read) }, size(total(one.bytes_read))),
      h("td", { class: "n", title: where(one.bytes_written) }, size(total(one.bytes_written))),
      networked && h("td", { class: "n", title: size(one.network_bytes) }, one.network_requests ? link(place("cmds", { name, rev, query: { [by]: one.name, network: "any" } }), one.network_requests.toLocaleString("en")) : "0"),
      keys.map((key) => h("td", { class: "n" }, one.meta[key] === undefined ? "" : number(one.meta[key]))),
      h("td", { class: "n" }, when(one.last)),
      h("td", {}, !rev && (by === "agent" || by === "run") && one.name && undoButton(name, by, one.name, reload))))));
}

const where = (moved) => Object.entries(moved).map(([mount, bytes]) => `${oneLine(mount)}: ${size(bytes)}`).join("\n");

/** Take back what an agent or a run changed; what others changed later stays. */
const undoButton = (name, by, who, after) => button("Undo", async () => {
  let made = null;
  const done = await ask({
    title: `Undo what ${oneLine(who)} changed`, label: "Undo", danger: true,
    text: "A new revision takes its changes back. Changes of others stay. If they overlap, nothing happens and you see the paths. The history keeps everything.",
    fields: [{ name: "message", label: "Message (optional)" }],
    act: async ({ message }) => {
      made = (await change("POST", workspacePath(name, "/undo"), { [by]: who, message })).revision;
    },
  });
  if (!done) return;
  toast(made ? `${made.name} is the newest revision now` : "There was nothing to undo");
  after();
}, { "aria-label": `Undo what ${who} changed` });

// -------------------------------------------------------------------------------------------------- the timeline

const group = { agent: (one) => one.agent_id, session: (one) => one.session_id, principal: (one) => one.principal, run: (one) => String(one.meta.run ?? one.session_id) };

/** A lane per agent: a bar per record. Pauses are shortened, so that work is what one sees. */
function timeline(name, rev, by, records, all) {
  const lanes = [...new Set(records.map(group[by]))];
  const spans = measured(records);
  const height = 26;
  const picture = svg("svg", { class: "timeline", viewBox: `0 0 1000 ${lanes.length * height}`, preserveAspectRatio: "none", height: lanes.length * height, role: "img", "aria-label": `${records.length} records of ${lanes.length} ${by}s in the order of time` },
    lanes.map((_, at) => svg("line", { x1: 0, x2: 1000, y1: (at + 1) * height - 1, y2: (at + 1) * height - 1 })),
    records.map((one, at) => svg("rect", {
      class: [one.exit_code ? "bad" : "good", one.kind !== "command" && "other"], x: spans[at].from * 1000, width: Math.max(3, (spans[at].to - spans[at].from) * 1000),
      y: lanes.indexOf(group[by](one)) * height + 4, height: height - 10, rx: 2, "data-number": one.number,
    }, svg("title", {}, `${moment(one.started_at)} · ${duration((one.ended_at - one.started_at) * 1000)}\n${oneLine(one.command).slice(0, 200)}`))));
  picture.addEventListener("click", (event) => {
    const found = event.target.closest("[data-number]");
    if (found) location.hash = place("cmds", { name, rev, query: { record: found.dataset.number } });
  });
  const [first, last] = [records[0], records[records.length - 1]];
  return h("section", { class: "lines" },
    h("div", { class: "bar small" }, h("h2", {}, "Timeline"), h("span", { class: "faint" }, `${moment(first.started_at)} to ${moment(last.ended_at)}; pauses are shortened`,
      all > records.length && `; the newest ${records.length} of ${plural(all, "record")}`)),
    h("div", { class: "chart" }, h("div", { class: "labels" }, lanes.map((one) => h("span", {}, link(place("cmds", { name, rev, query: { [by]: one } }), safe(one || "none"))))), put(h("div", { class: "plot" }), picture)));
}

/** Where each record begins and ends, between 0 and 1: time goes on evenly while something runs. */
function measured(records) {
  const order = records.map((one, at) => [one.started_at, one.ended_at, at]).sort((a, b) => a[0] - b[0]);
  const busy = [];
  for (const [from, to] of order) {
    const block = busy[busy.length - 1];
    if (block && from <= block[1]) block[1] = Math.max(block[1], to);
    else busy.push([from, to]);
  }
  const worked = busy.reduce((sum, [from, to]) => sum + (to - from), 0) || 1;
  const pauses = Math.min(0.5, GAP * (busy.length - 1));
  const pause = busy.length > 1 ? pauses / (busy.length - 1) : 0;
  let at = 0;
  const scale = (1 - pauses) / worked;
  const starts = busy.map(([from, to]) => {
    const begin = at;
    at += (to - from) * scale + pause;
    return begin;
  });
  const place = (moment_) => {
    let block = 0;
    while (block + 1 < busy.length && busy[block + 1][0] <= moment_) block += 1;
    return starts[block] + (Math.min(moment_, busy[block][1]) - busy[block][0]) * scale;
  };
  return records.map((one) => ({ from: place(one.started_at), to: place(one.ended_at) }));
}
