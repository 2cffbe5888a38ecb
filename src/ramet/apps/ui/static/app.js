// The page: who may look, which view stands at which place, and what is shown while it comes.

import { get, hasToken, keepToken, Problem, redeem, shareWithTabs } from "./lib/api.js";
import { h, link, refill } from "./lib/dom.js";
import { follow, listen, name as safe, problemBox } from "./lib/frame.js";
import { listenToKeys } from "./lib/keys.js";
import { parsePlace, place } from "./lib/names.js";
import { openPalette } from "./lib/palette.js";
import { agents } from "./views/agents.js";
import { commands } from "./views/commands.js";
import { compare } from "./views/compare.js";
import { files } from "./views/files.js";
import { ports } from "./views/ports.js";
import { review } from "./views/review.js";
import { revision } from "./views/revision.js";
import { terminal } from "./views/terminal.js";
import { history } from "./views/history.js";
import { focusQuestions, followQuestions } from "./views/questions.js";
import { workspaces } from "./views/workspaces.js";

const main = document.getElementById("main");
const crumbs = document.getElementById("crumbs");
let leaving = new AbortController();

/** The view of a place: `ws` is a workspace, a revision or a file, by what is said of it. */
function viewOf({ view, name, rev, path }) {
  if (view === "ws" && name) return path ? files : rev ? revision : history;
  if (view === "diff" && name) return compare;
  if (view === "cmds" && name) return commands;
  if (view === "agents" && name) return agents;
  if (view === "ports" && name) return ports;
  if (view === "review" && name) return review;
  if (view === "term" && name) return terminal;
  return view === "" ? workspaces : null;
}

async function show({ keep = false } = {}) {
  leaving.abort();
  const mine = (leaving = new AbortController());
  const route = parsePlace(location.hash);
  const view = viewOf(route);
  const { signal } = mine;
  const context = {
    route, signal, reload: soon(() => signal.aborted || show({ keep: true })),
    live: (listener) => signal.addEventListener("abort", listen(listener)),
  };
  if (!keep) {
    for (const dialog of document.querySelectorAll("dialog")) dialog.close(); // it asks about another place
    main.inert = true; // as does what is still shown of it
  }
  crumb(route);
  followQuestions(route.name);
  const waiting = setTimeout(() => refill(main, h("p", { class: "waiting" }, "Loading…")), keep ? 5000 : 200);
  const [from, focused] = [scrollY, keep && marks(document.activeElement)];
  try {
    if (view === null) throw new Problem({ code: "not_found", cause: "no such page", remediation: "start from the list of workspaces" });
    const made = await view(context);
    if (signal.aborted) return;
    clearTimeout(waiting);
    main.inert = false;
    refill(main, made);
    const tab = main.querySelector(".tabs a[aria-current]");
    if (tab) tab.parentElement.scrollLeft = tab.offsetLeft - tab.parentElement.offsetLeft - 40; // on a phone not all of them fit
    if (keep) {
      scrollTo(0, from);
      if (focused) [...main.querySelectorAll("a, button, input, select")].find((one) => marks(one) === focused)?.focus({ preventScroll: true });
    } else {
      scrollTo(0, 0);
      (main.querySelector("[data-first]") ?? main).focus({ preventScroll: true });
    }
  } catch (error) {
    clearTimeout(waiting);
    if (error.name === "AbortError" || signal.aborted) return;
    main.inert = false;
    if (error.status === 401) return;
    refill(main, h("div", { class: "page" }, h("h1", {}, "This cannot be shown"), problemBox(error), h("p", {}, link("#/", "All workspaces"))));
  }
}

/** What tells an element from others when a view was made anew. */
const marks = (element) => main.contains(element) && element !== main ? `${element.tagName} ${element.getAttribute("href") ?? element.getAttribute("aria-label") ?? element.textContent}` : null;

/** Act a little later, once, however often it is asked for. */
function soon(act) {
  let asked = null;
  return () => {
    asked ??= setTimeout(() => {
      asked = null;
      act();
    }, 300);
  };
}

function crumb({ view, name, rev, path }) {
  const parts = name ? [link(place("ws", { name }), safe(name)), rev && link(place("ws", { name, rev }), safe(`@${rev.length > 40 ? rev.slice(0, 12) : rev}`))] : [];
  refill(crumbs, ...parts);
  const what = { agents: "agents", cmds: "commands", diff: "compare", ports: "ports", review: "review", term: "terminal" }[view];
  document.title = [path || what, name && `${name}${rev && `@${rev.slice(0, 20)}`}`, "Ramet"].filter(Boolean).join(" · ");
}

// ---------------------------------------------------------------------------------------------------- the door

/** Remove the link from the URL, so that the browser's history does not contain it. */
function takeLink() {
  const route = parsePlace(location.hash);
  const code = route.query.link;
  if (typeof code !== "string") return null;
  delete route.query.link;
  window.history.replaceState(null, "", place(route.view, route));
  return code;
}

function lock(error) {
  leaving.abort();
  main.inert = false;
  keepToken("");
  followQuestions("");
  refill(crumbs);
  const field = h("input", { type: "password", name: "token", required: true, autocomplete: "off", "aria-label": "Token of the server" });
  const errors = h("div", {}, error ? problemBox(error) : null);
  refill(main, h("div", { class: "page door" }, h("h1", {}, "This page needs a token"),
    h("p", {}, "Run ", h("code", {}, "ramet ui"), " and open the link that it prints, or give the token of the server."),
    h("form", { onsubmit: async (event) => {
      event.preventDefault();
      const given = field.value.trim();
      const link = /[?&]link=([\w-]+)/.exec(given);
      try {
        if (link) await redeem(link[1]);
        else keepToken(given);
        await get("/workspaces");
        open();
      } catch (failed) {
        keepToken("");
        refill(errors, problemBox(failed));
      }
    } }, field, h("button", { class: "primary" }, "Open")), errors));
  field.focus();
}

function open() {
  follow();
  show();
}

async function begin() {
  const code = takeLink();
  let failed = null;
  try {
    if (code !== null) await redeem(code);
  } catch (error) {
    failed = error; // a link that was used is no harm when this tab, or another one, has the token
  }
  const may = await shareWithTabs();
  started = true;
  return may ? open() : lock(failed);
}

let started = false;
document.addEventListener("ramet:locked", () => started && main.querySelector(".door") === null && lock(new Problem({ code: "unauthenticated", cause: "the token is no longer valid", remediation: "the server was restarted: open its new link" })));
window.addEventListener("hashchange", () => {
  const code = takeLink();
  if (code !== null) {
    redeem(code).then(open, (error) => (hasToken() ? show() : lock(error)));
    return;
  }
  if (hasToken()) show();
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the fragment is the place of the view
  main.focus();
});
listenToKeys({ q: focusQuestions, may: hasToken });
document.getElementById("goto").addEventListener("click", () => hasToken() && openPalette());
begin();
