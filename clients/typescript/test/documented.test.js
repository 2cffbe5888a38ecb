/** Documentation is code: every block of the pages about this client runs and has the types it shows. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { AgentRun, Files, Job, Sandbox, Session, StoreCare, Workspace } from "../src/index.js";
import { serve } from "./server.js";

/** @import { Server } from "./server.js" */

const HERE = fileURLToPath(new URL("..", import.meta.url));
const BLOCKS = join(HERE, ".blocks");
const PAGES = ["README.md", "../../docs/typescript.md"];
const TSC = join(HERE, "node_modules/typescript/bin/tsc");
const FLUE = existsSync(join(HERE, "node_modules/@flue/runtime"));
const TYPES = existsSync(TSC) ? false : "typescript is not installed (npm ci)";
const run = promisify(execFile);

/** @type {{ name: string, code: string }[]} */
const blocks = [];
for (const page of PAGES) {
  const text = await readFile(join(HERE, page), "utf8");
  for (const [, code = ""] of text.matchAll(/^```ts\n(.*?)^```/gms)) {
    blocks.push({ name: `block-${blocks.length}`, code });
  }
}

/** Which call asks for which operation of the server. */
const OPERATIONS = {
  AgentRun: {
    history_health: "health", care_status: "status", history_workspaces: "workspaces", history_create: "createWorkspace",
    sandboxes_sandboxes: "sandboxes", sandboxes_create: "create", sandboxes_sandbox: "sandbox", history_events: "events",
    history_trash: "trash", history_restore: "restore",
  },
  Sandbox: { sandboxes_terminate: "terminate" },
  Session: { history_session: "info", history_close_session: "close" },
  Job: { exec_wait_job: "wait", exec_kill_job: "kill" },
  Files: {
    files_read: "read", files_write: "write", files_set_attributes: "setAttributes", files_remove: "remove",
    files_stat: "stat", files_listing: "entries", files_make_directory: "mkdir", files_move: "move",
    files_copy: "copy", files_link: "link",
  },
  Workspace: {
    exec_run: "exec", exec_jobs: "jobs", exec_job: "job", history_sessions: "sessions", history_log: "log",
    history_create_session: "createSession", history_show: "info", history_remove: "remove", history_diff: "diff",
    history_blame: "blame", history_commit: "commit", history_fork: "fork", history_rename: "rename", history_revert: "revert",
    history_merge: "merge", history_undo: "undo", history_tags: "tags", history_make_tag: "tag",
    history_untag: "untag", history_note: "note", inside_costs: "costs", history_download: "snapshot", history_upload: "load",
    inside_history: "history", inside_ended_jobs: "endedJobs",
    inside_completions: "complete", inside_questions: "questions", ports_ports: "ports", ports_open_port: "openPort", inside_answer_question: "answer",
    inside_mounts: "mounts", inside_mount: "mount", inside_umount: "umount", inside_bisect: "bisect", inside_git: "git",
    care_push: "push", care_pushes: "pushes", care_push_again: "pushAgain", care_retention: "retention",
    care_set_retention: "setRetention", care_hold: "hold", care_lift: "lift", care_pin: "pin", care_grants: "grants",
    care_grant: "grant", care_revoke: "revoke", care_shred: "shred",
  },
  StoreCare: {
    care_gc: "gc", care_cost: "cost", care_verify: "verify", care_repair: "repair", care_pins: "pins",
    care_store_retention: "retention", care_set_store_retention: "setRetention", care_unpin: "unpin",
    care_keys: "keys", care_rotate: "rotateKeys", inside_feed: "feed",
  },
};
/** Operations without a call: `stat` says what HEAD would. */
const WITHOUT = ["head_files_read"];

/** @type {Server} */
let server;

before(async () => {
  await mkdir(BLOCKS, { recursive: true }); // inside the package: its own name leads to it
  for (const { name, code } of blocks) {
    await writeFile(join(BLOCKS, `${name}.mjs`), code);
    await writeFile(join(BLOCKS, `${name}.mts`), code);
  }
  server = await serve({ port: true });
});
after(() => rm(BLOCKS, { recursive: true, force: true }));

describe("blocks", () => {
  for (const { name, code } of blocks) {
    const skip = code.includes("/flue") && !FLUE ? "@flue/runtime is not installed (npm ci)" : false;
    it(`${name} runs`, { skip, timeout: 300_000 }, async () => {
      const env = { ...process.env, RAMET_URL: server.url, RAMET_TOKEN: server.token };
      const { stdout } = await run(process.execPath, [join(BLOCKS, `${name}.mjs`)], { env, timeout: 300_000 });
      assert.notEqual(stdout, "");
    });
  }

  it("have the types they show", { skip: TYPES, timeout: 300_000 }, async () => {
    const config = { extends: "../tsconfig.json", compilerOptions: { noUncheckedIndexedAccess: false }, include: ["*.mts"] };
    await writeFile(join(BLOCKS, "tsconfig.json"), JSON.stringify(config));
    await run(process.execPath, [TSC, "-p", BLOCKS]).catch((error) => assert.fail(error.stdout));
  });
});

it("asks for everything that the server can do", async () => {
  const answer = await fetch(`${server.url}/openapi.json`, { headers: { authorization: `Bearer ${server.token}` } });
  const { paths } = /** @type {{ paths: Record<string, Record<string, { operationId: string }>> }} */ (await answer.json());
  const served = Object.values(paths).flatMap((methods) => Object.values(methods).map((one) => one.operationId));
  const asked = Object.entries(OPERATIONS).flatMap(([, names]) => Object.keys(names));
  assert.deepEqual(served.sort(), [...asked, ...WITHOUT].sort(), "routes and OPERATIONS differ");
  const classes = { AgentRun, Files, Job, Sandbox, Session, StoreCare, Workspace };
  for (const [owner, names] of Object.entries(OPERATIONS)) {
    const { prototype } = classes[/** @type {keyof typeof classes} */ (owner)];
    for (const name of Object.values(names)) assert.ok(name in prototype, `${owner}.${name}`);
  }
});

it("ships types that are up to date", { skip: TYPES, timeout: 300_000 }, async () => {
  const made = join(HERE, ".types");
  try {
    await run(process.execPath, [TSC, "-p", join(HERE, "tsconfig.types.json"), "--outDir", made]);
    const names = (await readdir(made)).sort();
    assert.deepEqual((await readdir(join(HERE, "types"))).sort(), names);
    for (const name of names) {
      const [now, then] = await Promise.all([made, join(HERE, "types")].map((where) => readFile(join(where, name), "utf8")));
      assert.equal(then, now, `${name}: run \`npm run types\``);
    }
  } finally {
    await rm(made, { recursive: true, force: true });
  }
});

it("gives a program without Node's types what it needs", { skip: TYPES, timeout: 300_000 }, async () => {
  const program = `
    import { connect, type Revision } from "@ramet/client";
    export async function main(signal?: AbortSignal): Promise<Revision | null> {
      const sb = await connect("http://127.0.0.1", { token: undefined }).create("", { workspace: "w" });
      const { exitCode } = await sb.exec("true", { signal });
      // @ts-expect-error an option that is not one
      await sb.exec("true", { timeout: exitCode });
      return sb.terminate({ outputs: ["/workspace", { path: "/workspace/x" }, { diff: true }] });
    }`;
  await writeFile(join(BLOCKS, "program.ts"), program);
  const options = ["--noEmit", "--strict", "--exactOptionalPropertyTypes", "--target", "es2022", "--lib", "es2022,dom"];
  const words = [TSC, ...options, "--module", "nodenext", "--types", "", "--ignoreConfig", join(BLOCKS, "program.ts")];
  await run(process.execPath, words).catch((error) => assert.fail(error.stdout));
});

it("packs what is used and nothing else", { timeout: 300_000 }, async () => {
  const { stdout } = await run("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], { cwd: HERE });
  const packed = JSON.parse(stdout);
  const [found] = Array.isArray(packed) ? packed : Object.values(packed);
  const names = found.files.map((/** @type {{ path: string }} */ file) => file.path).sort();
  const own = async (/** @type {string} */ folder) => (await readdir(join(HERE, folder))).map((name) => `${folder}/${name}`);
  const code = (await own("src")).filter((name) => name.endsWith(".js"));
  assert.deepEqual(names, ["LICENSE", "README.md", "package.json", ...code, ...(await own("types"))].sort());
  const { dependencies } = JSON.parse(await readFile(join(HERE, "package.json"), "utf8"));
  assert.equal(dependencies, undefined);
});
