// Names and places: encoding of paths, also of those that are not UTF-8, and the URL fragment of each view.
//
// The server sends bytes that are not UTF-8 as lone surrogates (U+DC80 to U+DCFF). encodeURIComponent refuses those, so
// names are encoded here: such a surrogate becomes the byte that it stands for.

const PLAIN = /^[A-Za-z0-9\-._~!*'()@:$,;=]$/;
const encoder = new TextEncoder();

const hex = (byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;

/** Percent-encode text for a URL. */
export function encodeText(text) {
  let out = "";
  for (const character of text) {
    const code = character.codePointAt(0);
    if (PLAIN.test(character)) out += character;
    else if (code >= 0xdc80 && code <= 0xdcff) out += hex(code - 0xdc00);
    else for (const byte of encoder.encode(character)) out += hex(byte);
  }
  return out;
}

/** Decode percent-encoded text; bytes that are not UTF-8 become lone surrogates. */
export function decodeText(encoded) {
  const bytes = [];
  for (let at = 0; at < encoded.length; ) {
    const code = /^%[0-9A-Fa-f]{2}/.test(encoded.slice(at, at + 3)) ? encoded.slice(at + 1, at + 3) : null;
    if (code !== null) {
      bytes.push(parseInt(code, 16));
      at += 3;
    } else {
      const character = String.fromCodePoint(encoded.codePointAt(at));
      bytes.push(...encoder.encode(character));
      at += character.length;
    }
  }
  return decodeBytes(Uint8Array.from(bytes));
}

/** Decode bytes; each byte that is not UTF-8 becomes a lone surrogate. */
export function decodeBytes(bytes) {
  const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  try {
    return strict.decode(bytes);
  } catch {
    let out = "";
    for (let at = 0; at < bytes.length; ) {
      const size = sequence(bytes, at);
      out += size ? strict.decode(bytes.subarray(at, at + size)) : String.fromCharCode(0xdc00 + bytes[at]);
      at += size || 1;
    }
    return out;
  }
}

/** Length of the UTF-8 sequence that begins here; 0 for none. */
function sequence(bytes, at) {
  const first = bytes[at];
  const size = first < 0x80 ? 1 : first >= 0xc2 && first < 0xe0 ? 2 : first >= 0xe0 && first < 0xf0 ? 3 : first >= 0xf0 && first < 0xf5 ? 4 : 0;
  if (size === 0 || at + size > bytes.length) return 0;
  for (let next = 1; next < size; next++) if ((bytes[at + next] & 0xc0) !== 0x80) return 0;
  const second = bytes[at + 1];
  if ((first === 0xe0 && second < 0xa0) || (first === 0xed && second > 0x9f)) return 0;
  if ((first === 0xf0 && second < 0x90) || (first === 0xf4 && second > 0x8f)) return 0;
  return size;
}

const encodePath = (path) => path.split("/").map(encodeText).join("/");

/** The fragment of a view: `#/ws/NAME@REV/path?key=value`. Without a path it is the workspace or the revision itself. */
export function place(view, { name = "", rev = "", path = "", query = {} } = {}) {
  const pairs = Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const asked = pairs.map(([key, value]) => (value === true ? key : `${key}=${encodeText(String(value))}`)).join("&");
  if (!view) return `#/${asked && `?${asked}`}`;
  return `#/${view}${name && `/${encodeText(name)}`}${rev && `@${encodeText(rev)}`}${encodePath(path)}${asked && `?${asked}`}`;
}

/** Parse a fragment; an empty one is the list of workspaces. */
export function parsePlace(hash) {
  const [where, , asked] = cut(hash.replace(/^#?\/?/, ""), "?");
  const query = {};
  for (const pair of asked ? asked.split("&") : []) {
    const [key, equals, value] = cut(pair, "=");
    if (key) query[decodeText(key)] = equals ? decodeText(value) : true;
  }
  const [view, , rest] = cut(where, "/");
  const [address, slash, below] = cut(rest, "/");
  const [name, , rev] = cut(address, "@");
  const path = slash ? `/${below.split("/").map(decodeText).join("/")}` : "";
  return { view, name: decodeText(name), rev: decodeText(rev), path, query };
}

function cut(text, mark) {
  const at = text.indexOf(mark);
  return at < 0 ? [text, "", ""] : [text.slice(0, at), mark, text.slice(at + mark.length)];
}

export const parentOf = (path) => path.slice(0, Math.max(path.lastIndexOf("/"), 0)) || "/";
export const baseOf = (path) => path.slice(path.lastIndexOf("/") + 1) || "/";
export const join = (folder, name) => (folder === "/" ? `/${name}` : `${folder}/${name}`);

/** Resolve a link target relative to a folder, by its text alone. */
export function resolved(folder, target) {
  const out = [];
  for (const part of (target.startsWith("/") ? target : `${folder}/${target}`).split("/")) {
    if (part === "..") out.pop();
    else if (part && part !== ".") out.push(part);
  }
  return `/${out.join("/")}`;
}

/** The segments of a path, each with the path up to it. */
export function crumbs(path) {
  const parts = path.split("/").filter(Boolean);
  return parts.map((name, at) => ({ name, path: `/${parts.slice(0, at + 1).join("/")}` }));
}
