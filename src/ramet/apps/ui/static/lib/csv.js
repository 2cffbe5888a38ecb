// An incremental parser of comma-separated values (RFC 4180): a row that is cut in two waits for its rest.

export class Rows {
  #delimiter;
  #rest = "";

  constructor(delimiter) {
    this.#delimiter = delimiter;
  }

  /** Length of the unfinished row. */
  get pending() {
    return this.#rest.length;
  }

  /** Return the rows that end in this piece; with `ended`, also the last one. */
  feed(piece, ended = false) {
    const text = this.#rest + piece;
    const rows = [];
    let [row, field, at, begin, quoted] = [[], "", 0, 0, false];
    const close = () => {
      row.push(field);
      field = "";
    };
    while (at < text.length) {
      const character = text[at];
      if (quoted) {
        if (character !== '"') field += character;
        else if (text[at + 1] === '"') field += text[(at += 1)];
        else quoted = false;
      } else if (character === '"' && field === "") quoted = true;
      else if (character === this.#delimiter) close();
      else if (character === "\n") {
        close();
        rows.push(row);
        row = [];
        begin = at + 1;
      } else if (character !== "\r" || text[at + 1] !== "\n") field += character;
      at += 1;
    }
    this.#rest = ended ? "" : text.slice(begin);
    if (ended && begin < text.length) {
      close();
      rows.push(row);
    }
    return rows;
  }
}

export const delimiterOf = (path) => (/\.csv$/i.test(path) ? "," : /\.(tsv|tab)$/i.test(path) ? "\t" : null);
