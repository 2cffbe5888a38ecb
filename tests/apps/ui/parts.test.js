// The parts of the page that compute: names, text, differences, lanes, colors. Run by test_ui.py.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Painter } from "./lib/ansi.js";
import { Rows } from "./lib/csv.js";
import { lanes } from "./lib/graph.js";
import { common as commonHead, drawn, LineEditor, LineInput, place as cursor, width } from "./lib/lineeditor.js";
import { changed, differing, hunks } from "./lib/linediff.js";
import { MARKER, merged } from "./lib/merge.js";
import { crumbs, decodeBytes, decodeText, encodeText, parsePlace, place, resolved } from "./lib/names.js";
import { runs } from "./lib/paint.js";
import { ago, duration, hexDump, imageType, lineage, linesOf, looksLikeText, mode, oneLine, size, visible } from "./lib/text.js";

const bytes = (text) => new TextEncoder().encode(text);

// A generator of its own, so that a failure can be repeated.
function random(seed) {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
    return (state >> 8) % below;
  };
}

test("names travel in URLs and come back, also those that are no UTF-8", () => {
  for (const name of ["a b", "é😀", "%41#?&=+", "x\udcffy", "\udce9t\udce9", "a\nb", "..", "\u202e"]) {
    const sent = encodeText(name);
    assert.match(sent, /^[\x21-\x7e]*$/);
    assert.doesNotMatch(sent, /[#?&/]/);
    assert.equal(decodeText(sent), name);
  }
  assert.equal(encodeText("\udcff"), "%FF");
  assert.equal(decodeText("%"), "%");
  assert.equal(decodeText("%zz"), "%zz");
});

test("bytes become text as the server does it", () => {
  for (const [given, wanted] of [
    [[0x61, 0xff, 0x62], "a\udcffb"], [[0xc0, 0x80], "\udcc0\udc80"], [[0xed, 0xa0, 0x80], "\udced\udca0\udc80"],
    [[0xf4, 0x90, 0x80, 0x80], "\udcf4\udc90\udc80\udc80"], [[0xe2, 0x82], "\udce2\udc82"], [[0xef, 0xbb, 0xbf, 0x61], "\ufeffa"],
    [[0xff, 0xf0, 0x9f, 0x98, 0x80], "\udcff😀"],
  ]) assert.equal(decodeBytes(Uint8Array.from(given)), wanted);
});

test("a place says what is looked at, and is read back", () => {
  for (const [view, parts] of [
    ["ws", { name: "proj", rev: "", path: "", query: {} }],
    ["ws", { name: "proj", rev: "proj-3", path: "/", query: {} }],
    ["ws", { name: "proj", rev: "head~2", path: "/a b/c?d#e", query: { blame: true } }],
    ["diff", { name: "proj", rev: "OTHER@v1", path: "", query: { against: "a&b=c" } }],
  ]) assert.deepEqual(parsePlace(place(view, parts)), { view, ...parts });
  assert.equal(place("ws", { name: "p", rev: "3", path: "/x" }), "#/ws/p@3/x");
  assert.deepEqual(parsePlace("#/?link=abc"), { view: "", name: "", rev: "", path: "", query: { link: "abc" } });
  assert.equal(parsePlace("").view, "");
  assert.deepEqual(crumbs("/a/b"), [{ name: "a", path: "/a" }, { name: "b", path: "/a/b" }]);
  assert.equal(resolved("/a/b", "../c/./d"), "/a/c/d");
  assert.equal(resolved("/a", "/x/../../y"), "/y");
});

test("what cannot be seen is shown", () => {
  assert.equal(visible("a\u202eb\u0000\u001b\udcff😀\tz"), "a⟨U+202E⟩b␀␛\\xff😀\tz");
  assert.equal(visible("\u200b\u2066\u061c"), "⟨U+200B⟩⟨U+2066⟩⟨U+061C⟩");
  assert.equal(visible("\ud83d"), "⟨U+D83D⟩");
  assert.equal(visible("plain\nlines é"), "plain\nlines é");
  assert.equal(oneLine("a\r\nb\tc"), "a⏎b␉c");
});

test("what a file is, is told by its bytes and never by its name", () => {
  assert.equal(imageType(Uint8Array.from([0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10])), "image/png");
  assert.equal(imageType(bytes("<svg xmlns='http://www.w3.org/2000/svg'/>")), null);
  assert.equal(imageType(bytes("<html>")), null);
  assert.equal(imageType(new Uint8Array(0)), null);
  assert.ok(looksLikeText(bytes("hello\nworld é")));
  assert.ok(looksLikeText(new Uint8Array(0)));
  assert.ok(looksLikeText(bytes("\x1b[31mred\x1b[0m")));
  assert.ok(!looksLikeText(Uint8Array.from([1, 2, 0, 3])));
  assert.ok(!looksLikeText(Uint8Array.from({ length: 300 }, (_, at) => 128 + (at % 100))));
});

test("numbers as people say them", () => {
  for (const [given, wanted] of [[null, "–"], [0, "0 B"], [999, "999 B"], [1500, "1.5 KB"], [999_999, "1.0 MB"], [2_500_000_000, "2.5 GB"]]) assert.equal(size(given), wanted);
  for (const [given, wanted] of [[2, "just now"], [59, "59 seconds ago"], [60, "1 minute ago"], [7200, "2 hours ago"], [86_400 * 3, "3 days ago"], [86_400 * 800, "2 years ago"]]) assert.equal(ago(0, given), wanted);
  for (const [given, wanted] of [[0.2, "1 ms"], [999, "999 ms"], [1500, "1.5 s"], [61_000, "1 min 1 s"]]) assert.equal(duration(given), wanted);
  assert.equal(mode(0o755, "dir"), "drwxr-xr-x");
  assert.equal(mode(0o640, "file"), "-rw-r-----");
  assert.equal(mode(null, "file"), "");
  assert.equal(hexDump(bytes("Hello, world!!\n\x00x")), "00000000  48 65 6c 6c 6f 2c 20 77  6f 72 6c 64 21 21 0a 00  |Hello, world!!..|\n00000010  78                                                |x|");
  assert.deepEqual([linesOf(""), linesOf("a"), linesOf("a\n"), linesOf("a\n\n")], [[], ["a"], ["a"], ["a", ""]]);
  assert.equal(lineage("fromWorkspaceRevision:p-3"), "forked from p-3");
  assert.equal(lineage("something:else"), "something:else");
});

function applied(before, after, parts) {
  const out = [];
  let at = 0;
  for (const [a, b, c, d] of parts) {
    out.push(...before.slice(at, a), ...after.slice(c, d));
    at = b;
  }
  return [...out, ...before.slice(at)];
}

/** The length of the longest common subsequence, the slow and certain way. */
function common(a, b) {
  let row = new Array(b.length + 1).fill(0);
  for (const one of a) {
    const next = [0];
    b.forEach((other, at) => next.push(one === other ? row[at] + 1 : Math.max(row[at + 1], next[at])));
    row = next;
  }
  return row[b.length];
}

test("a difference turns one text into the other, and is the shortest", () => {
  const pick = random(7);
  for (let round = 0; round < 2000; round++) {
    const make = () => Array.from({ length: pick(25) }, () => `l${pick(6)}`);
    const [a, b] = [make(), make()];
    const parts = changed(a, b);
    assert.deepEqual(applied(a, b, parts), b);
    const edits = parts.reduce((sum, [p, q, r, s]) => sum + q - p + s - r, 0);
    assert.equal(edits, a.length + b.length - 2 * common(a, b));
    for (const hunk of hunks(a, b, 1 + pick(4))) {
      for (const row of hunk.rows) {
        if (row.old !== null) assert.equal(a[row.old - 1], row.text);
        if (row.new !== null) assert.equal(b[row.new - 1], row.text);
      }
    }
  }
});

test("texts that have little in common are compared in time, and rightly", () => {
  const pick = random(3);
  const a = Array.from({ length: 20_000 }, (_, at) => `x${at}`);
  const b = a.filter((_, at) => at % 3).map((line, at) => (at % 5 ? line : `y${at}`));
  assert.deepEqual(applied(a, b, changed(a, b)), b);
  const [c, d] = [0, 1].map(() => Array.from({ length: 20_000 }, () => `p${pick(50)}`));
  assert.deepEqual(applied(c, d, changed(c, d)), d);
});

test("hunks are a unified diff with what lies around", () => {
  const before = Array.from({ length: 30 }, (_, at) => `line ${at + 1}`);
  const after = before.toSpliced(4, 1).toSpliced(20, 0, "new");
  const shown = hunks(before, after).map((hunk) => [hunk.oldStart, hunk.newStart, hunk.rows.map((row) => row.sign).join("")]);
  assert.deepEqual(shown, [[2, 2, "   -   "], [19, 18, "   +   "]]);
  assert.deepEqual(hunks(["a"], ["a"]), []);
  assert.deepEqual(hunks([], ["a"])[0].rows, [{ sign: "+", old: null, new: 1, text: "a" }]);
  assert.deepEqual(differing("total = sum(x)", "total = round(x)"), [[8, 11], [8, 13]]);
  assert.equal(differing("abc", "xyz"), null);
});

test("lanes lead every revision to its parents", () => {
  const pick = random(11);
  for (let round = 0; round < 200; round++) {
    const total = 1 + pick(30);
    const revisions = Array.from({ length: total }, (_, at) => ({
      id: String(at), parents: [...new Set(Array.from({ length: pick(3) }, () => at + 1 + pick(6)))].filter((to) => to < total + 2).map(String),
    }));
    const first = pick(2) ? String(pick(total)) : null;
    const rows = lanes(revisions, first);
    if (first !== null) assert.equal(rows[Number(first)].column, 0);
    // Follow each line down from the revision that it leaves until it comes to one: that one must be a parent.
    rows.forEach((row, at) => {
      const known = revisions[at].parents.filter((parent) => Number(parent) < total);
      const reached = row.bottom.map(([, to]) => {
        let column = to;
        for (let below = at + 1; below < total; below++) {
          const found = rows[below].top.find(([from]) => from === column);
          if (found) return revisions[below].id;
          assert.ok(rows[below].through.some(([from]) => from === column), "a line ends in nothing");
        }
        return null;
      });
      assert.deepEqual(reached.toSorted(), known.toSorted());
      assert.ok(row.column < row.width);
    });
  }
});

test("colors of programs are kept, every other escape goes", () => {
  const painter = new Painter();
  const runs = [...painter.feed("a\x1b[31mred\x1b[0"), ...painter.feed("mplain\x1b]0;title\x07z\x1b[1;92mx\x1b[38;5;196my\x1b[2J\r\n")];
  assert.deepEqual(runs.map(({ text, classes }) => [text, classes]), [
    ["a", ""], ["red", "fg1"], ["plain", ""], ["z", ""], ["x", "fg10 bold"], ["y", "fg9 bold"], ["\n", "fg9 bold"],
  ]);
  assert.deepEqual(new Painter().feed("\x1b[", true).map(({ text }) => text), ["\x1b["]);
});

test("colors and marks cut a line into runs that cover it", () => {
  assert.deepEqual(runs(6, ["k", 3, "", 1, "n", 2], [[2, 5]]), [[0, 2, "k", false], [2, 3, "k", true], [3, 4, "", true], [4, 5, "n", true], [5, 6, "n", false]]);
  assert.deepEqual(runs(4, ["k", 2], []), [[0, 2, "k", false], [2, 4, "", false]]);
  assert.deepEqual(runs(3, [], [[1, 1]]), [[0, 1, "", false], [1, 3, "", false]]);
  assert.deepEqual(runs(2, ["k", 9], [[0, 9]]), [[0, 2, "k", true]]);
  const pick = random(5);
  for (let round = 0; round < 500; round++) {
    const length = pick(12);
    const shades = Array.from({ length: pick(5) }, () => ["k", pick(5)]).flat();
    const edges = Array.from({ length: 2 * pick(3) }, () => pick(13)).sort((a, b) => a - b);
    const found = runs(length, shades, Array.from({ length: edges.length / 2 }, (_, at) => [edges[2 * at], edges[2 * at + 1]]));
    assert.equal(found.reduce((at, [from, to]) => (assert.equal(from, at), assert.ok(to > from), to), 0), length);
  }
});

test("comma-separated values come as rows, however they are cut", () => {
  const text = 'a,"b, ""c""\nd",\r\n1,2,3\n\nlast';
  const wanted = [["a", 'b, "c"\nd', ""], ["1", "2", "3"], [""], ["last"]];
  for (let cut = 0; cut <= text.length; cut++) {
    const rows = new Rows(",");
    assert.deepEqual([...rows.feed(text.slice(0, cut)), ...rows.feed(text.slice(cut), true)], wanted);
  }
  assert.equal(new Rows("\t").feed("a\tb\n").length, 1);
});

// ------------------------------------------------------------------------------------------------ command lines

/** A screen that does what an editor writes: enough of a terminal to see where everything is. */
class Glass {
  rows = [[]];
  row = 0;
  column = 0;

  constructor(columns) {
    this.columns = columns;
  }

  write(text) {
    // eslint-disable-next-line no-control-regex
    for (const [piece, count, kind] of text.matchAll(/\x1b\[[?0-9;]*?(\d*)([A-Za-z])|[\s\S]/gu)) {
      if (kind === "A") this.row -= Number(count || 1);
      else if (kind === "C") this.column += Number(count || 1);
      else if (kind === "J") {
        this.rows.length = this.row + 1;
        this.rows[this.row].length = Math.min(this.column, this.rows[this.row].length);
      } else if (kind) continue;
      else if (piece === "\r") this.column = 0;
      else if (piece === "\b") this.column = Math.max(0, this.column - 1);
      else if (piece === "\n") this.#down();
      else {
        const cells = width(piece);
        if (this.column + cells > this.columns) {
          this.#down();
          this.column = 0;
        }
        this.rows[this.row][this.column] = piece;
        if (cells === 2) this.rows[this.row][this.column + 1] = "";
        this.column += cells;
      }
    }
  }

  #down() {
    this.row += 1;
    this.rows[this.row] ??= [];
  }

  get text() {
    return this.rows.map((row) => Array.from(row, (one) => one ?? " ").join("")).join("\n");
  }
}

function editing({ columns = 20, past = [], words = null } = {}) {
  const glass = new Glass(columns);
  const done = [];
  const editor = new LineEditor({
    write: (text) => glass.write(text), columns: () => glass.columns, submit: (text) => done.push(text),
    complete: async (before) => (done.push(`complete ${before}`), words), interrupt: () => done.push("^C"), leave: (backwards) => done.push(backwards ? "back" : "on"),
  }, past);
  editor.begin([["p", "1"], ["$ "]]);
  return { glass, done, editor };
}

test("a line is edited by the keys of a shell", () => {
  for (const [keys, text] of [
    ["abc\x7f", "ab"], ["abc\x1b[D\x1b[D\x7f", "bc"], ["abc\x01X", "Xabc"], ["ab\x01\x05c", "abc"], ["one two\x17", "one "], ["one two\x15", ""],
    ["one two\x01\x0b", ""], ["one two\x15\x19\x19", "one twoone two"], ["one two\x1b[1;5D\x1b[1;5Dx", "xone two"], ["ab\x01\x1b[3~", "b"], ["a\x04b", "ab"],
    ["\x1b[200~two\r\nlines\x1b[201~", "two\nlines"], ["é😀\x7f", "é"], ["😀\x1b[Da", "a😀"], ["a\x1b[99~b\x1b[Zc", "abc"], ["日本\x1bbX", "X日本"],
  ]) {
    const { editor } = editing();
    editor.feed(keys);
    assert.equal(editor.text, text, JSON.stringify(keys));
  }
});

test("what is seen is what is edited, however the line wraps", () => {
  const pick = random(5);
  const keys = ["a", "bc ", "日", "é", "\x7f", "\x1b[D", "\x1b[C", "\x01", "\x05", "\x17", "\t", "\x1b[200~x\ny\x1b[201~", "\x1b[3~", "long words here "];
  for (let turn = 0; turn < 300; turn++) {
    const { glass, editor } = editing({ columns: 5 + pick(12) });
    for (let at = 0; at < 25; at++) {
      const key = keys[pick(keys.length)];
      if (key === "\t" && !editor.text) continue;
      editor.feed(key);
      const whole = new Glass(glass.columns);
      whole.write(`p$ ${drawn(editor.text).replace(/\n/g, "\r\n")}`);
      assert.equal(glass.text.trimEnd(), whole.text.trimEnd(), JSON.stringify([glass.columns, editor.text]));
    }
  }
});

test("the cursor is where the next character appears", () => {
  assert.deepEqual(cursor("12345", 5), { row: 1, column: 0 });
  assert.deepEqual(cursor("1234日", 5), { row: 1, column: 2 });
  assert.deepEqual(cursor("a\nbc", 5), { row: 1, column: 2 });
  assert.deepEqual([width("a"), width("日"), width("\u0301"), width("😀")], [1, 2, 0, 2]);
});

test("Enter submits, and gives back what was typed ahead", () => {
  const { editor, done } = editing();
  assert.equal(editor.feed("ls\rnext"), "next");
  assert.deepEqual(done, ["ls"]);
});

test("an incomplete line goes on in the next one", () => {
  const { editor, done, glass } = editing({ columns: 40 });
  editor.feed("for x in 1; do\r");
  editor.again();
  editor.feed("done\r");
  assert.deepEqual(done, ["for x in 1; do", "for x in 1; do\ndone"]);
  assert.equal(glass.text, "p$ for x in 1; do\ndone\n");
});

test("earlier lines are found by their beginning and by search", () => {
  const { editor, glass } = editing({ columns: 60, past: ["make test", "ls -la", "make check"] });
  editor.feed("ma\x1b[A");
  assert.equal(editor.text, "make check");
  editor.feed("\x1b[A");
  assert.equal(editor.text, "make test");
  editor.feed("\x1b[B\x1b[B");
  assert.equal(editor.text, "ma");
  editor.feed("\x15\x12la");
  assert.equal(editor.text, "ls -la");
  assert.match(glass.text, /\(search\) la: ls -la/);
  editor.feed("\x12\x05!");
  assert.equal(editor.text, "ls -la!");
});

test("Tab completes what is certain, and lists what is not", async () => {
  const found = editing({ columns: 40, words: { start: 4, words: ["file.py ", "file.txt "] } });
  found.editor.feed("cat fi\t");
  await null;
  await null;
  assert.equal(found.editor.text, "cat file.");
  found.editor.feed("\t");
  await null;
  await null;
  assert.equal(found.glass.text, "p$ cat file.\nfile.py   file.txt\np$ cat file.");
  const late = editing({ words: { start: 0, words: ["whole "] } });
  late.editor.feed("wh\tx");
  await null;
  await null;
  assert.equal(late.editor.text, "whx", "another key has come first");
  late.editor.feed("\x15\t\x1b[Z");
  assert.deepEqual(late.done.slice(-2), ["on", "back"], "an empty line lets the focus go");
  assert.equal(commonHead(["ab", "abc", "abd"]), "ab");
});

test("a command that reads gets whole lines, as from a terminal", () => {
  const glass = new Glass(20);
  const sent = [];
  const input = new LineInput({ write: (text) => glass.write(text), send: (text) => sent.push(text), interrupt: () => sent.push("^C"), end: () => sent.push("end") });
  input.feed("ab\x7fc\r日\x7fx\x04\x04gone\x15\x1b[A\x03");
  assert.deepEqual(sent, ["ac\n", "x", "end", "^C"]);
  assert.match(glass.text, /^ac\nx/);
  input.feed("\x1b[200~1\n2\n3\x1b[201~");
  assert.deepEqual(sent.slice(-1), ["1\n2\n"]);
  assert.equal(input.take(), "3");
});

test("a merge keeps what each side changed, and marks what both changed", () => {
  const names = ["ours", "theirs"];
  const of = (text) => text.split(" ").filter(Boolean);
  const merge = (...texts) => merged(...texts.map(of), names).join(" ");
  assert.equal(merge("a b c d e", "A b c d e", "a b c d E x"), "A b c d E x");
  assert.equal(merge("a b c d e", "a b c e", "a b c d e"), "a b c e");
  assert.equal(merge("a b c", "a B c", "a B c"), "a B c");
  assert.equal(merge("a b c d e f", "a X c d e F", "a Y c d e f"), "a <<<<<<< ours X ======= Y >>>>>>> theirs c d e F");
  assert.equal(merge("", "a", "b"), "<<<<<<< ours a ======= b >>>>>>> theirs");
  assert.equal(merge("a b c d", "a x b c d y", "b c"), "<<<<<<< ours a x ======= >>>>>>> theirs b c <<<<<<< ours d y ======= >>>>>>> theirs");
  assert.ok(MARKER.test("a\n=======\nb") && !MARKER.test("a ======="));
  const next = random(7);
  for (let round = 0; round < 500; round++) {
    const base = Array.from({ length: next(12) }, () => String(next(5)));
    const edit = () => base.flatMap((line) => [[line], [line], [], [line, "+"], ["*"]][next(5)]);
    const [ours, theirs] = [edit(), edit()];
    assert.deepEqual(merged(base, ours, base, names), ours);
    assert.deepEqual(merged(base, base, theirs, names), theirs);
    assert.deepEqual(merged(base, ours, ours, names), ours);
    const taken = (side) => {
      let within = null;
      return merged(base, ours, theirs, names).filter((line) => {
        if (!MARKER.test(line)) return within === null || within === side;
        within = { "<": "ours", "=": "theirs", ">": null }[line[0]];
        return false;
      });
    };
    for (const line of taken("ours")) assert.ok(ours.includes(line) || theirs.includes(line));
  }
});
