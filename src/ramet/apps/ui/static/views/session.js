// What both kinds of terminals have: the session that commands run in, and the commands of before.

import { h } from "../lib/dom.js";

const REMEMBERED = 200;

/** The session that commands run in, and a field to choose another one. */
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
    past.splice(0, past.length - 1); // the browser keeps no more: this tab remembers the last one
  }
}
