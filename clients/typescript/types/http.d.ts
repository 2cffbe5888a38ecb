/** Requests with the token, answers as JSON, refusals as errors. Everything that the client asks goes through here. */
import type { Abortable, Changing, ConnectOptions, Content } from "./types.js";
import type { Answer } from "./transport.js";
import type { Plain } from "./wire.js";
export type Sending = {
    json?: unknown;
    body?: Content;
    headers?: Record<string, string | undefined>;
    /**
     * statuses of 300 and above that are answers
     */
    fine?: number[];
    /**
     * whether every status is an answer
     */
    any?: boolean;
};
/** @import { Abortable, Changing, ConnectOptions, Content } from "./types.js" */
/** @import { Answer } from "./transport.js" */
/** @import { Plain } from "./wire.js" */
/**
 * @typedef {object} Sending
 * @property {unknown} [json]
 * @property {Content} [body]
 * @property {Record<string, string | undefined>} [headers]
 * @property {number[]} [fine] statuses of 300 and above that are answers
 * @property {boolean} [any] whether every status is an answer
 */
export declare class Http {
    #private;
    /** @param {ConnectOptions} options */
    constructor(options: ConnectOptions);
    close(): void;
    /**
     * @param {string} method
     * @param {string} path
     * @param {Sending} sending
     * @param {Changing} options
     * @returns {Promise<Answer>}
     */
    send(method: string, path: string, { json, body, headers, fine, any }: Sending, { signal, idempotencyKey }: Changing): Promise<Answer>;
    /**
     * @param {string} method
     * @param {string} path
     * @param {Sending} sending
     * @param {Changing} options
     * @returns {Promise<Plain>}
     */
    json(method: string, path: string, sending: Sending, options: Changing): Promise<Plain>;
    /**
     * @param {string} path
     * @param {Abortable} [options]
     * @returns {Promise<Plain>}
     */
    get(path: string, options?: Abortable): Promise<Plain>;
    /**
     * @param {string} path
     * @param {Record<string, unknown>} body
     * @param {Changing} [options]
     * @param {number[]} [fine]
     * @returns {Promise<Plain>}
     */
    post(path: string, body: Record<string, unknown>, options?: Changing, fine?: number[]): Promise<Plain>;
}
/**
 * Whole lines of a streamed answer.
 * @param {AsyncIterable<Uint8Array>} blocks
 * @returns {AsyncIterable<string>}
 */
export declare function lines(blocks: AsyncIterable<Uint8Array>): AsyncIterable<string>;
