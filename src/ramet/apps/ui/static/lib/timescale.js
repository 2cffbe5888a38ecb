// A time scale that keeps the length of work and cuts pauses short.

const GAP = 0.04; // share of the width that a pause takes, however long it was
const GAPS = 0.5; // share of all pauses together

/** Where each span `[from, to]` begins and ends, as shares of the width. */
export function positions(spans) {
  const busy = [];
  for (const [from, to] of [...spans].sort((a, b) => a[0] - b[0])) {
    const last = busy[busy.length - 1];
    if (last && from <= last[1]) last[1] = Math.max(last[1], to);
    else busy.push([from, to]);
  }
  const worked = busy.reduce((sum, [from, to]) => sum + (to - from), 0) || 1;
  const pauses = Math.min(GAPS, GAP * (busy.length - 1));
  const pause = busy.length > 1 ? pauses / (busy.length - 1) : 0;
  const scale = (1 - pauses) / worked;
  let at = 0;
  const starts = busy.map(([from, to]) => {
    const begin = at;
    at += (to - from) * scale + pause;
    return begin;
  });
  const position = (moment) => {
    let block = 0;
    while (block + 1 < busy.length && busy[block + 1][0] <= moment) block += 1;
    return starts[block] + (Math.min(moment, busy[block][1]) - busy[block][0]) * scale;
  };
  return spans.map(([from, to]) => ({ from: position(from), to: position(to) }));
}
