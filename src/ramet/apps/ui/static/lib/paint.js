// Syntax colors and change marks of a line, merged into runs of one style each.

import { h } from "./dom.js";
import { visible } from "./text.js";

/** Merge tokens `[shade, length, ...]` and marked ranges into runs `[from, to, shade, marked]`. */
export function runs(length, shades = [], marks = []) {
  const out = [];
  let [at, place, mark] = [0, 0, 0];
  let until = shades.length ? shades[1] : length;
  while (at < length) {
    while (at >= until) {
      place += 2;
      until = place < shades.length ? until + shades[place + 1] : length;
    }
    while (mark < marks.length && marks[mark][1] <= at) mark += 1;
    const marked = mark < marks.length && marks[mark][0] <= at;
    const edge = mark >= marks.length ? length : marked ? marks[mark][1] : marks[mark][0];
    const to = Math.min(until, edge, length);
    out.push([at, to, shades[place] ?? "", marked]);
    at = to;
  }
  return out;
}

/** Return the nodes of a line. */
export function painted(text, shades, marks) {
  if (!shades?.length && !marks?.length) return visible(text);
  return runs(text.length, shades, marks).map(([from, to, shade, marked]) => {
    const piece = visible(text.slice(from, to));
    const inner = shade ? h("span", { class: `t-${shade}` }, piece) : piece;
    return marked ? h("mark", {}, inner) : inner;
  });
}
