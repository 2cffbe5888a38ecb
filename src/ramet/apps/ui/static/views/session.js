// Shared by both kinds of terminals: the session field, and the history of commands.

import { h } from "../lib/dom.js";

const REMEMBERED = 200;

/** A field to choose the session that commands run in. */
export function sessionField(session, known = null) {
  const field = h("input", { value: session.id, "aria-label": "Session", list: known && "sessions", spellcheck: "false", autocomplete: "off", size: 12, onchange: () => {
    session.id = field.value.trim() || "default";
    field.value = session.id;
    session.changed();
  } });
  return h("label", { class: "session" }, "session ", field, known);
}

export const recall = (name) => {
  try {
    return JSON.parse(sessionStorage.getItem(`ramet-commands-${name}`)) ?? [];
  } catch {
    return [];
  }
};

export function remember(name, past, command) {
  if (past[past.length - 1] !== command) past.push(command);
  past.splice(0, past.length - REMEMBERED);
  try {
    sessionStorage.setItem(`ramet-commands-${name}`, JSON.stringify(past));
  } catch {
    past.splice(0, past.length - 1); // storage is full: keep only the last one
  }
}
