/** Workspaces and their sessions: a shell, files, and every state that was committed. */

import { kept, longWork } from "./care.js";
import { known, refusal } from "./errors.js";
import { Files } from "./files.js";
import { Job, Shell } from "./running.js";
import {
  change, commandRecord, maybeRevision, mountInfo, pin, query, retention, revision, segment, sessionInfo, tag,
  waitingPush, workspaceInfo,
} from "./wire.js";

/**
 * @import {
 *   Abortable, Bisected, BlameLine, Bytes, Change, Changing, CommandRecord, Content, EndedJob, Keeping, Merged,
 *   ListeningPort, MountInfo, Pin, PortAnswer, Pushed, PushOptions, Question, Retention, Revision, SessionInfo, Shredded,
 *   Tag, WaitingPush, Watching, WorkspaceInfo
 * } from "./types.js"
 */
/** @import { Http } from "./http.js" */
/** @import { Plain } from "./wire.js" */

/** A session: a shell with its own working directory and variables, on shared files. */
export class Session extends Shell {
  #http;
  #url;

  /**
   * @param {Http} http
   * @param {string} place
   * @param {string} id
   */
  constructor(http, place, id) {
    super(http, place, id);
    this.#http = http;
    this.#url = `${place}/sessions/${segment(id)}`;
    this.id = id;
    /** Relative paths begin at the session's working directory. */
    this.files = new Files(http, place, { session: id });
  }

  /**
   * @param {Abortable} [options]
   * @returns {Promise<SessionInfo>}
   */
  async info(options = {}) {
    return sessionInfo(await this.#http.get(this.#url, options));
  }

  /**
   * Forget it, with what runs in it.
   * @param {Changing} [options]
   * @returns {Promise<void>}
   */
  async close(options = {}) {
    await this.#http.json("DELETE", this.#url, {}, options);
  }
}

/** What a workspace and a sandbox have in common: files, commands, sessions, jobs. */
export class Place extends Shell {
  /** @type {Http} */
  #http;
  /** @type {string} */
  #url;

  /**
   * @param {Http} http
   * @param {string} name
   * @param {string} [home] where relative paths of files begin
   */
  constructor(http, name, home) {
    const url = `/v1/workspaces/${segment(name)}`;
    super(http, url);
    this.#http = http;
    this.#url = url;
    this.name = name;
    this.files = new Files(http, url, home === undefined ? {} : { home });
  }

  /**
   * The records, the newest last: those that fit, the `last` ones (1000 when not given). `since` and `until` are seconds since the epoch.
   * @param {Abortable & { revision?: string, session?: string, last?: number, agent?: string, run?: string, path?: string, text?: string, failed?: boolean, since?: number, until?: number, number?: number, exitCode?: number, principal?: string, network?: "any" | "refused" }} [options]
   * @returns {Promise<CommandRecord[]>}
   */
  async history(options = {}) {
    const names = ["revision", "session", "last", "agent", "run", "path", "text", "failed", "since", "until", "number", "exitCode", "principal", "network"];
    const { signal: _, failed, exitCode, ...asked } = known("history", options, ...names);
    const url = `${this.#url}/history${query({ ...asked, exit_code: exitCode, failed: failed === undefined ? undefined : String(failed) })}`;
    return (await this.#http.get(url, options))["commands"].map(commandRecord);
  }

  /**
   * Totals of the records by agent, session or principal: commands, failures, seconds, bytes, and sums of `meta`.
   * @param {Abortable & { revision?: string, by?: "agent" | "session" | "run" | "principal", since?: number, until?: number }} [options]
   * @returns {Promise<{ name: string, commands: number, failures: number, seconds: number, cpu: number, files: number, bytesRead: Record<string, number>, bytesWritten: Record<string, number>, meta: Record<string, number>, first: number, last: number }[]>}
   */
  async costs(options = {}) {
    const { revision: of, by, since, until } = known("costs", options, "revision", "by", "since", "until");
    const found = await this.#http.get(`${this.#url}/costs${query({ revision: of, by, since, until })}`, options);
    return found["costs"].map((/** @type {Plain} */ { bytes_read: bytesRead, bytes_written: bytesWritten, ...rest }) => ({
      ...rest, bytesRead, bytesWritten,
    }));
  }

  /**
   * What can complete a command line: `words` that may replace it from the character `start` on.
   * @param {string} line what stands before the cursor
   * @param {Abortable & { session?: string, revision?: string }} [options]
   * @returns {Promise<{ start: number, words: string[] }>}
   */
  async complete(line, options = {}) {
    const { session, revision } = known("complete", options, "session", "revision");
    const found = await this.#http.get(`${this.#url}/completions${query({ line, session, revision })}`, options);
    return { start: found["start"], words: found["words"] };
  }

  /**
   * Questions of `ask` rules that wait for an answer.
   * @param {Abortable} [options]
   * @returns {Promise<Question[]>}
   */
  async questions(options = {}) {
    known("questions", options);
    const found = (await this.#http.get(`${this.#url}/questions`, options))["questions"];
    return found.map((/** @type {Plain} */ { session_id: session, agent_id: agent, asked_at: askedAt, ...rest }) => ({
      ...rest, session, agent, askedAt,
    }));
  }

  /**
   * Allow or deny what a question is about; "host" also allows later requests of the session to the same host.
   * @param {number} number
   * @param {boolean | "host"} allow
   * @param {Abortable} [options]
   * @returns {Promise<void>}
   */
  async answer(number, allow, options = {}) {
    known("answer", options);
    await this.#http.post(`${this.#url}/questions/${number}`, { allow }, options);
  }

  /**
   * The ports at which programs of the workspace listen, while the server has it open.
   * @param {Abortable} [options]
   * @returns {Promise<ListeningPort[]>}
   */
  async ports(options = {}) {
    known("ports", options);
    return (await this.#http.get(`${this.#url}/ports`, options))["ports"];
  }

  /**
   * Ask a program that listens at a port of the workspace; every status is an answer. Bodies stream in both directions.
   * No cookies pass, and no redirect is followed (without Node's `http`, one is an error).
   * @param {number} port
   * @param {string} [path] with its query
   * @param {Abortable & { method?: string, headers?: Record<string, string>, body?: Content }} [options]
   * @returns {Promise<PortAnswer>}
   */
  async request(port, path = "/", options = {}) {
    const { method = "GET", headers, body } = known("request", options, "method", "headers", "body");
    const sending = { any: true, ...(headers === undefined ? {} : { headers }), ...(body === undefined ? {} : { body }) };
    return this.#http.send(method, `${this.#url}/ports/${port}/${path.replace(/^\//, "")}`, sending, options);
  }

  /**
   * Make a link that opens a program in a browser of this machine, once, at a separate origin.
   * @param {number} port
   * @param {Abortable} [options]
   * @returns {Promise<string>}
   */
  async openPort(port, options = {}) {
    known("openPort", options);
    return (await this.#http.post(`${this.#url}/ports`, { port }, options))["url"];
  }

  /**
   * Background jobs (`cmd &`) that have ended.
   * @param {Abortable & { revision?: string }} [options]
   * @returns {Promise<EndedJob[]>}
   */
  async endedJobs(options = {}) {
    const { revision: of } = known("endedJobs", options, "revision");
    const found = (await this.#http.get(`${this.#url}/ended-jobs${query({ revision: of })}`, options))["jobs"];
    return found.map((/** @type {Plain} */ { session_id: session, exit_code: exitCode, ...rest }) => ({
      ...rest, session, exitCode,
    }));
  }

  /**
   * What is mounted where, also in a revision.
   * @param {Abortable & { revision?: string }} [options]
   * @returns {Promise<MountInfo[]>}
   */
  async mounts(options = {}) {
    const { revision: of } = known("mounts", options, "revision");
    return (await this.#http.get(`${this.#url}/mounts${query({ revision: of })}`, options))["mounts"].map(mountInfo);
  }

  /**
   * Add an empty mount. What lives elsewhere is mounted by who runs the server.
   * @param {string} prefix
   * @param {Changing & { mode?: "read" | "write", message?: string }} [options]
   * @returns {Promise<MountInfo>}
   */
  async mount(prefix, options = {}) {
    const { mode, message } = known("mount", options, "mode", "message");
    return mountInfo(await this.#http.post(`${this.#url}/mounts`, { prefix, mode, message }, options));
  }

  /**
   * Take a mount away; past revisions keep it.
   * @param {string} prefix
   * @param {Changing & { message?: string }} [options]
   * @returns {Promise<void>}
   */
  async umount(prefix, options = {}) {
    const { message } = known("umount", options, "message");
    await this.#http.json("DELETE", `${this.#url}/mounts${query({ prefix, message })}`, {}, options);
  }

  /**
   * A session that is there.
   * @param {string} id
   * @returns {Session}
   */
  session(id) {
    return new Session(this.#http, this.#url, id);
  }

  /**
   * @param {string} id
   * @param {Changing & { cwd?: string, env?: Record<string, string> }} [options]
   * @returns {Promise<Session>}
   */
  async createSession(id, options = {}) {
    const { cwd, env } = known("createSession", options, "cwd", "env");
    await this.#http.post(`${this.#url}/sessions`, { id, cwd, env }, options);
    return this.session(id);
  }

  /**
   * @param {Abortable} [options]
   * @returns {Promise<SessionInfo[]>}
   */
  async sessions(options = {}) {
    return (await this.#http.get(`${this.#url}/sessions`, options))["sessions"].map(sessionInfo);
  }

  /**
   * Commands that were started without waiting, also those that have ended.
   * @param {Abortable} [options]
   * @returns {Promise<Job[]>}
   */
  async jobs(options = {}) {
    const found = (await this.#http.get(`${this.#url}/jobs`, options))["jobs"];
    return found.map((/** @type {Record<string, any>} */ plain) => new Job(this.#http, this.#url, plain));
  }

  /**
   * @param {string} id
   * @param {Abortable} [options]
   * @returns {Promise<Job>}
   */
  async job(id, options = {}) {
    return new Job(this.#http, this.#url, await this.#http.get(`${this.#url}/jobs/${segment(id)}`, options));
  }
}

/** A workspace. Revisions are named by `head`, `head~2`, a tag, a name (`proj-x-3`), a number or an id. */
export class Workspace extends Place {
  #http;
  #url;

  /**
   * @param {Http} http
   * @param {string} name
   */
  constructor(http, name) {
    super(http, name);
    this.#http = http;
    this.#url = `/v1/workspaces/${segment(name)}`;
  }

  /**
   * @param {Abortable} [options]
   * @returns {Promise<WorkspaceInfo>}
   */
  async info(options = {}) {
    return workspaceInfo(await this.#http.get(this.#url, options));
  }

  /**
   * The newest revision; null before the first.
   * @param {Abortable} [options]
   * @returns {Promise<Revision | null>}
   */
  async head(options = {}) {
    return (await this.info(options)).head;
  }

  /**
   * Revisions, newest first, from a revision on (the head when not given). `without` leaves out a revision and all its
   * ancestors; `firstRecord` and `lastRecord` select the revisions that hold the records of these numbers.
   * @param {Abortable & { revision?: string, limit?: number, without?: string, firstRecord?: number, lastRecord?: number }} [options]
   * @returns {Promise<Revision[]>}
   */
  async log(options = {}) {
    const names = ["revision", "limit", "without", "firstRecord", "lastRecord"];
    const { revision: from, limit, without, firstRecord, lastRecord } = known("log", options, ...names);
    const asked = { revision: from, limit, without, first_record: firstRecord, last_record: lastRecord };
    const found = await this.#http.get(`${this.#url}/log${query(asked)}`, options);
    return found["revisions"].map(revision);
  }

  /**
   * What changed from the older to the newer revision. With one revision, what it changed; with none, what the head
   * changed. All of it: when the server lists less than there is, that is asked for.
   * @param {string} [older]
   * @param {string} [newer]
   * @param {Abortable} [options]
   * @returns {Promise<Change[]>}
   */
  async diff(older, newer, options = {}) {
    const limit = 100_000;
    /** @type {Change[]} */
    const all = [];
    for (;;) {
      const asked = { older, newer, limit, offset: all.length };
      const found = await this.#http.get(`${this.#url}/diff${query(asked)}`, options);
      for (const one of found["changes"]) all.push(change(one));
      if (all.length >= found["total"] || found["changes"].length === 0) return all;
    }
  }

  /**
   * Who wrote each line of a file.
   * @param {string} path
   * @param {Abortable & { revision?: string }} [options]
   * @returns {Promise<BlameLine[]>}
   */
  async blame(path, options = {}) {
    const { revision: of } = known("blame", options, "revision");
    const found = await this.#http.get(`${this.#url}/blame${query({ path, revision: of })}`, options);
    return found["lines"];
  }

  /**
   * A file as it was in a revision.
   * @param {string} path
   * @param {string} [of]
   * @param {Abortable} [options]
   * @returns {Promise<Bytes>}
   */
  async show(path, of = "head", options = {}) {
    return this.files.read(path, { ...options, revision: of });
  }

  /**
   * Everything into one revision, durable when this resolves. When nothing changed, the message becomes a note on
   * the head, which is given back with it in `notes`; `subject` is the message where none is given, and never a note.
   * @param {Changing & { message?: string, author?: string, traceId?: string, subject?: string }} [options]
   * @returns {Promise<Revision>}
   */
  async commit(options = {}) {
    const { message, author, traceId, subject } = known("commit", options, "message", "author", "traceId", "subject");
    const body = { message, author, trace_id: traceId, subject };
    return revision(await this.#http.post(`${this.#url}/commit`, body, options));
  }

  /**
   * A new workspace that begins with a revision of this one (what it holds now when null); its head is given back.
   * A workspace in memory has no revisions: its fork is a copy, and null is given back.
   * @param {string | null} of
   * @param {string} newName
   * @param {Changing} [options]
   * @returns {Promise<Revision | null>}
   */
  async fork(of, newName, options = {}) {
    const body = { name: newName, revision: of ?? undefined };
    known("fork", options);
    return maybeRevision((await this.#http.post(`${this.#url}/fork`, body, options))["head"]);
  }

  /**
   * The same workspace under another name, with its history, tags and grants; the old name is in the trash.
   * @param {string} newName
   * @param {Changing} [options]
   * @returns {Promise<Revision | null>} Its head.
   */
  async rename(newName, options = {}) {
    known("rename", options);
    return maybeRevision((await this.#http.post(`${this.#url}/rename`, { name: newName }, options))["head"]);
  }

  /**
   * Make a past content the newest, all of it or some paths.
   * @param {string} to
   * @param {Changing & { message?: string, paths?: string[] }} [options]
   * @returns {Promise<Revision>}
   */
  async revert(to, options = {}) {
    const { message, paths } = known("revert", options, "message", "paths");
    const body = { revision: to, message, paths };
    return revision(await this.#http.post(`${this.#url}/revert`, body, options));
  }

  /**
   * Bring another workspace (`OTHER` or `OTHER@REVISION`) in. Conflicts change nothing.
   * @param {string} other
   * `take` resolves conflicts by a side, for a path or for `*`.
   * @param {Changing & { message?: string, take?: Record<string, "ours" | "theirs"> }} [options]
   * @returns {Promise<Merged>}
   */
  async merge(other, options = {}) {
    const { message = "", take = {} } = known("merge", options, "message", "take");
    const sending = { json: { other, message, take }, fine: [409] };
    const answer = await this.#http.send("POST", `${this.#url}/merge`, sending, options);
    const bytes = await answer.bytes();
    const found = JSON.parse(new TextDecoder().decode(bytes));
    if (found.conflicts === undefined) throw refusal(answer.status, bytes);
    return { revision: maybeRevision(found.revision), conflicts: found.conflicts, base: found.base ?? "" };
  }

  /**
   * Undo the last change, or what an agent or run changed and nothing else. Conflicts change nothing.
   * @param {Changing & { agent?: string, run?: string, message?: string }} [options]
   * @returns {Promise<Merged>}
   */
  async undo(options = {}) {
    const { agent, run, message = "" } = known("undo", options, "agent", "run", "message");
    const sending = { json: { agent, run, message }, fine: [409] };
    const answer = await this.#http.send("POST", `${this.#url}/undo`, sending, options);
    const bytes = await answer.bytes();
    const found = JSON.parse(new TextDecoder().decode(bytes));
    if (found.conflicts === undefined) throw refusal(answer.status, bytes);
    return { revision: maybeRevision(found.revision), conflicts: found.conflicts, base: found.base ?? "" };
  }

  /**
   * @param {Abortable} [options]
   * @returns {Promise<Tag[]>}
   */
  async tags(options = {}) {
    return (await this.#http.get(`${this.#url}/tags`, options))["tags"].map(tag);
  }

  /**
   * Name a revision (the head when not given).
   * @param {string} name
   * @param {Changing & { revision?: string, message?: string, author?: string, force?: boolean }} [options]
   * @returns {Promise<Tag>}
   */
  async tag(name, options = {}) {
    const { signal, idempotencyKey, ...body } = known("tag", options, "revision", "message", "author", "force");
    const url = `${this.#url}/tags/${segment(name)}`;
    return tag(await this.#http.json("PUT", url, { json: body }, { signal, idempotencyKey }));
  }

  /**
   * @param {string} name
   * @param {Changing} [options]
   * @returns {Promise<void>}
   */
  async untag(name, options = {}) {
    await this.#http.json("DELETE", `${this.#url}/tags/${segment(name)}`, {}, options);
  }

  /**
   * Add a note to a revision (the head when not given), or to a file or a line of it.
   * @param {string} message
   * @param {Changing & { revision?: string, path?: string, line?: number, author?: string }} [options]
   * @returns {Promise<Revision>}
   */
  async note(message, options = {}) {
    const { revision: of, path, line, author } = known("note", options, "revision", "path", "line", "author");
    return revision(await this.#http.post(`${this.#url}/notes`, { message, revision: of, path, line, author }, options));
  }

  /**
   * A revision (what it holds now when not given) as a tar, as it is written.
   * @param {Abortable & { revision?: string, kind?: "snapshot" | "tar", compress?: "gz" | "bz2" | "xz" }} [options]
   * @returns {AsyncGenerator<Bytes, void, void>}
   */
  async *snapshot(options = {}) {
    const { revision: of, kind, compress } = known("snapshot", options, "revision", "kind", "compress");
    const url = `${this.#url}/snapshot${query({ revision: of, kind, compress })}`;
    yield* (await this.#http.send("GET", url, {}, options)).blocks();
  }

  /**
   * Make a tar the next revision; the workspace is made when it is not there.
   * @param {Content} tar
   * @param {Changing & { prefix?: string, kind?: "snapshot" | "tar", message?: string, author?: string }} [options]
   * @returns {Promise<{ revision: Revision | null, leftOut: string[] }>}
   */
  async load(tar, options = {}) {
    const { prefix, kind, message, author } = known("load", options, "prefix", "kind", "message", "author");
    const url = `${this.#url}/snapshot${query({ prefix, kind, message, author })}`;
    const found = await this.#http.json("PUT", url, { body: tar }, options);
    return { revision: maybeRevision(found["revision"]), leftOut: found["left_out"] };
  }

  /**
   * The first revision in which a command fails: 0 is good, 125 cannot be told, everything else is bad.
   * @param {string} good a revision in which it succeeds
   * @param {string} command
   * @param {Watching & { bad?: string, timeoutMs?: number }} [options]
   * @returns {Promise<Bisected>}
   */
  async bisect(good, command, options = {}) {
    const { bad, timeoutMs } = known("bisect", options, "bad", "timeoutMs", "onProgress");
    const body = { good, bad, command, timeout_ms: timeoutMs };
    const found = await longWork(this.#http, `${this.#url}/bisect`, body, options);
    const steps = found["steps"].map((/** @type {Plain} */ { revision: of, verdict, exit_code: exitCode }) => ({
      revision: revision(of), verdict, exitCode,
    }));
    return { firstBad: maybeRevision(found["first_bad"]), suspects: found["suspects"].map(revision), steps };
  }

  /**
   * The whole history as `git fast-import` reads it.
   * @param {Abortable} [options]
   * @returns {AsyncGenerator<Bytes, void, void>}
   */
  async *git(options = {}) {
    known("git", options);
    yield* (await this.#http.send("GET", `${this.#url}/git`, {}, options)).blocks();
  }

  /**
   * Have the server push a revision as one commit of a git branch; the server says where it pushes to at all.
   * @param {string} remote
   * @param {PushOptions} [options]
   * @returns {Promise<Pushed>}
   */
  async push(remote, options = {}) {
    known("push", options, "revision", "branch", "paths", "token", "username");
    const { signal, idempotencyKey, ...body } = options;
    const found = await this.#http.post(`${this.#url}/push`, { ...body, remote }, { signal, idempotencyKey });
    return /** @type {Pushed} */ (found);
  }

  /**
   * Pushes that are not done.
   * @param {Abortable} [options]
   * @returns {Promise<WaitingPush[]>}
   */
  async pushes(options = {}) {
    return (await this.#http.get(`${this.#url}/pushes`, options))["pushes"].map(waitingPush);
  }

  /**
   * Try again what could not be pushed; `secrets` by name and key have what it needs, and are kept nowhere.
   * @param {Changing & { secrets?: Record<string, Record<string, string>> }} [options]
   * @returns {Promise<{ pushed: Pushed[], failed: string[] }>}
   */
  async pushAgain(options = {}) {
    const { secrets } = known("pushAgain", options, "secrets");
    const { pushed, failed } = await this.#http.post(`${this.#url}/pushes`, { secrets }, options);
    return { pushed, failed };
  }

  /**
   * How long its revisions are kept.
   * @param {Abortable} [options]
   * @returns {Promise<Retention>}
   */
  async retention(options = {}) {
    return retention(await this.#http.get(`${this.#url}/retention`, options));
  }

  /**
   * Say anew how long its revisions are kept; what is not said is forgotten, but for a hold.
   * @param {Keeping} keeping
   * @param {Changing} [options]
   * @returns {Promise<Retention>}
   */
  async setRetention(keeping, options = {}) {
    return retention(await this.#http.json("PUT", `${this.#url}/retention`, { json: kept(keeping) }, options));
  }

  /**
   * Keep everything of it from being removed until the hold is lifted.
   * @param {string} why
   * @param {Changing} [options]
   * @returns {Promise<Retention>}
   */
  async hold(why, options = {}) {
    return retention(await this.#http.json("PUT", `${this.#url}/hold`, { json: { why } }, options));
  }

  /**
   * @param {Changing} [options]
   * @returns {Promise<Retention>}
   */
  async lift(options = {}) {
    return retention(await this.#http.json("DELETE", `${this.#url}/hold`, {}, options));
  }

  /**
   * Keep a revision (the head when not given) from expiring, for a time or until `run.store.unpin(token)`.
   * @param {Changing & { revision?: string, forMs?: number, why?: string }} [options]
   * @returns {Promise<Pin>}
   */
  async pin(options = {}) {
    const { revision: of, forMs, why } = known("pin", options, "revision", "forMs", "why");
    const body = { revision: of, seconds: forMs === undefined ? undefined : forMs / 1000, why };
    return pin(await this.#http.post(`${this.#url}/pins`, body, options));
  }

  /**
   * Who may read and who may write; empty when everybody may do both.
   * @param {Abortable} [options]
   * @returns {Promise<Record<string, "readonly" | "readwrite">>}
   */
  async grants(options = {}) {
    return (await this.#http.get(`${this.#url}/grants`, options))["grants"];
  }

  /**
   * Let a principal read or write; after the first grant, all other principals are refused.
   * @param {string} principal
   * @param {"readonly" | "readwrite"} access
   * @param {Changing} [options]
   * @returns {Promise<void>}
   */
  async grant(principal, access, options = {}) {
    await this.#http.json("PUT", `${this.#url}/grants/${segment(principal)}`, { json: { access } }, options);
  }

  /**
   * Take back what a principal was granted.
   * @param {string} principal
   * @param {Changing} [options]
   * @returns {Promise<void>}
   */
  async revoke(principal, options = {}) {
    await this.#http.json("DELETE", `${this.#url}/grants/${segment(principal)}`, {}, options);
  }

  /**
   * Destroy its keys: what only they could open is lost for ever. `confirm` is its name once more.
   * @param {Changing & { confirm: string }} options
   * @returns {Promise<Shredded>}
   */
  async shred(options) {
    const { confirm } = known("shred", options, "confirm");
    const { workspace, destroyed, kept_by: keptBy, removed } = await this.#http.post(
      `${this.#url}/shred`, { confirm }, options,
    );
    return { workspace, destroyed, keptBy, removed };
  }

  /**
   * Remove it; its revisions stay until they are collected.
   * @param {Changing} [options]
   * @returns {Promise<void>}
   */
  async remove(options = {}) {
    await this.#http.json("DELETE", this.#url, {}, options);
  }
}
