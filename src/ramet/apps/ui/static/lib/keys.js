// Keyboard shortcuts: `?` help, Ctrl-K palette, `/` search, `j` and `k` through lists, `g` and a letter to a view.

import { button, h } from "./dom.js";
import { openPalette } from "./palette.js";

const LISTED = "main .card, main .row a.message, main .command summary, main .change summary, main .totals th a, main .waterfall .step a";
const HELP = [["?", "this help"], ["Ctrl-K", "go to a workspace, view, agent or file"], ["/", "search or filter"], ["j k", "next and previous in a list"], ["Enter", "open what is chosen"],
  ["g w", "all workspaces"], ["g h", "history"], ["g f", "files"], ["g a", "agents"], ["g c", "commands"], ["g r", "review"], ["g d", "compare"], ["g t", "terminal"], ["g p", "ports"], ["q", "answer a question of an agent"], ["Esc", "close a dialog"]];
const TABS = { h: "History", f: "Files", a: "Agents", c: "Commands", r: "Review", d: "Compare", t: "Terminal", p: "Ports" };

/** Handle keys outside of fields; `acts` are further actions by key. */
export function listenToKeys(acts) {
  let going = 0;
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key === "k" && !event.target.closest?.("textarea")) { // a terminal has its own Ctrl-K
      event.preventDefault();
      if (acts.may()) openPalette();
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, textarea, select, dialog")) return;
    const gone = Date.now() - going < 1500;
    going = 0;
    if (gone && go(event.key)) event.preventDefault();
    else if (event.key === "g") going = Date.now();
    else if (event.key === "?") showHelp();
    else if (acts[event.key]?.()) event.preventDefault();
    else if (event.key === "/") focusSearch(event);
    else if (event.key === "j" || event.key === "k") move(event.key === "j" ? 1 : -1);
  });
}

function go(key) {
  if (key === "w") {
    location.hash = "#/";
    return true;
  }
  const tab = TABS[key] && document.querySelector(`.tabs a[data-label="${TABS[key]}"]`);
  tab?.click();
  return Boolean(tab);
}

function focusSearch(event) {
  const field = document.querySelector("main input[type=search]");
  if (!field) return;
  event.preventDefault();
  field.focus();
}

function move(step) {
  const found = [...document.querySelectorAll(LISTED)];
  const at = found.indexOf(document.activeElement);
  found[at < 0 ? (step > 0 ? 0 : found.length - 1) : Math.min(Math.max(at + step, 0), found.length - 1)]?.focus();
}

function showHelp() {
  const dialog = h("dialog", { "aria-labelledby": "keys", onclose: () => dialog.remove() },
    h("h2", { id: "keys" }, "Keyboard"),
    h("dl", { class: "keyboard" }, HELP.map(([keys, what]) => [h("dt", {}, keys.split(" ").map((key) => h("kbd", {}, key))), h("dd", {}, what)])),
    h("div", { class: "buttons" }, button("Close", () => dialog.close())));
  document.body.append(dialog);
  dialog.showModal();
}
