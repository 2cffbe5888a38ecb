/// <reference lib="esnext.disposable" preserve="true" />
/** `AgentRun`: the workspaces and sandboxes of a server. */

import { StoreCare } from "./care.js";
import { RametError, known } from "./errors.js";
import { Http, lines } from "./http.js";
import { Place, Workspace } from "./workspace.js";
import { maybeRevision, nativeBody, query, segment, workspaceInfo } from "./wire.js";

/**
 * @import {
 *   Abortable, Changing, ConnectOptions, NativeLimits, Pushed, Revision, SandboxOptions, ServerEvent, ServerStatus, TerminateOptions,
 *   WorkspaceInfo
 * } from "./types.js"
 */
/** @import { Plain } from "./wire.js" */

const HOME = "/workspace";

/**
 * A sandbox: a tree at `/workspace` that begins with the head of its workspace, and whose end makes one revision.
 * Relative paths of files begin at `/workspace`.
 */
export class Sandbox extends Place {
  #http;

  /**
   * @param {Http} http
   * @param {Plain} plain
   */
  constructor(http, plain) {
    super(http, plain["name"], HOME);
    this.#http = http;
    /** @type {string | null} */
    this.workspace = plain["workspace"] ?? null;
    this.#take(plain);
  }

  /** @param {Plain} plain */
  #take(plain) {
    /** @type {"Ready" | "Terminated"} */
    this.phase = plain["phase"];
    /** What its end made; null before, and for one without a workspace. @type {Revision | null} */
    this.revision = maybeRevision(plain["revision"]);
    /** What its end pushed. @type {Pushed[]} */
    this.pushed = plain["pushed"] ?? [];
    /** @type {string[]} */
    this.warnings = plain["warnings"] ?? [];
    return this;
  }

  /**
   * Ask how it is.
   * @param {Abortable} [options]
   * @returns {Promise<this>}
   */
  async refresh(options = {}) {
    return this.#take(await this.#http.get(`/v1/sandboxes/${segment(this.name)}`, options));
  }

  /**
   * End it. The revision holds what the outputs say, everything without them; doing it again gives the same revision.
   * @param {TerminateOptions} [options]
   * @returns {Promise<Revision | null>}
   */
  async terminate(options = {}) {
    const url = `/v1/sandboxes/${segment(this.name)}/terminate`;
    const { outputs, checkpoint } = known("terminate", options, "outputs", "checkpoint");
    const body = { outputs, checkpoint };
    return this.#take(await this.#http.post(url, body, options)).revision;
  }

  /** `await using` ends it and keeps everything. */
  async [Symbol.asyncDispose]() {
    await this.terminate();
  }
}

/** The workspaces and sandboxes of a server. */
export class AgentRun {
  #http;

  /** @param {ConnectOptions} options */
  constructor(options) {
    this.#http = new Http(known("AgentRun", options, "url", "token", "fetch"));
    /** The care of the store: collecting, checking, what is kept for how long, keys. */
    this.store = new StoreCare(this.#http);
  }

  /** Close the connections that are kept; a process ends without it too. */
  close() {
    this.#http.close();
  }

  /**
   * Whether the server is up; needs no token.
   * @param {Abortable} [options]
   * @returns {Promise<{ status: "ok" | "stopping", version: string }>}
   */
  async health(options = {}) {
    const { status, version } = await this.#http.get("/v1/health", options);
    return { status, version };
  }

  /**
   * Connections, limits, and commands that held the event loop of the server. Needs the server's own token.
   * @param {Abortable} [options]
   * @returns {Promise<ServerStatus>}
   */
  async status(options = {}) {
    const { started_at, recent_holds, ...rest } = await this.#http.get("/v1/status", options);
    return /** @type {ServerStatus} */ ({ ...rest, startedAt: new Date(started_at * 1000), recentHolds: recent_holds });
  }

  /**
   * A new workspace. With `reuse` one that is there is fine. One of kind `memory` is gone when the server ends. A `native`
   * one runs real programs, on a server that allows them, within limits that are not above the server's.
   * @param {string} name
   * @param {Changing & { kind?: "stored" | "memory", reuse?: boolean, native?: boolean | NativeLimits }} [options]
   * @returns {Promise<Workspace>}
   */
  async createWorkspace(name, options = {}) {
    const { kind, reuse, native } = known("createWorkspace", options, "kind", "reuse", "native");
    try {
      await this.#http.post("/v1/workspaces", { name, kind, native: nativeBody(native) }, options);
    } catch (error) {
      if (!(reuse && error instanceof RametError && error.code === "workspace_exists")) throw error;
    }
    return this.workspace(name);
  }

  /**
   * A workspace that is there; nothing is asked before it is used.
   * @param {string} name
   * @returns {Workspace}
   */
  workspace(name) {
    return new Workspace(this.#http, name);
  }

  /**
   * @param {Abortable} [options]
   * @returns {Promise<WorkspaceInfo[]>}
   */
  async workspaces(options = {}) {
    return (await this.#http.get("/v1/workspaces", options))["workspaces"].map(workspaceInfo);
  }

  /**
   * The removed workspaces that can be restored.
   * @param {Abortable} [options]
   * @returns {Promise<{ name: string, time: Date, revision: string | null }[]>}
   */
  async trash(options = {}) {
    const found = (await this.#http.get("/v1/trash", options))["workspaces"];
    return found.map((/** @type {{ name: string, time: number, revision: string | null }} */ one) => ({
      ...one, time: new Date(one.time * 1000),
    }));
  }

  /**
   * A removed workspace as it was, with its tags and grants.
   * @param {string} name
   * @param {Changing} [options]
   * @returns {Promise<Workspace>}
   */
  async restore(name, options = {}) {
    await this.#http.post(`/v1/trash/${encodeURIComponent(name)}/restore`, {}, options);
    return this.workspace(name);
  }

  /**
   * A sandbox. There is one kind, so `image` only says what is expected of it.
   * @param {string} image
   * @param {SandboxOptions} [options]
   * @returns {Promise<Sandbox>}
   */
  async create(image, options = {}) {
    known(
      "create", options, "workspace", "name", "fromRevision", "env", "secrets", "git", "gitSecrets", "waitMs",
      "lifetimeMs", "idleMs",
    );
    const body = {
      image, workspace: options.workspace, name: options.name, from_revision: options.fromRevision, env: options.env,
      secrets: options.secrets, wait_seconds: seconds(options.waitMs), lifetime_seconds: seconds(options.lifetimeMs),
      idle_seconds: seconds(options.idleMs), git: options.git, git_secrets: options.gitSecrets,
    };
    return new Sandbox(this.#http, await this.#http.post("/v1/sandboxes", body, options));
  }

  /**
   * A sandbox that was made before, here or elsewhere.
   * @param {string} name
   * @param {Abortable} [options]
   * @returns {Promise<Sandbox>}
   */
  async sandbox(name, options = {}) {
    return new Sandbox(this.#http, await this.#http.get(`/v1/sandboxes/${segment(name)}`, options));
  }

  /**
   * The sandboxes that run.
   * @param {Abortable} [options]
   * @returns {Promise<Sandbox[]>}
   */
  async sandboxes(options = {}) {
    const found = (await this.#http.get("/v1/sandboxes", options))["sandboxes"];
    return found.map((/** @type {Plain} */ plain) => new Sandbox(this.#http, plain));
  }

  /**
   * What happens on the server, until the loop is left or the server ends; `since` is the id of the last event that is
   * known, and what happened after it comes first.
   * @param {Abortable & { workspace?: string, since?: number }} [options]
   * @returns {AsyncGenerator<ServerEvent, void, void>}
   */
  async *events(options = {}) {
    const { workspace, since } = known("events", options, "workspace", "since");
    const answer = await this.#http.send("GET", `/v1/events${query({ workspace, since })}`, {}, options);
    let event = { id: 0, type: "message", data: "" };
    for await (const line of lines(answer.blocks())) {
      const [, name, value] = /^(\w+): ?(.*)$/.exec(line) ?? [];
      if (name === "id") event.id = Number(value);
      else if (name === "event") event.type = value ?? "";
      else if (name === "data") event.data += value;
      else if (line === "" && event.data !== "") {
        yield { ...event, data: JSON.parse(event.data) };
        event = { id: 0, type: "message", data: "" };
      }
    }
  }
}

/**
 * The workspaces and sandboxes of the server at a URL.
 * @param {string} url
 * @param {Omit<ConnectOptions, "url">} [options]
 * @returns {AgentRun}
 */
export function connect(url, options = {}) {
  return new AgentRun({ url, ...options });
}

/** @param {number | undefined} ms */
const seconds = (ms) => (ms === undefined ? undefined : ms / 1000);
