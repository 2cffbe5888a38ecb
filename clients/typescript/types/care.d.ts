/** The care of a store: collecting, checking, what is kept for how long, keys. Some of it is for administrators only. */
import type { Abortable, Changing, Collected, Costs, FeedEvent, KeyRings, Keeping, Pin, Report, Repaired, Retention, Watching } from "./types.js";
import type { Http } from "./http.js";
import type { Plain } from "./wire.js";
/**
 * @import {
 *   Abortable, Changing, Collected, Costs, FeedEvent, KeyRings, Keeping, Pin, Report, Repaired, Retention, Watching
 * } from "./types.js"
 */
/** @import { Http } from "./http.js" */
/** @import { Plain } from "./wire.js" */
/** The store behind a server: `run.store`. */
export declare class StoreCare {
    #private;
    /** @param {Http} http */
    constructor(http: Http);
    /**
     * Remove expired and unreferenced objects. With `dry` nothing changes, and the answer lists what would be removed.
     * @param {Watching & { dry?: boolean, graceMs?: number }} [options]
     * @returns {Promise<Collected>}
     */
    gc(options?: Watching & {
        dry?: boolean;
        graceMs?: number;
    }): Promise<Collected>;
    /**
     * What each workspace costs, in bytes.
     * @param {Abortable} [options]
     * @returns {Promise<Costs>}
     */
    cost(options?: Abortable): Promise<Costs>;
    /**
     * Read everything, and check every digest and reference.
     * @param {Watching} [options]
     * @returns {Promise<Report>}
     */
    verify(options?: Watching): Promise<Report>;
    /**
     * Bring back what other copies have, and say what is lost. Only with `drop`, forget that.
     * @param {Watching & { drop?: boolean }} [options]
     * @returns {Promise<Repaired>}
     */
    repair(options?: Watching & {
        drop?: boolean;
    }): Promise<Repaired>;
    /**
     * How long revisions are kept.
     * @param {Abortable} [options]
     * @returns {Promise<Retention>}
     */
    retention(options?: Abortable): Promise<Retention>;
    /**
     * Say anew how long revisions are kept; what is not said is forgotten.
     * @param {Keeping} keeping
     * @param {Changing} [options]
     * @returns {Promise<Retention>}
     */
    setRetention(keeping: Keeping, options?: Changing): Promise<Retention>;
    /**
     * Marks that keep revisions from expiring, of one workspace or of all.
     * @param {Abortable & { workspace?: string }} [options]
     * @returns {Promise<Pin[]>}
     */
    pins(options?: Abortable & {
        workspace?: string;
    }): Promise<Pin[]>;
    /**
     * @param {string} token
     * @param {Changing} [options]
     * @returns {Promise<void>}
     */
    unpin(token: string, options?: Changing): Promise<void>;
    /**
     * The keyrings of an encrypted store, without any key.
     * @param {Abortable} [options]
     * @returns {Promise<KeyRings>}
     */
    keys(options?: Abortable): Promise<KeyRings>;
    /**
     * Let another key open the store. `to` names a place as the server sees it (`file:`, `env:`, `kms:`), never a key.
     * @param {string} to
     * @param {Changing & { old?: string }} [options]
     * @returns {Promise<number>} how many keyrings were written
     */
    rotateKeys(to: string, options?: Changing & {
        old?: string;
    }): Promise<number>;
    /**
     * Every move of a head as a CloudEvent, after a cursor; with `follow` until the loop is left.
     * @param {Abortable & { since?: string, follow?: boolean }} [options]
     * @returns {AsyncGenerator<FeedEvent, void, void>}
     */
    feed(options?: Abortable & {
        since?: string;
        follow?: boolean;
    }): AsyncGenerator<FeedEvent, void, void>;
}
/**
 * How long something is kept, in the server's words. A span is in milliseconds, as everywhere here.
 * @param {Keeping} keeping
 * @returns {Record<string, unknown>}
 */
export declare function kept(keeping: Keeping): Record<string, unknown>;
/**
 * Work that tells how far it is. Aborting it stops it on the server.
 * @param {Http} http
 * @param {string} url
 * @param {Record<string, unknown>} body
 * @param {Watching} options
 * @returns {Promise<Plain>}
 */
export declare function longWork(http: Http, url: string, body: Record<string, unknown>, { onProgress, signal }: Watching): Promise<Plain>;
