// WebSocket connection of a terminal: JSON frames, raw input, and output that is acknowledged once drawn.

import { bearer, workspacePath } from "./api.js";
import { encodeText } from "./names.js";

const EACH = 32 << 10; // bytes drawn per acknowledgement
const KEYS = 32 << 10; // bytes of input per frame
const encoder = new TextEncoder();

/** Connect; resolves to the server's `ready` frame and the connection, or to null if it refuses. */
export function greeted(name, session, signal) {
  return new Promise((resolve) => {
    const heard = [];
    let acts = null;
    const pass = (what) => (...told) => {
      if (acts) acts[what](...told);
      else if (what === "frame" && told[0].type === "ready") resolve([told[0], connection]);
      else if (what === "closed" || told[0].type === "problem") resolve(null);
      else heard.push([what, told]);
    };
    const connection = openConnection(name, session, { frame: pass("frame"), output: pass("output"), closed: pass("closed") });
    connection.listen = (found) => {
      acts = found;
      for (const [what, told] of heard) acts[what](...told);
    };
    signal.addEventListener("abort", () => {
      connection.close();
      resolve(null);
    });
  });
}

/**
 * Connect to the terminal of a workspace. `acts` are `frame(frame)`, `output(bytes, drawn)`, whose `drawn` is called
 * when the bytes are on the screen, and `closed(reason)`. The result has `say(frame)`, `type(bytes or text)` and `close()`.
 */
export function openConnection(name, session, acts) {
  const place = new URL(`../v1${workspacePath(name, "/terminal")}?session=${encodeText(session)}`, document.baseURI);
  place.protocol = place.protocol === "https:" ? "wss:" : "ws:";
  const socket = new WebSocket(place, ["ramet.terminal", `ramet.bearer.${bearer()}`]);
  socket.binaryType = "arraybuffer";
  let drawn = 0;
  let under = 0; // pieces not drawn yet
  const say = (frame) => socket.readyState === WebSocket.OPEN && socket.send(JSON.stringify(frame));
  socket.addEventListener("message", ({ data }) => {
    if (typeof data === "string") return void acts.frame(JSON.parse(data));
    under += 1;
    acts.output(new Uint8Array(data), () => {
      under -= 1;
      drawn += data.byteLength;
      if (drawn < EACH && under) return;
      say({ type: "shown", bytes: drawn });
      drawn = 0;
    });
  });
  socket.addEventListener("close", ({ reason }) => acts.closed(reason));
  return {
    say, close: () => socket.close(),
    type: (keys) => {
      const bytes = typeof keys === "string" ? encoder.encode(keys) : keys;
      for (let at = 0; at < bytes.length; at += KEYS) if (socket.readyState === WebSocket.OPEN) socket.send(bytes.subarray(at, at + KEYS));
    },
  };
}
