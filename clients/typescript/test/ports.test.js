/** Programs that listen in a workspace, asked through a real server. Skipped where it cannot run real programs. */

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { before, describe, it } from "node:test";

import { eventually, serve } from "./server.js";

/** @import { Workspace } from "../src/index.js" */

const PROGRAM = new URL("../../../tests/support/echo_program.py", import.meta.url);
const text = new TextDecoder();
const SIZE = 1 << 20;

/** @type {Workspace} */
let ws;
let missing = "";

before(async () => {
  const run = (await serve({ options: ["--native"] })).client();
  ws = await run.createWorkspace("app", { native: true });
  const tried = await ws.exec("python3 --version");
  missing = tried.exitCode === 0 ? "" : tried.stderr;
  if (missing !== "") return;
  await ws.files.write("/echo.py", await readFile(PROGRAM));
  await ws.exec("python3 /echo.py 8000 > /log 2>&1 &");
  await eventually(async () => (await ws.ports()).length === 1);
});

/**
 * @param {string} name
 * @param {() => Promise<void>} test
 */
const needsPrograms = (name, test) => it(name, async (context) => (missing === "" ? test() : context.skip(missing)));

async function* blocks() {
  for (let turn = 0; turn < 16; turn++) yield new Uint8Array(SIZE / 16);
}

describe("ports", () => {
  needsPrograms("lists what listens", async () => {
    const [found] = await ws.ports();
    assert.deepEqual([found?.port, found?.address], [8000, "127.0.0.1"]);
    assert.match(String(found?.program), /echo\.py 8000/);
  });

  needsPrograms("asks a program, and takes every status as an answer", async () => {
    const answer = await ws.request(8000, "/a%2Fb?x=1", { method: "PUT", headers: { "x-own": "1" }, body: blocks() });
    const told = JSON.parse(text.decode(await answer.bytes()));
    assert.deepEqual([answer.status, told.method, told.path, told.size], [200, "PUT", "/a%2Fb?x=1", SIZE]);
    assert.ok(!JSON.stringify(told).toLowerCase().includes("authorization"));
    const moved = await ws.request(8000, "to?/../../x");
    assert.deepEqual([moved.status, moved.header("location")], [307, "/v1/workspaces/app/ports/8000/x"]);
    assert.equal((await ws.request(9)).status, 502);
  });

  needsPrograms("streams an answer, and ends it", async () => {
    const stop = new AbortController();
    const answer = await ws.request(8000, "/endless", { signal: stop.signal });
    for await (const block of answer.blocks()) {
      assert.match(text.decode(block), /^data: 0\n/);
      break;
    }
    stop.abort();
    await eventually(async () => (await ws.exec("cat /ended")).stdout === "ended");
  });
});
