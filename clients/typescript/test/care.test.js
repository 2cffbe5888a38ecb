/** What a store needs, over a real server: what is kept, for whom, whether it is sound, where it broke. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { before, describe, it } from "node:test";

import { AgentRun, RametError } from "../src/index.js";
import { Server, serve } from "./server.js";

/** @import { Progress } from "../src/index.js" */

const text = new TextDecoder();
/** @param {string} code */
const refused = (code) => (/** @type {unknown} */ error) => error instanceof RametError && error.code === code;

/** @type {Server} */
let server;
/** @type {AgentRun} */
let run;
let number = 0;

/** A workspace with three revisions, whose file breaks in the second. */
async function filled() {
  const ws = await run.createWorkspace(`c${++number}`);
  await ws.exec("echo good > /f; echo said; cd /tmp", { message: "begin", author: "me" });
  await ws.exec("echo bad > /f; sleep 0 & wait", { agent: "robot" });
  await ws.exec("echo more > /g");
  return ws;
}

before(async () => {
  server = await serve({ options: ["--push-to", "file:///tmp/"] });
  run = server.client();
});

describe("looking inside", () => {
  it("tells how the server is doing", async () => {
    const { status, startedAt, connections, limits, holds, recentHolds } = await run.status();
    assert.deepEqual([status, connections.open > 0, limits["headers"]], ["ok", true, 100]);
    assert.ok(startedAt.getTime() <= Date.now() + 1000 && startedAt.getTime() > Date.now() - 3_600_000);
    assert.ok(Object.values(holds).every((count) => count > 0) && recentHolds.every((hold) => hold.seconds >= 1));
  });

  it("tells what ran, what ended and what is mounted", async () => {
    const ws = await filled();
    const [first, second] = await ws.history();
    assert.deepEqual([first?.session, first?.exitCode, text.decode(first?.stdout)], ["default", 0, "said\n"]);
    assert.ok(second?.agent === "robot" && second.startedAt instanceof Date);
    assert.equal((await ws.history({ last: 1 })).length, 1);
    assert.equal((await ws.history({ revision: "1" })).length, 1);
    assert.deepEqual(await ws.history({ session: "nobody" }), []);
    assert.deepEqual((await ws.endedJobs({ revision: "1" })), []);
    assert.equal((await ws.log())[2]?.message, "begin");
    const made = await ws.mount("/data", { mode: "read", message: "for later" });
    assert.deepEqual([made.prefix, made.mode], ["/data", "read"]);
    assert.ok((await ws.mounts()).some((mount) => mount.prefix === "/data"));
    assert.ok(!(await ws.mounts({ revision: "1" })).some((mount) => mount.prefix === "/data"));
    await assert.rejects(ws.mount("/data"), refused("already_exists"));
    await ws.umount("/data");
    assert.ok(!(await ws.mounts()).some((mount) => mount.prefix === "/data"));
  });

  it("finds where it broke, and stops when the caller aborts", async () => {
    const ws = await filled();
    /** @type {Progress[]} */
    const told = [];
    const found = await ws.bisect("1", "grep -q good /f", { onProgress: (news) => told.push(news) });
    assert.deepEqual([found.firstBad?.seq, found.suspects.length], [2, 1]);
    assert.ok(found.steps.length > 0 && told[0]?.stage === "revisions");
    await assert.rejects(ws.bisect("99", "true"), refused("revision_not_found"));
    const signal = AbortSignal.timeout(100);
    await assert.rejects(ws.bisect("1", "sleep 60", { signal }), { name: "AbortError" });
  });
});

describe("what is kept", () => {
  it("says for how long and for whom", async () => {
    const ws = await filled();
    const said = await ws.setRetention({ keepLast: 2, keepWithinMs: 60_000 });
    assert.deepEqual([said.keepLast, said.keepWithinMs, said.said.minAgeMs], [2, 60_000, null]);
    assert.equal((await ws.hold("case 42")).hold, "case 42");
    await assert.rejects(ws.remove(), refused("workspace_held"));
    assert.equal((await ws.lift()).hold, "");
    const pin = await ws.pin({ revision: "1", forMs: 60_000, why: "review" });
    assert.deepEqual(await run.store.pins({ workspace: ws.name }), [pin]);
    await run.store.unpin(pin.token);
    assert.deepEqual(await run.store.pins({ workspace: ws.name }), []);
    await assert.rejects(ws.setRetention(/** @type {any} */ ({ keepLst: 1 })), refused("invalid_argument"));
    assert.deepEqual(await ws.grants(), {});
    await assert.rejects(ws.revoke("nobody"), refused("not_found"));
    await ws.grant("ada@example.org", "readwrite");
    await assert.rejects(ws.grants(), refused("permission_denied"), "the server itself was granted nothing");
  });

  it("collects, checks, repairs and counts", async () => {
    const ws = await filled();
    await ws.setRetention({ keepLast: 1 });
    const dry = await run.store.gc({ dry: true, graceMs: 0 });
    assert.ok(dry.dry && dry.expired.includes(`${ws.name}-1`) && (await ws.log()).length === 3);
    const done = await run.store.gc({ graceMs: 0, onProgress: () => {} });
    assert.deepEqual([done.dry, (await ws.log()).length], [false, 1]);
    const report = await run.store.verify();
    assert.ok(report.packs > 0 && report.damages.length === 0);
    assert.deepEqual((await run.store.repair()).lost, []);
    assert.ok((await run.store.cost()).workspaces.some((cost) => cost.workspace === ws.name && cost.revisions === 1));
    assert.equal((await run.store.setRetention({ auto: 0 })).auto, 0);
    assert.equal((await run.store.retention()).auto, 0);
    await assert.rejects(run.store.keys(), RametError);
    await assert.rejects(run.store.rotateKeys("not a place"), refused("invalid_argument"));
    await assert.rejects(ws.shred({ confirm: "another" }), refused("invalid_argument"));
  });
});

describe("in and out", () => {
  it("gives the history as git and pushes where the server may", async () => {
    const ws = await filled();
    let stream = "";
    for await (const block of ws.git()) stream += text.decode(block, { stream: true });
    assert.ok(stream.includes("commit refs/heads/") && stream.endsWith("done\n"));
    const remote = join(server.directory, "r.git");
    await mkdir(remote);
    assert.equal(spawnSync("git", ["init", "--quiet", "--bare", remote]).status, 0);
    const pushed = await ws.push(`file://${remote}`, { branch: "try" });
    assert.deepEqual([pushed.branch, pushed.commit.length], ["try", 40]);
    await assert.rejects(ws.push("https://example.org/x.git"), refused("permission_denied"));
    await assert.rejects(ws.push(`file://${server.directory}/none.git`), RametError);
    assert.equal((await ws.pushes()).length, 1);
    assert.equal((await ws.pushAgain()).failed.length, 1);
    const git = { paths: ["/workspace"], remotes: { here: `file://${remote}` } };
    const sb = await run.create("", { workspace: ws.name, git });
    await sb.files.write("f", "made");
    await sb.terminate({ outputs: [{ git: { remote: "here", branch: "attempt" } }] });
    assert.deepEqual([sb.pushed[0]?.branch, sb.warnings], ["attempt", []]);
  });

  it("tells every move of a head", async () => {
    const ws = await filled();
    const events = [];
    for await (const event of run.store.feed()) events.push(event);
    const mine = events.filter((event) => JSON.stringify(event.envelope).includes(`"${ws.name}"`));
    assert.equal(mine.length, 3);
    const rest = [];
    for await (const event of run.store.feed({ since: events.at(-2)?.cursor ?? "" })) rest.push(event);
    assert.deepEqual(rest, events.slice(-1));
    for await (const event of run.store.feed({ follow: true })) {
      assert.ok(event.cursor);
      break;
    }
  });
});
