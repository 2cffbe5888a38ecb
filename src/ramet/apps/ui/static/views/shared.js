// Shared by views of a workspace: the heading with tabs, counts of changes, and actions.

import { change, get, raw, workspacePath } from "../lib/api.js";
import { ask } from "../lib/dialog.js";
import { button, h, link } from "../lib/dom.js";
import { name as safe, toast } from "../lib/messages.js";
import { place } from "../lib/names.js";
import { oneLine, size } from "../lib/text.js";

const NAME = "[A-Za-z0-9][A-Za-z0-9._\\-]{0,127}";

/** Load a workspace, and the revision to request: undefined for a workspace without revisions. `known` is for `poll`. */
export async function loaded({ name, rev }, signal) {
  const info = await get(workspacePath(name), {}, signal);
  const stored = info.kind === "stored";
  return { info, stored, known: JSON.stringify(info), rev: stored ? rev || info.head?.id : undefined, label: rev || info.head?.name || "" };
}

const TABS = [
  ["history", "History", (name) => place("ws", { name })],
  ["files", "Files", (name, rev) => place("ws", { name, rev, path: "/" })],
  ["agents", "Agents", (name, rev) => place("agents", { name, rev })],
  ["commands", "Commands", (name, rev) => place("cmds", { name, rev })],
  ["review", "Review", (name) => place("review", { name })],
  ["compare", "Compare", (name, rev) => place("diff", { name, rev })],
  ["terminal", "Terminal", (name, rev) => place("term", { name, rev })],
  ["ports", "Ports", (name) => place("ports", { name })],
];

const REVISIONS = ["history", "review", "compare"]; // tabs of workspaces with revisions only

/** The heading of a workspace: its name, tabs and actions. */
export function heading(info, current, rev = "", actions = []) {
  const tabs = TABS.filter(([key]) => info.kind === "stored" || !REVISIONS.includes(key));
  return h("div", { class: "heading" },
    h("div", { class: "title" },
      h("h1", {}, safe(info.name)),
      info.kind !== "stored" && h("span", { class: "badge" }, info.kind),
      writing(info),
      h("span", { class: "actions" }, actions)),
    h("nav", { class: "tabs", "aria-label": "Views of the workspace" },
      tabs.map(([key, label, where]) => h("a", { href: where(info.name, rev), "aria-current": key === current && "page", "data-label": label }, label))));
}

/** An empty state; with the name of a workspace, it links to the terminal. */
export const empty = (text, name = "") => h("div", { class: "empty" }, h("p", {}, text, name && [" Run a command in the ", link(place("term", { name }), "terminal"), "."]));

/** A badge that says who writes to a workspace. */
export const writing = (info) => (info.open ? h("span", { class: "badge on", title: "This server has it open and is its only writer." }, "open here")
  : info.busy ? h("span", { class: "badge busy", title: "Another program has it open and is its only writer." }, "busy") : null);

const KINDS = [["added", "+"], ["modified", "~"], ["removed", "−"], ["renamed", "→"]];

/** The number of paths that a revision changed, if recorded. */
export function counts(diff) {
  if (!diff) return null;
  const shown = KINDS.filter(([kind]) => diff[`${kind}_count`] > 0);
  if (!shown.length) return h("span", { class: "counts faint" }, "no files");
  return h("span", { class: "counts" }, shown.map(([kind, sign]) =>
    h("span", { class: kind, title: `${diff[`${kind}_count`]} ${kind}` }, `${sign}${diff[`${kind}_count`]}`, h("span", { class: "unseen" }, ` ${kind} `))));
}

/** Who made a revision: the agent, and the author if that is another one. */
export const makers = (revision) => oneLine([...new Set([revision.agent, revision.author])].filter(Boolean).join(", "));

export const shortId = (id) => id.slice(0, 12);

// ---------------------------------------------------------------------------------------------------- actions

export const forkButton = (name, revision, label = "Fork") => button(label, async () => {
  let made = "";
  const done = await ask({
    title: `Fork ${name}`, label: "Fork",
    text: `A new workspace begins with ${revision ? oneLine(revision.name) : "the newest revision"}. Nothing is copied, and ${name} is not changed.`,
    fields: [{ name: "name", label: "Name of the new workspace", value: `${name}-fork`, required: true, pattern: NAME }],
    act: async ({ name: wanted }) => {
      await change("POST", workspacePath(name, "/fork"), { name: wanted, ...(revision && { revision: revision.id }) });
      made = wanted;
    },
  });
  if (done) location.hash = place("ws", { name: made });
});

export const mergeButton = (name, label = "Merge") => button(label, async () => {
  const { workspaces } = await get("/workspaces");
  const others = workspaces.filter((info) => info.kind === "stored" && info.head && info.name !== name);
  if (!others.length) return void toast("There is no other workspace to merge.", "bad");
  let chosen = "";
  const done = await ask({
    title: `Merge into ${name}`, label: "Review", text: "Shows what another workspace changed since the two diverged. You decide there.",
    fields: [{ name: "other", label: "Workspace", options: others.map((info) => [info.name, `${info.name}: ${oneLine(info.head.message).slice(0, 60)}`]) }],
    act: async ({ other }) => {
      chosen = other;
    },
  });
  if (done) location.hash = place("review", { name, query: { other: chosen } });
});

export const tagButton = (name, revision, after) => button("Tag", async () => {
  const done = await ask({
    title: `Tag ${oneLine(revision.name)}`, label: "Tag", text: "A tag names a revision, and keeps it.",
    fields: [{ name: "tag", label: "Tag", required: true, placeholder: "v1" }, { name: "message", label: "Message (optional)" }],
    act: ({ tag, message }) => change("PUT", workspacePath(name, `/tags/${encodeURIComponent(tag)}`), { revision: revision.id, message }),
  });
  if (done) after();
});

export const revertButton = (name, revision, path = "", label = path ? "Restore this path" : "Revert to here") => button(label, async () => {
  let made = null;
  const done = await ask({
    title: path ? `Restore ${oneLine(path)}` : `Revert ${name}`, label: path ? "Restore" : "Revert", danger: true,
    text: `${path ? "The path gets the content that it had" : "The workspace gets the content that it had"} in ${oneLine(revision.name)}, as a new revision. Nothing in the history is lost.`,
    fields: [{ name: "message", label: "Message (optional)" }],
    act: async ({ message }) => {
      made = await change("POST", workspacePath(name, "/revert"), { revision: revision.id, message, paths: path ? [path] : [] });
    },
  });
  if (done) {
    toast(`${made.name} is the newest revision now`);
    location.hash = place("ws", { name, rev: made.name });
  }
});

export const tarButton = (name, rev, label = "Download") => button(label, async () => {
  let wanted = null;
  const form = {
    title: `Download ${name}`, label: "Download",
    text: "A snapshot holds everything and can be loaded again with `ramet import`; a plain tar holds the files.",
    fields: [
      { name: "kind", label: "What", value: "tar", options: [["tar", "Plain tar of the files"], ["snapshot", "Snapshot"]] },
      { name: "compress", label: "Compression", value: "gz", options: [["gz", "gzip"], ["xz", "xz"], ["", "none"]] },
    ],
    act: async (values) => {
      wanted = values;
    },
  };
  if (!(await ask(form))) return;
  const suffix = `tar${wanted.compress && `.${wanted.compress}`}`;
  await download(workspacePath(name, "/snapshot"), { revision: rev, ...wanted }, `${name}.${suffix}`);
});

/** Download with the token, showing progress, and hand the bytes to the browser as a file. */
export async function download(path, query, filename) {
  const stopping = new AbortController();
  const told = h("span", {}, "waiting");
  const bar = h("div", { class: "toast" }, `${filename}: `, told, button("Stop", () => stopping.abort()));
  document.getElementById("toasts").append(bar);
  try {
    const answer = await raw(path, query, {}, stopping.signal);
    const total = Number(answer.headers.get("content-length")) || null;
    let came = 0;
    const counted = answer.body.pipeThrough(new TransformStream({
      transform(piece, out) {
        came += piece.length;
        told.textContent = total ? `${size(came)} of ${size(total)} ` : `${size(came)} `;
        out.enqueue(piece);
      },
    }));
    const blob = await new Response(counted, { headers: { "content-type": "application/octet-stream" } }).blob();
    const href = URL.createObjectURL(blob);
    h("a", { href, download: filename.replace(/[^\w.\- ]/g, "_") }).click();
    setTimeout(() => URL.revokeObjectURL(href), 60_000);
  } catch (error) {
    if (error.name === "AbortError") toast(`${filename} was stopped`);
    else toast(`${filename} could not be downloaded: ${error.message}`, "bad");
  } finally {
    bar.remove();
  }
}
