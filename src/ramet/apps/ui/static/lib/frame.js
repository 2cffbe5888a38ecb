// What views share: error boxes, toasts, relative times, dialogs, and live updates.

import { events, get, hasToken, Problem } from "./api.js";
import { button, h, put, refill } from "./dom.js";
import { ago, moment, oneLine, visible } from "./text.js";

// -------------------------------------------------------------------------------------------------- messages

/** Show an error: its cause, and what to do. */
export function problemBox(error) {
  const told = error instanceof Problem;
  if (!told) console.error(error);
  return h("div", { class: "problem", role: "alert" },
    h("strong", {}, told ? visible(error.message) : "This page hit a bug in Ramet."),
    told && error.remediation ? h("p", {}, visible(error.remediation)) : null,
    told && error.conflicts.length ? h("ul", {}, error.conflicts.map((one) => h("li", {}, h("code", {}, oneLine(one.path)), " ", oneLine(one.why)))) : null,
    told ? (error.code ? h("p", { class: "code" }, error.code) : null) : h("p", { class: "code" }, String(error)));
}

export function toast(text, kind = "good") {
  const made = h("div", { class: ["toast", kind] }, text);
  document.getElementById("toasts").append(made);
  setTimeout(() => made.remove(), kind === "bad" ? 12_000 : 5_000);
}

/** A note that something is incomplete or different from what one expects. */
export const notice = (...children) => h("p", { class: "notice", role: "note" }, ...children);

/** A time as how long ago; the interval below keeps it right. */
export function when(seconds) {
  if (!seconds) return h("span", { class: "faint" }, "–");
  return h("time", { datetime: new Date(seconds * 1000).toISOString(), title: moment(seconds), "data-at": seconds }, ago(seconds));
}

setInterval(() => {
  for (const one of document.querySelectorAll("time[data-at]")) one.textContent = ago(Number(one.dataset.at));
}, 20_000);

/** A name from a workspace, isolated so that it cannot reverse the text around it. */
export const name = (text, attributes = {}) => h("bdi", attributes, oneLine(text));

// ------------------------------------------------------------------------------------------------------ dialogs

/**
 * Ask in a dialog, then act. Fields are `{name, label, value, hint, options, required, pattern}`; an error of the action is
 * shown in the dialog, which stays open. Resolves to whether it was done.
 */
export function ask({ title, text, fields = [], label, danger = false, act }) {
  return new Promise((resolve) => {
    const inputs = fields.map((field) => [field, input(field)]);
    const errors = h("div");
    const go = h("button", { type: "submit", class: danger ? "danger" : "primary" }, label);
    const form = h("form", { method: "dialog", onsubmit: async (event) => {
      event.preventDefault();
      if (go.hasAttribute("aria-disabled")) return;
      go.setAttribute("aria-disabled", "true");
      refill(errors);
      try {
        await act(Object.fromEntries(inputs.map(([field, element]) => [field.name, element.value.trim()])));
        done = true;
        dialog.close();
      } catch (error) {
        put(errors, problemBox(error));
      } finally {
        go.removeAttribute("aria-disabled");
      }
    } },
    h("h2", { id: "asked" }, title), text ? h("p", {}, text) : null,
    inputs.map(([field, element]) => h("label", {}, h("span", {}, field.label), element, field.hint ? h("small", {}, field.hint) : null)),
    errors, h("div", { class: "buttons" }, button("Cancel", () => dialog.close()), go));
    let done = false;
    const dialog = h("dialog", { "aria-labelledby": "asked", onclose: () => {
      dialog.remove();
      resolve(done);
    } }, form);
    document.body.append(dialog);
    dialog.showModal();
    (inputs[0]?.[1] ?? go).focus();
  });
}

function input({ name: id, value = "", options, required, pattern, placeholder }) {
  if (options) return h("select", { name: id }, options.map(([key, label]) => h("option", { value: key, selected: key === value }, label)));
  return h("input", { name: id, value, required, pattern, placeholder, autocomplete: "off", spellcheck: "false" });
}

// ------------------------------------------------------------------------------------------------------ live updates

const listeners = new Set();
let [connected, ever] = [false, false];
let ending = null;

/** Subscribe to events `{kind, workspace}` of the server; returns a function that unsubscribes. */
export function listen(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

const tell = (event) => listeners.forEach((listener) => listener(event));

/** Stream events while the page is visible; a hidden page holds no connection. */
export function follow() {
  const begin = async () => {
    if (ending || document.hidden || !hasToken()) return;
    ending = new AbortController();
    const { signal } = ending;
    try {
      for await (const event of events(signal)) {
        if (event.kind === "connected") state(true);
        else tell(event);
      }
    } catch (error) {
      if (error.name === "AbortError") return;
      if (error.status === 403) {
        state(null); // a principal's token may not read all events; polling remains
        return;
      }
    } finally {
      if (ending?.signal === signal) ending = null;
    }
    if (signal.aborted) return;
    state(false);
    setTimeout(begin, 2000);
  };
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      ending?.abort();
      ending = null;
    } else {
      begin();
      tell({ kind: "shown" });
    }
  });
  begin();
}

function state(now) {
  const element = document.getElementById("live");
  element.className = now === true ? "on" : now === false ? "off" : "";
  element.textContent = now === true ? "live" : now === false ? "not connected" : "";
  if (now && !connected && ever) tell({ kind: "shown" }); // events may have been missed
  connected = Boolean(now);
  ever ||= connected;
}

/** A hidden bar that offers to reload; `tell` shows it. */
export function newsBar(reload) {
  const bar = h("p", { class: "notice", hidden: true }, "There is something new. ", button("Show it", reload));
  return { bar, tell: () => (bar.hidden = false) };
}

/**
 * Show something once it is loaded, without waiting for it: an element, several, or an error. Returns what stands there
 * until then, which is a text or an element, and a promise of when.
 */
export function later(promise, waiting = "") {
  const holder = h("div", { hidden: !waiting }, typeof waiting === "string" ? waiting && h("p", { class: "waiting" }, waiting) : waiting);
  const done = promise.then((made) => holder.replaceWith(...[made].flat().filter(Boolean)), (error) => {
    if (error.name !== "AbortError") holder.replaceWith(problemBox(error));
  });
  return [holder, done];
}

/**
 * Poll a path, because other programs write to the store without telling the server. Call back when the answer differs
 * from the last one, or from the text `known`, which may come from the view. Returns a function that polls soon.
 */
export function poll(path, signal, changed, seconds = 4, known = null) {
  let last = known;
  let next = null;
  const turn = async () => {
    let wait = seconds * 1000;
    next = null;
    if (!document.hidden) {
      const began = performance.now();
      try {
        const found = await get(path, {}, signal);
        const text = JSON.stringify(found);
        if (last !== null && text !== last) changed(found);
        last = text;
      } catch (error) {
        if (error.name === "AbortError") return; // other errors appear where the user asks for something
      }
      wait = Math.max(wait, 30 * (performance.now() - began));
    }
    if (!signal.aborted) next ??= setTimeout(turn, wait);
  };
  const again = () => {
    if (next === null || signal.aborted) return;
    clearTimeout(next);
    next = setTimeout(turn, 200);
  };
  if (known) next = setTimeout(turn, seconds * 1000);
  else turn();
  return again;
}
