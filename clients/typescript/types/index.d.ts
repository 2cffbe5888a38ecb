/** Workspaces of a Ramet server: files, a shell, sandboxes, revisions. Without dependencies. */
export { ConnectionError, RametError } from "./errors.js";
export { Files } from "./files.js";
export { AgentRun, Sandbox, connect } from "./run.js";
export { ExecResult, Job, Running } from "./running.js";
export { Session, Workspace } from "./workspace.js";
export type Abortable = import("./types.js").Abortable;
export type BlameLine = import("./types.js").BlameLine;
export type Bytes = import("./types.js").Bytes;
export type Change = import("./types.js").Change;
export type Changing = import("./types.js").Changing;
export type ConnectOptions = import("./types.js").ConnectOptions;
export type Content = import("./types.js").Content;
export type ExecOptions = import("./types.js").ExecOptions;
export type FileStat = import("./types.js").FileStat;
export type Merged = import("./types.js").Merged;
export type Output = import("./types.js").Output;
export type Piece = import("./types.js").Piece;
export type ReadOptions = import("./types.js").ReadOptions;
export type Revision = import("./types.js").Revision;
export type SandboxOptions = import("./types.js").SandboxOptions;
export type ServerEvent = import("./types.js").ServerEvent;
export type SessionInfo = import("./types.js").SessionInfo;
export type Tag = import("./types.js").Tag;
export type TerminateOptions = import("./types.js").TerminateOptions;
export type WorkspaceInfo = import("./types.js").WorkspaceInfo;
export type WriteOptions = import("./types.js").WriteOptions;
/**
 * @typedef {import("./types.js").Abortable} Abortable
 * @typedef {import("./types.js").BlameLine} BlameLine
 * @typedef {import("./types.js").Bytes} Bytes
 * @typedef {import("./types.js").Change} Change
 * @typedef {import("./types.js").Changing} Changing
 * @typedef {import("./types.js").ConnectOptions} ConnectOptions
 * @typedef {import("./types.js").Content} Content
 * @typedef {import("./types.js").ExecOptions} ExecOptions
 * @typedef {import("./types.js").FileStat} FileStat
 * @typedef {import("./types.js").Merged} Merged
 * @typedef {import("./types.js").Output} Output
 * @typedef {import("./types.js").Piece} Piece
 * @typedef {import("./types.js").ReadOptions} ReadOptions
 * @typedef {import("./types.js").Revision} Revision
 * @typedef {import("./types.js").SandboxOptions} SandboxOptions
 * @typedef {import("./types.js").ServerEvent} ServerEvent
 * @typedef {import("./types.js").SessionInfo} SessionInfo
 * @typedef {import("./types.js").Tag} Tag
 * @typedef {import("./types.js").TerminateOptions} TerminateOptions
 * @typedef {import("./types.js").WorkspaceInfo} WorkspaceInfo
 * @typedef {import("./types.js").WriteOptions} WriteOptions
 */
