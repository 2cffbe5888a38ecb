/** Requests with the token, answers as JSON, refusals as errors. Everything that the client asks goes through here. */

import { RametError, refusal } from "./errors.js";
import { transport } from "./transport.js";
import { given } from "./wire.js";

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

export class Http {
  /** @type {import("./transport.js").Transport} */
  #transport;
  /** @type {Record<string, string>} */
  #headers;

  /** @param {ConnectOptions} options */
  constructor(options) {
    this.#transport = transport(options);
    this.#headers = options.token === undefined ? {} : { authorization: `Bearer ${options.token}` };
  }

  close() {
    this.#transport.close();
  }

  /**
   * @param {string} method
   * @param {string} path
   * @param {Sending} sending
   * @param {Changing} options
   * @returns {Promise<Answer>}
   */
  async send(method, path, { json, body, headers = {}, fine = [], any = false }, { signal, idempotencyKey }) {
    const type = json !== undefined ? "application/json" : body !== undefined ? "application/octet-stream" : undefined;
    const all = given({ ...this.#headers, "content-type": type, "idempotency-key": idempotencyKey, ...headers });
    const content = json === undefined ? body : JSON.stringify(json);
    const answer = await this.#transport.send({
      method, path, headers: /** @type {Record<string, string>} */ (all),
      ...(content === undefined ? {} : { body: content }), ...(signal === undefined ? {} : { signal }),
    });
    if (!any && answer.status >= 300 && !fine.includes(answer.status)) throw refusal(answer.status, await answer.bytes());
    return answer;
  }

  /**
   * @param {string} method
   * @param {string} path
   * @param {Sending} sending
   * @param {Changing} options
   * @returns {Promise<Plain>}
   */
  async json(method, path, sending, options) {
    const answer = await this.send(method, path, sending, options);
    const text = new TextDecoder().decode(await answer.bytes());
    try {
      return JSON.parse(text);
    } catch (cause) {
      const remediation = "see whether the URL is that of a Ramet server";
      throw new RametError("unavailable", "the answer is not JSON", { status: answer.status, remediation, cause });
    }
  }

  /**
   * @param {string} path
   * @param {Abortable} [options]
   * @returns {Promise<Plain>}
   */
  get(path, options = {}) {
    return this.json("GET", path, {}, options);
  }

  /**
   * @param {string} path
   * @param {Record<string, unknown>} body
   * @param {Changing} [options]
   * @param {number[]} [fine]
   * @returns {Promise<Plain>}
   */
  post(path, body, options = {}, fine = []) {
    return this.json("POST", path, { json: given(body), fine }, options);
  }
}

/**
 * Whole lines of a streamed answer.
 * @param {AsyncIterable<Uint8Array>} blocks
 * @returns {AsyncIterable<string>}
 */
export async function* lines(blocks) {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const block of blocks) {
    const whole = (rest + decoder.decode(block, { stream: true })).split("\n");
    rest = /** @type {string} */ (whole.pop());
    yield* whole;
  }
  if (rest !== "") yield rest;
}
