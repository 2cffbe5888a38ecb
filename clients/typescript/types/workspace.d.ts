/** Workspaces and their sessions: a shell, files, and every state that was committed. */
import { Files } from "./files.js";
import { Job, Shell } from "./running.js";
import type { Abortable, Bisected, BlameLine, Bytes, Change, Changing, CommandRecord, Content, EndedJob, Keeping, Merged, ListeningPort, MountInfo, Pin, PortAnswer, Pushed, PushOptions, Question, Retention, Revision, SessionInfo, Shredded, Tag, WaitingPush, Watching, WorkspaceInfo } from "./types.js";
import type { Http } from "./http.js";
/**
 * @import {
 *   Abortable, Bisected, BlameLine, Bytes, Change, Changing, CommandRecord, Content, EndedJob, Keeping, Merged,
 *   ListeningPort, MountInfo, Pin, PortAnswer, Pushed, PushOptions, Question, Retention, Revision, SessionInfo, Shredded,
 *   Tag, WaitingPush, Watching, WorkspaceInfo
 * } from "./types.js"
 */
/** @import { Http } from "./http.js" */
/** @import { Plain } from "./wire.js" */
/** A session: a shell with its own working directory and variables, on shared files. */
export declare class Session extends Shell {
    #private;
    id: string;
    /** Relative paths begin at the session's working directory. */
    files: Files;
    /**
     * @param {Http} http
     * @param {string} place
     * @param {string} id
     */
    constructor(http: Http, place: string, id: string);
    /**
     * @param {Abortable} [options]
     * @returns {Promise<SessionInfo>}
     */
    info(options?: Abortable): Promise<SessionInfo>;
    /**
     * Forget it, with what runs in it.
     * @param {Changing} [options]
     * @returns {Promise<void>}
     */
    close(options?: Changing): Promise<void>;
}
/** What a workspace and a sandbox have in common: files, commands, sessions, jobs. */
export declare class Place extends Shell {
    #private;
    name: string;
    files: Files;
    /**
     * @param {Http} http
     * @param {string} name
     * @param {string} [home] where relative paths of files begin
     */
    constructor(http: Http, name: string, home?: string);
    /**
     * The records, the newest last: those that fit, the `last` ones (1000 when not given). `since` and `until` are seconds since the epoch.
     * @param {Abortable & { revision?: string, session?: string, last?: number, agent?: string, run?: string, path?: string, text?: string, failed?: boolean, since?: number, until?: number, number?: number, exitCode?: number, principal?: string, network?: "any" | "refused" }} [options]
     * @returns {Promise<CommandRecord[]>}
     */
    history(options?: Abortable & {
        revision?: string;
        session?: string;
        last?: number;
        agent?: string;
        run?: string;
        path?: string;
        text?: string;
        failed?: boolean;
        since?: number;
        until?: number;
        number?: number;
        exitCode?: number;
        principal?: string;
        network?: "any" | "refused";
    }): Promise<CommandRecord[]>;
    /**
     * Totals of the records by agent, session or principal: commands, failures, seconds, bytes, and sums of `meta`.
     * @param {Abortable & { revision?: string, by?: "agent" | "session" | "run" | "principal", since?: number, until?: number }} [options]
     * @returns {Promise<{ name: string, commands: number, failures: number, seconds: number, cpu: number, files: number, bytesRead: Record<string, number>, bytesWritten: Record<string, number>, meta: Record<string, number>, first: number, last: number }[]>}
     */
    costs(options?: Abortable & {
        revision?: string;
        by?: "agent" | "session" | "run" | "principal";
        since?: number;
        until?: number;
    }): Promise<{
        name: string;
        commands: number;
        failures: number;
        seconds: number;
        cpu: number;
        files: number;
        bytesRead: Record<string, number>;
        bytesWritten: Record<string, number>;
        meta: Record<string, number>;
        first: number;
        last: number;
    }[]>;
    /**
     * What can complete a command line: `words` that may replace it from the character `start` on.
     * @param {string} line what stands before the cursor
     * @param {Abortable & { session?: string, revision?: string }} [options]
     * @returns {Promise<{ start: number, words: string[] }>}
     */
    complete(line: string, options?: Abortable & {
        session?: string;
        revision?: string;
    }): Promise<{
        start: number;
        words: string[];
    }>;
    /**
     * Questions of `ask` rules that wait for an answer.
     * @param {Abortable} [options]
     * @returns {Promise<Question[]>}
     */
    questions(options?: Abortable): Promise<Question[]>;
    /**
     * Allow or deny what a question is about; "host" also allows later requests of the session to the same host.
     * @param {number} number
     * @param {boolean | "host"} allow
     * @param {Abortable} [options]
     * @returns {Promise<void>}
     */
    answer(number: number, allow: boolean | "host", options?: Abortable): Promise<void>;
    /**
     * The ports at which programs of the workspace listen, while the server has it open.
     * @param {Abortable} [options]
     * @returns {Promise<ListeningPort[]>}
     */
    ports(options?: Abortable): Promise<ListeningPort[]>;
    /**
     * Ask a program that listens at a port of the workspace; every status is an answer. Bodies stream in both directions.
     * No cookies pass, and no redirect is followed (without Node's `http`, one is an error).
     * @param {number} port
     * @param {string} [path] with its query
     * @param {Abortable & { method?: string, headers?: Record<string, string>, body?: Content }} [options]
     * @returns {Promise<PortAnswer>}
     */
    request(port: number, path?: string, options?: Abortable & {
        method?: string;
        headers?: Record<string, string>;
        body?: Content;
    }): Promise<PortAnswer>;
    /**
     * Make a link that opens a program in a browser of this machine, once, at a separate origin.
     * @param {number} port
     * @param {Abortable} [options]
     * @returns {Promise<string>}
     */
    openPort(port: number, options?: Abortable): Promise<string>;
    /**
     * Background jobs (`cmd &`) that have ended.
     * @param {Abortable & { revision?: string }} [options]
     * @returns {Promise<EndedJob[]>}
     */
    endedJobs(options?: Abortable & {
        revision?: string;
    }): Promise<EndedJob[]>;
    /**
     * What is mounted where, also in a revision.
     * @param {Abortable & { revision?: string }} [options]
     * @returns {Promise<MountInfo[]>}
     */
    mounts(options?: Abortable & {
        revision?: string;
    }): Promise<MountInfo[]>;
    /**
     * Add an empty mount. What lives elsewhere is mounted by who runs the server.
     * @param {string} prefix
     * @param {Changing & { mode?: "read" | "write", message?: string }} [options]
     * @returns {Promise<MountInfo>}
     */
    mount(prefix: string, options?: Changing & {
        mode?: "read" | "write";
        message?: string;
    }): Promise<MountInfo>;
    /**
     * Take a mount away; past revisions keep it.
     * @param {string} prefix
     * @param {Changing & { message?: string }} [options]
     * @returns {Promise<void>}
     */
    umount(prefix: string, options?: Changing & {
        message?: string;
    }): Promise<void>;
    /**
     * A session that is there.
     * @param {string} id
     * @returns {Session}
     */
    session(id: string): Session;
    /**
     * @param {string} id
     * @param {Changing & { cwd?: string, env?: Record<string, string> }} [options]
     * @returns {Promise<Session>}
     */
    createSession(id: string, options?: Changing & {
        cwd?: string;
        env?: Record<string, string>;
    }): Promise<Session>;
    /**
     * @param {Abortable} [options]
     * @returns {Promise<SessionInfo[]>}
     */
    sessions(options?: Abortable): Promise<SessionInfo[]>;
    /**
     * Commands that were started without waiting, also those that have ended.
     * @param {Abortable} [options]
     * @returns {Promise<Job[]>}
     */
    jobs(options?: Abortable): Promise<Job[]>;
    /**
     * @param {string} id
     * @param {Abortable} [options]
     * @returns {Promise<Job>}
     */
    job(id: string, options?: Abortable): Promise<Job>;
}
/** A workspace. Revisions are named by `head`, `head~2`, a tag, a name (`proj-x-3`), a number or an id. */
export declare class Workspace extends Place {
    #private;
    /**
     * @param {Http} http
     * @param {string} name
     */
    constructor(http: Http, name: string);
    /**
     * @param {Abortable} [options]
     * @returns {Promise<WorkspaceInfo>}
     */
    info(options?: Abortable): Promise<WorkspaceInfo>;
    /**
     * The newest revision; null before the first.
     * @param {Abortable} [options]
     * @returns {Promise<Revision | null>}
     */
    head(options?: Abortable): Promise<Revision | null>;
    /**
     * Revisions, newest first, from a revision on (the head when not given). `without` leaves out a revision and all its
     * ancestors; `firstRecord` and `lastRecord` select the revisions that hold the records of these numbers.
     * @param {Abortable & { revision?: string, limit?: number, without?: string, firstRecord?: number, lastRecord?: number }} [options]
     * @returns {Promise<Revision[]>}
     */
    log(options?: Abortable & {
        revision?: string;
        limit?: number;
        without?: string;
        firstRecord?: number;
        lastRecord?: number;
    }): Promise<Revision[]>;
    /**
     * What changed from the older to the newer revision. With one revision, what it changed; with none, what the head
     * changed. All of it: when the server lists less than there is, that is asked for.
     * @param {string} [older]
     * @param {string} [newer]
     * @param {Abortable} [options]
     * @returns {Promise<Change[]>}
     */
    diff(older?: string, newer?: string, options?: Abortable): Promise<Change[]>;
    /**
     * Who wrote each line of a file.
     * @param {string} path
     * @param {Abortable & { revision?: string }} [options]
     * @returns {Promise<BlameLine[]>}
     */
    blame(path: string, options?: Abortable & {
        revision?: string;
    }): Promise<BlameLine[]>;
    /**
     * A file as it was in a revision.
     * @param {string} path
     * @param {string} [of]
     * @param {Abortable} [options]
     * @returns {Promise<Bytes>}
     */
    show(path: string, of?: string, options?: Abortable): Promise<Bytes>;
    /**
     * Everything into one revision, durable when this resolves. When nothing changed, the message becomes a note on
     * the head, which is given back with it in `notes`; `subject` is the message where none is given, and never a note.
     * @param {Changing & { message?: string, author?: string, traceId?: string, subject?: string }} [options]
     * @returns {Promise<Revision>}
     */
    commit(options?: Changing & {
        message?: string;
        author?: string;
        traceId?: string;
        subject?: string;
    }): Promise<Revision>;
    /**
     * A new workspace that begins with a revision of this one (what it holds now when null); its head is given back.
     * A workspace in memory has no revisions: its fork is a copy, and null is given back.
     * @param {string | null} of
     * @param {string} newName
     * @param {Changing} [options]
     * @returns {Promise<Revision | null>}
     */
    fork(of: string | null, newName: string, options?: Changing): Promise<Revision | null>;
    /**
     * The same workspace under another name, with its history, tags and grants; the old name is in the trash.
     * @param {string} newName
     * @param {Changing} [options]
     * @returns {Promise<Revision | null>} Its head.
     */
    rename(newName: string, options?: Changing): Promise<Revision | null>;
    /**
     * Make a past content the newest, all of it or some paths.
     * @param {string} to
     * @param {Changing & { message?: string, paths?: string[] }} [options]
     * @returns {Promise<Revision>}
     */
    revert(to: string, options?: Changing & {
        message?: string;
        paths?: string[];
    }): Promise<Revision>;
    /**
     * Bring another workspace (`OTHER` or `OTHER@REVISION`) in. Conflicts change nothing.
     * @param {string} other
     * `take` resolves conflicts by a side, for a path or for `*`.
     * @param {Changing & { message?: string, take?: Record<string, "ours" | "theirs"> }} [options]
     * @returns {Promise<Merged>}
     */
    merge(other: string, options?: Changing & {
        message?: string;
        take?: Record<string, "ours" | "theirs">;
    }): Promise<Merged>;
    /**
     * Undo the last change, or what an agent or run changed and nothing else. Conflicts change nothing.
     * @param {Changing & { agent?: string, run?: string, message?: string }} [options]
     * @returns {Promise<Merged>}
     */
    undo(options?: Changing & {
        agent?: string;
        run?: string;
        message?: string;
    }): Promise<Merged>;
    /**
     * @param {Abortable} [options]
     * @returns {Promise<Tag[]>}
     */
    tags(options?: Abortable): Promise<Tag[]>;
    /**
     * Name a revision (the head when not given).
     * @param {string} name
     * @param {Changing & { revision?: string, message?: string, author?: string, force?: boolean }} [options]
     * @returns {Promise<Tag>}
     */
    tag(name: string, options?: Changing & {
        revision?: string;
        message?: string;
        author?: string;
        force?: boolean;
    }): Promise<Tag>;
    /**
     * @param {string} name
     * @param {Changing} [options]
     * @returns {Promise<void>}
     */
    untag(name: string, options?: Changing): Promise<void>;
    /**
     * Add a note to a revision (the head when not given), or to a file or a line of it.
     * @param {string} message
     * @param {Changing & { revision?: string, path?: string, line?: number, author?: string }} [options]
     * @returns {Promise<Revision>}
     */
    note(message: string, options?: Changing & {
        revision?: string;
        path?: string;
        line?: number;
        author?: string;
    }): Promise<Revision>;
    /**
     * A revision (what it holds now when not given) as a tar, as it is written.
     * @param {Abortable & { revision?: string, kind?: "snapshot" | "tar", compress?: "gz" | "bz2" | "xz" }} [options]
     * @returns {AsyncGenerator<Bytes, void, void>}
     */
    snapshot(options?: Abortable & {
        revision?: string;
        kind?: "snapshot" | "tar";
        compress?: "gz" | "bz2" | "xz";
    }): AsyncGenerator<Bytes, void, void>;
    /**
     * Make a tar the next revision; the workspace is made when it is not there.
     * @param {Content} tar
     * @param {Changing & { prefix?: string, kind?: "snapshot" | "tar", message?: string, author?: string }} [options]
     * @returns {Promise<{ revision: Revision | null, leftOut: string[] }>}
     */
    load(tar: Content, options?: Changing & {
        prefix?: string;
        kind?: "snapshot" | "tar";
        message?: string;
        author?: string;
    }): Promise<{
        revision: Revision | null;
        leftOut: string[];
    }>;
    /**
     * The first revision in which a command fails: 0 is good, 125 cannot be told, everything else is bad.
     * @param {string} good a revision in which it succeeds
     * @param {string} command
     * @param {Watching & { bad?: string, timeoutMs?: number }} [options]
     * @returns {Promise<Bisected>}
     */
    bisect(good: string, command: string, options?: Watching & {
        bad?: string;
        timeoutMs?: number;
    }): Promise<Bisected>;
    /**
     * The whole history as `git fast-import` reads it.
     * @param {Abortable} [options]
     * @returns {AsyncGenerator<Bytes, void, void>}
     */
    git(options?: Abortable): AsyncGenerator<Bytes, void, void>;
    /**
     * Have the server push a revision as one commit of a git branch; the server says where it pushes to at all.
     * @param {string} remote
     * @param {PushOptions} [options]
     * @returns {Promise<Pushed>}
     */
    push(remote: string, options?: PushOptions): Promise<Pushed>;
    /**
     * Pushes that are not done.
     * @param {Abortable} [options]
     * @returns {Promise<WaitingPush[]>}
     */
    pushes(options?: Abortable): Promise<WaitingPush[]>;
    /**
     * Try again what could not be pushed; `secrets` by name and key have what it needs, and are kept nowhere.
     * @param {Changing & { secrets?: Record<string, Record<string, string>> }} [options]
     * @returns {Promise<{ pushed: Pushed[], failed: string[] }>}
     */
    pushAgain(options?: Changing & {
        secrets?: Record<string, Record<string, string>>;
    }): Promise<{
        pushed: Pushed[];
        failed: string[];
    }>;
    /**
     * How long its revisions are kept.
     * @param {Abortable} [options]
     * @returns {Promise<Retention>}
     */
    retention(options?: Abortable): Promise<Retention>;
    /**
     * Say anew how long its revisions are kept; what is not said is forgotten, but for a hold.
     * @param {Keeping} keeping
     * @param {Changing} [options]
     * @returns {Promise<Retention>}
     */
    setRetention(keeping: Keeping, options?: Changing): Promise<Retention>;
    /**
     * Keep everything of it from being removed until the hold is lifted.
     * @param {string} why
     * @param {Changing} [options]
     * @returns {Promise<Retention>}
     */
    hold(why: string, options?: Changing): Promise<Retention>;
    /**
     * @param {Changing} [options]
     * @returns {Promise<Retention>}
     */
    lift(options?: Changing): Promise<Retention>;
    /**
     * Keep a revision (the head when not given) from expiring, for a time or until `run.store.unpin(token)`.
     * @param {Changing & { revision?: string, forMs?: number, why?: string }} [options]
     * @returns {Promise<Pin>}
     */
    pin(options?: Changing & {
        revision?: string;
        forMs?: number;
        why?: string;
    }): Promise<Pin>;
    /**
     * Who may read and who may write; empty when everybody may do both.
     * @param {Abortable} [options]
     * @returns {Promise<Record<string, "readonly" | "readwrite">>}
     */
    grants(options?: Abortable): Promise<Record<string, "readonly" | "readwrite">>;
    /**
     * Let a principal read or write; after the first grant, all other principals are refused.
     * @param {string} principal
     * @param {"readonly" | "readwrite"} access
     * @param {Changing} [options]
     * @returns {Promise<void>}
     */
    grant(principal: string, access: "readonly" | "readwrite", options?: Changing): Promise<void>;
    /**
     * Take back what a principal was granted.
     * @param {string} principal
     * @param {Changing} [options]
     * @returns {Promise<void>}
     */
    revoke(principal: string, options?: Changing): Promise<void>;
    /**
     * Destroy its keys: what only they could open is lost for ever. `confirm` is its name once more.
     * @param {Changing & { confirm: string }} options
     * @returns {Promise<Shredded>}
     */
    shred(options: Changing & {
        confirm: string;
    }): Promise<Shredded>;
    /**
     * Remove it; its revisions stay until they are collected.
     * @param {Changing} [options]
     * @returns {Promise<void>}
     */
    remove(options?: Changing): Promise<void>;
}
