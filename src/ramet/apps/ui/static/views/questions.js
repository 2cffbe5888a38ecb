// Questions of `ask` rules in every view of a workspace: a badge in the header, and a panel to answer them.

import { change, get, workspacePath } from "../lib/api.js";
import { button, h, link, refill } from "../lib/dom.js";
import { listen, poll } from "../lib/live.js";
import { name as safe, problemBox, toast, when } from "../lib/messages.js";
import { place } from "../lib/names.js";
import { oneLine, plural, visible } from "../lib/text.js";

const KINDS = { command: "to run", network: "to reach", file: "to use" };
const badge = document.getElementById("asking");
const panel = document.getElementById("questions");
const spoken = document.getElementById("asked");

let followed = ""; // name of the workspace whose questions are shown
let leaving = null;
let [shown, order] = [new Map(), []]; // the elements by number, and the numbers

/** Show the questions of a workspace, or of none. */
export function followQuestions(name) {
  if (name === followed) return;
  followed = name;
  leaving?.abort();
  update("", []);
  if (!name) return;
  leaving = new AbortController();
  const { signal } = leaving;
  const path = workspacePath(name, "/questions");
  const take = ({ questions }) => signal.aborted || update(name, questions);
  poll(path, signal, take, 5, ""); // for principals, who may not read the server's events
  const stop = listen((event) => {
    if (event.kind === "shown" || (event.workspace === name && event.kind.startsWith("question."))) get(path, {}, signal).then(take, () => null);
  });
  signal.addEventListener("abort", stop);
}

function update(name, questions) {
  const fresh = questions.filter((one) => !shown.has(one.number));
  const inside = panel.contains(document.activeElement);
  order = questions.map((one) => one.number);
  shown = new Map(questions.map((one) => [one.number, shown.get(one.number) ?? item(name, one)]));
  badge.hidden = !order.length;
  badge.textContent = plural(order.length, "question");
  const list = panel.querySelector("ol");
  const kept = new Set(shown.values());
  for (const old of [...list.children]) if (!kept.has(old)) old.remove();
  for (const one of kept) if (one.parentElement !== list) list.append(one);
  if (!order.length) close();
  else if (fresh.length) {
    open();
    spoken.textContent = said(fresh[0]) + (fresh.length > 1 ? `, and ${plural(fresh.length - 1, "more question")}` : "") + ". Press q to answer.";
  }
  if (inside && !panel.contains(document.activeElement)) focus();
}

const said = (one) => oneLine(`Agent ${one.agent_id} asks ${KINDS[one.kind]}: ${one.subject}`);

function item(name, one) {
  const told = h("div");
  const answer = (label, allow, attributes) => button(label, () => send(allow), { ...attributes, "aria-describedby": `question-${one.number}` });
  const buttons = h("div", { class: "buttons" },
    answer("Deny", false, { class: "danger" }), one.kind === "network" && answer("Allow the host", "host", { title: "Also every later request of this session to the same host and port" }), answer("Allow once", true, { class: "primary" }));
  const send = async (allow) => {
    refill(told);
    try {
      await change("POST", workspacePath(name, `/questions/${one.number}`), { allow });
      toast(allow ? "Allowed" : "Denied");
    } catch (problem) {
      if (problem.status === 404) toast("It was answered already, or has ended");
      else {
        refill(told, problemBox(problem));
        if (problem.status === 403) buttons.remove(); // this principal may not answer
        return;
      }
    }
    if (name === followed) update(name, await rest(name, one.number));
  };
  return h("li", {}, h("p", { id: `question-${one.number}` }, h("b", {}, link(place("cmds", { name, query: { agent: one.agent_id } }), safe(one.agent_id))),
    ` asks ${KINDS[one.kind]}`, h("code", { class: "subject" }, one.kind === "command" ? null : `${oneLine(one.name)} `, visible(one.subject)),
    h("span", { class: "faint" }, "session ", safe(one.session_id), " · ", when(one.asked_at))), told, buttons);
}

/** The questions except an answered one, which the server may still list. */
async function rest(name, answered) {
  const { questions } = await get(workspacePath(name, "/questions"), {}).catch(() => ({ questions: [] }));
  return questions.filter((one) => one.number !== answered);
}

// ------------------------------------------------------------------------------------------------------ the panel

let before = null; // the focused element before the panel

function open() {
  panel.hidden = false;
  badge.setAttribute("aria-expanded", "true");
}

function close() {
  const inside = panel.contains(document.activeElement);
  panel.hidden = true;
  badge.setAttribute("aria-expanded", "false");
  if (inside) (before?.isConnected ? before : document.getElementById("main")).focus();
}

function focus() {
  (panel.querySelector(".buttons button.primary") ?? panel.querySelector("button")).focus();
}

/** Go to the first question; false when there is none. */
export function focusQuestions() {
  if (!order.length) return false;
  if (!panel.contains(document.activeElement)) before = document.activeElement;
  open();
  focus();
  return true;
}

refill(panel, h("div", { class: "bar" }, h("h2", { id: "questions-title" }, "Waiting for an answer"), h("span", { class: "actions" }, button("×", close, { "aria-label": "Close", class: "tiny" }))), h("ol"));
badge.addEventListener("click", () => (panel.hidden ? focusQuestions() : close()));
panel.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  event.stopPropagation();
  close();
});
