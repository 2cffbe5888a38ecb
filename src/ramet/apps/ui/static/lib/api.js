// HTTP client: the token, requests, streams, and refusals as `Problem`. Nothing here knows the page.

import { encodeText } from "./names.js";

const KEY = "ramet-token";
let token = sessionStorage.getItem(KEY) ?? "";

/** Why the server refused: what happened, and what to do about it. */
export class Problem extends Error {
  constructor({ status = 0, code = "", cause = "", remediation = "", conflicts = [] }) {
    super(cause || `the server answered ${status}`);
    this.name = "Problem";
    Object.assign(this, { status, code, remediation, conflicts });
  }
}

export const hasToken = () => token !== "";

/** The token as the name of a subprotocol, because browsers cannot set headers of a WebSocket. */
export const bearer = () => btoa(String.fromCharCode(...new TextEncoder().encode(token))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");

export function keepToken(text) {
  token = text;
  if (text) sessionStorage.setItem(KEY, text);
  else sessionStorage.removeItem(KEY);
}

/** Exchange the code of a link from `ramet ui` for the token; a code works once. */
export async function redeem(code) {
  const answer = await fetch("redeem", { method: "POST", body: code, cache: "no-store" });
  if (!answer.ok) throw await refusal(answer);
  keepToken((await answer.json()).token);
}

/** Share the token between tabs of this page; it never leaves the browser. */
export function shareWithTabs(timeout = 400) {
  if (typeof BroadcastChannel === "undefined") return Promise.resolve(hasToken());
  const channel = new BroadcastChannel(KEY);
  return new Promise((resolve) => {
    channel.onmessage = ({ data }) => {
      if (data?.ask && token) channel.postMessage({ token });
      else if (typeof data?.token === "string" && !token) {
        keepToken(data.token);
        resolve(true);
      }
    };
    if (token) resolve(true);
    else {
      channel.postMessage({ ask: true });
      setTimeout(() => resolve(hasToken()), timeout);
    }
  });
}

async function refusal(answer) {
  try {
    const told = await answer.json();
    return new Problem({ ...told, status: answer.status });
  } catch {
    return new Problem({ status: answer.status, cause: `the server answered ${answer.status}` });
  }
}

function address(path, query) {
  const pairs = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const asked = pairs.map(([key, value]) => `${key}=${encodeText(String(value))}`).join("&");
  return `../v1${path}${asked && `?${asked}`}`;
}

export const workspacePath = (name, rest = "") => `/workspaces/${encodeText(name)}${rest}`;

async function send(method, path, { query = {}, body, headers = {}, signal } = {}) {
  let answer;
  const sent = { ...headers };
  if (token) sent.authorization = `Bearer ${token}`;
  if (body !== undefined) sent["content-type"] = "application/json";
  try {
    answer = await fetch(address(path, query), {
      method, signal, headers: sent, body: body === undefined ? undefined : JSON.stringify(body), cache: "no-store",
      credentials: "omit", redirect: "error", referrerPolicy: "no-referrer",
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem({ code: "unreachable", cause: "cannot reach the server", remediation: "check that `ramet ui` or `ramet serve` runs" });
  }
  if (answer.status === 401) document.dispatchEvent(new CustomEvent("ramet:locked"));
  if (!answer.ok) throw await refusal(answer);
  return answer;
}

const key = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");

export const get = async (path, query, signal) => (await send("GET", path, { query, signal })).json();
/** Request a change; the idempotency key keeps a retry by the browser from doing it twice. */
export const change = async (method, path, body, query) => (await send(method, path, { body, query, headers: { "idempotency-key": key() } })).json();
export const raw = (path, query, headers, signal) => send("GET", path, { query, headers, signal });

// A lone surrogate, which stands for a byte that is not UTF-8. JSON cannot carry it; its replacement has the same length.
const LONE = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** Characters of a text that the server colors or renders. */
export const RENDERED = 256 << 10;

/** Render text to tokens (`kind` "code") or a tree ("markdown"); null when the server cannot do it in time. */
export async function render(kind, name, text, signal) {
  if (text.length > RENDERED) return null;
  try {
    const answer = await fetch("render", {
      method: "POST", signal, cache: "no-store", headers: { "content-type": "application/json", ...(token && { authorization: `Bearer ${token}` }) },
      body: JSON.stringify({ kind, name: name.replace(LONE, "?"), text: text.replace(LONE, "\ufffd") }),
    });
    return answer.ok ? await answer.json() : null;
  } catch (error) {
    if (error.name === "AbortError") throw error;
    return null; // the text is shown without colors
  }
}

/** Read a range of a file: its bytes, their offset, and the size of the file. */
export async function part(name, path, rev, from, to, signal) {
  let answer;
  try {
    answer = await raw(workspacePath(name, "/file"), { path, revision: rev }, { range: `bytes=${from}-${to - 1}` }, signal);
  } catch (problem) {
    if (problem.status !== 416) throw problem;
    return { bytes: new Uint8Array(0), from: 0, total: 0 };
  }
  const range = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(answer.headers.get("content-range") ?? "");
  if (range === null) return whole(answer, to, signal);
  return { bytes: new Uint8Array(await answer.arrayBuffer()), from: Number(range[1]), total: Number(range[3]) };
}

/** Read at most `most` bytes of an answer without a range: a file whose size is unknown before it is read. */
async function whole(answer, most) {
  const pieces = [];
  let length = 0;
  const reader = answer.body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    pieces.push(value);
    length += value.length;
    if (length > most) {
      await reader.cancel();
      break;
    }
  }
  const bytes = new Uint8Array(length);
  pieces.reduce((at, piece) => (bytes.set(piece, at), at + piece.length), 0);
  const total = length > most ? null : length;
  return { bytes: bytes.subarray(0, most), from: 0, total };
}

/** Yield the lines of an answer as they arrive. */
async function* lines(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    const parts = (rest + value).split("\n");
    rest = parts.pop();
    yield* parts;
  }
  if (rest) yield rest;
}

/** Run a command: yield its output as `{fd, text}`, then the result. Aborting the signal stops the command. */
export async function* run(name, command, signal) {
  const answer = await send("POST", workspacePath(name, "/exec"), { body: { ...command, stream: true }, signal });
  const decoders = { 1: new TextDecoder(), 2: new TextDecoder() };
  for await (const line of lines(answer)) {
    const told = JSON.parse(line);
    if (told.problem) throw new Problem(told.problem);
    if (told.fd === undefined) {
      yield { result: told };
      return;
    }
    const bytes = told.encoding === "base64" ? Uint8Array.from(atob(told.data), (c) => c.charCodeAt(0)) : new TextEncoder().encode(told.data);
    yield { fd: told.fd, text: decoders[told.fd].decode(bytes, { stream: true }) };
  }
  throw new Problem({ code: "broken", cause: "the connection broke before the command ended", remediation: "check that the server runs" });
}

/** Yield the events of the server until the signal is aborted. */
export async function* events(signal) {
  const answer = await send("GET", "/events", { signal });
  let kind = "";
  for await (const line of lines(answer)) {
    if (line.startsWith("event: ")) kind = line.slice(7);
    else if (line.startsWith("data: ")) yield { kind, ...JSON.parse(line.slice(6)) };
    else if (line === ": ramet") yield { kind: "connected" };
  }
}
