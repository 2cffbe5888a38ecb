/** A whole agent of Flue, with a model that says what the test wants, working on a real server. */

import assert from "node:assert/strict";
import { it } from "node:test";

import { serve } from "./server.js";

const parts = await Promise.all([
  import("@flue/runtime"), import("@flue/runtime/node"), import("@earendil-works/pi-ai"), import("../src/flue.js"),
]).catch(() => undefined);
const skip = parts === undefined ? "Flue's runtime needs Node 22.19 or newer, and npm ci" : false;
if (skip) console.error(`SKIPPED: no agent of Flue was run: ${skip}`);

it("works through every tool, keeps instances apart, and leaves a history", { skip, timeout: 300_000 }, async () => {
  if (parts === undefined) return;
  const [{ init, useModel, useSandbox }, { start }, { fauxAssistantMessage, fauxProvider, fauxToolCall }, { ramet }] = parts;
  const run = (await serve()).client();
  const ws = await run.createWorkspace("shared");
  await ws.files.write("/project/AGENTS.md", "Be brief.");
  const faux = fauxProvider({ provider: "faux", models: [{ id: "model" }] });

  function Worker() {
    useModel("faux/model");
    useSandbox(ramet(ws, { cwd: "/project" }));
  }

  const flue = await start({ agents: [Worker], providers: [faux.provider] });
  try {
    /** @type {string[]} */
    const seen = [];
    /** @param {string} name @param {Record<string, unknown>} words */
    const turn = (name, words) => (/** @type {any} */ context) => {
      seen.push(JSON.stringify(context));
      return fauxAssistantMessage(fauxToolCall(name, /** @type {any} */ (words)), { stopReason: "toolUse" });
    };
    faux.setResponses([
      turn("write", { path: "src/a.txt", content: "alpha\nbeta\n" }),
      turn("edit", { path: "src/a.txt", oldText: "beta", newText: "gamma" }),
      turn("bash", { command: "export WHO=first; wc -l src/a.txt; false" }),
      turn("grep", { pattern: "gam+a", path: "src" }),
      turn("glob", { pattern: "*.txt" }),
      turn("read", { path: "src/a.txt" }),
      (context) => (seen.push(JSON.stringify(context)), fauxAssistantMessage("done")),
    ]);
    const agent = init(Worker, { id: "first" });
    const reply = await agent.read(await agent.dispatch("work"));
    assert.equal(reply.text, "done");
    const last = seen.at(-1) ?? "";
    for (const said of ["Be brief.", "2 src/a.txt", "src/a.txt:2:gamma", "alpha"]) assert.ok(last.includes(said), said);

    faux.setResponses([turn("bash", { command: "echo who=$WHO; cat src/a.txt" }), (context) => {
      seen.push(JSON.stringify(context));
      return fauxAssistantMessage("seen");
    }]);
    const other = init(Worker, { id: "second" });
    assert.equal((await other.read(await other.dispatch("look"))).text, "seen");
    assert.match(seen.at(-1) ?? "", /who=\\+nalpha\\+ngamma/);
  } finally {
    await flue.stop();
  }
  assert.equal(await ws.files.readText("/project/src/a.txt"), "alpha\ngamma\n");
  assert.deepEqual((await ws.sessions()).map((one) => one.id).filter((id) => id !== "default").length, 2);
  assert.ok((await ws.history()).some((record) => record.command.includes("wc -l src/a.txt")));
});
