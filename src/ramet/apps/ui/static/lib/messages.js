// What views show of errors, notes, times and names.

import { Problem } from "./api.js";
import { h, refill } from "./dom.js";
import { ago, moment, oneLine, visible } from "./text.js";

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

/**
 * Show something once it is loaded, without waiting for it: an element, several, or an error. Returns what stands there
 * until then, which is a text or an element, and a promise of when.
 */
export function later(promise, waiting = "") {
  const holder = h("div", { class: "later" }, typeof waiting === "string" ? waiting && h("p", { class: "waiting" }, waiting) : waiting);
  const done = promise.then((made) => refill(holder, made), (error) => error.name !== "AbortError" && refill(holder, problemBox(error)));
  return [holder, done];
}

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
