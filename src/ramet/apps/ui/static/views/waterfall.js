// What one agent, run, session or principal did, in the order of time: commands, tool calls, and the revisions that hold them.

import { get, workspacePath } from "../lib/api.js";
import { button, h, link, refill } from "../lib/dom.js";
import { poll } from "../lib/live.js";
import { name as safe, when } from "../lib/messages.js";
import { place } from "../lib/names.js";
import { duration, moment, oneLine, plural, size } from "../lib/text.js";
import { positions } from "../lib/timescale.js";
import { BY, legend } from "./agents.js";
import { empty, heading } from "./shared.js";
import { metaKeys, number, outcome, stateBadge, sum, undoButton } from "./records.js";

const STEP = 200; // records on the page, and more at a time
const NUMBERS = 200; // records of a request for their revisions
const PATHS = 30; // files that are named

export async function waterfall({ route, signal, workspace, live, later, reload }) {
  const { name, rev, query } = route;
  const [by, plural_] = BY.find(([key]) => query[key] !== undefined);
  const who = String(query[by]);
  const last = Number(query.last) || STEP;
  const [{ info, stored, known }, { commands, total }, { costs }] = await Promise.all([
    workspace,
    get(workspacePath(name, "/history"), { revision: rev, [by]: who, last }, signal),
    get(workspacePath(name, "/costs"), { revision: rev, by }, signal),
  ]);
  if (!rev) {
    const again = stored ? poll(workspacePath(name), signal, reload, 4, known) : reload;
    live((event) => event.workspace === name && again());
  }
  const cost = costs.find((one) => one.name === who);
  const list = h("ol", { class: "waterfall" }, rows(name, rev, inOrder(commands, [])));
  /** Add the revisions, which the server has to find, between the records that are shown already. */
  const more = async () => {
    const revisions = await holding(name, rev, commands, signal);
    if (revisions.length) refill(list, rows(name, rev, inOrder(commands, revisions)));
  };
  return h("div", { class: "page" },
    heading(info, "agents", rev),
    h("div", { class: "bar small" },
      h("h2", {}, `${plural_.slice(0, -1)} `, safe(who || "none")),
      link(place("agents", { name, rev, query: { by } }), `All ${plural_.toLowerCase()}`),
      h("span", { class: "actions" },
        h("a", { class: "button", href: place("cmds", { name, rev, query: { [by]: who } }) }, "Search the commands"),
        !rev && (by === "agent" || by === "run") && who && undoButton(name, by, who, reload))),
    cost ? facts(name, rev, by, cost, commands, total) : empty(`No record of this ${by}.`),
    commands.length > 0 && h("section", { class: "lines" },
      h("div", { class: "bar small" }, h("h2", {}, "Timeline"), h("span", { class: "faint" }, `${moment(commands[0].started_at)} to ${moment(commands[commands.length - 1].ended_at)}; pauses are cut short`), legend()),
      total > commands.length && h("p", { class: "more" }, button(`Show ${Math.min(STEP, total - commands.length)} of ${plural(total - commands.length, "earlier record")}`, () => {
        location.hash = place("agents", { name, rev, query: { ...query, last: last + STEP } });
      })),
      list, stored && later(more())));
}

/** The revisions that hold records, oldest first. */
async function holding(name, rev, commands, signal) {
  const found = [];
  for (let at = 0; at < commands.length; at += NUMBERS) {
    const records = commands.slice(at, at + NUMBERS).map((one) => one.number).join(",");
    const { revisions } = await get(workspacePath(name, "/log"), { revision: rev, records, limit: NUMBERS, brief: true }, signal);
    found.push(...revisions.reverse());
  }
  return found.filter((one, at) => at === 0 || one.id !== found[at - 1].id);
}

/** Records and revisions, each revision after the last record that it holds. */
function inOrder(commands, revisions) {
  const left = [...revisions];
  const steps = [];
  for (const record of commands) {
    while (left.length && left[0].ops.last < record.number) steps.push({ revision: left.shift() });
    steps.push({ record });
  }
  return [...steps, ...left.map((revision) => ({ revision }))];
}

function facts(name, rev, by, cost, commands, total) {
  const paths = [...new Set(commands.flatMap((one) => one.paths_written))];
  const removed = [...new Set(commands.flatMap((one) => one.paths_removed))].filter((path) => !paths.includes(path));
  const failed = cost.failures ? link(place("cmds", { name, rev, query: { [by]: cost.name, failed: true } }), plural(cost.failures, "failure")) : "no failure";
  const told = [
    ["Records", h("span", {}, cost.commands.toLocaleString("en"), ", ", failed)], ["Time", `${duration(cost.seconds * 1000)}, ${duration(cost.cpu * 1000)} of CPU`],
    ["Bytes", `${size(sum(cost.bytes_read))} read, ${size(sum(cost.bytes_written))} written`],
    cost.network_requests > 0 && ["Network", link(place("cmds", { name, rev, query: { [by]: cost.name, network: "any" } }), `${plural(cost.network_requests, "request")}, ${size(cost.network_bytes)}`)],
    ...metaKeys([cost]).map((key) => [oneLine(key), number(cost.meta[key])]),
  ].filter(Boolean);
  const files = [...paths.map((path) => link(place("ws", { name, rev, path }), h("code", {}, oneLine(path)))), ...removed.map((path) => h("code", { class: "removed", title: "removed" }, oneLine(path)))];
  return h("section", { class: "about-revision", "aria-label": "Totals" },
    h("dl", {}, told.map(([label, what]) => [h("dt", {}, label), h("dd", {}, what)]),
      h("dt", { class: "long" }, "Files"), h("dd", { class: "long" }, files.length ? files.slice(0, PATHS) : "none",
        cost.files > Math.min(files.length, PATHS) && h("span", { class: "faint" }, `${files.length ? "and " : ""}${(cost.files - Math.min(files.length, PATHS)).toLocaleString("en")} more`, total > commands.length && ", also of earlier records"))));
}

function rows(name, rev, steps) {
  const spans = positions(steps.map(({ record, revision }) => (record ? [record.started_at, record.ended_at] : [revision.time, revision.time])));
  return steps.map(({ record, revision }, at) => {
    const bar = h("span", { class: "track", "aria-hidden": "true" }, h("span", { class: ["span", record ? outcome(record) : "revision"] }));
    const { style } = bar.firstChild;
    style.left = `min(${spans[at].from * 100}%, calc(100% - 3px))`;
    style.width = `${(spans[at].to - spans[at].from) * 100}%`;
    if (revision) {
      return h("li", { class: "revision" }, h("span", { class: "badge tag" }, "revision"),
        h("span", { class: "step" }, link(place("ws", { name: revision.workspace, rev: revision.name }), safe(revision.name)), " ", h("span", { class: "faint" }, safe(revision.message))), bar, h("span", { class: "faint" }, when(revision.time)));
    }
    return h("li", {}, stateBadge(record),
      h("span", { class: "step" }, link(place("cmds", { name, rev, query: { record: record.number } }), h("code", { title: oneLine(record.command) }, oneLine(record.command)))), bar,
      h("span", { class: "faint" }, duration((record.ended_at - record.started_at) * 1000)));
  });
}
