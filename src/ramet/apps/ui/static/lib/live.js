// Live updates: the events of the server, and polling for what other programs write to the store.

import { events, get, hasToken } from "./api.js";
import { button, h } from "./dom.js";

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
