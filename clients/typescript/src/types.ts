/** Everything that goes in and out of the client, as types. Nothing here exists at run time. */

/** Where a server is and how to ask it. */
export interface ConnectOptions {
  /** `http://...`, `https://...`, or `unix:/path/of/the/socket` (Node only). */
  url: string;
  /** What the server's token file holds; a unix socket needs none. */
  token?: string | undefined;
  /** Ask through this instead, for example in a worker; without it Node's own `http` is used, else the global `fetch`. */
  fetch?: typeof fetch | undefined;
}

/** What every call takes: aborting rejects with an `AbortError` at once and stops the work on the server. */
export interface Abortable {
  signal?: AbortSignal | undefined;
}

/** What every call that changes something takes. */
export interface Changing extends Abortable {
  /** Repeating a call with the same key gives the first answer and changes nothing more. */
  idempotencyKey?: string | undefined;
}

/** A content: text is sent as UTF-8, a stream as it comes. */
export type Content = string | Uint8Array | Blob | ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>;

export interface ExecOptions extends Changing {
  /** Whose shell: variables, working directory and jobs belong to a session, and its commands run in order. */
  session?: string | undefined;
  /** For this command only. */
  cwd?: string | undefined;
  /** For this command only, on top of what the session has. */
  env?: Record<string, string> | undefined;
  /** Milliseconds after which the command is stopped; that is a result with exit code 124, not an error. */
  timeoutMs?: number | undefined;
  stdin?: string | Uint8Array | undefined;
  /** Who runs it, for the history. */
  agent?: string | undefined;
  /** Kept with the record of the command: tokens, money, the turn of an agent. */
  meta?: Record<string, string | number | boolean> | undefined;
  /** In a native workspace: true runs all of it by the real bash, false runs no native program. */
  native?: boolean | undefined;
  /** Message and author of the revision that it makes, if it makes one. */
  message?: string | undefined;
  author?: string | undefined;
}

/** Bytes that the client gives. */
export type Bytes = Uint8Array<ArrayBuffer>;

/** A piece of output while a command runs. */
export interface Piece {
  fd: 1 | 2;
  data: Bytes;
}

export type Kind = "file" | "dir" | "link" | "fifo" | "socket" | "device";

/** What is known about a path; null is unknown, never zero. */
export interface FileStat {
  path: string;
  name: string;
  kind: Kind;
  size: number | null;
  mtime: Date | null;
  mode: number | null;
  /** Changes with the content; for `ifMatch`. */
  etag: string | null;
  /** Where a link points. */
  target: string | null;
  nlink: number | null;
}

export interface ReadOptions extends Abortable {
  /** First byte. */
  start?: number | undefined;
  /** The byte after the last one. */
  end?: number | undefined;
  /** Read it as it was in a revision. */
  revision?: string | undefined;
}

export interface WriteOptions extends Changing {
  /** Make missing directories first; true when not said. */
  parents?: boolean | undefined;
  append?: boolean | undefined;
  /** Only if the file still has this etag. */
  ifMatch?: string | undefined;
  /** Only if nothing is there. */
  create?: boolean | undefined;
}

/** A committed state of a workspace. */
export interface Revision {
  /** For people: `proj-x-3`. */
  name: string;
  id: string;
  workspace: string;
  seq: number;
  time: Date;
  message: string;
  /** Where it comes from: a sandbox, a fork, a revert. */
  lineage: string;
  phase: string;
  /** Digest of all files: the same wherever the same files are. */
  content: string;
  parents: string[];
  author: string;
  agent: string;
  traceId: string;
  /** What it changed, when that was recorded. */
  diff: Record<string, unknown> | null;
  /** The paths that it was narrowed to; none means everything. */
  outputs: string[];
  /** Paths that were there and never enter a revision. */
  withheld: string[];
  /** Paths whose new content seemed to hold secrets, each with the kind. */
  suspected: string[];
  mounts: MountInfo[];
  /** Messages of later commits that had nothing to write, in `log` and in the answer of such a commit. */
  notes: Note[];
}

/** A message about a revision that was given later. */
export interface Note {
  message: string;
  author: string;
  time: Date;
  /** The file that it is about; empty is the revision. */
  path: string;
  /** The line of the file, from 1; 0 is the whole file. */
  line: number;
}

export interface MountInfo {
  prefix: string;
  type: string;
  mode: "read" | "write";
  /** Its content in the store; null when its bytes live elsewhere, or when it is told as it is now. */
  tree: string | null;
  /** Mounted by the workspace itself. */
  scratch: boolean;
}

/** How far long work is. */
export interface Progress {
  stage: string;
  done: number;
  total: number | null;
}

export interface Watching extends Abortable {
  /** Called now and then while the work goes on. */
  onProgress?: ((progress: Progress) => void) | undefined;
}

/** What is kept; null or left out is as the store says, and if that says nothing, everything. */
export interface Keeping {
  /** The newest revisions, by number. */
  keepLast?: number | null | undefined;
  /** Revisions that are not older. */
  keepWithinMs?: number | null | undefined;
  /** Nothing younger is ever removed. */
  minAgeMs?: number | null | undefined;
  /** Collect after every so many commits. */
  auto?: number | null | undefined;
  /** How long things stay after they were condemned. */
  graceMs?: number | null | undefined;
}

export interface Kept extends Required<Keeping> {
  /** Why nothing may be removed; empty when it may. */
  hold: string;
}

/** What holds, and in `said` what was said about this one itself. */
export interface Retention extends Kept {
  said: Kept;
}

export interface Pin {
  token: string;
  workspace: string;
  /** Id of the revision that it keeps. */
  target: string;
  until: Date | null;
  why: string;
}

/** What a collection did, or with `dry` would do. Sizes are bytes. */
export interface Collected {
  dry: boolean;
  /** Revisions that went out of reach. */
  expired: string[];
  kept: number;
  suspected: number;
  condemned: number;
  rewritten: number;
  removed: number;
  revisions: number;
  reclaimed: number;
  waiting: number;
  written: number;
  temporary: number;
}

/** How a server is doing. */
export interface ServerStatus {
  status: "ok" | "stopping";
  version: string;
  startedAt: Date;
  /** Connections now, the addresses they come from, and those that a limit closed, by the status they got. */
  connections: { open: number; peers: number; refused: Record<string, number> };
  /** Workspaces and sandboxes that are open. */
  workspaces: number;
  /** Requests that use one of them. */
  running: number;
  /** Long operations, such as gc, that run. */
  working: number;
  /** How often each command held the event loop for more than a second. */
  holds: Record<string, number>;
  recentHolds: { command: string; seconds: number; where: string }[];
  /** The limits of the server by the names of its settings, such as `peer_connections`. */
  limits: Record<string, number>;
}

export interface Costs {
  workspaces: { workspace: string; unique: number; shared: number; revisions: number }[];
  shared: number;
  unused: number;
  total: number;
}

export interface Damage {
  what: "object" | "pack" | "index" | "revision" | "head" | "tag" | "entry";
  name: string;
  why: string;
  revisions: string[];
  /** Whether another, good copy is in the store: `repair` brings it back. */
  elsewhere: boolean;
}

/** What a check found; all is well when nothing is damaged. */
export interface Report {
  objects: number;
  packs: number;
  revisions: number;
  damaged: string[];
  affected: string[];
  damages: Damage[];
}

export interface Repaired {
  salvaged: number;
  rebuilt: string[];
  moved: string[];
  heads: Record<string, string>;
  tags: string[];
  lost: Damage[];
}

export interface KeyRings {
  /** Id of the key that opened the store. */
  wrappedBy: string;
  rings: {
    workspace: string;
    state: string;
    epochs: number;
    ids: string[];
    wrappedBy: string[];
    names: string[];
    destroyed: number;
  }[];
}

export interface Shredded {
  workspace: string;
  destroyed: number;
  /** Workspaces that have copies of some of its keys, and of how many. */
  keptBy: Record<string, number>;
  removed: number;
}

/** A move of a head: a CloudEvent, and the cursor that goes on after it. */
export interface FeedEvent {
  cursor: string;
  envelope: Record<string, unknown>;
}

/** A command that ran. The output is how it began. */
export interface CommandRecord {
  number: number;
  /** `command`, or what changed the workspace without one: `tool`, `write`, `revert`, `merge`, `branch`, ... */
  kind: string;
  command: string;
  session: string;
  agent: string;
  /** Who called, on behalf of the agent. */
  principal: string;
  cwd: string;
  startedAt: Date;
  endedAt: Date;
  exitCode: number;
  timedOut: boolean;
  cancelled: boolean;
  stdout: Bytes;
  stderr: Bytes;
  stdoutSize: number;
  stderrSize: number;
  /** Bytes by mount. */
  bytesRead: Record<string, number>;
  bytesWritten: Record<string, number>;
  pathsWritten: string[];
  pathsRemoved: string[];
  /** Paths that are missing in both lists because there were too many. */
  pathsCut: number;
  /** Number of the record that this one is part of, such as that of a branch; 0 for none. */
  parent: number;
  cpuMs: number;
  /** Requests to the network, refused ones too. */
  networkRequests: number;
  /** Bytes of their bodies, sent and received. */
  networkBytes: number;
  meta: Record<string, string | number | boolean>;
}

/** A question of an `ask` rule that waits for an answer. */
export interface Question {
  number: number;
  kind: "command" | "file" | "network";
  /** The command, the verb of files, or the HTTP method. */
  name: string;
  /** The command line, the path, or the URL without its query. */
  subject: string;
  session: string;
  agent: string;
  /** Seconds since the epoch. */
  askedAt: number;
}

/** A port at which a program of the workspace listens. */
export interface ListeningPort {
  port: number;
  /** `127.0.0.1`, `0.0.0.0`, `::1` or `::`. */
  address: string;
  /** The command line of the program; empty where it is not known. */
  program: string;
  /** Its number in the box; 0 where it is not known. */
  pid: number;
}

/** What a program has answered. */
export interface PortAnswer {
  status: number;
  header: (name: string) => string | null;
  blocks: () => AsyncIterable<Bytes>;
  bytes: () => Promise<Bytes>;
}

/** A background job (`cmd &`) that has ended. */
export interface EndedJob {
  session: string;
  id: number;
  command: string;
  status: string;
  exitCode: number;
}

export interface Bisected {
  /** The first one in which the command fails; null when what was skipped leaves several. */
  firstBad: Revision | null;
  suspects: Revision[];
  steps: { revision: Revision; verdict: "good" | "bad" | "skip"; exitCode: number }[];
}

export interface Pushed {
  branch: string;
  remote: string;
  commit: string;
}

export interface PushOptions extends Changing {
  revision?: string | undefined;
  /** `{{.name}}` is the workspace, and the branch when not given. */
  branch?: string | undefined;
  paths?: string[] | undefined;
  /** Used for this push, and kept nowhere. */
  token?: string | undefined;
  username?: string | undefined;
}

/** A push that is not done. */
export interface WaitingPush {
  workspace: string;
  revision: string;
  remote: string;
  branch: string;
  paths: string[];
  username: string;
  /** Name and key of the secret that opens the remote; never its value. */
  secret: string[] | null;
}

export interface Change {
  path: string;
  what: "added" | "removed" | "modified" | "renamed";
  /** The name before, of what was renamed. */
  old: string | null;
  /** The entry in the older revision. */
  before: ChangeSide | null;
  /** The entry in the newer revision. */
  after: ChangeSide | null;
}

export interface ChangeSide {
  kind: "file" | "dir" | "link";
  mode: number;
  size: number;
  /** Target of a link. */
  target: string | null;
}

export interface BlameLine {
  number: number;
  revision: string;
  text: string;
  session: string | null;
  command: string | null;
  /** Id of the revision. */
  id: string;
  /** Where the line was then. */
  path: string;
  agent: string | null;
  /** Number of the record that wrote it; null when that is unknown. */
  record: number | null;
  /** That of the record: `command`, `tool`, `write`, ... */
  kind: string | null;
  principal: string | null;
}

export interface Merged {
  /** The merge; null when there are conflicts, which change nothing. */
  revision: Revision | null;
  conflicts: { path: string; why: string }[];
  /** Id of the revision that both sides of a merge come from, with conflicts; else empty. */
  base: string;
}

export interface Tag {
  name: string;
  revision: string;
  message: string;
  author: string;
  time: Date;
}

export interface WorkspaceInfo {
  name: string;
  kind: "stored" | "memory" | "sandbox";
  /** Whether this server holds it open, and with it the right to write. */
  open: boolean;
  /** Whether somebody else writes to it. */
  busy: boolean;
  head: Revision | null;
  mounts: { prefix: string; resource: string; mode: "read" | "write" }[];
}

export interface SessionInfo {
  id: string;
  cwd: string;
  env: Record<string, string>;
  lastExitCode: number;
}

/** What the end of a sandbox keeps: a path below `/workspace`, what changed, or a push of what it was made to push. */
export type Output = string | { path: string } | { diff: boolean } | { git: { remote: string; branch?: string } };

/** What `{ git: ... }` outputs push, and which secret opens the remote. */
export interface GitOptions {
  paths: string[];
  /** Names for URLs. */
  remotes?: Record<string, string> | undefined;
  username?: string | undefined;
  /** Name and key of one of `gitSecrets`. */
  secret?: [string, string] | undefined;
}

/** Bounds of the real programs of a workspace; none can be above the server's. */
export interface NativeLimits {
  memoryBytes?: number | undefined;
  processes?: number | undefined;
  /** Of one file that a program writes. */
  fileBytes?: number | undefined;
  /** Of all changed files together. */
  diskBytes?: number | undefined;
  openFiles?: number | undefined;
}

export interface SandboxOptions extends Changing {
  /** The workspace that it starts with and that its end makes a revision of; without one, what it holds is gone. */
  workspace?: string | undefined;
  name?: string | undefined;
  /** Make this revision the newest one first. */
  fromRevision?: string | undefined;
  env?: Record<string, string> | undefined;
  /** Variables whose values are struck out of whatever is kept. */
  secrets?: Record<string, string> | undefined;
  git?: GitOptions | undefined;
  /** By name and key; kept nowhere but with the sandbox while it runs. */
  gitSecrets?: Record<string, Record<string, string>> | undefined;
  /** Milliseconds to wait for a workspace that others are using. */
  waitMs?: number | undefined;
  /** Milliseconds after which it ends by itself. */
  lifetimeMs?: number | undefined;
  /** Milliseconds without a request after which it ends by itself. */
  idleMs?: number | undefined;
}

export interface TerminateOptions extends Changing {
  /** What is kept; everything when not given. */
  outputs?: Output[] | undefined;
  /** Refused by servers that cannot keep processes. */
  checkpoint?: boolean | undefined;
}

export interface ServerEvent {
  id: number;
  /** `exec`, `changed`, `commit`, `created`, `forked`, ... */
  type: string;
  data: Record<string, unknown>;
}
