// The command palette: go to a workspace, a view, an agent, or, by a path, to a file.

import { get, workspacePath } from "./api.js";
import { h, refill } from "./dom.js";
import { baseOf, join, parentOf, parsePlace, place } from "./names.js";
import { oneLine } from "./text.js";

const MOST = 12;
const VIEWS = [["History", "ws", ""], ["Files", "ws", "/"], ["Agents", "agents", ""], ["Commands", "cmds", ""], ["Review", "review", ""], ["Compare", "diff", ""], ["Terminal", "term", ""], ["Ports", "ports", ""]];

/** Filter places by words; those that begin with the first word come first. */
export function fitting(places, typed) {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  const rank = ({ label }) => (label.toLowerCase().startsWith(words[0] ?? "") ? 0 : 1);
  return places.filter(({ label, hint }) => words.every((word) => `${label} ${hint}`.toLowerCase().includes(word))).sort((a, b) => rank(a) - rank(b));
}

/** Yield lists of places as the server answers. */
async function* known(name, signal) {
  if (name) yield VIEWS.map(([label, view, path]) => ({ label, hint: `view of ${name}`, to: place(view, { name, path }) }));
  yield [{ label: "All workspaces", hint: "view", to: "#/" }];
  const { workspaces } = await get("/workspaces", {}, signal);
  yield workspaces.map((one) => ({ label: one.name, hint: "workspace", to: place("ws", { name: one.name, path: one.kind === "stored" ? "" : "/" }) }));
  if (!name) return;
  const { costs } = await get(workspacePath(name, "/costs"), { by: "agent" }, signal);
  yield costs.filter((one) => one.name).map((one) => ({ label: one.name, hint: `agent in ${name}`, to: place("cmds", { name, query: { agent: one.name } }) }));
}

/** The files whose path begins as typed. */
async function files(name, typed, signal) {
  const folder = typed.endsWith("/") ? typed.replace(/\/+$/, "") || "/" : parentOf(typed);
  const begun = typed.endsWith("/") ? "" : baseOf(typed).toLowerCase();
  const { entries } = await get(workspacePath(name, "/dir"), { path: folder, revision: (await get(workspacePath(name), {}, signal)).head?.id }, signal);
  return entries.map((one) => ({ path: join(folder, baseOf(one.path)), kind: one.kind })).filter(({ path }) => baseOf(path).toLowerCase().startsWith(begun))
    .map(({ path, kind }) => ({ label: kind === "dir" ? `${path}/` : path, hint: kind === "dir" ? "directory" : "file", to: place("ws", { name, path }) }));
}

export function openPalette() {
  if (document.querySelector("dialog")) return;
  const { name } = parsePlace(location.hash);
  const ending = new AbortController();
  const { signal } = ending;
  const places = [];
  let [shown, chosen, asked] = [[], 0, 0];
  const list = h("ul", { id: "places", role: "listbox", "aria-label": "Places" });
  const told = h("p", { class: "faint", role: "status" });
  const field = h("input", { type: "text", role: "combobox", "aria-expanded": "true", "aria-controls": "places", "aria-autocomplete": "list", "aria-label": "Go to", autocomplete: "off", spellcheck: "false",
    placeholder: name ? "A workspace, view, agent, or /path" : "A workspace or view" });
  const go = (one) => {
    dialog.close();
    location.hash = one.to;
  };
  const choose = (at) => {
    chosen = Math.max(0, Math.min(at, shown.length - 1));
    [...list.children].forEach((one, number) => one.setAttribute("aria-selected", String(number === chosen)));
    const current = list.children[chosen];
    if (current) {
      field.setAttribute("aria-activedescendant", current.id);
      current.scrollIntoView({ block: "nearest" });
    } else field.removeAttribute("aria-activedescendant");
  };
  const draw = (found, typed) => {
    shown = found.slice(0, MOST);
    refill(list, shown.map((one, at) => h("li", { id: `place-${at}`, role: "option", "aria-selected": "false", onclick: () => go(one) }, h("bdi", {}, oneLine(one.label)), h("span", { class: "faint" }, oneLine(one.hint)))));
    told.textContent = found.length > MOST ? `${(found.length - MOST).toLocaleString("en")} more: keep typing` : !found.length && typed ? "Nothing fits." : "";
    choose(0);
  };
  const search = async () => {
    const mine = (asked += 1);
    const typed = field.value.trim();
    if (!name || !typed.startsWith("/")) return draw(fitting(places, typed), typed);
    try {
      const found = await files(name, typed, signal);
      if (mine === asked) draw(found, typed);
    } catch (error) {
      if (mine === asked && error.name !== "AbortError") {
        draw([], "");
        told.textContent = error.message;
      }
    }
  };
  const dialog = h("dialog", { class: "palette", "aria-label": "Go to", onclose: () => {
    ending.abort();
    dialog.remove();
  } }, field, list, told);
  field.addEventListener("input", search);
  field.addEventListener("keydown", (event) => {
    const acts = { ArrowDown: () => choose(chosen + 1), ArrowUp: () => choose(chosen - 1), Enter: () => shown[chosen] && go(shown[chosen]) };
    if (!acts[event.key] || event.isComposing) return;
    event.preventDefault();
    acts[event.key]();
  });
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  document.body.append(dialog);
  dialog.showModal();
  field.focus();
  (async () => {
    for await (const more of known(name, signal)) {
      places.push(...more);
      search();
    }
  })().catch((error) => error.name !== "AbortError" && (told.textContent = error.message));
}
