// A readline-like line editor on a terminal emulator: input and output are terminal sequences.

// eslint-disable-next-line no-control-regex
const KEY = /\x1b\[200~([\s\S]*?)\x1b\[201~|\x1b\[[0-9;]*[A-Za-z~]|\x1bO[A-Za-z]|\x1b[\s\S]|[\s\S]/gu;
// eslint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f]/g;
const ZERO = /^[\p{Mn}\p{Me}\u200b-\u200f\u2060\ufe00-\ufe0f]$/u;
const WIDE = [[0x1100, 0x115f], [0x2e80, 0x303e], [0x3041, 0xa4cf], [0xac00, 0xd7a3], [0xf900, 0xfaff], [0xfe30, 0xfe6f], [0xff00, 0xff60], [0xffe0, 0xffe6], [0x1f300, 0x1f64f], [0x1f900, 0x1f9ff], [0x20000, 0x3fffd]];

/** Columns that a character takes. */
export function width(character) {
  const code = character.codePointAt(0);
  if (code < 0x300) return 1;
  if (ZERO.test(character)) return 0;
  return WIDE.some(([from, to]) => code >= from && code <= to) ? 2 : 1;
}

/** A line as drawn: tabs as spaces, control characters visible. */
export const drawn = (text) => text.replace(/\t/g, "    ").replace(CONTROL, (one) => String.fromCharCode(0x2400 + (one === "\x7f" ? 0x21 : one.charCodeAt(0))));

/** Position of the cursor after a text that begins at the left edge. */
export function place(text, columns) {
  let [row, column] = [0, 0];
  for (const character of text) {
    if (character === "\n") [row, column] = [row + 1, 0];
    else {
      const cells = width(character);
      if (column + cells > columns) [row, column] = [row + 1, 0]; // only now: a line that is exactly full does not wrap
      column += cells;
    }
  }
  return column >= columns ? { row: row + 1, column: 0 } : { row, column };
}

/** The common prefix of words. */
export function common(words) {
  let head = words[0] ?? "";
  for (const word of words) while (!word.startsWith(head)) head = head.slice(0, -1);
  return head;
}

const WORDS = { back: /[\p{L}\p{N}_]*[^\p{L}\p{N}_]*$/u, on: /^[^\p{L}\p{N}_]*[\p{L}\p{N}_]*/u };
const reversed = (text) => [...text].reverse().join("");
const wordBefore = (text) => reversed(WORDS.on.exec(reversed(text))[0]);

/**
 * A line after a prompt. `acts` are `write(text)`, `columns()`, `submit(text)`, `complete(before)` (a promise of
 * `{start, words}`), `interrupt()`, and `leave(backwards)`, which moves the focus away; `past` are earlier lines.
 */
export class LineEditor {
  text = "";
  #at = 0;
  #row = 0; // row of the cursor, counted from the prompt
  #prompt = "";
  #plain = "";
  #past;
  #back; // index of the history entry that is shown
  #typed = ""; // the typed line, while the history is shown
  #cut = "";
  #search = null;
  #asked = 0;
  #acts;

  constructor(acts, past = []) {
    this.#acts = acts;
    this.#past = past;
    this.#back = past.length;
  }

  /** Show a prompt, given as `[text, SGR code]` pairs, and start a line. */
  begin(parts, text = "") {
    this.#prompt = parts.map(([piece, code]) => (code ? `\x1b[${code}m${piece}\x1b[0m` : piece)).join("");
    this.#plain = parts.map(([piece]) => piece).join("");
    [this.text, this.#at, this.#row, this.#search, this.#back] = [text, text.length, 0, null, this.#past.length];
    this.#acts.write("\x1b[?2004h"); // bracketed paste
    this.draw();
  }

  /** Continue the submitted line, which is incomplete. */
  again() {
    this.#past.pop();
    this.#back = this.#past.length;
    this.#row = place(this.#plain + drawn(this.text), this.#acts.columns()).row + 1;
    this.#insert("\n");
  }

  /** Redraw after the number of columns changed. */
  resized() {
    this.#row = place(this.#plain + drawn(this.text.slice(0, this.#at)), this.#acts.columns()).row;
    this.draw();
  }

  draw() {
    const columns = this.#acts.columns();
    const [plain, prompt] = this.#search === null ? [this.#plain, this.#prompt] : [`(search) ${this.#search}: `, `\x1b[2m(search)\x1b[0m ${this.#search}: `];
    const shown = drawn(this.text);
    const end = place(plain + shown, columns);
    const cursor = place(plain + drawn(this.text.slice(0, this.#at)), columns);
    const full = end.column === 0 && end.row > 0 && !shown.endsWith("\n"); // the terminal wraps with the next character
    this.#acts.write(`${this.#row ? `\x1b[${this.#row}A` : ""}\r\x1b[J${prompt}${shown.replace(/\n/g, "\r\n")}${full ? "\r\n" : ""}`
      + `${end.row > cursor.row ? `\x1b[${end.row - cursor.row}A` : ""}\r${cursor.column ? `\x1b[${cursor.column}C` : ""}`);
    this.#row = cursor.row;
  }

  /** Handle keys; returns what follows Enter, which may be for the program. */
  feed(data) {
    KEY.lastIndex = 0;
    for (const found of data.matchAll(KEY)) {
      if (found[1] !== undefined) this.#insert(found[1].replace(/\r\n?/g, "\n"));
      else if (this.#press(found[0])) return data.slice(found.index + found[0].length);
    }
    return "";
  }

  #insert(text) {
    this.text = this.text.slice(0, this.#at) + text + this.text.slice(this.#at);
    this.#go(this.#at + text.length);
  }

  #go(at) {
    this.#at = Math.max(0, Math.min(at, this.text.length));
    this.draw();
  }

  #erase(from, to) {
    if (to - from > 1) this.#cut = this.text.slice(from, to);
    this.text = this.text.slice(0, from) + this.text.slice(to);
    this.#go(from);
  }

  #press(key) {
    this.#asked += 1; // drop completions that arrive later
    if (this.#search !== null && this.#searching(key)) return false;
    const { text } = this;
    const at = this.#at;
    const before = text.slice(0, at);
    const left = before ? [...before].at(-1).length : 0;
    const right = at < text.length ? String.fromCodePoint(text.codePointAt(at)).length : 0;
    switch (key) {
      case "\r": case "\n": return this.#enter();
      case "\x03": return this.#interrupt();
      case "\x04": return text ? void this.#erase(at, at + right) : void this.#acts.leave(false);
      case "\x7f": case "\b": return void this.#erase(at - left, at);
      case "\x1b[3~": return void this.#erase(at, at + right);
      case "\x1b[D": case "\x1bOD": case "\x02": return void this.#go(at - left);
      case "\x1b[C": case "\x1bOC": case "\x06": return void this.#go(at + right);
      case "\x1b[H": case "\x1bOH": case "\x1b[1~": case "\x01": return void this.#go(before.lastIndexOf("\n") + 1);
      case "\x1b[F": case "\x1bOF": case "\x1b[4~": case "\x05": return void this.#go(text.indexOf("\n", at) < 0 ? text.length : text.indexOf("\n", at));
      case "\x1b[1;5D": case "\x1b[1;3D": case "\x1bb": return void this.#go(at - wordBefore(before).length);
      case "\x1b[1;5C": case "\x1b[1;3C": case "\x1bf": return void this.#go(at + WORDS.on.exec(text.slice(at))[0].length);
      case "\x17": case "\x1b\x7f": return void this.#erase(at - (/\S*\s*$/.exec(before)[0].length || left), at);
      case "\x1bd": return void this.#erase(at, at + WORDS.on.exec(text.slice(at))[0].length);
      case "\x15": return void this.#erase(0, at);
      case "\x0b": return void this.#erase(at, text.length);
      case "\x19": return void this.#insert(this.#cut);
      case "\x0c": return void this.#clear();
      case "\x12": return void this.#find("");
      case "\x1b[A": case "\x1bOA": case "\x10": return void this.#recall(-1);
      case "\x1b[B": case "\x1bOB": case "\x0e": return void this.#recall(1);
      case "\x1b[Z": return void this.#acts.leave(true);
      case "\t": return void (text ? this.#complete(before) : this.#acts.leave(false));
      default: if (!/^[\x00-\x1f]/.test(key)) this.#insert(key); // eslint-disable-line no-control-regex
    }
    return false;
  }

  /** Leave the line as it is and continue below it. */
  #below(mark = "") {
    this.#at = this.text.length;
    this.draw();
    this.#acts.write(`${mark}\r\n`);
    this.#row = 0;
  }

  #enter() {
    const { text } = this;
    this.#below("\x1b[?2004l");
    if (text.trim() && this.#past.at(-1) !== text) this.#past.push(text);
    this.#acts.submit(text);
    return true;
  }

  #interrupt() {
    this.#below("^C");
    this.#acts.interrupt();
    return true;
  }

  #clear() {
    this.#acts.write("\x1b[2J\x1b[H");
    this.#row = 0;
    this.draw();
  }

  /** History entries that begin with the typed text. */
  #recall(step) {
    if (this.#back === this.#past.length) this.#typed = this.text;
    let at = this.#back + step;
    while (at >= 0 && at < this.#past.length && !this.#past[at].startsWith(this.#typed)) at += step;
    if (at < 0 || at > this.#past.length) return;
    this.#back = at;
    this.text = at === this.#past.length ? this.#typed : this.#past[at];
    this.#go(this.text.length);
  }

  #searching(key) {
    if (key === "\x12") this.#find(this.#search, this.#back);
    else if (key === "\x7f" || key === "\b") this.#find(this.#search.slice(0, -1));
    else if (!/^[\x00-\x1f\x7f]/.test(key)) this.#find(this.#search + key, this.#back + 1); // eslint-disable-line no-control-regex
    else {
      this.#search = null;
      if (key === "\x07" || key === "\x1b") this.text = "";
      this.#go(this.text.length);
      return key === "\x07" || key === "\x1b";
    }
    return true;
  }

  #find(wanted, before = this.#past.length) {
    this.#search = wanted;
    let at = Math.min(before, this.#past.length) - 1;
    while (at >= 0 && !this.#past[at].includes(wanted)) at -= 1;
    if (at >= 0 && wanted) [this.#back, this.text] = [at, this.#past[at]];
    this.#go(this.text.length);
  }

  async #complete(before) {
    const mine = (this.#asked += 1);
    const found = await this.#acts.complete(before);
    if (mine !== this.#asked || found === null) return;
    const { start, words } = found;
    const head = common(words);
    const typed = this.text.slice(start, this.#at);
    if (head.length > typed.length || (words.length === 1 && head !== typed)) {
      this.text = this.text.slice(0, start) + head + this.text.slice(this.#at);
      this.#go(start + head.length);
    } else if (words.length) {
      const at = this.#at;
      this.#below();
      this.#acts.write(listed(words, this.#acts.columns()));
      this.#go(at);
    }
  }
}

const OFFERED = 200;

/** Words in columns, each by its last path segment. */
function listed(words, columns) {
  const names = words.slice(0, OFFERED).map((word) => drawn(/[^/]*\/?$/.exec(word.trimEnd())[0]));
  const wide = Math.max(...names.map((one) => [...one].reduce((sum, character) => sum + width(character), 0))) + 2;
  const each = Math.max(1, Math.floor(columns / wide));
  const lines = [];
  const rows = Math.ceil(names.length / each);
  for (let row = 0; row < rows; row++) lines.push(names.filter((_, at) => at % rows === row).map((one) => one.padEnd(wide)).join("").trimEnd());
  if (words.length > OFFERED) lines.push(`and ${(words.length - OFFERED).toLocaleString("en")} more`);
  return lines.map((line) => `${line}\r\n`).join("");
}

/** Cooked input of a running command: echoed while typed, sent with Enter. */
export class LineInput {
  #text = "";
  #acts;

  /** `acts` are `write(text)`, `send(text)`, `interrupt()` and `end()`. */
  constructor(acts) {
    this.#acts = acts;
  }

  /** Take the input that was not sent yet. */
  take() {
    const text = this.#text;
    this.#text = "";
    return text;
  }

  feed(data) {
    for (const [key, pasted] of data.matchAll(KEY)) {
      if (key === "\r") this.#send("\r\n", `${this.take()}\n`);
      else if (key === "\x03") {
        this.take();
        this.#acts.write("^C\r\n");
        this.#acts.interrupt();
      } else if (key === "\x04") {
        if (this.#text) this.#send("", this.take());
        else this.#acts.end();
      } else if (key === "\x7f" || key === "\b") this.#erase(1);
      else if (key === "\x15") this.#erase(Infinity);
      else if (pasted !== undefined || !/^[\x00-\x08\x0b-\x1f]/.test(key)) this.#add(pasted ?? key); // eslint-disable-line no-control-regex
    }
  }

  #send(shown, text) {
    this.#acts.write(shown);
    this.#acts.send(text);
  }

  #add(text) {
    const whole = (this.#text + text.replace(/\r\n?/g, "\n")).split("\n");
    this.#acts.write(drawn(text.replace(/\r\n?/g, "\n")).replace(/\n/g, "\r\n"));
    this.#text = whole.pop();
    if (whole.length) this.#acts.send(`${whole.join("\n")}\n`);
  }

  #erase(most) {
    const letters = [...this.#text];
    for (const gone of letters.splice(Math.max(0, letters.length - most))) this.#acts.write("\b \b".repeat(gone === "\t" ? 4 : width(gone)));
    this.#text = letters.join("");
  }
}
