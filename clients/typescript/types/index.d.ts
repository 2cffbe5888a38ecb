/** Workspaces of a Ramet server: files, a shell, sandboxes, revisions. Without dependencies. */
export { StoreCare } from "./care.js";
export { ConnectionError, RametError } from "./errors.js";
export { Files } from "./files.js";
export { AgentRun, Sandbox, connect } from "./run.js";
export { ExecResult, Job, Running } from "./running.js";
export { Session, Workspace } from "./workspace.js";
export type Abortable = import("./types.js").Abortable;
export type Bisected = import("./types.js").Bisected;
export type BlameLine = import("./types.js").BlameLine;
export type Bytes = import("./types.js").Bytes;
export type Change = import("./types.js").Change;
export type Changing = import("./types.js").Changing;
export type Collected = import("./types.js").Collected;
export type CommandRecord = import("./types.js").CommandRecord;
export type ConnectOptions = import("./types.js").ConnectOptions;
export type Content = import("./types.js").Content;
export type Costs = import("./types.js").Costs;
export type Damage = import("./types.js").Damage;
export type EndedJob = import("./types.js").EndedJob;
export type ListeningPort = import("./types.js").ListeningPort;
export type PortAnswer = import("./types.js").PortAnswer;
export type Question = import("./types.js").Question;
export type ExecOptions = import("./types.js").ExecOptions;
export type FeedEvent = import("./types.js").FeedEvent;
export type FileStat = import("./types.js").FileStat;
export type Keeping = import("./types.js").Keeping;
export type Kept = import("./types.js").Kept;
export type GitOptions = import("./types.js").GitOptions;
export type KeyRings = import("./types.js").KeyRings;
export type Merged = import("./types.js").Merged;
export type MountInfo = import("./types.js").MountInfo;
export type NativeLimits = import("./types.js").NativeLimits;
export type Output = import("./types.js").Output;
export type Piece = import("./types.js").Piece;
export type Pin = import("./types.js").Pin;
export type Progress = import("./types.js").Progress;
export type PushOptions = import("./types.js").PushOptions;
export type Pushed = import("./types.js").Pushed;
export type ReadOptions = import("./types.js").ReadOptions;
export type Repaired = import("./types.js").Repaired;
export type Report = import("./types.js").Report;
export type Retention = import("./types.js").Retention;
export type Revision = import("./types.js").Revision;
export type SandboxOptions = import("./types.js").SandboxOptions;
export type ServerEvent = import("./types.js").ServerEvent;
export type ServerStatus = import("./types.js").ServerStatus;
export type SessionInfo = import("./types.js").SessionInfo;
export type Shredded = import("./types.js").Shredded;
export type Tag = import("./types.js").Tag;
export type TerminateOptions = import("./types.js").TerminateOptions;
export type WaitingPush = import("./types.js").WaitingPush;
export type Watching = import("./types.js").Watching;
export type WorkspaceInfo = import("./types.js").WorkspaceInfo;
export type WriteOptions = import("./types.js").WriteOptions;
/**
 * @typedef {import("./types.js").Abortable} Abortable
 * @typedef {import("./types.js").Bisected} Bisected
 * @typedef {import("./types.js").BlameLine} BlameLine
 * @typedef {import("./types.js").Bytes} Bytes
 * @typedef {import("./types.js").Change} Change
 * @typedef {import("./types.js").Changing} Changing
 * @typedef {import("./types.js").Collected} Collected
 * @typedef {import("./types.js").CommandRecord} CommandRecord
 * @typedef {import("./types.js").ConnectOptions} ConnectOptions
 * @typedef {import("./types.js").Content} Content
 * @typedef {import("./types.js").Costs} Costs
 * @typedef {import("./types.js").Damage} Damage
 * @typedef {import("./types.js").EndedJob} EndedJob
 * @typedef {import("./types.js").ListeningPort} ListeningPort
 * @typedef {import("./types.js").PortAnswer} PortAnswer
 * @typedef {import("./types.js").Question} Question
 * @typedef {import("./types.js").ExecOptions} ExecOptions
 * @typedef {import("./types.js").FeedEvent} FeedEvent
 * @typedef {import("./types.js").FileStat} FileStat
 * @typedef {import("./types.js").Keeping} Keeping
 * @typedef {import("./types.js").Kept} Kept
 * @typedef {import("./types.js").GitOptions} GitOptions
 * @typedef {import("./types.js").KeyRings} KeyRings
 * @typedef {import("./types.js").Merged} Merged
 * @typedef {import("./types.js").MountInfo} MountInfo
 * @typedef {import("./types.js").NativeLimits} NativeLimits
 * @typedef {import("./types.js").Output} Output
 * @typedef {import("./types.js").Piece} Piece
 * @typedef {import("./types.js").Pin} Pin
 * @typedef {import("./types.js").Progress} Progress
 * @typedef {import("./types.js").PushOptions} PushOptions
 * @typedef {import("./types.js").Pushed} Pushed
 * @typedef {import("./types.js").ReadOptions} ReadOptions
 * @typedef {import("./types.js").Repaired} Repaired
 * @typedef {import("./types.js").Report} Report
 * @typedef {import("./types.js").Retention} Retention
 * @typedef {import("./types.js").Revision} Revision
 * @typedef {import("./types.js").SandboxOptions} SandboxOptions
 * @typedef {import("./types.js").ServerEvent} ServerEvent
 * @typedef {import("./types.js").ServerStatus} ServerStatus
 * @typedef {import("./types.js").SessionInfo} SessionInfo
 * @typedef {import("./types.js").Shredded} Shredded
 * @typedef {import("./types.js").Tag} Tag
 * @typedef {import("./types.js").TerminateOptions} TerminateOptions
 * @typedef {import("./types.js").WaitingPush} WaitingPush
 * @typedef {import("./types.js").Watching} Watching
 * @typedef {import("./types.js").WorkspaceInfo} WorkspaceInfo
 * @typedef {import("./types.js").WriteOptions} WriteOptions
 */
