// A history as lanes: for each revision, newest first, its column and the lines that pass, branch and merge next to it.

/**
 * Rows `{column, colour, top, through, bottom, width}`; a line `[from, to, colour]` goes from a column to another one.
 * The first column is kept free for the revision `first`, also where newer ones are above it.
 */
export function lanes(revisions, first = null) {
  const present = new Set(revisions.map((one) => one.id));
  const open = []; // per column: the revision that its line leads to, and its colour
  let colours = 0;
  if (present.has(first)) open.push({ id: first, colour: colours++, unseen: true });
  return revisions.map((revision) => {
    let column = open.findIndex((lane) => lane && lane.id === revision.id);
    const begins = column < 0;
    if (begins) {
      column = free(open);
      open[column] = { id: revision.id, colour: colours++ };
    }
    const colour = open[column].colour;
    const above = open.map((lane) => (lane && !lane.unseen ? { ...lane } : null));
    const top = [];
    above.forEach((lane, at) => {
      if (lane && lane.id === revision.id && !(begins && at === column)) top.push([at, column, lane.colour]);
    });
    const through = [];
    open.forEach((lane, at) => {
      if (!lane) return;
      if (lane.id === revision.id) open[at] = null;
      else if (!lane.unseen) through.push([at, at, lane.colour]);
    });
    const bottom = [];
    revision.parents.filter((parent) => present.has(parent)).forEach((parent, number) => {
      let at = open.findIndex((lane) => lane && lane.id === parent);
      if (at < 0) {
        at = number === 0 && !open[column] ? column : free(open);
        open[at] = { id: parent, colour: number === 0 ? colour : colours++ };
      } else if (number === 0 && at > column && !open[column]) {
        // The older line bends to this one: it began further left, and stays there.
        open[column] = { id: parent, colour };
        at = column;
      }
      delete open[at].unseen;
      bottom.push([column, at, number === 0 ? colour : open[at].colour]);
    });
    while (open.length && !open[open.length - 1]) open.pop();
    const width = Math.max(above.length, open.length, column + 1);
    return { column, colour, top, through, bottom, width };
  });
}

function free(open) {
  const at = open.findIndex((lane) => !lane);
  return at < 0 ? open.length : at;
}
