/** The care of a store: collecting, checking, what is kept for how long, keys. Some of it is for administrators only. */

import { RametError, known } from "./errors.js";
import { lines } from "./http.js";
import { given, pin, query, retention, segment } from "./wire.js";

/**
 * @import {
 *   Abortable, Changing, Collected, Costs, FeedEvent, KeyRings, Keeping, Pin, Report, Repaired, Retention, Watching
 * } from "./types.js"
 */
/** @import { Http } from "./http.js" */
/** @import { Plain } from "./wire.js" */

/** The store behind a server: `run.store`. */
export class StoreCare {
  #http;

  /** @param {Http} http */
  constructor(http) {
    this.#http = http;
  }

  /**
   * Remove expired and unreferenced objects. With `dry` nothing changes, and the answer lists what would be removed.
   * @param {Watching & { dry?: boolean, graceMs?: number }} [options]
   * @returns {Promise<Collected>}
   */
  async gc(options = {}) {
    const { dry, graceMs } = known("gc", options, "dry", "graceMs", "onProgress");
    const body = { dry, grace_seconds: graceMs === undefined ? undefined : graceMs / 1000 };
    return /** @type {Collected} */ (await longWork(this.#http, "/v1/store/gc", body, options));
  }

  /**
   * What each workspace costs, in bytes.
   * @param {Abortable} [options]
   * @returns {Promise<Costs>}
   */
  async cost(options = {}) {
    known("cost", options);
    return /** @type {Costs} */ (await this.#http.get("/v1/store/cost", options));
  }

  /**
   * Read everything, and check every digest and reference.
   * @param {Watching} [options]
   * @returns {Promise<Report>}
   */
  async verify(options = {}) {
    known("verify", options, "onProgress");
    return /** @type {Report} */ (await longWork(this.#http, "/v1/store/verify", {}, options));
  }

  /**
   * Bring back what other copies have, and say what is lost. Only with `drop`, forget that.
   * @param {Watching & { drop?: boolean }} [options]
   * @returns {Promise<Repaired>}
   */
  async repair(options = {}) {
    const { drop } = known("repair", options, "drop", "onProgress");
    return /** @type {Repaired} */ (await longWork(this.#http, "/v1/store/repair", { drop }, options));
  }

  /**
   * How long revisions are kept.
   * @param {Abortable} [options]
   * @returns {Promise<Retention>}
   */
  async retention(options = {}) {
    return retention(await this.#http.get("/v1/store/retention", options));
  }

  /**
   * Say anew how long revisions are kept; what is not said is forgotten.
   * @param {Keeping} keeping
   * @param {Changing} [options]
   * @returns {Promise<Retention>}
   */
  async setRetention(keeping, options = {}) {
    return retention(await this.#http.json("PUT", "/v1/store/retention", { json: kept(keeping) }, options));
  }

  /**
   * Marks that keep revisions from expiring, of one workspace or of all.
   * @param {Abortable & { workspace?: string }} [options]
   * @returns {Promise<Pin[]>}
   */
  async pins(options = {}) {
    const { workspace } = known("pins", options, "workspace");
    return (await this.#http.get(`/v1/pins${query({ workspace })}`, options))["pins"].map(pin);
  }

  /**
   * @param {string} token
   * @param {Changing} [options]
   * @returns {Promise<void>}
   */
  async unpin(token, options = {}) {
    await this.#http.json("DELETE", `/v1/pins/${segment(token)}`, {}, options);
  }

  /**
   * The keyrings of an encrypted store, without any key.
   * @param {Abortable} [options]
   * @returns {Promise<KeyRings>}
   */
  async keys(options = {}) {
    const { wrapped_by: wrappedBy, rings } = await this.#http.get("/v1/store/keys", options);
    return {
      wrappedBy,
      rings: rings.map((/** @type {Plain} */ { wrapped_by: by, ...rest }) => ({ ...rest, wrappedBy: by })),
    };
  }

  /**
   * Let another key open the store. `to` names a place as the server sees it (`file:`, `env:`, `kms:`), never a key.
   * @param {string} to
   * @param {Changing & { old?: string }} [options]
   * @returns {Promise<number>} how many keyrings were written
   */
  async rotateKeys(to, options = {}) {
    const { old } = known("rotateKeys", options, "old");
    return (await this.#http.post("/v1/store/keys/rotate", { to, old }, options))["keyrings"];
  }

  /**
   * Every move of a head as a CloudEvent, after a cursor; with `follow` until the loop is left.
   * @param {Abortable & { since?: string, follow?: boolean }} [options]
   * @returns {AsyncGenerator<FeedEvent, void, void>}
   */
  async *feed(options = {}) {
    const { since, follow } = known("feed", options, "since", "follow");
    const answer = await this.#http.send("GET", `/v1/feed${query({ since, follow })}`, {}, options);
    for await (const line of lines(answer.blocks())) yield JSON.parse(line);
  }
}

/**
 * How long something is kept, in the server's words. A span is in milliseconds, as everywhere here.
 * @param {Keeping} keeping
 * @returns {Record<string, unknown>}
 */
export function kept(keeping) {
  known("setRetention", keeping, "keepLast", "keepWithinMs", "minAgeMs", "auto", "graceMs");
  const seconds = (/** @type {number | null | undefined} */ ms) => (ms == null ? undefined : ms / 1000);
  return given({
    keep_last: keeping.keepLast ?? undefined, keep_within: seconds(keeping.keepWithinMs),
    min_age: seconds(keeping.minAgeMs), auto: keeping.auto ?? undefined, grace: seconds(keeping.graceMs),
  });
}

/**
 * Work that tells how far it is. Aborting it stops it on the server.
 * @param {Http} http
 * @param {string} url
 * @param {Record<string, unknown>} body
 * @param {Watching} options
 * @returns {Promise<Plain>}
 */
export async function longWork(http, url, body, { onProgress, signal }) {
  const sending = { json: given({ ...body, stream: true }) };
  const answer = await http.send("POST", url, sending, signal === undefined ? {} : { signal });
  for await (const line of lines(answer.blocks())) {
    const row = JSON.parse(line);
    if (row.stage !== undefined) onProgress?.(row);
    else if (row.report !== undefined) return row.report;
    else {
      const { code, cause, remediation, status, context } = row.problem;
      throw new RametError(code, cause, { remediation, status, context });
    }
  }
  throw new RametError("unavailable", "the server ended in the middle of its work", { remediation: "look at its log" });
}
