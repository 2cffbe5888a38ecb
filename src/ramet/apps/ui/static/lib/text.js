// Formatting for people: sizes, times, counts, and untrusted text.

const UNITS = ["B", "KB", "MB", "GB", "TB", "PB"];

/** Format a size with decimal units; unknown is a dash. */
export function size(bytes) {
  if (bytes === null || bytes === undefined) return "–";
  let number = bytes;
  let unit = 0;
  while (number >= 999.5 && unit < UNITS.length - 1) {
    number /= 1000;
    unit += 1;
  }
  return `${unit && number < 99.95 ? number.toFixed(1) : Math.round(number)} ${UNITS[unit]}`;
}

const STEPS = [[60, "second"], [60, "minute"], [24, "hour"], [7, "day"], [4.35, "week"], [12, "month"], [Infinity, "year"]];

/** Format a time as how long ago. */
export function ago(seconds, now = Date.now() / 1000) {
  let number = now - seconds;
  if (number < 5) return "just now";
  for (const [step, unit] of STEPS) {
    if (number < step) {
      const whole = Math.floor(number);
      return `${whole} ${unit}${whole === 1 ? "" : "s"} ago`;
    }
    number /= step;
  }
  return "";
}

export function moment(seconds) {
  const two = (number) => String(number).padStart(2, "0");
  const at = new Date(seconds * 1000);
  const date = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${date} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

export const duration = (ms) => (ms >= 60_000 ? `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s` : ms >= 1000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.max(1, Math.round(ms))} ms`);

export const plural = (number, one, many = `${one}s`) => `${number.toLocaleString("en")} ${number === 1 ? one : many}`;

/** Format a mode as `ls -l` does. */
export function mode(bits, kind) {
  if (bits === null || bits === undefined) return "";
  const letters = [..."rwxrwxrwx"].map((letter, at) => (bits & (0o400 >> at) ? letter : "-")).join("");
  return ({ dir: "d", link: "l", fifo: "p", socket: "s", device: "c" }[kind] ?? "-") + letters;
}

// Control and bidirectional characters, which can make a name look like another one.
// eslint-disable-next-line no-control-regex
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** Show invisible characters as symbols or codes, and bytes that are not UTF-8 as `\xff`. */
export function visible(text) {
  return text.replace(HIDDEN, (character) => {
    const code = character.charCodeAt(0);
    if (code < 0x20) return String.fromCharCode(0x2400 + code);
    if (code === 0x7f) return "\u2421";
    if (code >= 0xdc80 && code <= 0xdcff) return `\\x${(code - 0xdc00).toString(16)}`;
    return `\u27e8U+${code.toString(16).toUpperCase().padStart(4, "0")}\u27e9`;
  });
}

const LONG = 2000;

/** As `visible`, on one line of bounded length: for names and messages. */
export const oneLine = (text) => visible((text.length > LONG ? `${text.slice(0, LONG)}…` : text).replace(/\t/g, "\u2409").replace(/\r?\n/g, "\u23ce"));

/** Guess whether bytes are text: no NUL, and almost all of it UTF-8. */
export function looksLikeText(bytes) {
  const head = bytes.subarray(0, 8192);
  if (head.includes(0)) return false;
  let odd = 0;
  for (const character of new TextDecoder("utf-8", { ignoreBOM: true }).decode(head)) {
    const code = character.codePointAt(0);
    if (code === 0xfffd || (code < 32 && code !== 9 && code !== 10 && code !== 13 && code !== 27 && code !== 12)) odd += 1;
  }
  return odd <= head.length / 50 + 3;
}

const IMAGES = [
  ["image/png", [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]],
  ["image/jpeg", [0xff, 0xd8, 0xff]],
  ["image/gif", [0x47, 0x49, 0x46, 0x38]],
  ["image/webp", [0x52, 0x49, 0x46, 0x46, null, null, null, null, 0x57, 0x45, 0x42, 0x50]],
];

/** The type of an image by its first bytes; never SVG, which is a document with scripts. */
export function imageType(bytes) {
  const found = IMAGES.find(([, magic]) => magic.every((byte, at) => byte === null || bytes[at] === byte));
  return found ? found[0] : null;
}

/** Hex dump: offset, sixteen bytes, and the characters. */
export function hexDump(bytes, offset = 0) {
  const lines = [];
  for (let at = 0; at < bytes.length; at += 16) {
    const row = bytes.subarray(at, at + 16);
    const codes = Array.from(row, (byte) => byte.toString(16).padStart(2, "0"));
    const left = codes.slice(0, 8).join(" ").padEnd(23);
    const right = codes.slice(8).join(" ").padEnd(23);
    const shown = Array.from(row, (byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : ".")).join("");
    lines.push(`${(offset + at).toString(16).padStart(8, "0")}  ${left}  ${right}  |${shown}|`);
  }
  return lines.join("\n");
}

/** Split text into lines; a newline at the end starts no further one. */
export function linesOf(text) {
  const lines = text.split("\n");
  if (lines.length && lines[lines.length - 1] === "") lines.pop();
  return lines;
}

/** Describe the origin of a revision. */
export function lineage(text) {
  const colon = text.indexOf(":");
  const kind = colon < 0 ? text : text.slice(0, colon);
  const rest = colon < 0 ? "" : text.slice(colon + 1);
  const said = {
    root: "the beginning of the workspace",
    fromClaim: "work in the workspace",
    fromWorkspaceRevision: `forked from ${rest}`,
    renamedFrom: `renamed from ${rest}`,
    merge: `merged ${rest}`,
    revert: `reverted to ${rest}`,
    import: `imported from a ${rest}`,
    repair: `repaired from ${rest}`,
  };
  return said[kind] ?? text;
}
