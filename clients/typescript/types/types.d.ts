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
}
export interface Change {
    path: string;
    what: "added" | "removed" | "modified" | "renamed";
    /** The name before, of what was renamed. */
    old: string | null;
}
export interface BlameLine {
    number: number;
    revision: string;
    text: string;
    session: string | null;
    command: string | null;
}
export interface Merged {
    /** The merge; null when there are conflicts, which change nothing. */
    revision: Revision | null;
    conflicts: {
        path: string;
        why: string;
    }[];
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
    open: boolean;
    head: Revision | null;
    mounts: {
        prefix: string;
        resource: string;
        mode: "read" | "write";
    }[];
}
export interface SessionInfo {
    id: string;
    cwd: string;
    env: Record<string, string>;
    lastExitCode: number;
}
/** What the end of a sandbox keeps: a path below `/workspace`, or what changed. */
export type Output = string | {
    path: string;
} | {
    diff: boolean;
};
export interface SandboxOptions extends Changing {
    /** The workspace that it starts with and that its end makes a revision of; without one, what it holds is gone. */
    workspace?: string | undefined;
    name?: string | undefined;
    /** Make this revision the newest one first. */
    fromRevision?: string | undefined;
    env?: Record<string, string> | undefined;
    /** Variables whose values are struck out of whatever is kept. */
    secrets?: Record<string, string> | undefined;
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
