// Comma- or tab-separated values as a table, loaded in pages.

import { part } from "../lib/api.js";
import { button, h, refill } from "../lib/dom.js";
import { delimiterOf, Rows } from "../lib/csv.js";
import { notice, problemBox } from "../lib/messages.js";
import { decodeBytes } from "../lib/names.js";
import { oneLine, plural, size } from "../lib/text.js";

const PART = 256 << 10;
const PAGE = 200;
const KEPT = 20_000; // rows in the page
const COLUMNS = 200;
const ROW = 1 << 20; // characters

export function sheet(name, path, rev, first, signal) {
  const rows = new Rows(delimiterOf(path));
  const decoder = { rest: new Uint8Array(0) };
  const waiting = [];
  const head = h("thead");
  const body = h("tbody");
  const ending = h("p", { class: "more" });
  let [read, shown, cut, total] = [0, 0, false, first.total];
  const take = ({ bytes, total: whole }) => {
    total = whole;
    read += bytes.length;
    waiting.push(...rows.feed(decoded(decoder, bytes, over()), over()));
  };
  const over = () => total === null || read >= total;
  const line = (values, tag, number) => {
    cut ||= values.length > COLUMNS;
    return h("tr", {}, h("th", { class: "at", scope: "row" }, number), values.slice(0, COLUMNS).map((value) => h(tag, { scope: tag === "th" ? "col" : null, class: /^-?[\d.,]+%?$/.test(value) && "n" }, oneLine(value))));
  };
  const more = async () => {
    try {
      while (waiting.length < PAGE && !over() && rows.pending < ROW) take(await part(name, path, rev, read, read + PART, signal));
    } catch (error) {
      if (error.name !== "AbortError") refill(ending, problemBox(error));
      return;
    }
    if (!shown && waiting.length) head.append(line(waiting.shift(), "th", h("span", { class: "unseen" }, "Row")));
    for (const values of waiting.splice(0, PAGE)) body.append(line(values, "td", (shown += 1).toLocaleString("en")));
    const left = waiting.length > 0 || !over();
    const endless = rows.pending >= ROW;
    refill(ending, h("span", { class: "faint" }, plural(shown, "row"), left && ` of ${over() ? plural(shown + waiting.length, "row") : `a file of ${size(total)}`}`), " ",
      left && (endless ? notice(`A row is longer than ${size(ROW)}: look at the source.`) : shown < KEPT ? button(`Show ${PAGE} more`, more) : notice("Download the file to see the rest.")),
      cut && notice(`Only the first ${COLUMNS} columns are shown.`));
  };
  take(first);
  more();
  return h("div", {}, h("div", { class: "scroll sheet", tabindex: "0", role: "region", "aria-label": "Table" }, h("table", {}, head, body)), ending);
}

/** Decode whole lines; the bytes of an incomplete one wait for the next part. */
function decoded(state, bytes, ended) {
  const all = new Uint8Array(state.rest.length + bytes.length);
  all.set(state.rest);
  all.set(bytes, state.rest.length);
  const edge = ended ? all.length : all.lastIndexOf(10) + 1;
  state.rest = all.slice(edge);
  return decodeBytes(all.subarray(0, edge)).replace(/^\ufeff/, "");
}
