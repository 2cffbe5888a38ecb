/** What can go wrong: every refusal says what, why and what to do. An abort is an `AbortError`, as everywhere. */
/** A refusal of the server. `message` is the cause; `code` is one of the codes in Ramet's table of errors. */
export declare class RametError extends Error {
    /** For programs: `not_found`, `workspace_busy`, ... */
    code: string;
    /** What to do about it; may be empty. */
    remediation: string;
    /** The HTTP status; 0 when there was no answer. */
    status: number;
    /** What the error is about, in names and numbers. */
    context: Record<string, unknown>;
    /**
     * @param {string} code
     * @param {string} message
     * @param {{ remediation?: string, status?: number, context?: Record<string, unknown>, cause?: unknown }} [more]
     */
    constructor(code: string, message: string, more?: {
        remediation?: string;
        status?: number;
        context?: Record<string, unknown>;
        cause?: unknown;
    });
}
/** The server could not be reached, or it went away in the middle. */
export declare class ConnectionError extends RametError {
    /**
     * @param {string} message
     * @param {unknown} [cause]
     */
    constructor(message: string, cause?: unknown);
}
/**
 * The error of an aborted call, with the signal's reason as its cause.
 * @param {AbortSignal} signal
 * @returns {DOMException}
 */
export declare function aborted(signal: AbortSignal): DOMException;
/**
 * Refuse what the server would not understand, before anything is sent.
 * @param {string} message
 * @param {string} remediation
 * @returns {RametError}
 */
export declare function invalid(message: string, remediation: string): RametError;
/**
 * Refuse options that a call does not have: one that is misspelt must not be one that is left out.
 * @template {object} T
 * @param {string} call
 * @param {T} options
 * @param {string[]} names in addition to those that every call takes
 * @returns {T}
 */
export declare function known<T extends object>(call: string, options: T, ...names: string[]): T;
/**
 * The error that a problem document describes.
 * @param {number} status
 * @param {Uint8Array} body
 * @returns {RametError}
 */
export declare function refusal(status: number, body: Uint8Array): RametError;
