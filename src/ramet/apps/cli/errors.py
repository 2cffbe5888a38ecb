"""Print errors of the command line and choose the exit status. Imports nothing heavy."""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from ramet.core.errors import RametError

STATUS: Final = {
    "workspace_not_found": 3, "revision_not_found": 3, "revision_expired": 3, "not_found": 3, "session_not_found": 3,
    "workspace_busy": 4, "workspace_held": 4, "lease_lost": 4, "head_moved": 4, "merge_conflict": 4,
    "workspace_exists": 4, "already_exists": 4, "invalid_argument": 2,
}  # fmt: skip


REMEDIES: Final = {
    "unauthenticated": "set $RAMET_TOKEN to the token of the server: where it runs, STORE/server-token has it",
    "workspace_busy": "Pass --wait SECONDS to exec, end that process, or read NAME@head.",
    "workspace_held": "lift the hold first: ramet hold NAME --lift",
    "workspace_not_found": "run `ramet create NAME`, or see `ramet ls` for the names",
}
"""Remediations for a command line, in place of those for a program."""
SERVED: Final = "Go through it: ramet --store URL ..., with the URL that it printed; or read NAME@head."
"""Remediation for a workspace that a server of this machine holds."""


@contextmanager
def report_errors(as_json: bool = False) -> Iterator[None]:
    """Print errors as a line with the cause and a line with the remedy, then exit."""
    try:
        yield
    except RametError as error:
        if as_json:
            import json

            print(json.dumps({"error": error.as_dict()}, default=str))
        else:
            cause = [line for line in error.cause.splitlines() if line.strip()] or [""]
            print("ramet: " + "\n".join(cause), file=sys.stderr)  # may be a list of errors
            if remedy := _did_you_mean(error) or _remedy(error):
                print(f"       {remedy}", file=sys.stderr)
        sys.exit(STATUS.get(error.code, 1))
    except BrokenPipeError:
        _exit_on_closed_pipe()
    except (OSError, ValueError) as error:
        _print_error(error, as_json)
        sys.exit(3 if isinstance(error, FileNotFoundError) else 1)
    except KeyboardInterrupt:
        print("ramet: interrupted", file=sys.stderr)
        sys.exit(130)
    except Exception as error:  # the outermost frame: print a bug as one line, and its traceback with RAMET_DEBUG=1
        if "RAMET_DEBUG" in os.environ:
            raise
        if type(error).__module__.startswith("obstore"):
            _print_error(_bucket_error(error), as_json)
            sys.exit(1)
        told = str(error).strip().partition("\n")[0] or type(error).__name__
        print(f"ramet: {told}", file=sys.stderr)
        print("       this is a bug; set RAMET_DEBUG=1 for the traceback", file=sys.stderr)
        sys.exit(1)
    finally:
        while _ends:
            _ends.pop()()


def _bucket_error(error: Exception) -> OSError:
    """Translate an error of the bucket that holds the store."""
    from ramet.backends.objects.errors import translated
    from ramet.core.paths import ROOT

    if "recognise URL" in str(error):
        return OSError(errno.EINVAL, "not the address of a store: write a directory, or s3://BUCKET/PREFIX")
    found = translated(error, ROOT, "the store's bucket")
    return OSError(found.errno, found.strerror)


def _print_error(error: OSError | ValueError, as_json: bool) -> None:
    """Print an error of the system or of a parser: the location first, then the reason."""
    told = str(error)
    if isinstance(error, OSError) and error.strerror:
        place = os.fsdecode(error.filename) if isinstance(error.filename, bytes) else error.filename
        told = f"{place}: {error.strerror}" if place is not None else error.strerror
    if as_json:
        import json

        code = "not_found" if isinstance(error, FileNotFoundError) else "unavailable"
        print(json.dumps({"error": {"code": code, "cause": told, "remediation": "", "context": {}}}))
    else:
        print(f"ramet: {told}", file=sys.stderr)


def complain(cause: str, remedy: str, *, as_json: bool) -> None:
    """Print a usage error."""
    if as_json:
        import json

        told = {"code": "invalid_argument", "cause": cause, "remediation": remedy, "context": {}}
        print(json.dumps({"error": told}))
    else:
        print(f"ramet: {cause}\n       {remedy}", file=sys.stderr)


_ends: list[Callable[[], None]] = []


def at_end(act: Callable[[], None]) -> None:
    """Call `act` when the verb has ended and its errors are printed."""
    _ends.append(act)


_MISTYPED: Final = ("workspace_not_found", "revision_not_found")
_names: list[Callable[[], list[str]]] = []


def suggest(names: Callable[[], list[str]]) -> None:
    """Set the function that lists existing names, for a hint after a mistyped one."""
    _names[:] = [names]


def _remedy(error: RametError) -> str:
    if error.code == "workspace_busy" and re.search(r"\(ramet (serve|ui)\)", error.cause):
        return SERVED
    return REMEDIES.get(error.code, error.remediation)


def _did_you_mean(error: RametError) -> str:
    """Name the workspaces close to a mistyped one, or to a revision that is none."""
    found = re.search(r"no (?:workspace|revision) '([^']+)'", error.cause) if error.code in _MISTYPED else None
    if found is None or not _names:
        return ""
    from difflib import get_close_matches

    try:
        near = get_close_matches(found[1], _names[0](), 2, 0.65)
    except (OSError, RametError):
        return ""
    return f"did you mean {' or '.join(near)}?" if near else ""


def _exit_on_closed_pipe() -> None:
    """Exit as SIGPIPE would, without Python's message about the closed stream."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(141)


def unwritable(error: OSError) -> int:
    """Print why the output cannot be written, if stderr still works; return the exit status."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if isinstance(error, BrokenPipeError):
        return 141
    try:
        print(f"ramet: write error: {error.strerror or error}", file=sys.stderr)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    return 1
