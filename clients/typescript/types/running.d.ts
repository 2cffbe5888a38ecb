/** Commands: their results, their output while they run, and jobs that run without anybody waiting. */
import { RametError } from "./errors.js";
import type { Abortable, Bytes, Changing, ExecOptions, Piece } from "./types.js";
import type { Http } from "./http.js";
import type { Plain } from "./wire.js";
/** What a command did. A failing command is a result, not an error. */
export declare class ExecResult {
    #private;
    /** @type {number} */
    exitCode: number;
    /** Standard output as text; what is not UTF-8 becomes U+FFFD, and `stdoutBytes` has it as it is. @type {string} */
    stdout: string;
    /** Standard error as text. @type {string} */
    stderr: string;
    /** Whether `timeoutMs` was over; the exit code is 124 then. @type {boolean} */
    timedOut: boolean;
    /** Whether there was more output than the server keeps; the exit code is not 0 then. @type {boolean} */
    truncated: boolean;
    /** @type {number} */
    durationMs: number;
    /** Bytes by mount. @type {Record<string, number>} */
    bytesRead: Record<string, number>;
    /** Bytes by mount. @type {Record<string, number>} */
    bytesWritten: Record<string, number>;
    /** @type {number} */
    cacheHits: number;
    /** @param {Plain} plain */
    constructor(plain: Plain);
    /** @returns {Bytes} */
    get stdoutBytes(): Bytes;
    /** @returns {Bytes} */
    get stderrBytes(): Bytes;
}
/**
 * What a command is asked with; wrong options are refused before anything is sent.
 * @param {string} command
 * @param {ExecOptions} options
 * @returns {Record<string, unknown>}
 */
export declare function asked(command: string, options: ExecOptions): Record<string, unknown>;
/** A command that runs: iterate it for its output as it comes, then ask for the result. Leaving the loop stops it. */
export declare class Running {
    #private;
    /**
     * @param {Http} http
     * @param {string} url
     * @param {Record<string, unknown>} body
     * @param {ExecOptions} options
     */
    constructor(http: Http, url: string, body: Record<string, unknown>, options: ExecOptions);
    /** What the command did, without its output, which was iterated; only after the loop has ended. @returns {ExecResult} */
    get result(): ExecResult;
    /** @returns {AsyncGenerator<Piece, void, void>} */
    [Symbol.asyncIterator](): AsyncGenerator<Piece, void, void>;
}
/** A command that runs without anybody waiting. */
export declare class Job {
    #private;
    /** @type {string} */
    id: string;
    /** @type {string} */
    command: string;
    /** @type {string} */
    session: string;
    /** @type {"running" | "completed" | "killed" | "failed"} */
    state: "running" | "completed" | "killed" | "failed";
    /** @type {Date} */
    startedAt: Date;
    /** @type {Date | null} */
    endedAt: Date | null;
    /** @type {ExecResult | null} */
    result: ExecResult | null;
    /** Why it failed. @type {RametError | null} */
    problem: RametError | null;
    /**
     * @param {Http} http
     * @param {string} place
     * @param {Plain} plain
     */
    constructor(http: Http, place: string, plain: Plain);
    /**
     * Ask how it is.
     * @param {Abortable} [options]
     * @returns {Promise<this>}
     */
    refresh(options?: Abortable): Promise<this>;
    /**
     * Until it has ended.
     * @param {Abortable} [options]
     * @returns {Promise<this>}
     */
    wait(options?: Abortable): Promise<this>;
    /**
     * Stop it.
     * @param {Changing} [options]
     * @returns {Promise<this>}
     */
    kill(options?: Changing): Promise<this>;
}
/** Something that runs commands: a workspace, a sandbox, or one session of either. */
export declare class Shell {
    #private;
    /**
     * @param {Http} http
     * @param {string} place
     * @param {string} [session]
     */
    constructor(http: Http, place: string, session?: string);
    /**
     * Run shell text to its end. A non-zero exit code and a timeout (124) are results; an abort rejects with an
     * `AbortError` at once and stops the command.
     * @param {string} command
     * @param {ExecOptions} [options]
     * @returns {Promise<ExecResult>}
     */
    exec(command: string, options?: ExecOptions): Promise<ExecResult>;
    /**
     * Run shell text and give its output while it runs; nothing runs before the first turn of the loop.
     * @param {string} command
     * @param {ExecOptions} [options]
     * @returns {Running}
     */
    stream(command: string, options?: ExecOptions): Running;
    /**
     * Start shell text without waiting for it.
     * @param {string} command
     * @param {ExecOptions} [options]
     * @returns {Promise<Job>}
     */
    start(command: string, options?: ExecOptions): Promise<Job>;
    /**
     * What a command would cost, without running it.
     * @param {string} command
     * @param {ExecOptions} [options]
     * @returns {Promise<string>}
     */
    estimate(command: string, options?: ExecOptions): Promise<string>;
}
