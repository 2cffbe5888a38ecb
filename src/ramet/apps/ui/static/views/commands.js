// Every command and other change of a workspace: who did it, how it ended, and what it changed.
// The server searches: filters hold for the whole history, not only for the rows on the page.

import { Painter } from "../lib/ansi.js";
import { get, workspacePath } from "../lib/api.js";
import { button, gradually, h, link, put, refill } from "../lib/dom.js";
import { poll } from "../lib/live.js";
import { name as safe, notice, problemBox, when } from "../lib/messages.js";
import { decodeBytes, place } from "../lib/names.js";
import { duration, looksLikeText, oneLine, plural, size, visible } from "../lib/text.js";
import { number, runOf, stateBadge } from "./records.js";
import { empty, heading } from "./shared.js";

const STEP = 200;
const NAMED = ["agent", "session", "run", "principal", "path", "network"];
const STATES = [["", "any status"], ["failed", "failed"], ["0", "exit 0"], ["1", "exit 1"], ["2", "exit 2"], ["124", "exit 124"], ["127", "exit 127"], ["130", "exit 130"]];
const NETWORK = [["", "any network"], ["any", "used network"], ["refused", "was refused"]];
const SPANS = [["", "any time"], ["3600", "last hour"], ["86400", "last day"], ["604800", "last week"]];

export async function commands({ route, signal, workspace, live }) {
  const { name } = route;
  const wanted = { ...route.query };
  let last = Number(wanted.last) || STEP;
  const context = workspace.then(({ stored }) => ({ name, rev: route.rev, stored, signal }));
  const list = h("div", { class: "cards" });
  const tally = h("span", { class: "faint", role: "status" });
  const ending = h("p", { class: "more" });
  const opened = new Set();
  let asking = null;

  const asked = () => {
    const since = wanted.since ? Date.now() / 1000 - Number(wanted.since) : undefined;
    return { revision: route.rev || undefined, last, text: wanted.text, failed: wanted.failed === true ? "true" : undefined, number: wanted.record, exit_code: wanted.exit, since, ...Object.fromEntries(NAMED.map((key) => [key, wanted[key]])) };
  };
  async function fill() {
    asking?.abort();
    asking = new AbortController();
    signal.addEventListener("abort", () => asking.abort(), { once: true });
    try {
      const [found, around] = await Promise.all([get(workspacePath(name, "/history"), asked(), asking.signal), context]);
      const shown = found.commands;
      if (wanted.record && shown.length) opened.add(shown[0].number);
      tally.textContent = plural(found.total, filtered() ? "match" : "record", filtered() ? "matches" : undefined);
      gradually(refill(list), shown.toReversed(), (one) => item(one, opened, around));
      put(list, !shown.length && (filtered() ? h("p", { class: "faint" }, "No record matches.") : empty("Nothing has run here yet.", name)));
      refill(ending, found.total > found.commands.length && button(`Show ${STEP} more of ${found.total.toLocaleString("en")}`, () => {
        last += STEP;
        return fill();
      }));
    } catch (error) {
      if (error.name !== "AbortError") refill(list, problemBox(error));
    }
  }
  const filtered = () => [...NAMED, "text", "failed", "exit", "since", "record"].some((key) => wanted[key]);
  const keep = (changes) => {
    Object.assign(wanted, changes);
    delete wanted.record;
    last = STEP;
    const query = Object.fromEntries(Object.entries(wanted).filter(([, value]) => value));
    window.history.replaceState(null, "", place("cmds", { name, rev: route.rev, query }));
    return fill();
  };
  let typing = null;
  const soon = (changes) => {
    clearTimeout(typing);
    typing = setTimeout(() => keep(changes()), 200);
  };
  const text = h("input", { type: "search", placeholder: "Search commands", "aria-label": "Search commands", value: wanted.text ?? "", oninput: () => soon(() => ({ text: text.value })) });
  const path = h("input", { type: "search", placeholder: "Changed /path", "aria-label": "Only what changed this path", value: wanted.path ?? "", class: "path-filter", oninput: () => soon(() => ({ path: path.value })) });
  /** A select of agents or sessions: with the current one at once, with all when the server has answered. */
  const whose = (key, label) => {
    const options = (names) => [h("option", { value: "" }, `any ${key}`), names.map((one) => h("option", { value: one, selected: one === wanted[key] }, oneLine(one)))];
    const made = h("select", { "aria-label": label, onchange: () => keep({ [key]: made.value }) }, options(wanted[key] ? [wanted[key]] : []));
    const fillIn = async () => {
      const { costs } = await get(workspacePath(name, "/costs"), { revision: route.rev, by: key }, signal);
      refill(made, options(costs.map((one) => one.name).filter(Boolean)));
    };
    return [made, fillIn];
  };
  const [agent, fillAgents] = whose("agent", "Agent");
  const [session, fillSessions] = whose("session", "Session");
  const choice = (name_, options, value, chosen) => {
    const made = h("select", { "aria-label": name_, onchange: () => keep(chosen(made.value)) },
      (options.some(([one]) => one === value) ? options : [...options, [value, `exit ${value}`]]).map(([one, said]) => h("option", { value: one, selected: one === value }, said)));
    return made;
  };
  const since = choice("Time", SPANS, wanted.since ?? "", (value) => ({ since: value }));
  const status = choice("Status", STATES, wanted.failed === true ? "failed" : wanted.exit ?? "", (value) => ({ failed: value === "failed" || undefined, exit: value === "failed" ? undefined : value }));
  const network = choice("Network", NETWORK, wanted.network ?? "", (value) => ({ network: value }));

  const [{ info, stored, rev, label, known }] = await Promise.all([workspace, fill()]);
  fillAgents().then(fillSessions).catch(() => null); // the filters still search without their lists
  if (!route.rev) {
    // A workspace in memory has no head that changes: its events tell of its commands.
    const again = stored ? poll(workspacePath(name), signal, fill, 4, known) : fill;
    live((event) => event.workspace === name && again());
  }
  const also = ["run", "principal", "record"].filter((key) => wanted[key]);
  return h("div", { class: "page" },
    heading(info, "commands", route.rev),
    h("div", { class: "bar small filters", role: "search" }, text, path, agent, session, status, since, network),
    h("div", { class: "bar small" }, tally, h("span", { class: "faint" }, ...(stored && rev ? ["up to ", link(place("ws", { name, rev: label }), safe(label))] : stored ? [] : ["since it began"])),
      also.map((key) => h("span", { class: "badge tag" }, `${key} ${oneLine(String(wanted[key]))}`, h("a", { href: place("cmds", { name, rev: route.rev, query: { ...wanted, [key]: "" } }), "aria-label": `Without this ${key}` }, " ×")))),
    list, ending);
}

function item(one, opened, context) {
  const body = h("div", { class: "body" });
  const fill = () => body.childElementCount || refill(body, details(one, context));
  const made = h("details", { class: "command", open: opened.has(one.number), ontoggle: () => {
    if (!made.open) return void opened.delete(one.number);
    opened.add(one.number);
    fill();
  } },
  h("summary", {},
    stateBadge(one),
    h("code", { class: "line" }, oneLine(one.command)),
    h("span", { class: "who" }, [one.agent_id, one.session_id !== "default" && one.session_id].filter(Boolean).map(oneLine).join(" · ")),
    h("span", { class: "date" }, when(one.started_at))),
  body);
  if (made.open) fill();
  return made;
}

function details(one, { name, rev, stored, signal }) {
  const bytes = (moved) => Object.entries(moved).map(([mount, moved_]) => `${size(moved_)} (${oneLine(mount)})`).join(", ");
  const mine = (key, value) => link(place("agents", { name, rev, query: { [key]: value } }), safe(value));
  const held = stored && h("dd", {}, "…");
  if (stored) holder(name, rev, one.number, held, signal);
  const paths = (list, gone) => list.map((path) => (gone ? h("code", {}, oneLine(path)) : link(place("ws", { name, rev, path }), h("code", {}, oneLine(path)))));
  const facts = [
    ["Record", String(one.number)], ["Took", duration((one.ended_at - one.started_at) * 1000)],
    ["Agent", one.agent_id && mine("agent", one.agent_id)], ["Session", one.session_id && mine("session", one.session_id)],
    ["Run", one.meta.run !== undefined && mine("run", runOf(one))], ["Principal", one.principal && mine("principal", one.principal)],
    ["Directory", oneLine(one.cwd)], ["Read", bytes(one.bytes_read)], ["Written", bytes(one.bytes_written)],
    ["Exit code", one.exit_code !== 0 && link(place("cmds", { name, rev, query: { exit: one.exit_code } }), String(one.exit_code))],
    ...Object.entries(one.meta).filter(([key]) => key !== "run").map(([key, value]) => [oneLine(key), typeof value === "number" ? number(value) : oneLine(String(value))]),
  ];
  const long = (label, ...what) => [h("dt", { class: "long" }, label), h("dd", { class: "long" }, what)];
  return [
    h("pre", { class: "said" }, visible(one.command)),
    h("dl", {}, facts.filter((fact) => fact[1]).map(([label, what]) => [h("dt", {}, label), h("dd", {}, what)]),
      stored && [h("dt", {}, "Revision"), held],
      one.paths_written.length > 0 && long("Changed", paths(one.paths_written), one.paths_cut > 0 && ` and ${plural(one.paths_cut, "more path")}`),
      one.paths_removed.length > 0 && long("Removed", paths(one.paths_removed, true))),
    one.network_requests > 0 && requests(one),
    output("Output", one.stdout, one.stdout_bytes), output("Error output", one.stderr, one.stderr_bytes),
  ];
}

/** Say which revision holds a record. */
async function holder(name, rev, record, held, signal) {
  try {
    const { revisions: [found] } = await get(workspacePath(name, "/log"), { revision: rev, first_record: record, last_record: record, limit: 1, brief: true }, signal);
    refill(held, found ? link(place("ws", { name: found.workspace, rev: found.name }), safe(found.name)) : h("span", { class: "faint" }, "not committed yet, or it changed no file"));
  } catch {
    refill(held, "–");
  }
}

/** The requests to the network; those that are not listed are counted. */
function requests(one) {
  const left = one.network_requests - one.network.length;
  const refused = one.network.filter((request) => request.verdict === "deny").length;
  return h("div", {}, h("p", { class: "faint" }, `${plural(one.network_requests, "request")} to the network, ${size(one.network_bytes)}`, refused > 0 && ["; ", h("b", { class: "removed" }, `${refused.toLocaleString("en")} refused`)]),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Requests to the network" }, h("table", { class: "requests" },
      h("thead", {}, h("tr", {}, ["Verdict", "By", "Method", "Where", "Rule", "Status", "Bytes"].map((label) => h("th", { scope: "col" }, label)))),
      h("tbody", {}, one.network.map((request) => h("tr", { class: request.verdict === "deny" && "refused" },
        h("td", {}, h("span", { class: ["badge", request.verdict === "deny" ? "bad" : "on"] }, request.verdict === "deny" ? "refused" : "allowed")),
        h("td", {}, oneLine(request.client)), h("td", {}, oneLine(request.method)),
        h("td", {}, h("code", { title: request.address }, oneLine(`${request.scheme}://${host(request)}${request.path}`))),
        h("td", {}, request.rule ? h("code", {}, oneLine(request.rule)) : h("span", { class: "faint" }, "no rule")),
        h("td", {}, request.status || (request.error && request.verdict !== "deny" ? oneLine(request.error) : "–")),
        h("td", { class: "n" }, size(request.bytes_sent + request.bytes_received))))))),
    left > 0 && notice(`${plural(left, "more request")} not listed: see `, h("code", {}, oneLine(`/.sessions/${one.session_id}/network.jsonl`)), "."));
}

const PORTS = { http: 80, https: 443 };
const host = ({ host: name, port, scheme }) => `${name.includes(":") ? `[${name}]` : name}${PORTS[scheme] === port ? "" : `:${port}`}`;

function output(label, encoded, total) {
  if (!total) return null;
  const bytes = Uint8Array.from(atob(encoded), (character) => character.charCodeAt(0));
  return h("div", {}, h("p", { class: "faint" }, label, bytes.length < total && ": ", bytes.length < total && h("b", {}, `the first ${size(bytes.length)} of ${size(total)}`)),
    h("pre", { class: "out" }, looksLikeText(bytes) ? new Painter().feed(decodeBytes(bytes), true).map(({ text, classes }) => h("span", { class: classes }, visible(text))) : `binary, ${size(total)}`));
}
