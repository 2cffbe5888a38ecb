/**
 * A sandbox for Flue (`@flue/runtime` 2): an agent works on a workspace or a sandbox of a Ramet server.
 *
 * Rules that this file keeps:
 * - One session per instance id: working directory, variables and history of two agents never mix.
 * - `timeoutMs` is enforced by the server and resolves with exit code 124; `signal` closes the connection, which stops
 *   the command there, and rejects with an `AbortError`.
 * - Metadata that the server does not know is left out. An option that is not known is refused before anything changes.
 */

import { SandboxDiedError, SandboxOperationUnsupportedError, sandboxFromDriver } from "@flue/runtime";

import { ConnectionError, RametError, invalid } from "./errors.js";
import { Sandbox } from "./run.js";

/** @import { FileStat, Sandbox as FlueSandbox, SandboxDriver, SandboxFactory, ShellResult } from "@flue/runtime" */
/** @import { Workspace, Session } from "./workspace.js" */

const PLACE = Symbol.for("ramet.place");
const USABLE = /^[^/\0]{1,100}$/;
/** Codes that mean: what the sandbox stands on is no longer there. */
const DEAD = new Set(["workspace_not_found", "session_not_found", "closed", "lease_lost"]);

/** The verbs of Flue over one session. Paths arrive absolute. @implements {SandboxDriver} */
export class RametSandboxDriver {
  #session;

  /** @param {Session} session */
  constructor(session) {
    this.#session = session;
  }

  /**
   * @param {string} path
   * @returns {Promise<string>}
   */
  async readFile(path) {
    return living("readFile", this.#session.files.readText(path));
  }

  /**
   * @param {string} path
   * @returns {Promise<Uint8Array>}
   */
  async readFileBuffer(path) {
    return living("readFileBuffer", this.#session.files.read(path));
  }

  /**
   * @param {string} path
   * @param {string | Uint8Array} content
   * @returns {Promise<void>}
   */
  async writeFile(path, content) {
    await living("writeFile", this.#session.files.write(path, content));
  }

  /**
   * What a link leads to, and whether it is one.
   * @param {string} path
   * @returns {Promise<FileStat>}
   */
  async stat(path) {
    const { files } = this.#session;
    const own = await living("stat", files.stat(path, { follow: false }));
    const isSymbolicLink = own.kind === "link";
    const found = isSymbolicLink ? await living("stat", files.stat(path)) : own;
    return {
      isFile: found.kind === "file",
      isDirectory: found.kind === "dir",
      isSymbolicLink,
      ...(found.size === null ? {} : { size: found.size }),
      ...(found.mtime === null ? {} : { mtime: found.mtime }),
    };
  }

  /**
   * @param {string} path
   * @returns {Promise<string[]>}
   */
  async readdir(path) {
    return living("readdir", this.#session.files.list(path));
  }

  /**
   * @param {string} path
   * @returns {Promise<boolean>}
   */
  async exists(path) {
    return this.#session.files.exists(path).catch(() => false);
  }

  /**
   * @param {string} path
   * @param {{ recursive?: boolean }} [options]
   * @returns {Promise<void>}
   */
  async mkdir(path, options = {}) {
    known("mkdir", options, ["recursive"]);
    await living("mkdir", this.#session.files.mkdir(path, { parents: options.recursive === true }));
  }

  /**
   * As `rm` does it: without `recursive` a directory stays, also an empty one and also with `force`.
   * @param {string} path
   * @param {{ recursive?: boolean, force?: boolean }} [options]
   * @returns {Promise<void>}
   */
  async rm(path, options = {}) {
    known("rm", options, ["recursive", "force"]);
    const { files } = this.#session;
    const { recursive = false, force = false } = options;
    try {
      if (!recursive && (await files.stat(path, { follow: false })).kind === "dir") {
        throw invalid(`${path}: Is a directory`, "remove it with recursive");
      }
      await files.remove(path, { recursive });
    } catch (error) {
      if (!(force && error instanceof RametError && error.code === "not_found")) throw died("rm", error);
    }
  }

  /**
   * @param {string} command
   * @param {{ cwd?: string, env?: Record<string, string>, timeoutMs?: number, signal?: AbortSignal }} [options]
   * @returns {Promise<ShellResult>}
   */
  async exec(command, options = {}) {
    known("exec", options, ["cwd", "env", "timeoutMs", "signal"]);
    const done = await living("exec", this.#session.exec(command, given(options)));
    const notes = [
      ...(done.timedOut ? [`ramet: the command was stopped after ${options.timeoutMs} ms\n`] : []),
      ...(done.truncated ? ["ramet: there was more output than the server keeps\n"] : []),
    ];
    return { stdout: done.stdout, stderr: done.stderr + notes.join(""), exitCode: done.exitCode };
  }
}

/**
 * What `useSandbox(...)` takes: agents work on this workspace or sandbox, each instance in its own session.
 *
 * `cwd` is where they work (`/workspace` in a sandbox, else `/`); it is made when it is missing. Nothing is removed or
 * terminated here: the application does that.
 * @param {Workspace | Sandbox} place
 * @param {{ cwd?: string }} [options]
 * @returns {SandboxFactory}
 */
export function ramet(place, options = {}) {
  known("ramet", options, ["cwd"]);
  const cwd = options.cwd ?? (place instanceof Sandbox ? "/workspace" : "/");
  if (!cwd.startsWith("/")) throw invalid(`${cwd} is not absolute`, "begin with /");
  return {
    async createSandbox({ id }) {
      const session = await sessionFor(place, id, cwd);
      const made = sandboxFromDriver(new RametSandboxDriver(session), cwd);
      return Object.assign(made, { [PLACE]: { place, session } });
    },
  };
}

/**
 * The workspace or sandbox behind a sandbox of Flue, for what Flue has no verb for: revisions, forks, sessions. A `cwd`
 * in `useSandbox` hides it.
 * @param {FlueSandbox} sandbox
 * @returns {{ place: Workspace | Sandbox, session: Session }}
 */
export function rametOf(sandbox) {
  const found = /** @type {any} */ (sandbox)[PLACE];
  if (found === undefined) {
    const remediation = "make it with ramet(...), and give useSandbox no cwd";
    throw new RametError("unsupported", "this sandbox is not one of Ramet", { remediation });
  }
  return found;
}

/**
 * The session of an instance; asked for again it is the same one.
 * @param {Workspace | Sandbox} place
 * @param {string} id
 * @param {string} cwd
 * @returns {Promise<Session>}
 */
async function sessionFor(place, id, cwd) {
  const name = `flue-${USABLE.test(id) ? id : await digest(id)}`;
  try {
    if (cwd !== "/") await place.files.mkdir(cwd);
    return await place.createSession(name, { cwd });
  } catch (error) {
    const taken = error instanceof RametError && error.code === "already_exists";
    if (taken && (await isThere(place, name))) return place.session(name);
    throw died("createSandbox", error);
  }
}

/**
 * @param {Workspace | Sandbox} place
 * @param {string} name
 */
async function isThere(place, name) {
  return (await place.sessions()).some((session) => session.id === name);
}

/** @param {string} text */
async function digest(text) {
  const bytes = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
  return `sha256-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

/**
 * @template {object} T
 * @param {T} options
 * @returns {T}
 */
function given(options) {
  return /** @type {T} */ (Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)));
}

/**
 * @param {string} operation
 * @param {object} options
 * @param {string[]} names
 */
function known(operation, options, names) {
  const unknown = Object.keys(given(options)).filter((name) => !names.includes(name));
  if (unknown.length === 0) return;
  throw new SandboxOperationUnsupportedError({ operation, provider: "Ramet", options: unknown });
}

/**
 * @template T
 * @param {string} operation
 * @param {Promise<T>} work
 * @returns {Promise<T>}
 */
function living(operation, work) {
  return work.catch((error) => {
    throw died(operation, error);
  });
}

/**
 * Flue's word for a sandbox that is gone; every other error stays as it is.
 * @param {string} operation
 * @param {unknown} error
 * @returns {unknown}
 */
function died(operation, error) {
  if (!(error instanceof ConnectionError) && !(error instanceof RametError && DEAD.has(error.code))) return error;
  const dead = new SandboxDiedError({ operation, reason: "stopped" });
  Object.defineProperty(dead, "cause", { value: error, configurable: true });
  return dead;
}
