// What agents, runs, sessions and principals did and what it cost, as totals and on a timeline.

import { get, workspacePath } from "../lib/api.js";
import { gradually, h, link, painting, put, svg } from "../lib/dom.js";
import { poll } from "../lib/live.js";
import { name as safe, when } from "../lib/messages.js";
import { place } from "../lib/names.js";
import { duration, moment, oneLine, plural, size } from "../lib/text.js";
import { positions } from "../lib/timescale.js";
import { empty, heading } from "./shared.js";
import { metaKeys, number, outcome, runOf, sum, undoButton } from "./records.js";

export const BY = [["agent", "Agents"], ["run", "Runs"], ["session", "Sessions"], ["principal", "Principals"]];
const SHOWN = 400; // records on the timeline
const GROUPS = { agent: (one) => one.agent_id, session: (one) => one.session_id, principal: (one) => one.principal, run: runOf };

export async function agents({ route, signal, workspace, live, later, reload }) {
  const { name } = route;
  const by = BY.some(([key]) => key === route.query.by) ? route.query.by : "agent";
  const [{ info, stored, rev, known }, { costs }, { commands, total }] = await Promise.all([
    workspace,
    get(workspacePath(name, "/costs"), { revision: route.rev, by }, signal),
    get(workspacePath(name, "/history"), { revision: route.rev, last: SHOWN }, signal),
  ]);
  if (!route.rev) {
    const again = stored ? poll(workspacePath(name), signal, reload, 4, known) : reload;
    live((event) => event.workspace === name && again());
  }
  if (!costs.length) return h("div", { class: "page" }, heading(info, "agents", rev && route.rev), empty("Nothing has run here yet.", name));
  return h("div", { class: "page" },
    heading(info, "agents", route.rev),
    h("div", { class: "bar small" },
      h("nav", { class: "choices", "aria-label": "Group by" }, BY.map(([key, label]) =>
        h("a", { class: "button", href: place("agents", { name, rev: route.rev, query: { by: key } }), "aria-current": key === by && "true" }, label))),
      h("span", { class: "faint" }, plural(total, "record"))),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Totals" }, table(name, route.rev, by, costs, reload)),
    later(painting().then(() => timeline(name, route.rev, by, commands, total))));
}

function table(name, rev, by, costs, reload) {
  const networked = costs.some((one) => one.network_requests > 0);
  const keys = metaKeys(costs);
  const heads = [["", BY.find(([key]) => key === by)[1].slice(0, -1)], ["n", "Records"], ["n", "Failed"], ["n", "Time"], ["n", "Files"], ["n", "Read"], ["n", "Written"],
    networked && ["n", "Requests"], ...keys.map((key) => ["n", oneLine(key)]), ["n", "Last"], ["", h("span", { class: "unseen" }, "Undo")]].filter(Boolean);
  const records = (who, query, text) => link(place("cmds", { name, rev, query: { [by]: who, ...query } }), text);
  return h("table", { class: "totals" },
    h("thead", {}, h("tr", {}, heads.map(([kind, label]) => h("th", { class: kind, scope: "col" }, label)))),
    gradually(h("tbody"), costs, (one) => h("tr", {},
      h("th", { scope: "row", title: oneLine(one.name) }, whole(name, rev, by, one.name)),
      h("td", { class: "n" }, records(one.name, {}, one.commands.toLocaleString("en"))),
      h("td", { class: ["n", one.failures && "failed"] }, one.failures ? records(one.name, { failed: true }, one.failures.toLocaleString("en")) : "0"),
      h("td", { class: "n", title: `${duration(one.cpu * 1000)} of CPU` }, duration(one.seconds * 1000)),
      h("td", { class: "n" }, one.files.toLocaleString("en")),
      h("td", { class: "n", title: byMount(one.bytes_read) }, size(sum(one.bytes_read))),
      h("td", { class: "n", title: byMount(one.bytes_written) }, size(sum(one.bytes_written))),
      networked && h("td", { class: "n", title: size(one.network_bytes) }, one.network_requests ? records(one.name, { network: "any" }, one.network_requests.toLocaleString("en")) : "0"),
      keys.map((key) => h("td", { class: "n" }, one.meta[key] === undefined ? "" : number(one.meta[key]))),
      h("td", { class: "n" }, when(one.last)),
      h("td", {}, !rev && (by === "agent" || by === "run") && one.name && undoButton(name, by, one.name, reload)))));
}

/** A link to all that one of them did; records without a name have no page. */
const whole = (name, rev, by, who) => (who ? link(place("agents", { name, rev, query: { [by]: who } }), safe(who)) : "none");

const byMount = (moved) => Object.entries(moved).map(([mount, bytes]) => `${oneLine(mount)}: ${size(bytes)}`).join("\n");

// -------------------------------------------------------------------------------------------------- the timeline

/** A lane per group with a bar per record. The list of the same records is under Commands, for keyboards too. */
function timeline(name, rev, by, records, all) {
  const group = GROUPS[by];
  const lanes = [...new Set(records.map(group))];
  const bars = positions(records.map((one) => [one.started_at, one.ended_at]));
  const height = 26;
  const picture = svg("svg", { class: "timeline", viewBox: `0 0 1000 ${lanes.length * height}`, preserveAspectRatio: "none", height: lanes.length * height, role: "img", "aria-label": `${plural(records.length, "record")} of ${plural(lanes.length, by)} in the order of time` },
    lanes.map((_, at) => svg("line", { x1: 0, x2: 1000, y1: (at + 1) * height - 1, y2: (at + 1) * height - 1 })),
    records.map((one, at) => svg("rect", {
      class: outcome(one), x: Math.min(bars[at].from * 1000, 997), width: Math.max(3, (bars[at].to - bars[at].from) * 1000),
      y: lanes.indexOf(group(one)) * height + 4, height: height - 10, rx: 2, "data-number": one.number,
    }, svg("title", {}, `${moment(one.started_at)} · ${duration((one.ended_at - one.started_at) * 1000)}\n${oneLine(one.command).slice(0, 200)}`))));
  picture.addEventListener("click", (event) => {
    const found = event.target.closest("[data-number]");
    if (found) location.hash = place("cmds", { name, rev, query: { record: found.dataset.number } });
  });
  const [first, last] = [records[0], records[records.length - 1]];
  return h("section", { class: "lines" },
    h("div", { class: "bar small" }, h("h2", {}, "Timeline"), h("span", { class: "faint" }, `${moment(first.started_at)} to ${moment(last.ended_at)}; pauses are cut short`,
      all > records.length && `; the newest ${records.length} of ${plural(all, "record")}`), legend()),
    h("div", { class: "chart" }, h("div", { class: "labels" }, lanes.map((one) => h("span", {}, whole(name, rev, by, one)))), put(h("div", { class: "plot" }), picture)));
}

/** What the colors of bars mean. */
export const legend = () => h("span", { class: "legend faint" }, [["good", "succeeded"], ["bad", "failed"], ["other", "tool call or other change"]].map(([kind, label]) => h("span", { class: kind }, label)));
