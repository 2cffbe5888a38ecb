/** Workspaces of a Ramet server: files, a shell, sandboxes, revisions. Without dependencies. */

export { StoreCare } from "./care.js";
export { ConnectionError, RametError } from "./errors.js";
export { Files } from "./files.js";
export { AgentRun, Sandbox, connect } from "./run.js";
export { ExecResult, Job, Running } from "./running.js";
export { Session, Workspace } from "./workspace.js";
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
