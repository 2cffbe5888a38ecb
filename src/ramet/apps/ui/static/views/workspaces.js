// The list of workspaces, with the newest revision of each, and the running sandboxes.

import { change, get } from "../lib/api.js";
import { ask } from "../lib/dialog.js";
import { button, h, refill } from "../lib/dom.js";
import { poll } from "../lib/live.js";
import { name as safe, toast, when } from "../lib/messages.js";
import { place } from "../lib/names.js";
import { oneLine, plural, size } from "../lib/text.js";
import { counts, makers, writing } from "./shared.js";

const SHOWN = 500;
const FEW = 50;
const remembered = { filter: "", order: "changed" };

export async function workspaces({ signal, live }) {
  let [{ workspaces: all }, { sandboxes }] = await Promise.all([get("/workspaces", {}, signal), get("/sandboxes", {}, signal)]);
  const running = h("div", { class: "cards" });
  let costs = new Map();
  const list = h("div", { class: "cards" });
  const total = h("span", { class: "faint" });
  const filter = h("input", {
    type: "search", placeholder: "Filter  ( / )", "aria-label": "Filter the workspaces", value: remembered.filter,
    oninput: () => {
      remembered.filter = filter.value;
      fill();
    },
  });
  const order = h("select", { "aria-label": "Order", onchange: () => {
    remembered.order = order.value;
    fill();
  } }, [["changed", "Last changed"], ["name", "Name"]].map(([key, label]) => h("option", { value: key, selected: key === remembered.order }, label)));

  function fill() {
    const words = remembered.filter.toLowerCase().split(/\s+/).filter(Boolean);
    const text = (info) => `${info.name} ${info.head?.message ?? ""} ${info.head ? makers(info.head) : ""} ${info.kind}`.toLowerCase();
    const found = all.filter((info) => words.every((word) => text(info).includes(word)));
    found.sort(remembered.order === "name" ? (a, b) => a.name.localeCompare(b.name) : (a, b) => (b.head?.time ?? 0) - (a.head?.time ?? 0) || a.name.localeCompare(b.name));
    total.textContent = found.length === all.length ? plural(all.length, "workspace") : `${found.length} of ${plural(all.length, "workspace")}`;
    refill(list, found.slice(0, SHOWN).map((info) => card(info, costs.get(info.name))), found.length > SHOWN && h("p", { class: "notice" }, `${plural(found.length - SHOWN, "more workspace")} not shown: filter for them.`),
      !found.length && (all.length ? h("p", { class: "faint" }, "No workspace matches.") : empty()));
  }

  let asked = false;
  fill();
  const fresh = (found) => {
    all = found.workspaces;
    fill();
  };
  const sizes = async () => {
    try {
      const told = await get("/store/cost", {}, signal);
      costs = new Map(told.workspaces.map((one) => [one.workspace, one]));
      fill();
    } catch (error) {
      if (asked) toast(`Cannot load the sizes: ${error.message}`, "bad");
    }
  };
  const again = poll("/workspaces", signal, fresh, 5);
  const boxes = (found) => refill(running, found.filter((one) => one.phase === "Ready").map(sandbox));
  boxes(sandboxes);
  poll("/sandboxes", signal, (found) => boxes(found.sandboxes), 5);
  live((event) => event.kind !== "exec" && again());
  const few = all.length <= FEW; // sizes take reading all histories: with many workspaces, only on request
  if (few) sizes();
  return h("div", { class: "page" },
    h("div", { class: "bar" }, h("h1", {}, "Workspaces"), total, h("span", { class: "actions" }, filter, order,
      !few && button("Sizes", () => {
        asked = true;
        return sizes();
      }), button("New", create, { class: "primary" }))),
    running, list);
}

/** A running sandbox; its work enters the history when it ends. */
const sandbox = (info) => h("a", { class: "card", href: place("cmds", { name: info.name }) },
  h("span", { class: "what" }, h("span", { class: "name" }, safe(info.name)), h("span", { class: "badge busy" }, "running sandbox")),
  h("span", { class: "message" }, info.workspace ? ["works on ", oneLine(info.workspace)] : "works on nothing that is kept"),
  h("span", { class: "who" }, oneLine(info.image ?? "")), h("span"), h("span"), h("span"),
  h("span", { class: "date" }, when(info.created_at)));

function card(info, cost) {
  const { head } = info;
  return h("a", { class: "card", href: place("ws", { name: info.name, path: info.kind === "stored" ? "" : "/" }) },
    h("span", { class: "what" },
      h("span", { class: "name" }, safe(info.name)),
      info.kind !== "stored" && h("span", { class: "badge" }, info.kind),
      writing(info)),
    h("span", { class: "message" }, head ? oneLine(head.message) || h("span", { class: "faint" }, "no message") : h("span", { class: "faint" }, info.kind === "stored" ? "no revision yet" : "lives in memory")),
    h("span", { class: "who" }, head ? makers(head) : ""),
    h("span", { class: "changes" }, head ? counts(head.diff) : null),
    h("span", { class: "number" }, head ? plural(head.seq, "revision") : ""),
    h("span", { class: "size", title: cost ? `${size(cost.unique)} that only it has, ${size(cost.shared)} that others have too` : null }, cost ? size(cost.unique + cost.shared) : ""),
    h("span", { class: "date" }, head ? when(head.time) : ""));
}

const empty = () => h("div", { class: "empty" }, h("h2", {}, "Nothing here yet"),
  h("p", {}, "Make a workspace with ", h("b", {}, "New"), ", or in a terminal:"), h("pre", {}, "ramet create demo\nramet exec demo 'echo hello > /greeting'"));

async function create() {
  let made = "";
  const done = await ask({
    title: "New workspace", label: "Create",
    fields: [
      { name: "name", label: "Name", required: true, pattern: "[A-Za-z0-9][A-Za-z0-9._\\-]{0,127}" },
      { name: "kind", label: "Kind", value: "stored", options: [["stored", "Stored: every state is kept"], ["memory", "Memory: gone when the server ends"]] },
    ],
    act: async ({ name, kind }) => {
      await change("POST", "/workspaces", { name, kind });
      made = name;
    },
  });
  if (done) location.hash = place("term", { name: made });
}
