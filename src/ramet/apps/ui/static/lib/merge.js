// Three-way merge of lines; conflicting stretches of both sides stand between markers.

import { changed } from "./linediff.js";

export const MARKER = /^(<{7}|={7}|>{7})/m;

/** The merged lines. `names` stand at the markers: of our side, and of theirs. */
export function merged(base, ours, theirs, names) {
  const edits = [ours, theirs].flatMap((lines, side) => changed(base, lines).map(([from, to, start, end]) => ({ from, to, side, grown: end - start - (to - from) })));
  edits.sort((a, b) => a.from - b.from || a.to - b.to);
  const sides = [ours, theirs];
  const shift = [0, 0]; // from a line of the base to that line of each side
  const out = [];
  let at = 0;
  while (edits.length) {
    const { from } = edits[0];
    let { to } = edits[0];
    const grown = [null, null]; // of the sides that changed this stretch
    while (edits.length && edits[0].from <= to) {
      const edit = edits.shift();
      to = Math.max(to, edit.to);
      grown[edit.side] = (grown[edit.side] ?? 0) + edit.grown;
    }
    out.push(...base.slice(at, from));
    at = to;
    const [mine, yours] = sides.map((lines, side) => lines.slice(from + shift[side], to + shift[side] + (grown[side] ?? 0)));
    grown.forEach((number, side) => (shift[side] += number ?? 0));
    if (grown[1] === null || mine.join("\n") === yours.join("\n")) out.push(...mine);
    else if (grown[0] === null) out.push(...yours);
    else out.push(`<<<<<<< ${names[0]}`, ...mine, "=======", ...yours, `>>>>>>> ${names[1]}`);
  }
  return [...out, ...base.slice(at)];
}
