/** The client against a real server: what it gives, what it refuses, what it stops. */

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { before, describe, it } from "node:test";

import { AgentRun, ConnectionError, RametError, connect } from "../src/index.js";
import { Server, eventually, serve } from "./server.js";

/** @import { AddressInfo } from "node:net" */
/** @import { Workspace } from "../src/index.js" */

const text = new TextDecoder();
const bytes = new TextEncoder();

/** @param {string} code */
const refused = (code) => (/** @type {unknown} */ error) => error instanceof RametError && error.code === code;
/** @param {unknown} error */
const isAbort = (error) => error instanceof DOMException && error.name === "AbortError";

/** @type {Server} */
let server;
/** @type {AgentRun} */
let run;
let number = 0;

/** @param {"stored" | "memory"} [kind] */
const fresh = (kind = "memory") => run.createWorkspace(`w${++number}`, { kind });

before(async () => {
  server = await serve();
  run = server.client();
});

describe("sandboxes", () => {
  it("does what the sample of the mission does", async () => {
    const ws = await run.createWorkspace("proj-x");
    const sb = await run.create("python-pool", { workspace: "proj-x" });
    await sb.files.write("/workspace/data.txt", "hello");
    const kept = await sb.terminate({ outputs: ["/workspace", { diff: true }] });
    const revs = await ws.log();
    assert.deepEqual(revs.map((rev) => [rev.name, rev.phase]), [["proj-x-1", "Committed"]]);
    assert.deepEqual(kept, revs[0]);
    assert.ok(revs[0]?.diff && revs[0].lineage.startsWith("fromClaim:") && revs[0].time instanceof Date);
    const branch = await ws.fork("proj-x-1", "proj-x-branch");
    assert.equal(branch?.content, revs[0].content);
    await ws.files.write("/workspace/data.txt", "changed");
    const changes = (await ws.diff()).map((one) => [one.path, one.what, one.old, one.before?.kind, one.after?.kind]);
    assert.deepEqual(changes, [["/workspace/data.txt", "modified", null, "file", "file"]]);
    const back = await ws.revert("proj-x-1");
    assert.deepEqual([back.name, back.content], ["proj-x-3", revs[0].content]);
    assert.equal(text.decode(await ws.show("/workspace/data.txt", "proj-x-2")), "changed");
    assert.equal(await ws.files.readText("/workspace/data.txt"), "hello");
  });

  it("narrows what is kept, names what is withheld, and ends once", async () => {
    const ws = await fresh("stored");
    const sb = await run.create("", { workspace: ws.name, env: { WHO: "me" }, secrets: { KEY: "s3cret" } });
    await sb.files.write("dist/app.js", "app");
    const done = await sb.exec("pwd; echo $WHO ${#KEY}; echo scratch > notes; mkdir .ssh; echo k > .ssh/id; cd /");
    assert.equal(done.stdout, "/workspace\nme 6\n");
    assert.deepEqual(await sb.files.list(), [".ssh", "dist", "notes"]);
    await assert.rejects(run.create("", { workspace: ws.name }), refused("workspace_busy"));
    await assert.rejects(sb.terminate({ outputs: ["/etc"] }), refused("invalid_output"));
    await assert.rejects(sb.terminate({ checkpoint: true }), refused("checkpoint_unavailable"));
    const kept = await sb.terminate({ outputs: ["/workspace/dist"] });
    assert.deepEqual([kept?.outputs, sb.phase, sb.revision], [["/workspace/dist"], "Terminated", kept]);
    assert.deepEqual(await sb.terminate(), kept);
    assert.deepEqual((await (await run.sandbox(sb.name)).refresh()).revision, kept);
    await assert.rejects(sb.exec("true"), refused("workspace_not_found"));
    assert.deepEqual(await ws.files.list("/workspace"), ["dist"]);
    const next = await run.create("", { workspace: ws.name });
    await next.exec("mkdir .aws; echo k > .aws/credentials");
    assert.deepEqual((await next.terminate())?.withheld, ["/workspace/.aws"]);
  });

  it("ends with its scope and by itself", async () => {
    const ws = await fresh("stored");
    const sb = await run.create("", { workspace: ws.name });
    await sb.files.write("f", "1");
    await sb[Symbol.asyncDispose]();
    const other = await run.create("", { workspace: ws.name, idleMs: 1, fromRevision: "head" });
    await eventually(async () => (await other.refresh()).phase === "Terminated");
    assert.equal((await ws.log()).at(-1)?.message, `terminate ${sb.name}`);
    const alone = await run.create("");
    assert.deepEqual((await run.sandboxes()).map((one) => one.name), [alone.name]);
    assert.equal(await alone.terminate(), null);
  });
});

describe("commands", () => {
  it("gives output, exit code, and bytes as they are", async () => {
    const ws = await fresh();
    const done = await ws.exec("cat; echo e >&2; echo $X; pwd; exit 3", { stdin: "in\n", env: { X: "1" }, cwd: "/tmp" });
    assert.deepEqual([done.exitCode, done.stdout, done.stderr, done.timedOut], [3, "in\n1\n/tmp\n", "e\n", false]);
    assert.equal((await ws.exec("echo $X; pwd")).stdout, "\n/\n");
    const odd = await ws.exec("cat; echo ü", { stdin: Uint8Array.of(0xff, 0) });
    assert.deepEqual([...odd.stdoutBytes], [0xff, 0, ...bytes.encode("ü\n")]);
    assert.equal(odd.stdout, "\ufffd\0ü\n");
    assert.match(await ws.estimate("cat /nothing"), /./);
  });

  it("resolves a timeout with 124 and the output so far", async () => {
    const done = await (await fresh()).exec("echo before; sleep 30", { timeoutMs: 1000.5 });
    assert.deepEqual([done.exitCode, done.timedOut, done.stdout], [124, true, "before\n"]);
  });

  it("refuses what it does not understand before anything runs", async () => {
    const ws = await fresh();
    /** @type {any[]} */
    const wrong = [{ timeout: 1 }, { timeoutMs: -1 }, { timeoutMs: NaN }, { timeoutMs: Infinity }, { env: { "A-B": "1" } }];
    for (const options of wrong) await assert.rejects(ws.exec("touch /f", options), refused("invalid_argument"));
    assert.equal(await ws.files.exists("/f"), false);
    assert.throws(() => ws.stream("true", { idempotencyKey: "k" }), refused("invalid_argument"));
    const odd = /** @type {any} */ ({ odd: 1 });
    for (const call of [
      () => run.createWorkspace("odd", odd), () => run.create("", odd), () => ws.createSession("odd", odd),
      () => ws.files.write("/f", "", odd), () => ws.files.remove("/", odd), () => ws.files.mkdir("/f", odd),
      () => ws.files.setAttributes("/", odd), () => ws.files.read("/", odd), () => ws.commit(odd), () => ws.fork(null, "odd", odd),
      () => ws.revert("head", odd), () => ws.merge("w1", odd), () => ws.tag("odd", odd), () => ws.load("", odd),
    ]) {
      await assert.rejects(call, (error) => refused("invalid_argument")(error) && /no option odd/.test(String(error)));
    }
    assert.throws(() => new AgentRun(/** @type {any} */ ({ url: server.url, namespace: "x" })), refused("invalid_argument"));
  });

  for (const way of ["exec", "stream"]) {
    it(`rejects an aborted ${way} at once and stops the command`, { timeout: 300_000 }, async () => {
      const ws = await fresh();
      const abort = new AbortController();
      const reason = new Error("enough");
      const command = "touch /began; sleep 200; touch /ended";
      const { signal } = abort;
      const work = way === "exec" ? ws.exec(command, { signal }) : drain(ws.stream(command, { signal }));
      await Promise.all([
        assert.rejects(work, (error) => isAbort(error) && /** @type {Error} */ (error).cause === reason),
        eventually(() => ws.files.exists("/began")).then(() => abort.abort(reason)),
      ]);
      const began = Date.now();
      // The session's commands run in order: this one would wait for the first if it still ran.
      assert.equal((await ws.exec("ls /")).stdout.includes("ended"), false);
      assert.ok(Date.now() - began < 150_000, "the command was still running");
    });
  }

  it("starts nothing when it is aborted before", async () => {
    const ws = await fresh();
    await assert.rejects(ws.exec("touch /f", { signal: AbortSignal.abort() }), isAbort);
    assert.equal(await ws.files.exists("/f"), false);
  });

  it("gives output while the command runs, and stops it when the loop is left", { timeout: 300_000 }, async () => {
    const ws = await fresh();
    const running = ws.stream("echo one; read x < /dev/stdin; echo two >&2; exit 4", { stdin: "go\n" });
    assert.throws(() => running.result, refused("closed"));
    const pieces = [];
    for await (const { fd, data } of running) pieces.push([fd, text.decode(data)]);
    assert.deepEqual(pieces.sort(), [[1, "one\n"], [2, "two\n"]]);
    assert.equal(running.result.exitCode, 4);
    for await (const piece of ws.stream("echo one; sleep 200; touch /ended")) {
      assert.equal(text.decode(piece.data), "one\n");
      break;
    }
    assert.equal((await ws.exec("ls /")).stdout.includes("ended"), false);
    await assert.rejects(drain(running), refused("closed"));
    const abort = new AbortController();
    const slow = ws.stream("echo one; sleep 200; touch /ended", { signal: abort.signal });
    await assert.rejects(async () => {
      for await (const piece of slow) {
        assert.equal(piece.fd, 1);
        abort.abort(); // no one waits for the next piece now
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    }, isAbort);
    let size = 0;
    for await (const { data } of ws.stream("yes | head -c 20000000")) size += data.length;
    assert.equal(size, 20_000_000);
    await assert.rejects(drain(ws.stream("true", { session: "none" })), refused("session_not_found"));
  });

  it("runs jobs", async () => {
    const ws = await fresh();
    const job = await ws.start("echo done", { env: { A: "b" } });
    assert.equal((await job.wait()).result?.stdout, "done\n");
    const long = await ws.start("sleep 60");
    assert.equal((await long.kill()).state, "killed");
    assert.deepEqual((await ws.jobs()).map((one) => one.state), ["completed", "killed"]);
    assert.equal((await (await ws.job(job.id)).refresh()).state, "completed");
    await assert.rejects(ws.job("none"), refused("not_found"));
  });

  it("keeps sessions apart", async () => {
    const ws = await fresh();
    const one = await ws.createSession("one", { env: { WHO: "1" }, cwd: "/tmp" });
    const two = await ws.createSession("a session: ü/?".replace("/", "_"));
    await one.exec("export MORE=yes; echo x > here");
    assert.equal((await one.exec("echo $WHO $MORE; pwd")).stdout, "1 yes\n/tmp\n");
    assert.equal((await two.exec("echo $WHO $MORE; pwd")).stdout, "\n/\n");
    assert.equal(await one.files.readText("here"), "x\n");
    assert.equal((await two.info()).cwd, "/");
    await assert.rejects(ws.createSession("one"), refused("already_exists"));
    await one.close();
    assert.deepEqual((await ws.sessions()).map((session) => session.id).sort(), [two.id, "default"]);
  });
});

describe("files", () => {
  it("reads and writes whole, in part and as streams", async () => {
    const { files } = await fresh();
    const made = await files.write("/deep/down/f", "0123456789");
    assert.deepEqual([made.name, made.kind, made.size], ["f", "file", 10]);
    await files.write("/deep/down/f", bytes.encode("ab"), { append: true });
    for (const [options, content] of /** @type {const} */ ([
      [{}, "0123456789ab"], [{ start: 2, end: 4 }, "23"], [{ start: 10 }, "ab"], [{ end: 1 }, "0"], [{ start: 3, end: 3 }, ""],
      [{ start: 12 }, ""], [{ start: 99, end: 120 }, ""],
    ])) {
      assert.equal(await files.readText("/deep/down/f", options), content);
    }
    const large = new Uint8Array(3 << 20).fill(7);
    async function* pieces() {
      for (let at = 0; at < large.length; at += 100_000) yield large.subarray(at, at + 100_000);
    }
    await files.write("/iterated", pieces());
    await files.write("/blob", new Blob([large]));
    await files.write("/stream", new Blob([large]).stream());
    for (const name of ["/iterated", "/blob", "/stream"]) {
      let size = 0;
      for await (const block of files.readStream(name)) size += block.length;
      assert.equal(size, large.length, name);
    }
    await files.write("/empty", "");
    assert.equal((await files.read("/empty")).length, 0);
  });

  it("leaves the old content when an upload breaks off", async () => {
    const { files } = await fresh();
    await files.write("/f", "old");
    async function* broken() {
      yield bytes.encode("new");
      throw new TypeError("no more");
    }
    await assert.rejects(files.write("/f", broken()), TypeError);
    assert.equal(await files.readText("/f"), "old");
  });

  it("has conditions", async () => {
    const { files } = await fresh();
    const { etag } = await files.write("/f", "1", { create: true });
    await assert.rejects(files.write("/f", "2", { create: true }), refused("precondition_failed"));
    await files.write("/f", "2", { ifMatch: etag ?? "" });
    await assert.rejects(files.write("/f", "3", { ifMatch: etag ?? "" }), refused("precondition_failed"));
    await assert.rejects(files.remove("/f", { ifMatch: etag ?? "" }), refused("precondition_failed"));
    await assert.rejects(files.write("/no/f", "", { parents: false }), refused("not_found"));
  });

  it("lists, moves, copies, links and removes", async () => {
    const { files } = await fresh();
    await files.mkdir("/d/e");
    await files.mkdir("/d/e");
    await assert.rejects(files.mkdir("/d", { parents: false }), refused("already_exists"));
    await files.write("/d/f", "f");
    await files.link("/d/l", "f");
    assert.deepEqual((await files.entries("/d")).map(({ name, kind }) => [name, kind]), [["e", "dir"], ["f", "file"], ["l", "link"]]);
    assert.deepEqual([(await files.stat("/d/l")).kind, (await files.stat("/d/l", { follow: false })).target], ["file", "f"]);
    await files.copy("/d", "/copied");
    await files.move("/copied/f", "/copied/g");
    assert.deepEqual(await files.list("/copied"), ["e", "g", "l"]);
    await assert.rejects(files.remove("/copied"), refused("already_exists"));
    await files.remove("/copied", { recursive: true });
    assert.equal(await files.exists("/copied"), false);
    const when = new Date("2001-02-03T04:05:06.789Z");
    const set = await files.setAttributes("/d/f", { mode: 0o640, mtime: when, size: 4 });
    assert.deepEqual([set.mode, set.mtime, set.size], [0o640, when, 4]);
    await assert.rejects(files.read("/d"), refused("invalid_argument"));
    await assert.rejects(files.list("/d/f"), refused("invalid_argument"));
    await assert.rejects(files.read(""), refused("invalid_argument"));
  });

  it("carries every name, and text only when it is text", async () => {
    const ws = await fresh();
    for (const name of ["/a b?&=#%+ü\n'\"*", "/\u{1f600}", "/..."]) {
      await ws.files.write(name, name);
      assert.equal(await ws.files.readText(name), name);
    }
    await ws.exec("printf x > $'/\\xff'; printf '\\xef\\xbb\\xbfbom' > /bom; printf '\\xff' > /binary");
    const odd = (await ws.files.list("/")).find((name) => name === "\udcff");
    assert.equal(await ws.files.readText(`/${odd}`), "x");
    assert.equal(await ws.files.readText("/bom"), "\ufeffbom");
    await assert.rejects(ws.files.readText("/binary"), /not UTF-8/);
  });
});

describe("history", () => {
  it("undoes the last change, and totals what agents used", async () => {
    const ws = await fresh("stored");
    await ws.exec("echo one > /f");
    await ws.exec("echo two > /f; false");
    const undone = await ws.undo({ message: "back" });
    assert.deepEqual([undone.conflicts, await ws.files.readText("/f")], [[], "one\n"]);
    const total = (await ws.costs({ by: "agent" })).find((one) => one.name === "default");
    assert.deepEqual([total?.commands, total?.failures], [2, 1]);
    assert.ok((total?.bytesWritten["/"] ?? 0) >= 8);
  });

  it("commits, tags, blames, merges, snapshots", async () => {
    const ws = await fresh("stored");
    assert.equal(await ws.head(), null);
    await ws.exec("echo one > /f");
    const first = await ws.commit({ message: "by hand", author: "me" });
    await ws.tag("v1", { message: "kept" });
    assert.deepEqual((await ws.tags()).map((tag) => [tag.name, tag.revision]), [["v1", first.id]]);
    const noted = await ws.note("why so?", { revision: "v1", path: "/f", line: 1, author: "ann" });
    assert.deepEqual(noted.notes.map(({ message, author, path, line }) => [message, author, path, line]), [["by hand", "me", "", 0], ["why so?", "ann", "/f", 1]]);
    assert.deepEqual([(await ws.history({ exitCode: 0 })).length, (await ws.history({ network: "refused" })).length, (await ws.history({ principal: "nobody" })).length], [1, 0, 0]);
    await ws.fork(null, `${ws.name}-b`);
    const other = run.workspace(`${ws.name}-b`);
    await other.files.write("/f", "theirs");
    assert.deepEqual((await other.log({ without: `${ws.name}@head` })).map((one) => one.workspace), [other.name, other.name]);
    await ws.files.write("/g", "ours");
    assert.deepEqual((await ws.diff("v1", "head")).map(({ path, what }) => [path, what]), [["/g", "added"]]);
    const merged = await ws.merge(other.name);
    assert.deepEqual([merged.conflicts, await ws.files.readText("/f")], [[], "theirs"]);
    await other.files.write("/f", "more");
    await ws.files.write("/f", "else");
    const conflict = await ws.merge(other.name, { message: "no" });
    assert.deepEqual([conflict.revision, conflict.conflicts.map((one) => one.path)], [null, ["/f"]]);
    await assert.rejects(ws.merge("nothing"), refused("workspace_not_found"));
    await ws.revert("v1", { paths: ["/f"], message: "only f" });
    assert.equal((await ws.exec("cat /f /g")).stdout, "one\nours");
    assert.equal((await ws.blame("/f"))[0]?.text, "one");
    const pieces = [];
    for await (const block of ws.snapshot({ compress: "gz" })) pieces.push(block);
    const loaded = await run.workspace(`${ws.name}-c`).load(new Blob(pieces), { message: "loaded" });
    assert.equal(loaded.revision?.content, (await ws.head())?.content);
    assert.equal((await ws.log({ limit: 2 })).length, 2);
    await ws.untag("v1");
    await assert.rejects(ws.log({ revision: "v1" }), refused("revision_not_found"));
    await other.remove();
    const names = (await run.workspaces()).map((info) => info.name);
    assert.ok(names.includes(ws.name) && !names.includes(other.name));
    await assert.rejects(run.createWorkspace(ws.name), refused("workspace_exists"));
    assert.equal((await run.createWorkspace(ws.name, { reuse: true })).name, ws.name);
    const { kind, busy } = await ws.info();
    assert.deepEqual([kind, busy], ["stored", false]);
  });

  it("tells what happens, also what happened before", { timeout: 300_000 }, async () => {
    const ws = await fresh();
    await ws.exec("false");
    const types = [];
    for await (const event of run.events({ workspace: ws.name, since: 0 })) {
      types.push(event.type);
      if (event.type === "exec") {
        assert.equal(event.data["exit_code"], 1);
        break;
      }
    }
    assert.deepEqual(types, ["created", "exec"]);
  });
});

describe("connections", () => {
  it("repeats safely with a key", async () => {
    const ws = await fresh("stored");
    for (let turn = 0; turn < 2; turn++) {
      assert.equal((await ws.exec("echo x >> /n; cat /n", { idempotencyKey: "once" })).stdout, "x\n");
    }
  });

  for (const own of [false, true]) {
    const way = own ? "with a fetch of one's own" : "over Node's http";
    it(`asks over TCP with the token, ${way}`, { timeout: 300_000 }, async () => {
      const tcp = await serve({ port: true });
      const asked = /** @type {string[]} */ ([]);
      const client = tcp.client(own ? { fetch: (url, init) => (asked.push(String(url)), fetch(url, init)) } : {});
      const ws = await client.createWorkspace("p", { kind: "memory" });
      const abort = new AbortController();
      await Promise.all([
        assert.rejects(ws.exec("touch /began; sleep 200; touch /ended", { signal: abort.signal }), isAbort),
        eventually(() => ws.files.exists("/began")).then(() => abort.abort()),
      ]);
      assert.equal((await ws.exec("ls /")).stdout.includes("ended"), false);
      for await (const piece of ws.stream("echo one; sleep 200; touch /ended")) {
        assert.equal(text.decode(piece.data), "one\n");
        break;
      }
      assert.equal((await ws.exec("ls /")).stdout.includes("ended"), false);
      async function* pieces() {
        for (let turn = 0; turn < 40; turn++) yield new Uint8Array(50_000);
      }
      await ws.files.write("/large", pieces());
      assert.equal((await ws.files.read("/large")).length, 2_000_000);
      assert.equal(asked.length > 0, own);
      await assert.rejects(connect(tcp.url).workspaces(), refused("unauthenticated"));
      await assert.rejects(connect(tcp.url, { token: "wrong" }).workspaces(), refused("unauthenticated"));
      assert.equal((await connect(tcp.url).health()).status, "ok");
      const pending = assert.rejects(ws.exec("sleep 60"), ConnectionError);
      await ws.files.read("/large");
      await tcp.stop("SIGKILL");
      await pending;
      await assert.rejects(ws.exec("true"), ConnectionError);
    });
  }

  it("says when nothing is there", async () => {
    await assert.rejects(connect("http://127.0.0.1:9").health(), ConnectionError);
    await assert.rejects(connect("unix:/nowhere/s").health(), ConnectionError);
    for (const url of ["", "localhost:8750", "ftp://x", "http://", "unix:relative"]) {
      assert.throws(() => connect(url), refused("invalid_argument"), url);
    }
    assert.throws(() => connect("unix:/s", { fetch }), refused("invalid_argument"));
  });

  it("does not take another server's word for an answer", async () => {
    let [status, body] = [200, "<html>"];
    const other = createServer((_, response) => response.writeHead(status, { location: "/" }).end(body)).listen(0, "127.0.0.1");
    await once(other, "listening");
    const client = connect(`http://127.0.0.1:${/** @type {AddressInfo} */ (other.address()).port}`);
    for ([status, body] of /** @type {[number, string][]} */ ([[200, "<html>"], [302, ""], [500, "<html>"], [502, "{}"], [304, ""]])) {
      await assert.rejects(client.health(), refused("unavailable"), String(status));
    }
    client.close();
    other.close();
  });

  it("asks for what was named and nothing else", async () => {
    for (const name of ["", ".", ".."]) assert.throws(() => run.workspace(name), refused("invalid_argument"));
    for (const name of ["p/file", "p/../q", "a%2fb", "a b"]) {
      await assert.rejects(run.workspace(name).info(), refused("workspace_not_found"), name);
      await assert.rejects(run.sandbox(name), refused("not_found"), name);
    }
    const ws = await fresh();
    await assert.rejects(ws.session("default/../default").info(), refused("session_not_found"));
  });

  it("stops sending when the server has refused", { timeout: 300_000 }, async () => {
    let ended = false;
    async function* endless() {
      try {
        for (;;) yield new Uint8Array(1 << 16);
      } finally {
        ended = true;
      }
    }
    await assert.rejects(run.workspace("nowhere").files.write("/f", endless()), RametError);
    await eventually(async () => ended);
  });

  it("keeps many requests apart, waits for silent ones, and goes on after close", { timeout: 300_000 }, async () => {
    const ws = await fresh();
    // Longer than an idle connection is kept: what is waited for is not idle.
    const silent = (await ws.createSession("silent")).exec("sleep 4.5; echo late");
    const done = await Promise.all(Array.from({ length: 40 }, (_, turn) => ws.exec(`echo ${turn}`)));
    assert.deepEqual(done.map((one) => one.stdout.trim()), Array.from({ length: 40 }, (_, turn) => String(turn)));
    assert.equal((await silent).stdout, "late\n");
    run.close();
    assert.equal((await ws.exec("echo again")).stdout, "again\n");
  });
});

/** @param {ReturnType<Workspace["stream"]>} running */
async function drain(running) {
  for await (const piece of running) void piece;
}
