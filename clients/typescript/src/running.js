/** Commands: their results, their output while they run, and jobs that run without anybody waiting. */

import { ConnectionError, RametError, invalid, known } from "./errors.js";
import { lines } from "./http.js";
import { bytesOf, fromBase64, given, segment, toBase64 } from "./wire.js";

/** @import { Abortable, Bytes, Changing, ExecOptions, Piece } from "./types.js" */
/** @import { Http } from "./http.js" */
/** @import { Plain } from "./wire.js" */

const LONGEST_MS = 86_400_000;

/** What a command did. A failing command is a result, not an error. */
export class ExecResult {
  /** @type {Plain} */
  #plain;

  /** @param {Plain} plain */
  constructor(plain) {
    this.#plain = plain;
    /** @type {number} */
    this.exitCode = plain["exit_code"];
    /** Standard output as text; what is not UTF-8 becomes U+FFFD, and `stdoutBytes` has it as it is. @type {string} */
    this.stdout = this.#text("stdout");
    /** Standard error as text. @type {string} */
    this.stderr = this.#text("stderr");
    /** Whether `timeoutMs` was over; the exit code is 124 then. @type {boolean} */
    this.timedOut = plain["timed_out"];
    /** Whether there was more output than the server keeps; the exit code is not 0 then. @type {boolean} */
    this.truncated = plain["truncated"];
    /** @type {number} */
    this.durationMs = plain["duration_ms"];
    /** Bytes by mount. @type {Record<string, number>} */
    this.bytesRead = plain["bytes_read"];
    /** Bytes by mount. @type {Record<string, number>} */
    this.bytesWritten = plain["bytes_written"];
    /** @type {number} */
    this.cacheHits = plain["cache_hits"];
  }

  /** @returns {Bytes} */
  get stdoutBytes() {
    return bytesOf({ data: this.#plain["stdout"], encoding: this.#plain["encoding"] });
  }

  /** @returns {Bytes} */
  get stderrBytes() {
    return bytesOf({ data: this.#plain["stderr"], encoding: this.#plain["encoding"] });
  }

  /** @param {"stdout" | "stderr"} name */
  #text(name) {
    const text = this.#plain[name];
    if (this.#plain["encoding"] !== "base64") return text;
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(fromBase64(text));
  }
}

/**
 * What a command is asked with; wrong options are refused before anything is sent.
 * @param {string} command
 * @param {ExecOptions} options
 * @returns {Record<string, unknown>}
 */
export function asked(command, options) {
  const { timeoutMs, stdin, message, author } = known(
    "exec", options, "session", "cwd", "env", "timeoutMs", "stdin", "agent", "message", "author", "meta",
    "native",
  );
  if (timeoutMs !== undefined && !(timeoutMs >= 0 && timeoutMs <= LONGEST_MS)) {
    throw invalid(`a timeout of ${timeoutMs} ms cannot be`, `give at most ${LONGEST_MS}, or none`);
  }
  return given({
    command, session: options.session, cwd: options.cwd, env: options.env, agent: options.agent, message,
    author, meta: options.meta, native: options.native,
    timeout_ms: timeoutMs === undefined ? undefined : Math.ceil(timeoutMs),
    stdin: typeof stdin === "string" ? stdin : undefined,
    stdin_base64: stdin === undefined || typeof stdin === "string" ? undefined : toBase64(stdin),
  });
}

/** A command that runs: iterate it for its output as it comes, then ask for the result. Leaving the loop stops it. */
export class Running {
  #http;
  #url;
  #body;
  #options;
  /** @type {ExecResult | undefined} */
  #result;
  #begun = false;

  /**
   * @param {Http} http
   * @param {string} url
   * @param {Record<string, unknown>} body
   * @param {ExecOptions} options
   */
  constructor(http, url, body, options) {
    this.#http = http;
    this.#url = url;
    this.#body = body;
    this.#options = options;
  }

  /** What the command did, without its output, which was iterated; only after the loop has ended. @returns {ExecResult} */
  get result() {
    if (this.#result === undefined) {
      throw new RametError("closed", "the command has not ended", { remediation: "iterate it to its end" });
    }
    return this.#result;
  }

  /** @returns {AsyncGenerator<Piece, void, void>} */
  async *[Symbol.asyncIterator]() {
    if (this.#begun) throw new RametError("closed", "the command has run", { remediation: "ask for another" });
    this.#begun = true;
    const answer = await this.#http.send("POST", this.#url, { json: { ...this.#body, stream: true } }, this.#options);
    for await (const line of lines(answer.blocks())) {
      if (line === "") continue;
      const row = JSON.parse(line);
      if ("fd" in row) yield { fd: row.fd, data: bytesOf(row) };
      else if ("problem" in row) {
        const { code, cause, remediation, status, context } = row.problem;
        throw new RametError(code, cause, { remediation, status, context });
      } else this.#result = new ExecResult(row);
    }
    if (this.#result === undefined) throw new ConnectionError("the server ended in the middle of a command");
  }
}

/** A command that runs without anybody waiting. */
export class Job {
  #http;
  #url;

  /**
   * @param {Http} http
   * @param {string} place
   * @param {Plain} plain
   */
  constructor(http, place, plain) {
    this.#http = http;
    /** @type {string} */
    this.id = plain["id"];
    this.#url = `${place}/jobs/${segment(this.id)}`;
    this.#take(plain);
  }

  /** @param {Plain} plain */
  #take(plain) {
    /** @type {string} */
    this.command = plain["command"];
    /** @type {string} */
    this.session = plain["session"];
    /** @type {"running" | "completed" | "killed" | "failed"} */
    this.state = plain["state"];
    /** @type {Date} */
    this.startedAt = new Date(plain["started_at"] * 1000);
    /** @type {Date | null} */
    this.endedAt = plain["ended_at"] == null ? null : new Date(plain["ended_at"] * 1000);
    /** @type {ExecResult | null} */
    this.result = plain["result"] == null ? null : new ExecResult(plain["result"]);
    const { code, cause, remediation, status, context } = plain["problem"] ?? {};
    /** Why it failed. @type {RametError | null} */
    this.problem = code === undefined ? null : new RametError(code, cause, { remediation, status, context });
    return this;
  }

  /**
   * Ask how it is.
   * @param {Abortable} [options]
   * @returns {Promise<this>}
   */
  async refresh(options = {}) {
    return this.#take(await this.#http.get(this.#url, options));
  }

  /**
   * Until it has ended.
   * @param {Abortable} [options]
   * @returns {Promise<this>}
   */
  async wait(options = {}) {
    return this.#take(await this.#http.post(`${this.#url}/wait`, {}, options));
  }

  /**
   * Stop it.
   * @param {Changing} [options]
   * @returns {Promise<this>}
   */
  async kill(options = {}) {
    return this.#take(await this.#http.json("DELETE", this.#url, {}, options));
  }
}

/** Something that runs commands: a workspace, a sandbox, or one session of either. */
export class Shell {
  /** @type {Http} */
  #http;
  /** @type {string} */
  #place;
  /** @type {string | undefined} */
  #session;

  /**
   * @param {Http} http
   * @param {string} place
   * @param {string} [session]
   */
  constructor(http, place, session) {
    this.#http = http;
    this.#place = place;
    this.#session = session;
  }

  /**
   * Run shell text to its end. A non-zero exit code and a timeout (124) are results; an abort rejects with an
   * `AbortError` at once and stops the command.
   * @param {string} command
   * @param {ExecOptions} [options]
   * @returns {Promise<ExecResult>}
   */
  async exec(command, options = {}) {
    const body = asked(command, this.#own(options));
    return new ExecResult(await this.#http.post(`${this.#place}/exec`, body, options));
  }

  /**
   * Run shell text and give its output while it runs; nothing runs before the first turn of the loop.
   * @param {string} command
   * @param {ExecOptions} [options]
   * @returns {Running}
   */
  stream(command, options = {}) {
    if (options.idempotencyKey !== undefined) throw invalid("what is streamed cannot be given again", "use exec");
    return new Running(this.#http, `${this.#place}/exec`, asked(command, this.#own(options)), options);
  }

  /**
   * Start shell text without waiting for it.
   * @param {string} command
   * @param {ExecOptions} [options]
   * @returns {Promise<Job>}
   */
  async start(command, options = {}) {
    const body = { ...asked(command, this.#own(options)), detach: true };
    return new Job(this.#http, this.#place, await this.#http.post(`${this.#place}/exec`, body, options));
  }

  /**
   * What a command would cost, without running it.
   * @param {string} command
   * @param {ExecOptions} [options]
   * @returns {Promise<string>}
   */
  async estimate(command, options = {}) {
    const body = { ...asked(command, this.#own(options)), provision: true };
    return new ExecResult(await this.#http.post(`${this.#place}/exec`, body, options)).stdout;
  }

  /**
   * @param {ExecOptions} options
   * @returns {ExecOptions}
   */
  #own(options) {
    return this.#session === undefined ? options : { session: this.#session, ...options };
  }
}

