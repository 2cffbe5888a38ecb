/** Between what travels and what the client gives: names in the server's spelling end here. */

import { invalid } from "./errors.js";

/**
 * @import {
 *   Bytes, Change, ChangeSide, CommandRecord, FileStat, MountInfo, NativeLimits, Pin, Retention, Revision, SessionInfo, Tag, WaitingPush,
 *   WorkspaceInfo
 * } from "./types.js"
 */
/** @typedef {Record<string, any>} Plain a decoded JSON object of the server */

const encoder = new TextEncoder();
const PLAIN = /^[A-Za-z0-9/._~-]*$/;

/**
 * A query. Names that are not UTF-8 come from the server with lone surrogates for their bytes, and go back as those.
 * @param {Record<string, string | number | boolean | null | undefined>} values
 * @returns {string}
 */
export function query(values) {
  const pairs = Object.entries(values).filter(([, value]) => value !== undefined && value !== null && value !== false);
  return pairs.length === 0 ? "" : `?${pairs.map(([name, value]) => `${name}=${escaped(String(value))}`).join("&")}`;
}

/**
 * Percent-encoded.
 * @param {string} text
 * @returns {string}
 */
export function escaped(text) {
  if (PLAIN.test(text)) return text;
  let found = "";
  for (const character of text) {
    const point = /** @type {number} */ (character.codePointAt(0));
    const bytes = point >= 0xdc80 && point <= 0xdcff ? [point - 0xdc00] : encoder.encode(character);
    if (PLAIN.test(character)) found += character;
    else for (const byte of bytes) found += `%${byte.toString(16).padStart(2, "0")}`;
  }
  return found;
}

/**
 * A name as one segment of a URL. What a URL would read as a way up or as nothing is refused.
 * @param {string} name
 * @returns {string}
 */
export function segment(name) {
  if (name === "" || name === "." || name === "..") throw invalid(`${JSON.stringify(name)} names nothing`, "give a name");
  return escaped(name).replaceAll("/", "%2f");
}

/**
 * @param {boolean | NativeLimits | undefined} native
 * @returns {boolean | Plain | undefined}
 */
export function nativeBody(native) {
  if (typeof native !== "object") return native;
  const { memoryBytes: memory_bytes, fileBytes: file_bytes, diskBytes: disk_bytes, openFiles: open_files, ...rest } = native;
  return { limits: { ...rest, memory_bytes, file_bytes, disk_bytes, open_files } };
}

/**
 * @param {string} text
 * @returns {Bytes}
 */
export function fromBase64(text) {
  const native = /** @type {{ fromBase64?: (text: string) => Bytes }} */ (/** @type {unknown} */ (Uint8Array)).fromBase64;
  if (native !== undefined) return native.call(Uint8Array, text);
  if (typeof Buffer !== "undefined") return new Uint8Array(Buffer.from(text, "base64"));
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}

/**
 * @param {Uint8Array} bytes
 * @returns {string}
 */
export function toBase64(bytes) {
  let text = "";
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(text);
}

/**
 * @param {{ data: string, encoding: string }} piece
 * @returns {Bytes}
 */
export function bytesOf({ data, encoding }) {
  return encoding === "base64" ? fromBase64(data) : encoder.encode(data);
}

/**
 * Only what was given: the server refuses names that it does not know, and null is not the same as absent.
 * @param {Record<string, unknown>} values
 * @returns {Record<string, unknown>}
 */
export function given(values) {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));
}

/** @param {number} seconds */
const date = (seconds) => new Date(seconds * 1000);

/**
 * @param {Plain} found
 * @returns {Revision}
 */
export function revision(found) {
  const { name, id, workspace, seq, message, lineage, phase, content, parents, author, agent, diff = null } = found;
  const { time, trace_id: traceId, outputs = [], withheld = [], suspected = [], mounts = [], notes = [] } = found;
  return {
    name, id, workspace, seq, time: date(time), message, lineage, phase, content, parents, author, agent, traceId, diff,
    outputs, withheld, suspected, mounts: mounts.map(mountInfo),
    notes: notes.map((/** @type {Plain} */ note) => ({ path: "", line: 0, ...note, time: date(note.time) })),
  };
}

/**
 * @param {Plain} found
 * @returns {MountInfo}
 */
export function mountInfo({ prefix, type, mode, tree = null, scratch = false }) {
  return { prefix, type, mode, tree, scratch };
}

/**
 * @param {Plain} found
 * @returns {Pin}
 */
export function pin({ token, workspace, target, until = null, why }) {
  return { token, workspace, target, until: until === null ? null : date(until), why };
}

/**
 * @param {Plain} found
 * @returns {Retention}
 */
export function retention({ effective, said }) {
  return { ...keeping(effective), said: keeping(said) };
}

/** @param {Plain} found */
function keeping({ keep_last: keepLast = null, keep_within: within, min_age: age, auto = null, grace, hold = "" }) {
  const ms = (/** @type {number | null | undefined} */ seconds) => (seconds == null ? null : seconds * 1000);
  return { keepLast, keepWithinMs: ms(within), minAgeMs: ms(age), auto, graceMs: ms(grace), hold };
}

/**
 * @param {Plain} found
 * @returns {CommandRecord}
 */
export function commandRecord(found) {
  const { number, command, cwd, kind, principal, parent, cpu, meta } = found;
  return {
    number, kind, command, cwd, session: found["session_id"], agent: found["agent_id"], principal,
    startedAt: date(found["started_at"]), endedAt: date(found["ended_at"]), exitCode: found["exit_code"],
    timedOut: found["timed_out"], cancelled: found["cancelled"], stdout: fromBase64(found["stdout"]),
    stderr: fromBase64(found["stderr"]), stdoutSize: found["stdout_bytes"], stderrSize: found["stderr_bytes"],
    bytesRead: found["bytes_read"], bytesWritten: found["bytes_written"], pathsWritten: found["paths_written"],
    pathsRemoved: found["paths_removed"], pathsCut: found["paths_cut"], parent, cpuMs: cpu * 1000, meta,
    networkRequests: found["network_requests"] ?? 0, networkBytes: found["network_bytes"] ?? 0,
  };
}

/**
 * @param {Plain} found
 * @returns {WaitingPush}
 */
export function waitingPush({ workspace, revision: of, remote, branch, paths, username, secret = null }) {
  return { workspace, revision: of, remote, branch, paths, username, secret };
}

/**
 * @param {Plain | null | undefined} found
 * @returns {Revision | null}
 */
export function maybeRevision(found) {
  return found == null ? null : revision(found);
}

/**
 * @param {Plain} found
 * @returns {WorkspaceInfo}
 */
export function workspaceInfo({ name, kind, open, busy = false, head, mounts = [] }) {
  return { name, kind, open, busy, head: maybeRevision(head), mounts };
}

/**
 * @param {Plain} found
 * @returns {SessionInfo}
 */
export function sessionInfo({ id, cwd, env, last_exit_code: lastExitCode }) {
  return { id, cwd, env, lastExitCode };
}

/**
 * @param {Plain} found
 * @returns {FileStat}
 */
export function fileStat({ path, kind, size = null, mtime_ns: ns = null, mode = null, etag = null, ...rest }) {
  const name = path.slice(path.lastIndexOf("/") + 1);
  // A number holds such a time to a quarter of a microsecond: what was a whole millisecond must not fall below it.
  const mtime = ns === null ? null : new Date(Math.floor((ns + 500) / 1e6));
  return { path, name, kind, size, mtime, mode, etag, target: rest["target"] ?? null, nlink: rest["nlink"] ?? null };
}

/**
 * @param {Plain} found
 * @returns {Change}
 */
export function change({ path, what, old = null, before = null, after = null }) {
  return { path, what, old, before: before && changeSide(before), after: after && changeSide(after) };
}

/**
 * @param {Plain} found
 * @returns {ChangeSide}
 */
function changeSide({ kind, mode, size, target = null }) {
  return { kind, mode, size, target };
}

/**
 * @param {Plain} found
 * @returns {Tag}
 */
export function tag({ name, revision, message, author, time }) {
  return { name, revision, message, author, time: date(time) };
}
