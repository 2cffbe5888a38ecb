/** Workspaces and their sessions: a shell, files, and every state that was committed. */
import { Files } from "./files.js";
import { Job, Shell } from "./running.js";
import type { Abortable, BlameLine, Bytes, Change, Changing, Content, Merged, Revision, SessionInfo, Tag, WorkspaceInfo } from "./types.js";
import type { Http } from "./http.js";
/**
 * @import {
 *   Abortable, BlameLine, Bytes, Change, Changing, Content, Merged, Revision, SessionInfo, Tag, WorkspaceInfo
 * } from "./types.js"
 */
/** @import { Http } from "./http.js" */
/** A session: a shell of its own, with its own working directory and variables, on the files of all. */
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
     * Revisions, newest first, from a revision on (the head when not given).
     * @param {Abortable & { revision?: string, limit?: number }} [options]
     * @returns {Promise<Revision[]>}
     */
    log(options?: Abortable & {
        revision?: string;
        limit?: number;
    }): Promise<Revision[]>;
    /**
     * What a revision (the head when not given) changed, against its parent or another revision. All of it: when the
     * server lists less than there is, that is asked for.
     * @param {string} [of]
     * @param {string} [against]
     * @param {Abortable} [options]
     * @returns {Promise<Change[]>}
     */
    diff(of?: string, against?: string, options?: Abortable): Promise<Change[]>;
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
     * Everything into one revision, durable when this resolves.
     * @param {Changing & { message?: string, author?: string, traceId?: string }} [options]
     * @returns {Promise<Revision>}
     */
    commit(options?: Changing & {
        message?: string;
        author?: string;
        traceId?: string;
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
     * @param {Changing & { message?: string }} [options]
     * @returns {Promise<Merged>}
     */
    merge(other: string, options?: Changing & {
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
     * Remove it; its revisions stay until they are collected.
     * @param {Changing} [options]
     * @returns {Promise<void>}
     */
    remove(options?: Changing): Promise<void>;
}
