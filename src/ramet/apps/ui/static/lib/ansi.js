// Terminal output as runs of text with classes: colors and weight are kept, other escape sequences are removed.

// eslint-disable-next-line no-control-regex
const ESCAPE = /\x1b(?:\[([0-9;:?]*)([ -/]*[@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)|[PX^_][^\x1b]*\x1b\\|[ -/]*[0-OQ-WYZ\\`-~])/g;

/** Parses output in pieces; an escape sequence that is cut in two waits for its rest. */
export class Painter {
  #look = { fg: null, bg: null, bold: false, dim: false, italic: false, underline: false };
  #rest = "";

  /** Return the runs `{text, classes}` of a piece. */
  feed(piece, last = false) {
    let text = this.#rest + piece;
    this.#rest = "";
    const cut = text.lastIndexOf("\x1b");
    ESCAPE.lastIndex = 0;
    if (!last && cut >= 0 && text.length - cut < 64 && !new RegExp(ESCAPE.source).test(text.slice(cut))) {
      this.#rest = text.slice(cut);
      text = text.slice(0, cut);
    }
    const runs = [];
    let at = 0;
    for (const found of text.matchAll(ESCAPE)) {
      this.#put(runs, text.slice(at, found.index));
      if (found[2] === "m") this.#set(found[1]);
      at = found.index + found[0].length;
    }
    this.#put(runs, text.slice(at));
    return runs;
  }

  #put(runs, text) {
    if (!text) return;
    const { fg, bg, bold, dim, italic, underline } = this.#look;
    const classes = [fg !== null && `fg${fg}`, bg !== null && `bg${bg}`, bold && "bold", dim && "dim", italic && "italic", underline && "underline"];
    runs.push({ text: text.replace(/\r+\n/g, "\n"), classes: classes.filter(Boolean).join(" ") });
  }

  #set(codes) {
    const look = this.#look;
    const numbers = (codes || "0").split(/[;:]/).map(Number);
    for (let at = 0; at < numbers.length; at++) {
      const code = numbers[at];
      if (code === 0) Object.assign(look, { fg: null, bg: null, bold: false, dim: false, italic: false, underline: false });
      else if (code === 1) look.bold = true;
      else if (code === 2) look.dim = true;
      else if (code === 3) look.italic = true;
      else if (code === 4) look.underline = true;
      else if (code === 22) look.bold = look.dim = false;
      else if (code === 23) look.italic = false;
      else if (code === 24) look.underline = false;
      else if (code >= 30 && code <= 37) look.fg = code - 30;
      else if (code >= 90 && code <= 97) look.fg = code - 82;
      else if (code === 39) look.fg = null;
      else if (code >= 40 && code <= 47) look.bg = code - 40;
      else if (code >= 100 && code <= 107) look.bg = code - 92;
      else if (code === 49) look.bg = null;
      else if (code === 38 || code === 48) {
        const kind = numbers[at + 1];
        const color = kind === 5 ? sixteenth(numbers[at + 2]) : null;
        look[code === 38 ? "fg" : "bg"] = color;
        at += kind === 5 ? 2 : kind === 2 ? 4 : 0;
      }
    }
  }
}

/** Map one of 256 colors to about the nearest of 16. */
function sixteenth(number) {
  if (number < 16) return number;
  if (number >= 232) return number < 244 ? 8 : 7;
  const cube = number - 16;
  const [red, green, blue] = [Math.floor(cube / 36), Math.floor(cube / 6) % 6, cube % 6];
  const bright = Math.max(red, green, blue) > 3 ? 8 : 0;
  const most = Math.max(red, green, blue) / 2;
  return bright + (red > most ? 1 : 0) + (green > most ? 2 : 0) + (blue > most ? 4 : 0);
}
