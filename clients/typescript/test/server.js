/** A real server for a test file: `ramet serve` as a separate process, on a unix socket or a port. */

import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { connect as dial, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";

import { AgentRun } from "../src/index.js";

/** @import { ChildProcess } from "node:child_process" */
/** @import { AddressInfo } from "node:net" */

const OURS = new URL("../../../.venv/bin/python", import.meta.url).pathname;
const PYTHON = process.env["RAMET_PYTHON"] ?? (existsSync(OURS) ? OURS : "python3");

/** @type {Server[]} */
const servers = [];

after(async () => {
  for (const server of servers) {
    await server.stop();
    await rm(server.directory, { recursive: true, force: true });
  }
});

/** A server and how to reach it; stopped and forgotten after the tests of the file. */
export class Server {
  /** @type {ChildProcess | undefined} */
  #process;
  #options;

  /**
   * @param {string} directory
   * @param {number | undefined} port
   * @param {string[]} options
   */
  constructor(directory, port, options) {
    this.directory = directory;
    this.port = port;
    this.socket = join(directory, "s");
    this.url = port === undefined ? `unix:${this.socket}` : `http://127.0.0.1:${port}`;
    /** @type {string | undefined} */
    this.token = undefined;
    this.#options = options;
  }

  async start() {
    const where = this.port === undefined ? ["--socket", this.socket] : ["--port", String(this.port)];
    const store = join(this.directory, "store");
    const words = ["-m", "ramet.apps.cli", "serve", "--store", store, ...where, ...this.#options];
    const process = spawn(PYTHON, words, { stdio: ["ignore", "ignore", "pipe"] });
    this.#process = process;
    let said = "";
    process.stderr.on("data", (block) => (said = (said + block).slice(-4000)));
    const target = this.port === undefined ? { path: this.socket } : { host: "127.0.0.1", port: this.port };
    for (let turn = 0; !(await answers(target)); turn++) {
      if (turn > 600 || process.exitCode !== null) throw new Error(`the server did not start: ${said}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    if (this.port !== undefined) this.token = (await readFile(join(store, "server-token"), "utf8")).trim();
  }

  /** @param {NodeJS.Signals} [signal] */
  async stop(signal = "SIGTERM") {
    const running = this.#process;
    if (running === undefined || running.exitCode !== null || running.signalCode !== null) return;
    const ended = new Promise((resolve) => running.once("exit", resolve));
    running.kill(signal);
    await ended;
  }

  /** @param {Partial<import("../src/index.js").ConnectOptions>} [more] */
  client(more = {}) {
    return new AgentRun({ url: this.url, ...(this.token === undefined ? {} : { token: this.token }), ...more });
  }
}

/**
 * @param {{ port?: boolean, options?: string[] }} [how]
 * @returns {Promise<Server>}
 */
export async function serve({ port = false, options = [] } = {}) {
  const directory = await mkdtemp(join(tmpdir(), "ramet-ts-"));
  const server = new Server(directory, port ? await freePort() : undefined, options);
  servers.push(server);
  await server.start();
  return server;
}

/** @returns {Promise<number>} */
function freePort() {
  return new Promise((resolve) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const { port } = /** @type {AddressInfo} */ (probe.address());
      probe.close(() => resolve(port));
    });
  });
}

/** @param {import("node:net").NetConnectOpts} target */
function answers(target) {
  return new Promise((resolve) => {
    const socket = dial(target);
    socket.once("connect", () => resolve(socket.end() !== undefined));
    socket.once("error", () => resolve(false));
  });
}

/**
 * Until something holds; a test that waits longer than it should fails by its own limit.
 * @param {() => Promise<boolean>} holds
 */
export async function eventually(holds) {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 20));
}
