/** `AgentRun`: the workspaces and sandboxes of a server. */
/// <reference lib="esnext.disposable" preserve="true" />
import { StoreCare } from "./care.js";
import { Http } from "./http.js";
import { Place, Workspace } from "./workspace.js";
import type { Abortable, Changing, ConnectOptions, NativeLimits, Pushed, Revision, SandboxOptions, ServerEvent, ServerStatus, TerminateOptions, WorkspaceInfo } from "./types.js";
import type { Plain } from "./wire.js";
/**
 * A sandbox: a tree at `/workspace` that begins with the head of its workspace, and whose end makes one revision.
 * Relative paths of files begin at `/workspace`.
 */
export declare class Sandbox extends Place {
    #private;
    /** @type {string | null} */
    workspace: string | null;
    /** @type {"Ready" | "Terminated"} */
    phase: "Ready" | "Terminated";
    /** What its end made; null before, and for one without a workspace. @type {Revision | null} */
    revision: Revision | null;
    /** What its end pushed. @type {Pushed[]} */
    pushed: Pushed[];
    /** @type {string[]} */
    warnings: string[];
    /**
     * @param {Http} http
     * @param {Plain} plain
     */
    constructor(http: Http, plain: Plain);
    /**
     * Ask how it is.
     * @param {Abortable} [options]
     * @returns {Promise<this>}
     */
    refresh(options?: Abortable): Promise<this>;
    /**
     * End it. The revision holds what the outputs say, everything without them; doing it again gives the same revision.
     * @param {TerminateOptions} [options]
     * @returns {Promise<Revision | null>}
     */
    terminate(options?: TerminateOptions): Promise<Revision | null>;
    /** `await using` ends it and keeps everything. */
    [Symbol.asyncDispose](): Promise<void>;
}
/** The workspaces and sandboxes of a server. */
export declare class AgentRun {
    #private;
    /** The care of the store: collecting, checking, what is kept for how long, keys. */
    store: StoreCare;
    /** @param {ConnectOptions} options */
    constructor(options: ConnectOptions);
    /** Close the connections that are kept; a process ends without it too. */
    close(): void;
    /**
     * Whether the server is up; needs no token.
     * @param {Abortable} [options]
     * @returns {Promise<{ status: "ok" | "stopping", version: string }>}
     */
    health(options?: Abortable): Promise<{
        status: "ok" | "stopping";
        version: string;
    }>;
    /**
     * Connections, limits, and commands that held the event loop of the server. Needs the server's own token.
     * @param {Abortable} [options]
     * @returns {Promise<ServerStatus>}
     */
    status(options?: Abortable): Promise<ServerStatus>;
    /**
     * A new workspace. With `reuse` one that is there is fine. One of kind `memory` is gone when the server ends. A `native`
     * one runs real programs, on a server that allows them, within limits that are not above the server's.
     * @param {string} name
     * @param {Changing & { kind?: "stored" | "memory", reuse?: boolean, native?: boolean | NativeLimits }} [options]
     * @returns {Promise<Workspace>}
     */
    createWorkspace(name: string, options?: Changing & {
        kind?: "stored" | "memory";
        reuse?: boolean;
        native?: boolean | NativeLimits;
    }): Promise<Workspace>;
    /**
     * A workspace that is there; nothing is asked before it is used.
     * @param {string} name
     * @returns {Workspace}
     */
    workspace(name: string): Workspace;
    /**
     * @param {Abortable} [options]
     * @returns {Promise<WorkspaceInfo[]>}
     */
    workspaces(options?: Abortable): Promise<WorkspaceInfo[]>;
    /**
     * The removed workspaces that can be restored.
     * @param {Abortable} [options]
     * @returns {Promise<{ name: string, time: Date, revision: string | null }[]>}
     */
    trash(options?: Abortable): Promise<{
        name: string;
        time: Date;
        revision: string | null;
    }[]>;
    /**
     * A removed workspace as it was, with its tags and grants.
     * @param {string} name
     * @param {Changing} [options]
     * @returns {Promise<Workspace>}
     */
    restore(name: string, options?: Changing): Promise<Workspace>;
    /**
     * A sandbox. There is one kind, so `image` only says what is expected of it.
     * @param {string} image
     * @param {SandboxOptions} [options]
     * @returns {Promise<Sandbox>}
     */
    create(image: string, options?: SandboxOptions): Promise<Sandbox>;
    /**
     * A sandbox that was made before, here or elsewhere.
     * @param {string} name
     * @param {Abortable} [options]
     * @returns {Promise<Sandbox>}
     */
    sandbox(name: string, options?: Abortable): Promise<Sandbox>;
    /**
     * The sandboxes that run.
     * @param {Abortable} [options]
     * @returns {Promise<Sandbox[]>}
     */
    sandboxes(options?: Abortable): Promise<Sandbox[]>;
    /**
     * What happens on the server, until the loop is left or the server ends; `since` is the id of the last event that is
     * known, and what happened after it comes first.
     * @param {Abortable & { workspace?: string, since?: number }} [options]
     * @returns {AsyncGenerator<ServerEvent, void, void>}
     */
    events(options?: Abortable & {
        workspace?: string;
        since?: number;
    }): AsyncGenerator<ServerEvent, void, void>;
}
/**
 * The workspaces and sandboxes of the server at a URL.
 * @param {string} url
 * @param {Omit<ConnectOptions, "url">} [options]
 * @returns {AgentRun}
 */
export declare function connect(url: string, options?: Omit<ConnectOptions, "url">): AgentRun;
