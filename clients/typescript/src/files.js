/** Files of a workspace, a sandbox or a session, without running commands. What is missing is a `not_found` error. */

import { RametError, known } from "./errors.js";
import { fileStat, given, query } from "./wire.js";

/** @import { Abortable, Bytes, Changing, Content, FileStat, ReadOptions, WriteOptions } from "./types.js" */
/** @import { Http } from "./http.js" */

export class Files {
  #http;
  #place;
  #home;
  #session;

  /**
   * @param {Http} http
   * @param {string} place
   * @param {{ home?: string, session?: string }} [view] `home` is where relative paths begin; else the session's
   * working directory is
   */
  constructor(http, place, { home, session } = {}) {
    this.#http = http;
    this.#place = place;
    this.#home = home;
    this.#session = session;
  }

  /** @param {string} path */
  #at(path) {
    if (path === "") throw new RametError("invalid_argument", "a path cannot be empty", { remediation: "use . or /" });
    return this.#home === undefined || path.startsWith("/") ? path : `${this.#home}/${path}`;
  }

  /**
   * @param {string} verb
   * @param {string} path
   * @param {Record<string, string | number | boolean | undefined>} [more]
   */
  #url(verb, path, more = {}) {
    return `${this.#place}/${verb}${query({ path: this.#at(path), session: this.#session, ...more })}`;
  }

  /**
   * The whole content, or the bytes from `start` to before `end`.
   * @param {string} path
   * @param {ReadOptions} [options]
   * @returns {Promise<Bytes>}
   */
  async read(path, options = {}) {
    return empty(options) ? new Uint8Array() : (await this.#reading(path, options)).bytes();
  }

  /**
   * The content as UTF-8 text. Other content is refused: as text it could not be written back.
   * @param {string} path
   * @param {ReadOptions} [options]
   * @returns {Promise<string>}
   */
  async readText(path, options = {}) {
    const bytes = await this.read(path, options);
    try {
      return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    } catch (error) {
      const remediation = "read the bytes";
      throw new RametError("invalid_argument", `${path}: not UTF-8 text`, { remediation, cause: error });
    }
  }

  /**
   * The content as it comes; leaving the loop ends the transfer.
   * @param {string} path
   * @param {ReadOptions} [options]
   * @returns {AsyncGenerator<Bytes, void, void>}
   */
  async *readStream(path, options = {}) {
    if (!empty(options)) yield* (await this.#reading(path, options)).blocks();
  }

  /**
   * @param {string} path
   * @param {ReadOptions} options
   */
  async #reading(path, options) {
    const { start = 0, end, revision } = known("read", options, "start", "end", "revision");
    const part = start > 0 || end !== undefined;
    const whole = { remediation: "leave start and end out" };
    if (part && revision !== undefined) throw new RametError("unsupported", "a revision's file is read whole", whole);
    const range = part ? `bytes=${start}-${end === undefined ? "" : end - 1}` : undefined;
    const url = this.#url("file", path, { revision });
    const answer = await this.#http.send("GET", url, { headers: { range }, fine: part ? [416] : [] }, options);
    if (answer.status === 416) return { ...answer, bytes: async () => new Uint8Array(), blocks: async function* () {} };
    if (part && answer.status !== 206) throw new RametError("unsupported", `${path}: cannot be read in part`, whole);
    return answer;
  }

  /**
   * Store a content; missing directories are made unless `parents` is false. The old content stays until the new one is
   * whole.
   * @param {string} path
   * @param {Content} content
   * @param {WriteOptions} [options]
   * @returns {Promise<FileStat>}
   */
  async write(path, content, options = {}) {
    const { parents = true, append, ifMatch, create } =
      known("write", options, "parents", "append", "ifMatch", "create");
    const headers = { "if-match": ifMatch, "if-none-match": create ? "*" : undefined };
    const url = this.#url("file", path, { parents, append });
    return fileStat(await this.#http.json("PUT", url, { body: content, headers }, options));
  }

  /**
   * What is known about a path; `follow: false` looks at a link itself.
   * @param {string} path
   * @param {Abortable & { follow?: boolean }} [options]
   * @returns {Promise<FileStat>}
   */
  async stat(path, options = {}) {
    const follow = known("stat", options, "follow").follow === false ? "false" : undefined;
    return fileStat(await this.#http.get(this.#url("stat", path, { follow }), options));
  }

  /**
   * @param {string} path
   * @param {Abortable} [options]
   * @returns {Promise<boolean>}
   */
  async exists(path, options = {}) {
    try {
      await this.stat(path, options);
      return true;
    } catch (error) {
      if (error instanceof RametError && error.code === "not_found") return false;
      throw error;
    }
  }

  /**
   * The names in a directory, sorted.
   * @param {string} [path]
   * @param {Abortable} [options]
   * @returns {Promise<string[]>}
   */
  async list(path = ".", options = {}) {
    return (await this.entries(path, options)).map((entry) => entry.name);
  }

  /**
   * What is in a directory, with stats, in one request.
   * @param {string} [path]
   * @param {Abortable} [options]
   * @returns {Promise<FileStat[]>}
   */
  async entries(path = ".", options = {}) {
    return (await this.#http.get(this.#url("dir", path), options))["entries"].map(fileStat);
  }

  /**
   * Make a directory; missing ones on the way too, and one that is there is fine, unless `parents` is false.
   * @param {string} path
   * @param {Changing & { parents?: boolean }} [options]
   * @returns {Promise<FileStat>}
   */
  async mkdir(path, options = {}) {
    const { parents = true } = known("mkdir", options, "parents");
    return fileStat(await this.#http.json("PUT", this.#url("dir", path, { parents }), {}, options));
  }

  /**
   * Remove a file, a link or an empty directory; with `recursive`, all that is below too.
   * @param {string} path
   * @param {Changing & { recursive?: boolean, ifMatch?: string }} [options]
   * @returns {Promise<void>}
   */
  async remove(path, options = {}) {
    const { recursive, ifMatch } = known("remove", options, "recursive", "ifMatch");
    const headers = { "if-match": ifMatch };
    await this.#http.json("DELETE", this.#url("file", path, { recursive }), { headers }, options);
  }

  /**
   * @param {string} source
   * @param {string} target
   * @param {Changing} [options]
   * @returns {Promise<FileStat>}
   */
  async move(source, target, options = {}) {
    return this.#two("move", source, target, options);
  }

  /**
   * A file, or a directory with all that is below.
   * @param {string} source
   * @param {string} target
   * @param {Changing} [options]
   * @returns {Promise<FileStat>}
   */
  async copy(source, target, options = {}) {
    return this.#two("copy", source, target, options);
  }

  /**
   * @param {string} verb
   * @param {string} source
   * @param {string} target
   * @param {Changing} options
   */
  async #two(verb, source, target, options) {
    const body = { source: this.#at(source), target: this.#at(target), session: this.#session };
    return fileStat(await this.#http.post(`${this.#place}/${verb}`, body, options));
  }

  /**
   * A symbolic link at `path` that points to `target`.
   * @param {string} path
   * @param {string} target
   * @param {Changing} [options]
   * @returns {Promise<FileStat>}
   */
  async link(path, target, options = {}) {
    const body = { path: this.#at(path), target, session: this.#session };
    return fileStat(await this.#http.post(`${this.#place}/link`, body, options));
  }

  /**
   * @param {string} path
   * @param {{ mode?: number, mtime?: Date, size?: number }} attributes
   * @param {Changing} [options]
   * @returns {Promise<FileStat>}
   */
  async setAttributes(path, attributes, options = {}) {
    const { mode, mtime, size } = known("setAttributes", attributes, "mode", "mtime", "size");
    // Nanoseconds are more than a number holds: they are written as digits.
    const time = mtime === undefined ? undefined : String(BigInt(mtime.getTime()) * 1_000_000n);
    const pairs = Object.entries(given({ mode, size, mtime_ns: time })).map(([name, value]) => `"${name}":${value}`);
    const body = `{${pairs.join()}}`;
    const headers = { "content-type": "application/json" };
    return fileStat(await this.#http.json("PATCH", this.#url("file", path), { body, headers }, options));
  }
}

/**
 * Whether no byte is asked for: a range cannot say that.
 * @param {ReadOptions} options
 */
function empty({ start = 0, end }) {
  return end !== undefined && end <= start;
}
