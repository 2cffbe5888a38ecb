/** What can go wrong: every refusal says what, why and what to do. An abort is an `AbortError`, as everywhere. */

/** A refusal of the server. `message` is the cause; `code` is one of the codes in Ramet's table of errors. */
export class RametError extends Error {
  /**
   * @param {string} code
   * @param {string} message
   * @param {{ remediation?: string, status?: number, context?: Record<string, unknown>, cause?: unknown }} [more]
   */
  constructor(code, message, more = {}) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause });
    this.name = "RametError";
    /** For programs: `not_found`, `workspace_busy`, ... */
    this.code = code;
    /** What to do about it; may be empty. */
    this.remediation = more.remediation ?? "";
    /** The HTTP status; 0 when there was no answer. */
    this.status = more.status ?? 0;
    /** What the error is about, in names and numbers. */
    this.context = more.context ?? {};
  }
}

/** The server could not be reached, or it went away in the middle. */
export class ConnectionError extends RametError {
  /**
   * @param {string} message
   * @param {unknown} [cause]
   */
  constructor(message, cause) {
    const remediation = "see whether the server runs; what was asked may have happened: an idempotencyKey lets repeat it";
    super("unavailable", message, { remediation, cause });
    this.name = "ConnectionError";
  }
}

/**
 * The error of an aborted call, with the signal's reason as its cause.
 * @param {AbortSignal} signal
 * @returns {DOMException}
 */
export function aborted(signal) {
  const { reason } = signal;
  const error = new DOMException(reason instanceof Error ? reason.message : "The operation was aborted", "AbortError");
  Object.defineProperty(error, "cause", { value: reason, configurable: true });
  return error;
}

/**
 * Refuse what the server would not understand, before anything is sent.
 * @param {string} message
 * @param {string} remediation
 * @returns {RametError}
 */
export function invalid(message, remediation) {
  return new RametError("invalid_argument", message, { remediation });
}

/**
 * Refuse options that a call does not have: one that is misspelt must not be one that is left out.
 * @template {object} T
 * @param {string} call
 * @param {T} options
 * @param {string[]} names in addition to those that every call takes
 * @returns {T}
 */
export function known(call, options, ...names) {
  const all = [...names, "signal", "idempotencyKey"];
  const wrong = Object.keys(options).filter((name) => !all.includes(name));
  if (wrong.length > 0) throw invalid(`${call} has no option ${wrong.join(", ")}`, `use ${all.join(", ")}`);
  return options;
}

/**
 * The error that a problem document describes.
 * @param {number} status
 * @param {Uint8Array} body
 * @returns {RametError}
 */
export function refusal(status, body) {
  try {
    const problem = JSON.parse(new TextDecoder().decode(body));
    if (typeof problem.code === "string") {
      const { code, cause, remediation, context } = problem;
      return new RametError(code, cause, { remediation, status, context });
    }
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  return new RametError("unavailable", `the server answered ${status}`, { status, remediation: "look at the server" });
}
