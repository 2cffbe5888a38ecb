// Layout of the history graph: for each revision, newest first, its column and the lines that pass, branch and merge.

/**
 * Rows `{column, color, top, through, bottom, width}`; a line `[from, to, color]` leads from one column to another.
 * The first column is reserved for the revision `first`, even where newer ones stand above it.
 */
export function lanes(revisions, first = null) {
  const present = new Set(revisions.map((one) => one.id));
  const open = []; // per column: the revision that its line leads to, and its color
  let colors = 0;
  if (present.has(first)) open.push({ id: first, color: colors++, unseen: true });
  return revisions.map((revision) => {
    let column = open.findIndex((lane) => lane && lane.id === revision.id);
    const begins = column < 0;
    if (begins) {
      column = free(open);
      open[column] = { id: revision.id, color: colors++ };
    }
    const color = open[column].color;
    const above = open.map((lane) => (lane && !lane.unseen ? { ...lane } : null));
    const top = [];
    above.forEach((lane, at) => {
      if (lane && lane.id === revision.id && !(begins && at === column)) top.push([at, column, lane.color]);
    });
    const through = [];
    open.forEach((lane, at) => {
      if (!lane) return;
      if (lane.id === revision.id) open[at] = null;
      else if (!lane.unseen) through.push([at, at, lane.color]);
    });
    const bottom = [];
    revision.parents.filter((parent) => present.has(parent)).forEach((parent, number) => {
      let at = open.findIndex((lane) => lane && lane.id === parent);
      if (at < 0) {
        at = number === 0 && !open[column] ? column : free(open);
        open[at] = { id: parent, color: number === 0 ? color : colors++ };
      } else if (number === 0 && at > column && !open[column]) {
        // The line further left began earlier and stays there; the other one bends to it.
        open[column] = { id: parent, color };
        at = column;
      }
      delete open[at].unseen;
      bottom.push([column, at, number === 0 ? color : open[at].color]);
    });
    while (open.length && !open[open.length - 1]) open.pop();
    const width = Math.max(above.length, open.length, column + 1);
    return { column, color, top, through, bottom, width };
  });
}

function free(open) {
  const at = open.findIndex((lane) => !lane);
  return at < 0 ? open.length : at;
}
