/**
 * How requests travel: Node's own `http` where there is one, else `fetch`.
 *
 * Node's `fetch` gives up after five silent minutes, which a command may well take, and it knows no unix sockets. Here
 * a request lasts until it is answered, aborted, or the connection is gone; TCP probes find out about the last.
 */
import type { Bytes, ConnectOptions, Content } from "./types.js";
export type Ask = {
    method: string;
    path: string;
    headers: Record<string, string>;
    body?: Content;
    signal?: AbortSignal;
};
export type Answer = {
    status: number;
    header: (name: string) => string | null;
    blocks: () => AsyncIterable<Bytes>;
    bytes: () => Promise<Bytes>;
};
export type Transport = {
    send: (ask: Ask) => Promise<Answer>;
    close: () => void;
};
/**
 * @param {ConnectOptions} options
 * @returns {Transport}
 */
export declare function transport(options: ConnectOptions): Transport;
