// The files of a state: a tree that loads lazily, next to a directory or a file.

import { get, part, workspacePath } from "../lib/api.js";
import { gradually, h, icon, link, refill } from "../lib/dom.js";
import { newsBar, poll } from "../lib/live.js";
import { name as safe, notice, problemBox, when } from "../lib/messages.js";
import { baseOf, crumbs, join, parentOf, place, resolved } from "../lib/names.js";
import { mode, oneLine, plural, size } from "../lib/text.js";
import { fileView, rendered } from "./file.js";
import { empty, forkButton, heading, revertButton, tarButton } from "./shared.js";

const MOST = 2000;
const README = 256 << 10;

export async function files(context) {
  const { route, signal, workspace, live, reload } = context;
  const { name } = route;
  const { info, stored, rev, known } = await workspace;
  const path = route.path.replace(/\/+$/, "") || "/";
  if (stored && !rev) return h("div", { class: "page" }, heading(info, "files"), empty("No files yet.", name));
  const state = { name, rev, spec: route.rev, stored };
  const revision = stored && route.rev ? (await get(workspacePath(name, "/log"), { revision: route.rev, limit: 1, brief: true }, signal)).revisions[0] : info.head;
  const news = newsBar(reload);
  if (!stored) live((event) => event.workspace === name && news.tell());
  else if (!route.rev) poll(workspacePath(name), signal, (found) => found.head?.id !== rev && news.tell(), 4, known);
  const main = h("div", { class: "pane" });
  const tree = h("ul", { role: "tree", "aria-label": "Files" });
  const shell = h("div", { class: "page" },
    heading(info, "files", route.rev, [revision && forkButton(name, revision), revision && tarButton(name, revision.id)]),
    h("div", { class: "bar small" },
      h("nav", { class: "path", "aria-label": "Path" }, link(at(state, "/"), "/"), crumbs(path).map((one, number) => [number ? "/" : "", link(at(state, one.path), safe(one.name))])),
      h("span", { class: "faint" }, stored ? ["as of ", link(place("ws", { name, rev: revision.name }), safe(revision.name)), " · ", when(revision.time), !route.rev && " · newest"] : "as it is now"),
      stored && route.rev && info.head && revision.id !== info.head.id && path !== "/" && h("span", { class: "actions" },
        h("a", { class: "button", href: place("ws", { name, path }) }, "Newest"), revertButton(name, revision, path))),
    news.bar,
    h("div", { class: "files" }, h("div", { class: "side" }, tree), main));
  const wanted = await shown(context, state, path, revision);
  refill(main, wanted.view);
  grow(tree, state, wanted.kind === "dir" ? path : parentOf(path), path, signal);
  return shell;
}

const at = ({ name, spec }, path, query) => place("ws", { name, rev: spec, path, query });

const listing = async ({ name, rev }, path, signal) => {
  const { entries } = await get(workspacePath(name, "/dir"), { path, revision: rev }, signal);
  return entries.map((entry) => ({ ...entry, base: baseOf(entry.path) })).sort((a, b) => (b.kind === "dir") - (a.kind === "dir") || (a.base < b.base ? -1 : 1));
};

async function shown(context, state, path, revision) {
  const { signal } = context;
  const stat = path === "/" ? { kind: "dir" } : await get(workspacePath(state.name, "/stat"), { path, revision: state.rev, follow: false }, signal);
  if (stat.kind === "link") return { kind: "link", view: linked(state, path, stat.target ?? "") };
  if (stat.kind === "dir") {
    const entries = await listing(state, path, signal);
    return { kind: "dir", view: [directory(state, path, entries), context.later(readme(state, path, entries, signal))] };
  }
  if (stat.kind !== "file") return { kind: stat.kind, view: h("p", { class: "faint" }, `A ${stat.kind}; it has no content to show.`) };
  return { kind: "file", view: await fileView(context, state, path, stat, revision, (query) => at(state, path, query)) };
}

/** A symbolic link shows its target and does not follow it. */
function linked(state, path, target) {
  const to = resolved(parentOf(path), target);
  return h("p", {}, icon("link"), " A link to ", h("a", { href: at(state, to) }, safe(target)), to !== target && h("span", { class: "faint" }, " (", safe(to), ")"));
}

/** The README of a directory. */
async function readme(state, path, entries, signal) {
  const found = entries.find((entry) => entry.kind === "file" && /^readme\.md$/i.test(entry.base));
  if (!found || found.size > README) return null;
  const where = join(path, found.base);
  const made = await rendered(state, where, await part(state.name, where, state.rev, 0, README, signal), signal);
  return made && h("section", { class: "readme", "aria-label": found.base }, h("h2", {}, icon("file"), link(at(state, where), safe(found.base))), made);
}

function directory(state, path, entries) {
  if (!entries.length) return h("p", { class: "faint" }, "An empty directory.");
  return [
    h("table", { class: "listing" },
      h("thead", {}, h("tr", {}, ["Name", "Size", "Mode", "Changed"].map((label) => h("th", { scope: "col" }, label)))),
      gradually(h("tbody", {}, path !== "/" && h("tr", {}, h("td", { colspan: 4 }, link(at(state, parentOf(path)), "..")))),
        entries.slice(0, MOST), (entry) => h("tr", {},
          h("td", { class: "name" }, h("a", { href: at(state, join(path, entry.base)) }, icon(entry.kind), safe(entry.base)), entry.target && h("span", { class: "faint" }, " → ", safe(entry.target))),
          h("td", { class: "size" }, entry.kind === "dir" ? "" : size(entry.size)),
          h("td", { class: "mode" }, mode(entry.mode, entry.kind)),
          h("td", { class: "date" }, entry.mtime_ns === null ? "" : when(entry.mtime_ns / 1e9))))),
    entries.length > MOST && notice(`${plural(entries.length - MOST, "more entry", "more entries")} not shown.`),
    h("p", { class: "faint" }, plural(entries.length, "entry", "entries")),
  ];
}

// ------------------------------------------------------------------------------------------------------- tree

/** Fill the tree down to a folder; other folders are listed when they are opened. */
async function grow(tree, state, folder, current, signal) {
  const open = async (list, path) => {
    try {
      const entries = await listing(state, path, signal);
      refill(list, entries.slice(0, MOST).map((entry) => node(entry, join(path, entry.base))), entries.length > MOST && h("li", { class: "faint" }, `${plural(entries.length - MOST, "more")}`));
    } catch (error) {
      if (error.name !== "AbortError") refill(list, h("li", {}, problemBox(error)));
    }
  };
  const node = (entry, path) => {
    const isDir = entry.kind === "dir";
    const item = h("li", { role: "treeitem", class: entry.kind, "aria-expanded": isDir ? "false" : null, "aria-current": path === current && "page", tabindex: "-1", "data-path": path });
    const below = isDir && h("ul", { role: "group" });
    const anchor = h("a", { href: at(state, path), tabindex: "-1", title: oneLine(entry.base) }, safe(entry.base));
    const toggle = async (wanted = item.getAttribute("aria-expanded") !== "true") => {
      item.setAttribute("aria-expanded", String(wanted));
      if (wanted && !below.childElementCount) await open(below, path);
    };
    item.toggle = isDir ? toggle : null;
    item.append(h("div", { class: "line" }, isDir && h("span", { class: "twist", "aria-hidden": "true", onclick: () => toggle() }), anchor));
    if (below) item.append(below);
    return item;
  };
  tree.addEventListener("keydown", walk);
  await open(tree, "/");
  for (const { path } of crumbs(folder)) {
    const found = [...tree.querySelectorAll("li")].find((one) => one.dataset.path === path);
    if (found?.toggle) await found.toggle(true);
  }
  const marked = tree.querySelector("[aria-current]") ?? tree.querySelector("li[role=treeitem]");
  marked?.setAttribute("tabindex", "0");
  const line = tree.querySelector("[aria-current] > .line");
  if (line) tree.parentElement.scrollTop = line.offsetTop - tree.parentElement.clientHeight / 2; // without scrolling the page
}

/** Keys of a tree: up and down move, right opens, left closes, Enter shows. */
function walk(event) {
  const item = event.target.closest("li[role=treeitem]");
  if (!item) return;
  const tree = event.currentTarget;
  const seen = [...tree.querySelectorAll("li[role=treeitem]")].filter((one) => !one.parentElement.closest('li[aria-expanded="false"]'));
  const index = seen.indexOf(item);
  const to = (one) => {
    if (!one) return;
    tree.querySelectorAll('[tabindex="0"]').forEach((other) => other.setAttribute("tabindex", "-1"));
    one.setAttribute("tabindex", "0");
    one.focus();
  };
  const open = item.getAttribute("aria-expanded");
  const acts = {
    ArrowDown: () => to(seen[index + 1]), ArrowUp: () => to(seen[index - 1]), Home: () => to(seen[0]), End: () => to(seen[seen.length - 1]),
    ArrowRight: () => (open === "false" ? item.toggle(true) : to(item.querySelector("li[role=treeitem]"))),
    ArrowLeft: () => (open === "true" ? item.toggle(false) : to(item.parentElement.closest("li[role=treeitem]"))),
    Enter: () => item.querySelector("a").click(),
  };
  if (!acts[event.key]) return;
  event.preventDefault();
  acts[event.key]();
}
