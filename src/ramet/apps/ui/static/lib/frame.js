// What every view uses: errors, dialogs, passing messages, times that stay right, and what the server tells as it happens.

import { events, get, hasToken, Problem } from "./api.js";
import { button, h, put, refill } from "./dom.js";
import { ago, moment, oneLine, visible } from "./text.js";

// ------------------------------------------------------------------------------------------------ being told

/** An error as people want it: the cause, and what to do. */
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

/** Say loudly that what is shown is not everything. */
export const notice = (...children) => h("p", { class: "notice", role: "note" }, ...children);

/** A moment, said as how long ago; `refresh` keeps it right. */
export function when(seconds) {
  if (!seconds) return h("span", { class: "faint" }, "–");
  return h("time", { datetime: new Date(seconds * 1000).toISOString(), title: moment(seconds), "data-at": seconds }, ago(seconds));
}

setInterval(() => {
  for (const one of document.querySelectorAll("time[data-at]")) one.textContent = ago(Number(one.dataset.at));
}, 20_000);

/** A name from a workspace, isolated so that it cannot reverse the text around it. */
export const name = (text, attributes = {}) => h("bdi", attributes, oneLine(text));

// ------------------------------------------------------------------------------------------------------ asking

/**
 * Ask in a dialog, then act. Fields are `{name, label, value, hint, options, required, pattern}`; an error of the act is
 * shown in the dialog, which stays open. True when it was done.
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

// ------------------------------------------------------------------------------------------------------ living

const listeners = new Set();
let [connected, ever] = [false, false];
let ending = null;

/** Call back at what the server tells; `{kind, workspace}`. The result stops it. */
export function listen(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

const tell = (event) => listeners.forEach((listener) => listener(event));

/** Follow the server while the page is visible: a hidden page holds no connection. */
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
        state(null); // whose token is not the server's own sees no events of all; asking from time to time remains
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
  if (now && !connected && ever) tell({ kind: "shown" }); // something may have been missed
  connected = Boolean(now);
  ever ||= connected;
}

/** A line that says that there is something new and shows it when asked; `tell` makes it appear. */
export function newsBar(reload) {
  const bar = h("p", { class: "notice", hidden: true }, "There is something new. ", button("Show it", reload));
  return { bar, tell: () => (bar.hidden = false) };
}

/**
 * Other programs write to the store as well, and the server is not told: ask for a path again and again, gently, and
 * call back with what was found when it differs from the last, or from the text `known`. The result asks soon.
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
        if (error.name === "AbortError") return; // everything else is said where people asked for something
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
  turn();
  return again;
}
