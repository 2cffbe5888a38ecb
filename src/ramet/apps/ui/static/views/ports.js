// Ports that programs of a workspace listen on. Each opens at a separate origin, which learns nothing of this page.

import { change, get, workspacePath } from "../lib/api.js";
import { button, h, link, put, refill } from "../lib/dom.js";
import { poll } from "../lib/live.js";
import { name as safe, problemBox } from "../lib/messages.js";
import { place } from "../lib/names.js";
import { oneLine } from "../lib/text.js";
import { heading } from "./shared.js";

const SECONDS = 3; // between two looks at what listens

export async function ports({ route, signal, workspace }) {
  const { name } = route;
  const { info } = await workspace;
  const path = workspacePath(name, "/ports");
  const found = await get(path, {}, signal);
  const list = h("div", {}, table(name, found.ports));
  poll(path, signal, (now) => refill(list, table(name, now.ports)), SECONDS, JSON.stringify(found));
  return h("div", { class: "page" },
    heading(info, "ports"),
    h("p", { class: "faint" }, "Programs in this workspace that listen on a port. Each opens at its own origin, with its own cookies and storage, and cannot reach this page."),
    list);
}

function table(name, listening) {
  if (!listening.length) {
    return h("div", { class: "empty" }, h("p", {}, "Nothing listens. Start a program in the ", link(place("term", { name }), "terminal"), ", and it appears here:"), h("pre", {}, "python3 -m http.server 8000 &"));
  }
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Ports" }, h("table", { class: "totals" },
    h("thead", {}, h("tr", {}, ["Port", "Address", "Program", h("span", { class: "unseen" }, "Open")].map((label, at) => h("th", { class: at === 0 && "n", scope: "col" }, label)))),
    h("tbody", {}, listening.map(({ port, address, program }) => {
      const told = h("div");
      return h("tr", {},
        h("th", { class: "n", scope: "row" }, String(port)),
        h("td", {}, oneLine(address)),
        h("td", {}, h("code", {}, safe(program || "unknown"))),
        h("td", {}, opening(name, port, told), told));
    }))));
}

/** The link works once, so it is requested by the click. */
const opening = (name, port, told) => button("Open", async () => {
  refill(told);
  try {
    const { url } = await change("POST", workspacePath(name, "/ports"), { port });
    window.open(url, "_blank", "noopener,noreferrer");
  } catch (error) {
    put(told, problemBox(error));
  }
}, { "aria-label": `Open port ${port}` });
