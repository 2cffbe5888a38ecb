// The application: sign-in, and the view for each place.

import { get, hasToken, keepToken, Problem, redeem, shareWithTabs } from "./lib/api.js";
import { button, h, link, refill } from "./lib/dom.js";
import { listenToKeys } from "./lib/keys.js";
import { follow, listen } from "./lib/live.js";
import { later, name as safe, problemBox } from "./lib/messages.js";
import { parsePlace, place } from "./lib/names.js";
import { openPalette } from "./lib/palette.js";
import { agents, BY } from "./views/agents.js";
import { commands } from "./views/commands.js";
import { compare } from "./views/compare.js";
import { files } from "./views/files.js";
import { history } from "./views/history.js";
import { ports } from "./views/ports.js";
import { proposals } from "./views/proposals.js";
import { focusQuestions, followQuestions } from "./views/questions.js";
import { review } from "./views/review.js";
import { revision } from "./views/revision.js";
import { heading, loaded } from "./views/shared.js";
import { terminal } from "./views/terminal.js";
import { waterfall } from "./views/waterfall.js";
import { workspaces } from "./views/workspaces.js";

const main = document.getElementById("main");
const crumbs = document.getElementById("crumbs");
let leaving = new AbortController();

/** The view of a place, and its tab; `ws` is a workspace, a revision or a file. */
function viewOf({ view, name, rev, path, query }) {
  if (!name) return [view === "" ? workspaces : null];
  const views = {
    ws: path ? [files, "files"] : rev ? [revision, "history"] : [history, "history"],
    agents: [BY.some(([key]) => query[key] !== undefined) ? waterfall : agents, "agents"],
    cmds: [commands, "commands"], diff: [compare, "compare"], ports: [ports, "ports"], review: [query.other ? review : proposals, "review"], term: [terminal, "terminal"],
  };
  return Object.hasOwn(views, view) ? views[view] : [null];
}

async function show({ keep = false } = {}) {
  leaving.abort();
  const mine = (leaving = new AbortController());
  const route = parsePlace(location.hash);
  const [view, tab] = viewOf(route);
  const { signal } = mine;
  const workspace = view && route.name ? loaded(route, signal) : Promise.resolve(null);
  const parts = [];
  const context = {
    route, signal, workspace,
    later: (promise, text) => {
      const [holder, done] = later(promise, text);
      parts.push(done);
      return holder;
    },
    reload: soon(() => signal.aborted || show({ keep: true })),
    live: (listener) => signal.addEventListener("abort", listen(listener)),
  };
  if (!keep) {
    for (const dialog of document.querySelectorAll("dialog")) dialog.close(); // it belongs to the place that is left
    main.inert = true; // what is still shown belongs to it, too
  }
  crumb(route);
  followQuestions(route.name);
  const waiting = setTimeout(() => refill(main, h("p", { class: "waiting" }, "Loading…")), keep ? 5000 : 200);
  let shown = false;
  workspace.then((found) => { // the heading first, without waiting for what is below it
    if (!found || keep || shown || signal.aborted) return;
    clearTimeout(waiting);
    refill(main, h("div", { class: "page" }, heading(found.info, tab, route.rev), h("p", { class: "waiting" }, "Loading…")));
    scrollTo(0, 0);
    tabsInSight();
  }, () => null); // the view says why
  const [from, focused] = [scrollY, keep && marks(document.activeElement)];
  try {
    if (view === null) throw new Problem({ code: "not_found", cause: "no such page", remediation: "start from the list of workspaces" });
    const made = await view(context);
    if (keep) await Promise.allSettled(parts); // what is shown stays until all of it can be replaced
    if (signal.aborted) return;
    shown = true;
    clearTimeout(waiting);
    main.inert = false;
    refill(main, made);
    tabsInSight();
    if (keep) {
      scrollTo(0, from);
      if (focused) [...main.querySelectorAll("a, button, input, select")].find((one) => marks(one) === focused)?.focus({ preventScroll: true });
    } else {
      scrollTo(0, 0);
      (main.querySelector("[data-first]") ?? main).focus({ preventScroll: true });
    }
  } catch (error) {
    shown = true;
    clearTimeout(waiting);
    if (error.name === "AbortError" || signal.aborted) return;
    main.inert = false;
    if (error.status === 401) return;
    refill(main, h("div", { class: "page" }, h("h1", {}, "Cannot show this page"), problemBox(error), h("p", {}, route.name && error.code !== "workspace_not_found" && [link(place("ws", { name: route.name }), safe(route.name)), " · "], link("#/", "All workspaces")), h("p", {}, button("Try again", () => show()))));
  }
}

/** Scroll the tabs to the current one: a phone has no room for all of them. */
function tabsInSight() {
  const tab = main.querySelector(".tabs a[aria-current]");
  if (tab) tab.parentElement.scrollLeft = tab.offsetLeft - tab.parentElement.offsetLeft - 40;
}

/** What identifies an element after its view was rendered again. */
const marks = (element) => main.contains(element) && element !== main ? `${element.tagName} ${element.getAttribute("href") ?? element.getAttribute("aria-label") ?? element.textContent}` : null;

/** Debounce a call. */
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

// ---------------------------------------------------------------------------------------------------- sign-in

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
    failed = error; // a used link does no harm if this tab, or another one, has the token
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
