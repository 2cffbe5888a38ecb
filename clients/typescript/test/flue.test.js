/** The sandbox for Flue: its contract, through Flue's own wrapper and tools, against a real server. */

import assert from "node:assert/strict";
import { before, it } from "node:test";

import { AgentRun, RametError } from "../src/index.js";
import { eventually, serve } from "./server.js";

/** @import { Sandbox as FlueSandbox } from "@flue/runtime" */
/** @import { Server } from "./server.js" */

const flue = await import("@flue/runtime").catch(() => undefined);
const ours = flue === undefined ? undefined : await import("../src/flue.js");
if (flue === undefined) console.error("SKIPPED: @flue/runtime is not installed, so nothing of Flue was tested (npm ci)");
const limits = { timeout: 300_000, skip: flue === undefined ? "@flue/runtime is not installed" : false };

/** @type {Server} */
let server;
/** @type {AgentRun} */
let run;
let number = 0;

/** @param {unknown} error */
const isAbort = (error) => error instanceof DOMException && error.name === "AbortError";

/** @param {string} [id] */
async function made(id = "agent-1", options = {}) {
  const ws = await run.createWorkspace(`w${++number}`, { kind: "memory" });
  const { ramet, RametSandboxDriver } = /** @type {NonNullable<typeof ours>} */ (ours);
  const factory = ramet(ws, options);
  const sandbox = await factory.createSandbox({ id });
  return { ws, factory, sandbox, driver: new RametSandboxDriver(ws.session("default")) };
}

before(async () => {
  if (flue === undefined) return;
  server = await serve();
  run = server.client();
});

it("reads, writes, lists and makes missing parents", limits, async () => {
  const { sandbox } = await made("a", { cwd: "/project" });
  await sandbox.writeFile("out/nested/report.md", "# ü\n");
  await sandbox.writeFile("/project/raw", Uint8Array.of(0, 255));
  assert.equal(await sandbox.readFile("/project/out/nested/report.md"), "# ü\n");
  const raw = await sandbox.readFileBuffer("raw");
  assert.ok(raw.constructor === Uint8Array && raw.join() === "0,255");
  assert.deepEqual(await sandbox.readdir("."), ["out", "raw"]);
  assert.deepEqual([sandbox.cwd, sandbox.resolvePath("../x")], ["/project", "/x"]);
  await assert.rejects(sandbox.readFile("none"), /No such file/);
  await assert.rejects(sandbox.readFile("out"), /Is a directory/);
  await assert.rejects(sandbox.readFile("raw"), /not UTF-8/);
  await assert.rejects(sandbox.readdir("raw"), /Not a directory/);
});

it("never makes metadata up, and looks through links", limits, async () => {
  const { sandbox, ws, driver } = await made();
  await ws.exec("echo 123 > /f; ln -s f /l; ln -s /tmp /ld; ln -s none /dangling; mkfifo /p");
  const stat = await sandbox.stat("/f");
  assert.deepEqual([stat.isFile, stat.isDirectory, stat.isSymbolicLink, stat.size], [true, false, false, 4]);
  assert.ok(stat.mtime && Math.abs(stat.mtime.getTime() - Date.now()) < 60_000);
  const link = await sandbox.stat("/l");
  assert.deepEqual([link.isFile, link.isSymbolicLink, link.size, link.mtime], [true, true, 4, stat.mtime]);
  const directory = await sandbox.stat("/ld");
  assert.deepEqual([directory.isFile, directory.isDirectory, directory.isSymbolicLink], [false, true, true]);
  const pipe = await sandbox.stat("/p");
  assert.deepEqual([pipe.isFile, pipe.isDirectory], [false, false]);
  await assert.rejects(sandbox.stat("/dangling"), /No such file/);
  await assert.rejects(sandbox.stat("/none"), /No such file/);
  for (const [path, there] of /** @type {const} */ ([["/f", true], ["/l", true], ["/none", false], ["/dangling", false], ["/f/x", false]])) {
    assert.equal(await sandbox.exists(path), there, path);
  }
  // What the server does not know is left out, not zero.
  const blind = { stat: async () => ({ kind: "file", size: null, mtime: null }) };
  const { RametSandboxDriver } = /** @type {NonNullable<typeof ours>} */ (ours);
  const unknown = await new RametSandboxDriver(/** @type {any} */ ({ files: blind })).stat("/x");
  assert.deepEqual(unknown, { isFile: true, isDirectory: false, isSymbolicLink: false });
  assert.equal(await driver.exists("/f"), true);
});

it("makes and removes as mkdir and rm do", limits, async () => {
  const { sandbox, ws } = await made();
  await sandbox.mkdir("/a/b/c", { recursive: true });
  await sandbox.mkdir("/a/b/c", { recursive: true });
  await assert.rejects(sandbox.mkdir("/a"), /File exists/);
  await assert.rejects(sandbox.mkdir("/x/y"), /No such file/);
  await sandbox.writeFile("/a/f", "f");
  await assert.rejects(sandbox.mkdir("/a/f", { recursive: true }), /File exists/);
  for (const options of [{}, { force: true }]) {
    await assert.rejects(sandbox.rm("/a/b/c", options), /Is a directory/);
    await assert.rejects(sandbox.rm("/a", options), /Is a directory/);
  }
  for (const options of [{}, { recursive: true }]) await assert.rejects(sandbox.rm("/none", options), /No such file/);
  for (const options of [{ force: true }, { recursive: true, force: true }]) await sandbox.rm("/none", options);
  await ws.exec("ln -s /a /link");
  await sandbox.rm("/link", { recursive: true });
  assert.equal(await sandbox.exists("/a/f"), true);
  await sandbox.rm("/a/f");
  await sandbox.rm("/a", { recursive: true });
  assert.equal(await sandbox.exists("/a"), false);
});

it("refuses options that it does not know before anything changes", limits, async () => {
  const { driver, ws } = await made();
  await ws.files.write("/f", "kept");
  const isUnsupported = (/** @type {any} */ error) =>
    error.type === "sandbox_operation_unsupported" && error.meta.provider === "Ramet" && error.meta.options[0] === "odd";
  await assert.rejects(driver.rm("/f", /** @type {any} */ ({ odd: 1, force: true })), isUnsupported);
  await assert.rejects(driver.mkdir("/d", /** @type {any} */ ({ odd: 1 })), isUnsupported);
  await assert.rejects(driver.exec("rm /f", /** @type {any} */ ({ odd: 1 })), isUnsupported);
  assert.deepEqual([await ws.files.exists("/f"), await ws.files.exists("/d")], [true, false]);
  await driver.rm("/f", /** @type {any} */ ({ odd: undefined }));
});

it("runs commands with cwd and env of the call, in a session of the instance", limits, async () => {
  const { sandbox, factory, ws } = await made("one", { cwd: "/project" });
  const done = await sandbox.exec("pwd; echo $X; echo e >&2; exit 3", { env: { X: "1" } });
  assert.deepEqual(done, { stdout: "/project\n1\n", stderr: "e\n", exitCode: 3 });
  assert.equal((await sandbox.exec("echo $X; cd /tmp")).stdout, "\n");
  assert.equal((await sandbox.exec("pwd")).stdout, "/project\n");
  assert.equal((await sandbox.exec("pwd", { cwd: "../tmp" })).stdout, "/tmp\n");
  await sandbox.exec("export WHO=one");
  const [same, other, odd] = await Promise.all(["one", "two", "x/y".repeat(99)].map((id) => factory.createSandbox({ id })));
  assert.equal((await same?.exec("echo $WHO"))?.stdout, "one\n");
  assert.equal((await other?.exec("echo $WHO"))?.stdout, "\n");
  assert.equal((await odd?.exec("echo $WHO"))?.stdout, "\n");
  const names = (await ws.sessions()).map((session) => session.id);
  assert.deepEqual(names.filter((name) => name.length < 20).sort(), ["default", "flue-one", "flue-two"]);
  assert.equal(names.length, 4);
  const { rametOf } = /** @type {NonNullable<typeof ours>} */ (ours);
  assert.deepEqual([rametOf(sandbox).place, rametOf(sandbox).session.id], [ws, "flue-one"]);
  assert.throws(() => rametOf(/** @type {any} */ ({})), RametError);
});

it("resolves a timeout with 124 and the details on stderr", limits, async () => {
  const { sandbox } = await made();
  const done = await sandbox.exec("echo before; sleep 30", { timeoutMs: 1000, signal: new AbortController().signal });
  assert.deepEqual([done.exitCode, done.stdout], [124, "before\n"]);
  assert.match(done.stderr, /stopped after 1000 ms/);
  const large = await sandbox.exec("yes | head -c 30000000");
  assert.notEqual(large.exitCode, 0);
  assert.match(large.stderr, /more output than the server keeps/);
});

it("rejects an abort at once, as itself even with a timeout, and the command really ends", limits, async () => {
  const { sandbox, ws, driver } = await made();
  /** @type {{ exec: FlueSandbox["exec"] }[]} */
  const both = [sandbox, driver];
  for (const one of both) {
    await ws.exec("rm -f /began /ended");
    const abort = new AbortController();
    const reason = new Error("enough");
    let late = 0;
    const work = one.exec("touch /began; sleep 200; touch /ended", { signal: abort.signal, timeoutMs: 30_000 });
    await Promise.all([
      assert.rejects(work, (error) => isAbort(error) && /** @type {Error} */ (error).cause === reason),
      eventually(() => ws.files.exists("/began")).then(() => {
        late = Date.now();
        abort.abort(reason);
      }),
    ]);
    assert.ok(Date.now() - late < 60_000);
    // Commands of a session run in order: these would wait for the first if it still ran.
    await Promise.all([one.exec("true"), ws.exec("true")]);
    assert.ok(Date.now() - late < 150_000, "the command was still running");
    assert.equal(await ws.files.exists("/ended"), false);
  }
  await assert.rejects(sandbox.exec("touch /never", { signal: AbortSignal.abort() }), isAbort);
  assert.equal(await ws.files.exists("/never"), false);
});

it("serves the tools that a model gets", limits, async () => {
  const { sandbox } = await made();
  const { createBashTool, createEditTool, createGlobTool, createGrepTool, createReadTool, createWriteTool } =
    /** @type {NonNullable<typeof flue>} */ (flue);
  /** @param {any} tool @param {object} words */
  const use = async (tool, words) => JSON.stringify((await tool.execute("call", words)).content);
  await use(createWriteTool(sandbox), { path: "src/main.txt", content: "alpha\nbeta\n" });
  await use(createEditTool(sandbox), { path: "src/main.txt", oldText: "beta", newText: "gamma" });
  assert.match(await use(createReadTool(sandbox), { path: "src/main.txt" }), /alpha.*gamma/);
  assert.match(await use(createGrepTool(sandbox), { pattern: "gam+a", path: "src" }), /main\.txt.*gamma/);
  assert.match(await use(createGlobTool(sandbox), { pattern: "*.txt", path: "." }), /main\.txt/);
  assert.match(await use(createBashTool(sandbox), { command: "wc -l < src/main.txt" }), /2/);
  assert.match(await use(createBashTool(sandbox), { command: "sleep 30", timeout: 1 }), /124|timed out/i);
});

it("works on a sandbox, whose end the application decides", limits, async () => {
  const { ramet } = /** @type {NonNullable<typeof ours>} */ (ours);
  const ws = await run.createWorkspace("bound");
  const box = await run.create("", { workspace: "bound" });
  const sandbox = await ramet(box).createSandbox({ id: "a" });
  assert.equal((await sandbox.exec("pwd; echo x > made")).stdout, "/workspace\n");
  await box.terminate({ outputs: ["/workspace"] });
  assert.equal(await ws.files.readText("/workspace/made"), "x\n");
  await assert.rejects(sandbox.exec("true"), { name: "SandboxDiedError" });
  await assert.rejects(sandbox.readFile("made"), { name: "SandboxDiedError" });
  assert.equal(await sandbox.exists("made"), false);
  assert.throws(() => ramet(box, { cwd: "relative" }), RametError);
  assert.throws(() => ramet(box, /** @type {any} */ ({ odd: 1 })), { type: "sandbox_operation_unsupported" });
});

it("settles what is in flight when the server dies, and goes on when it is back", limits, async () => {
  const doomed = await serve();
  const ws = await doomed.client().createWorkspace("p");
  const sandbox = await /** @type {NonNullable<typeof ours>} */ (ours).ramet(ws, { cwd: "/w" }).createSandbox({ id: "a" });
  await sandbox.exec("export WHO=me; echo kept > f");
  const pending = assert.rejects(sandbox.exec("touch /began; sleep 60"), { name: "SandboxDiedError" });
  await eventually(() => ws.files.exists("/began"));
  await doomed.stop("SIGKILL");
  await pending;
  await assert.rejects(sandbox.readFile("f"), { name: "SandboxDiedError" });
  await doomed.start();
  assert.deepEqual(await sandbox.exec("echo $WHO; cat f"), { stdout: "me\nkept\n", stderr: "", exitCode: 0 });
});
