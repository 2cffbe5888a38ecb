/** Between what travels and what the client gives: names in the server's spelling end here. */
import type { Bytes, Change, CommandRecord, FileStat, MountInfo, NativeLimits, Pin, Retention, Revision, SessionInfo, Tag, WaitingPush, WorkspaceInfo } from "./types.js";
export type Plain = Record<string, any>;
/**
 * A query. Names that are not UTF-8 come from the server with lone surrogates for their bytes, and go back as those.
 * @param {Record<string, string | number | boolean | null | undefined>} values
 * @returns {string}
 */
export declare function query(values: Record<string, string | number | boolean | null | undefined>): string;
/**
 * Percent-encoded.
 * @param {string} text
 * @returns {string}
 */
export declare function escaped(text: string): string;
/**
 * A name as one segment of a URL. What a URL would read as a way up or as nothing is refused.
 * @param {string} name
 * @returns {string}
 */
export declare function segment(name: string): string;
/**
 * @param {boolean | NativeLimits | undefined} native
 * @returns {boolean | Plain | undefined}
 */
export declare function nativeBody(native: boolean | NativeLimits | undefined): boolean | Plain | undefined;
/**
 * @param {string} text
 * @returns {Bytes}
 */
export declare function fromBase64(text: string): Bytes;
/**
 * @param {Uint8Array} bytes
 * @returns {string}
 */
export declare function toBase64(bytes: Uint8Array): string;
/**
 * @param {{ data: string, encoding: string }} piece
 * @returns {Bytes}
 */
export declare function bytesOf({ data, encoding }: {
    data: string;
    encoding: string;
}): Bytes;
/**
 * Only what was given: the server refuses names that it does not know, and null is not the same as absent.
 * @param {Record<string, unknown>} values
 * @returns {Record<string, unknown>}
 */
export declare function given(values: Record<string, unknown>): Record<string, unknown>;
/**
 * @param {Plain} found
 * @returns {Revision}
 */
export declare function revision(found: Plain): Revision;
/**
 * @param {Plain} found
 * @returns {MountInfo}
 */
export declare function mountInfo({ prefix, type, mode, tree, scratch }: Plain): MountInfo;
/**
 * @param {Plain} found
 * @returns {Pin}
 */
export declare function pin({ token, workspace, target, until, why }: Plain): Pin;
/**
 * @param {Plain} found
 * @returns {Retention}
 */
export declare function retention({ effective, said }: Plain): Retention;
/**
 * @param {Plain} found
 * @returns {CommandRecord}
 */
export declare function commandRecord(found: Plain): CommandRecord;
/**
 * @param {Plain} found
 * @returns {WaitingPush}
 */
export declare function waitingPush({ workspace, revision: of, remote, branch, paths, username, secret }: Plain): WaitingPush;
/**
 * @param {Plain | null | undefined} found
 * @returns {Revision | null}
 */
export declare function maybeRevision(found: Plain | null | undefined): Revision | null;
/**
 * @param {Plain} found
 * @returns {WorkspaceInfo}
 */
export declare function workspaceInfo({ name, kind, open, busy, head, mounts }: Plain): WorkspaceInfo;
/**
 * @param {Plain} found
 * @returns {SessionInfo}
 */
export declare function sessionInfo({ id, cwd, env, last_exit_code: lastExitCode }: Plain): SessionInfo;
/**
 * @param {Plain} found
 * @returns {FileStat}
 */
export declare function fileStat({ path, kind, size, mtime_ns: ns, mode, etag, ...rest }: Plain): FileStat;
/**
 * @param {Plain} found
 * @returns {Change}
 */
export declare function change({ path, what, old, before, after }: Plain): Change;
/**
 * @param {Plain} found
 * @returns {Tag}
 */
export declare function tag({ name, revision, message, author, time }: Plain): Tag;
