/**
 * How requests travel: Node's own `http` where there is one, else `fetch`.
 *
 * Node's `fetch` gives up after five silent minutes, which a command may well take, and it knows no unix sockets. Here
 * a request lasts until it is answered, aborted, or the connection is gone; TCP probes find out about the last.
 */

import { ConnectionError, aborted, invalid } from "./errors.js";

/** @import { Agent, ClientRequest, IncomingMessage } from "node:http" */
/** @import { Bytes, ConnectOptions, Content } from "./types.js" */

/**
 * @typedef {{
 *   method: string, path: string, headers: Record<string, string>, body?: Content, signal?: AbortSignal
 * }} Ask
 * @typedef {{
 *   status: number, header: (name: string) => string | null, blocks: () => AsyncIterable<Bytes>,
 *   bytes: () => Promise<Bytes>
 * }} Answer
 * @typedef {{ send: (ask: Ask) => Promise<Answer>, close: () => void }} Transport
 */

const PROBE_MS = 30_000;
/** Shorter than the five seconds after which the server closes an idle connection. */
const KEPT_MS = 4_000;

/**
 * @param {ConnectOptions} options
 * @returns {Transport}
 */
export function transport(options) {
  if (!/^(unix:\/|https?:\/\/[^/])/.test(options.url) || !URL.canParse(options.url)) {
    throw invalid(`${options.url} is not the URL of a server`, "give http://..., https://... or unix:/path");
  }
  if (options.fetch !== undefined) return overFetch(options.url, options.fetch);
  // Deno has Node's http too, but there an aborted request leaves its connection open, and the command running.
  const node = globalThis.process?.versions?.node !== undefined && !("Deno" in globalThis);
  return node ? overNode(options.url) : overFetch(options.url, (...request) => globalThis.fetch(...request));
}

// ----------------------------------------------------------------------------------------------------------- Node

/**
 * @param {string} url
 * @returns {Transport}
 */
function overNode(url) {
  const socketPath = url.startsWith("unix:") ? url.slice("unix:".length) : undefined;
  const base = new URL(socketPath === undefined ? url : "http://localhost");
  /** @type {Promise<{ request: typeof import("node:http").request, agent: Agent }> | undefined} */
  let loading;
  const load = async () => {
    const module = base.protocol === "https:" ? await import("node:https") : await import("node:http");
    return { request: module.request, agent: new module.Agent({ keepAlive: true, timeout: KEPT_MS }) };
  };
  return {
    async send(ask) {
      if (ask.signal?.aborted) throw aborted(ask.signal);
      const { request, agent } = await (loading ??= load());
      const options = {
        method: ask.method, agent, headers: { ...ask.headers }, path: base.pathname.replace(/\/$/, "") + ask.path,
        ...(socketPath === undefined
          ? { protocol: base.protocol, hostname: base.hostname.replace(/^\[|\]$/g, ""), port: base.port }
          : { socketPath, headers: { host: "localhost", ...ask.headers } }),
      };
      const again = ask.method === "GET" || ask.method === "HEAD";
      return sent(() => request(options), ask, again);
    },
    close() {
      void loading?.then(({ agent }) => agent.destroy());
    },
  };
}

/**
 * One request over Node's http.
 * @param {() => ClientRequest} start
 * @param {Ask} ask
 * @param {boolean} again whether to repeat it once when a kept connection turned out to be closed
 * @returns {Promise<Answer>}
 */
function sent(start, ask, again) {
  return new Promise((resolve, reject) => {
    const { signal, body } = ask;
    const request = start();
    /** @type {IncomingMessage | undefined} */
    let response;
    const stop = () => {
      const error = aborted(/** @type {AbortSignal} */ (signal));
      reject(error);
      response?.destroy(error);
      request.destroy(error);
    };
    signal?.addEventListener("abort", stop, { once: true });
    request.once("close", () => signal?.removeEventListener("abort", stop));
    request.once("socket", (socket) => socket.setKeepAlive?.(true, PROBE_MS));
    request.on("error", (error) => {
      if (signal?.aborted) reject(aborted(signal));
      else if (again && request.reusedSocket && /** @type {NodeJS.ErrnoException} */ (error).code === "ECONNRESET") {
        sent(start, ask, false).then(resolve, reject);
      } else reject(new ConnectionError(`the server cannot be reached: ${error.message}`, error));
    });
    request.once("response", (found) => {
      response = found;
      // A refusal may arrive while the content is still being sent: stop sending.
      found.once("end", () => request.writableEnded || request.destroy());
      found.on("error", () => {}); // the reader gets the error; until then it must not end the process
      resolve(answerOf(found, signal));
    });
    if (body === undefined || typeof body === "string" || body instanceof Uint8Array) {
      if (body !== undefined) request.setHeader("content-length", Buffer.byteLength(body));
      request.end(body);
    } else {
      pour(body, request).catch((error) => {
        reject(error);
        request.destroy();
      });
    }
  });
}

/**
 * Send a stream as fast as the server takes it.
 * @param {Exclude<Content, string | Uint8Array>} body
 * @param {ClientRequest} request
 */
async function pour(body, request) {
  for await (const block of blocksOf(body)) {
    if (request.destroyed) return;
    if (!request.write(block)) {
      await new Promise((resolve) => {
        const go = () => {
          request.off("drain", go).off("close", go);
          resolve(undefined);
        };
        request.on("drain", go).on("close", go);
      });
    }
  }
  request.end();
}

/**
 * @param {IncomingMessage} response
 * @param {AbortSignal | undefined} signal
 * @returns {Answer}
 */
function answerOf(response, signal) {
  async function* blocks() {
    try {
      for await (const block of response) yield /** @type {Bytes} */ (block);
    } catch (error) {
      throw gone(error, signal);
    }
  }
  return {
    status: response.statusCode ?? 0,
    header: (name) => {
      const value = response.headers[name];
      return Array.isArray(value) ? value.join(", ") : (value ?? null);
    },
    blocks,
    bytes: () => joined(blocks()),
  };
}

// ---------------------------------------------------------------------------------------------------------- fetch

/**
 * @param {string} url
 * @param {typeof fetch} ask
 * @returns {Transport}
 */
function overFetch(url, ask) {
  if (url.startsWith("unix:")) throw invalid("fetch knows no unix sockets", "use Node, and give no fetch");
  const base = url.replace(/\/$/, "");
  return {
    async send({ method, path, headers, body, signal }) {
      if (signal?.aborted) throw aborted(signal);
      const whole = body === undefined || typeof body === "string" || body instanceof Uint8Array || isBlob(body);
      const stream = whole ? undefined : body instanceof ReadableStream ? body : streamOf(body);
      /** @type {RequestInit & { duplex?: "half" }} */
      const init = { method, headers, signal: signal ?? null, redirect: "error" };
      if (whole && body !== undefined) init.body = /** @type {BodyInit} */ (body);
      if (stream !== undefined) Object.assign(init, { body: stream, duplex: "half" });
      let response;
      try {
        response = await ask(base + path, init);
      } catch (error) {
        throw gone(error, signal);
      }
      const found = response;
      async function* blocks() {
        const reader = found.body?.getReader();
        if (reader === undefined) return;
        try {
          for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value;
        } catch (error) {
          throw gone(error, signal);
        } finally {
          await reader.cancel().catch(() => undefined); // what was not read is not wanted: the server may stop
        }
      }
      return {
        status: found.status,
        header: (name) => found.headers.get(name),
        blocks,
        bytes: () => joined(blocks()),
      };
    },
    close() {},
  };
}

/**
 * @param {AsyncIterable<Uint8Array>} source
 * @returns {ReadableStream<Uint8Array>}
 */
function streamOf(source) {
  const blocks = source[Symbol.asyncIterator]();
  return new ReadableStream({
    async pull(controller) {
      const next = await blocks.next();
      if (next.done) controller.close();
      else controller.enqueue(next.value);
    },
    async cancel() {
      await blocks.return?.();
    },
  });
}

// --------------------------------------------------------------------------------------------------------- common

/**
 * @param {unknown} body
 * @returns {body is Blob}
 */
function isBlob(body) {
  return body instanceof Blob;
}

/**
 * @param {unknown} error
 * @param {AbortSignal | undefined} signal
 * @returns {Error}
 */
function gone(error, signal) {
  if (signal?.aborted) return aborted(signal);
  if (error instanceof ConnectionError) return error;
  return new ConnectionError(`the connection broke: ${error instanceof Error ? error.message : error}`, error);
}

/**
 * @param {Exclude<Content, string | Uint8Array>} body
 * @returns {AsyncIterable<Uint8Array>}
 */
async function* blocksOf(body) {
  if (isBlob(body)) body = body.stream();
  if (!(body instanceof ReadableStream)) {
    yield* body;
    return;
  }
  const reader = body.getReader();
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value;
  } finally {
    reader.releaseLock();
  }
}

/**
 * @param {AsyncIterable<Uint8Array>} blocks
 * @returns {Promise<Bytes>}
 */
async function joined(blocks) {
  /** @type {Uint8Array[]} */
  const pieces = [];
  let size = 0;
  for await (const block of blocks) {
    pieces.push(block);
    size += block.length;
  }
  const whole = new Uint8Array(size);
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}
