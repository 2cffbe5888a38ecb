/**
 * A sandbox for Flue (`@flue/runtime` 2): an agent works on a workspace or a sandbox of a Ramet server.
 *
 * Rules that this file keeps:
 * - One session per instance id: working directory, variables and history of two agents never mix.
 * - `timeoutMs` is enforced by the server and resolves with exit code 124; `signal` closes the connection, which stops
 *   the command there, and rejects with an `AbortError`.
 * - Metadata that the server does not know is left out. An option that is not known is refused before anything changes.
 */
import { Sandbox } from "./run.js";
import type { FileStat, Sandbox as FlueSandbox, SandboxDriver, SandboxFactory, ShellResult } from "@flue/runtime";
import type { Workspace, Session } from "./workspace.js";
/** The verbs of Flue over one session. Paths arrive absolute. @implements {SandboxDriver} */
export declare class RametSandboxDriver implements SandboxDriver {
    #private;
    /** @param {Session} session */
    constructor(session: Session);
    /**
     * @param {string} path
     * @returns {Promise<string>}
     */
    readFile(path: string): Promise<string>;
    /**
     * @param {string} path
     * @returns {Promise<Uint8Array>}
     */
    readFileBuffer(path: string): Promise<Uint8Array>;
    /**
     * @param {string} path
     * @param {string | Uint8Array} content
     * @returns {Promise<void>}
     */
    writeFile(path: string, content: string | Uint8Array): Promise<void>;
    /**
     * What a link leads to, and whether it is one.
     * @param {string} path
     * @returns {Promise<FileStat>}
     */
    stat(path: string): Promise<FileStat>;
    /**
     * @param {string} path
     * @returns {Promise<string[]>}
     */
    readdir(path: string): Promise<string[]>;
    /**
     * @param {string} path
     * @returns {Promise<boolean>}
     */
    exists(path: string): Promise<boolean>;
    /**
     * @param {string} path
     * @param {{ recursive?: boolean }} [options]
     * @returns {Promise<void>}
     */
    mkdir(path: string, options?: {
        recursive?: boolean;
    }): Promise<void>;
    /**
     * As `rm` does it: without `recursive` a directory stays, also an empty one and also with `force`.
     * @param {string} path
     * @param {{ recursive?: boolean, force?: boolean }} [options]
     * @returns {Promise<void>}
     */
    rm(path: string, options?: {
        recursive?: boolean;
        force?: boolean;
    }): Promise<void>;
    /**
     * @param {string} command
     * @param {{ cwd?: string, env?: Record<string, string>, timeoutMs?: number, signal?: AbortSignal }} [options]
     * @returns {Promise<ShellResult>}
     */
    exec(command: string, options?: {
        cwd?: string;
        env?: Record<string, string>;
        timeoutMs?: number;
        signal?: AbortSignal;
    }): Promise<ShellResult>;
}
/**
 * What `useSandbox(...)` takes: agents work on this workspace or sandbox, each instance in its own session.
 *
 * `cwd` is where they work (`/workspace` in a sandbox, else `/`); it is made when it is missing. Nothing is removed or
 * terminated here: the application does that.
 * @param {Workspace | Sandbox} place
 * @param {{ cwd?: string }} [options]
 * @returns {SandboxFactory}
 */
export declare function ramet(place: Workspace | Sandbox, options?: {
    cwd?: string;
}): SandboxFactory;
/**
 * The workspace or sandbox behind a sandbox of Flue, for what Flue has no verb for: revisions, forks, sessions. A `cwd`
 * in `useSandbox` hides it.
 * @param {FlueSandbox} sandbox
 * @returns {{ place: Workspace | Sandbox, session: Session }}
 */
export declare function rametOf(sandbox: FlueSandbox): {
    place: Workspace | Sandbox;
    session: Session;
};
