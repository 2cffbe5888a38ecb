// Line diff: the shortest edit script (Myers) where that is cheap, else anchored at lines that are unique on both sides.
// Every script is correct; only its length depends on the effort.

const WORK = 2_000; // edits after which a stretch is cut at unique lines, or taken as replaced

/** Return the stretches `[oldStart, oldEnd, newStart, newEnd]` that differ, in order. */
export function changed(before, after) {
  const numbers = new Map();
  const numbered = (lines) => Int32Array.from(lines, (line) => {
    let number = numbers.get(line);
    if (number === undefined) numbers.set(line, (number = numbers.size));
    return number;
  });
  const found = [];
  compare(numbered(before), 0, before.length, numbered(after), 0, after.length, found);
  return joined(found);
}

function joined(found) {
  const out = [];
  for (const one of found) {
    const last = out[out.length - 1];
    if (last && last[1] === one[0] && last[3] === one[2]) {
      last[1] = one[1];
      last[3] = one[3];
    } else out.push([...one]);
  }
  return out;
}

function compare(a, aFrom, aTo, b, bFrom, bTo, found) {
  while (aFrom < aTo && bFrom < bTo && a[aFrom] === b[bFrom]) {
    aFrom += 1;
    bFrom += 1;
  }
  while (aFrom < aTo && bFrom < bTo && a[aTo - 1] === b[bTo - 1]) {
    aTo -= 1;
    bTo -= 1;
  }
  if (aFrom === aTo && bFrom === bTo) return;
  if (aFrom === aTo || bFrom === bTo) {
    found.push([aFrom, aTo, bFrom, bTo]);
    return;
  }
  const script = shortest(a, aFrom, aTo, b, bFrom, bTo);
  if (script) {
    found.push(...script);
    return;
  }
  const anchors = shared(a, aFrom, aTo, b, bFrom, bTo);
  if (!anchors.length) {
    found.push([aFrom, aTo, bFrom, bTo]);
    return;
  }
  let [x, y] = [aFrom, bFrom];
  for (const [i, j] of anchors) {
    compare(a, x, i, b, y, j, found);
    [x, y] = [i + 1, j + 1];
  }
  compare(a, x, aTo, b, y, bTo, found);
}

/** Myers' greedy algorithm; null when it needs more than `WORK` edits. */
function shortest(a, aFrom, aTo, b, bFrom, bTo) {
  const n = aTo - aFrom;
  const m = bTo - bFrom;
  const most = Math.min(n + m, WORK);
  const furthest = new Int32Array(2 * most + 3);
  const traces = [];
  for (let d = 0; d <= most; d++) {
    traces.push(furthest.slice(most - d, most + d + 3));
    for (let k = -d; k <= d; k += 2) {
      const at = k + most + 1;
      let x = k === -d || (k !== d && furthest[at - 1] < furthest[at + 1]) ? furthest[at + 1] : furthest[at - 1] + 1;
      let y = x - k;
      while (x < n && y < m && a[aFrom + x] === b[bFrom + y]) {
        x += 1;
        y += 1;
      }
      furthest[at] = x;
      if (x >= n && y >= m) return walked(traces, d, n, m, aFrom, bFrom);
    }
  }
  return null;
}

function walked(traces, edits, n, m, aFrom, bFrom) {
  const out = [];
  let [x, y] = [n, m];
  for (let d = edits; d > 0; d--) {
    const at = (k) => traces[d][k + d + 1];
    const k = x - y;
    const down = k === -d || (k !== d && at(k - 1) < at(k + 1));
    const before = down ? k + 1 : k - 1;
    const fromX = at(before);
    const fromY = fromX - before;
    out.push(down ? [aFrom + fromX, aFrom + fromX, bFrom + fromY, bFrom + fromY + 1] : [aFrom + fromX, aFrom + fromX + 1, bFrom + fromY, bFrom + fromY]);
    [x, y] = [fromX, fromY];
  }
  return joined(out.reverse());
}

/** Pairs of lines that are unique on both sides, as the longest sequence that increases on both. */
function shared(a, aFrom, aTo, b, bFrom, bTo) {
  const once = (lines, from, to) => {
    const places = new Map();
    for (let at = from; at < to; at++) places.set(lines[at], places.has(lines[at]) ? -1 : at);
    return places;
  };
  const inB = once(b, bFrom, bTo);
  const pairs = [];
  for (const [line, at] of once(a, aFrom, aTo)) {
    const other = inB.get(line);
    if (at >= 0 && other !== undefined && other >= 0) pairs.push([at, other]);
  }
  pairs.sort((one, other) => one[0] - other[0]);
  const tails = [];
  const back = new Array(pairs.length).fill(-1);
  pairs.forEach(([, place], index) => {
    let [low, high] = [0, tails.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (pairs[tails[middle]][1] < place) low = middle + 1;
      else high = middle;
    }
    if (low > 0) back[index] = tails[low - 1];
    tails[low] = index;
  });
  const out = [];
  for (let index = tails.length ? tails[tails.length - 1] : -1; index >= 0; index = back[index]) out.push(pairs[index]);
  return out.reverse();
}

/** Hunks of a unified diff: rows `{sign, old, new, text}` with line numbers, and context. */
export function hunks(before, after, around = 3) {
  const out = [];
  let current = null;
  const same = (from, to, shift) => {
    for (let at = from; at < to; at++) current.rows.push({ sign: " ", old: at + 1, new: at + shift + 1, text: before[at] });
  };
  let last = null;
  for (const [aFrom, aTo, bFrom, bTo] of changed(before, after)) {
    if (last !== null && aFrom - last[1] <= 2 * around) same(last[1], aFrom, bFrom - aFrom);
    else {
      if (last !== null) same(last[1], Math.min(before.length, last[1] + around), last[3] - last[1]);
      current = { rows: [], oldStart: Math.max(0, aFrom - around) + 1, newStart: Math.max(0, aFrom - around) + (bFrom - aFrom) + 1 };
      out.push(current);
      same(Math.max(0, aFrom - around), aFrom, bFrom - aFrom);
    }
    for (let at = aFrom; at < aTo; at++) current.rows.push({ sign: "-", old: at + 1, new: null, text: before[at] });
    for (let at = bFrom; at < bTo; at++) current.rows.push({ sign: "+", old: null, new: at + 1, text: after[at] });
    mark(current.rows, aTo - aFrom, bTo - bFrom);
    last = [aFrom, aTo, bFrom, bTo];
  }
  if (last !== null) same(last[1], Math.min(before.length, last[1] + around), last[3] - last[1]);
  return out;
}

/** Where as many lines were removed as added, mark the changed part of each pair. */
function mark(rows, gone, came) {
  if (gone !== came || gone > 50) return;
  for (let at = 0; at < gone; at++) {
    const one = rows[rows.length - gone - came + at];
    const other = rows[rows.length - came + at];
    const part = differing(one.text, other.text);
    if (part) [one.part, other.part] = part;
  }
}

/** The differing middle of two lines as `[[from, to], [from, to]]`; null when they have little in common. */
export function differing(one, other) {
  let head = 0;
  const short = Math.min(one.length, other.length);
  while (head < short && one[head] === other[head]) head += 1;
  let tail = 0;
  while (tail < short - head && one[one.length - 1 - tail] === other[other.length - 1 - tail]) tail += 1;
  if (head && /[\ud800-\udbff]/.test(one[head - 1])) head -= 1;
  if (tail && /[\udc00-\udfff]/.test(one[one.length - tail])) tail -= 1;
  if ((head + tail) * 3 < Math.max(one.length, other.length)) return null;
  return [[head, one.length - tail], [head, other.length - tail]];
}

export const counts = (parts) => parts.reduce((sum, [a, b, c, d]) => ({ gone: sum.gone + b - a, came: sum.came + d - c }), { gone: 0, came: 0 });
