// What listens in a workspace, and opening it: at a separate origin, which learns nothing of this page.

import { change, get, workspacePath } from "../lib/api.js";
import { button, h, put, refill } from "../lib/dom.js";
import { name as safe, notice, poll, problemBox } from "../lib/frame.js";
import { oneLine } from "../lib/text.js";
import { heading, loaded } from "./shared.js";

const SECONDS = 3; // between two looks at what listens

export async function ports({ route, signal }) {
  const { name } = route;
  const { info } = await loaded({ ...route, rev: "" }, signal);
  const path = workspacePath(name, "/ports");
  const found = await get(path, {}, signal);
  const list = h("div", {}, table(name, found.ports));
  poll(path, signal, (now) => refill(list, table(name, now.ports)), SECONDS, JSON.stringify(found));
  return h("div", { class: "page" },
    heading(info, "ports"),
    h("p", { class: "faint" }, "Programs of this workspace that listen. Each opens in its own origin: it has its own cookies and storage, and cannot reach this page."),
    list);
}

function table(name, listening) {
  if (!listening.length) {
    return notice("Nothing listens. Start a program in the terminal, such as ", h("code", {}, "python3 -m http.server 8000 &"), ", and it appears here.");
  }
  return h("table", { class: "totals" },
    h("thead", {}, h("tr", {}, ["Port", "Address", "Program", h("span", { class: "unseen" }, "Open")].map((label) => h("th", { scope: "col" }, label)))),
    h("tbody", {}, listening.map(({ port, address, program }) => {
      const told = h("div");
      return h("tr", {},
        h("th", { scope: "row" }, String(port)),
        h("td", {}, oneLine(address)),
        h("td", {}, h("code", {}, safe(program || "unknown"))),
        h("td", {}, opening(name, port, told), told));
    })));
}

/** The link works once, so that it is asked for only now. */
const opening = (name, port, told) => button("Open", async () => {
  refill(told);
  try {
    const { url } = await change("POST", workspacePath(name, "/ports"), { port });
    window.open(url, "_blank", "noopener,noreferrer");
  } catch (error) {
    put(told, problemBox(error));
  }
}, { "aria-label": `Open port ${port}` });
