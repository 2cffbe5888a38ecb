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
}
"""What to do on a command line, where a server tells what to send."""


@contextmanager
def report_errors(as_json: bool = False) -> Iterator[None]:
    """Errors as people want them: one line of cause, one line of what to do."""
    try:
        yield
    except RametError as error:
        if as_json:
            import json

            print(json.dumps({"error": error.as_dict()}, default=str))
        else:
            cause = [line for line in error.cause.splitlines() if line.strip()] or [""]
            print("ramet: " + "\n".join(cause), file=sys.stderr)  # whole: a list of places begins its lines with them
            remedy = REMEDIES.get(error.code, error.remediation)
            for line in filter(None, (_meant(error), remedy)):
                print(f"       {line}", file=sys.stderr)
        sys.exit(STATUS.get(error.code, 1))
    except BrokenPipeError:
        _nobody_reads()
    except (OSError, ValueError) as error:
        _tell(error, as_json)
        sys.exit(3 if isinstance(error, FileNotFoundError) else 1)
    except KeyboardInterrupt:
        print("ramet: interrupted", file=sys.stderr)
        sys.exit(130)
    except Exception as error:  # the edge: what nobody foresaw is told in a line, too, and whole to who asks for it
        if "RAMET_DEBUG" in os.environ:
            raise
        if type(error).__module__.startswith("obstore"):
            _tell(_from_afar(error), as_json)
            sys.exit(1)
        told = str(error).strip().partition("\n")[0] or type(error).__name__
        print(f"ramet: {told}", file=sys.stderr)
        print("       this was not foreseen; RAMET_DEBUG=1 shows where it comes from", file=sys.stderr)
        sys.exit(1)
    finally:
        while _ends:
            _ends.pop()()


def _from_afar(error: Exception) -> OSError:
    """What the object store that the store is in says."""
    from ramet.backends.objects.errors import translated
    from ramet.core.paths import ROOT

    if "recognise URL" in str(error):
        return OSError(errno.EINVAL, "that is not the address of a store: write a directory, or s3://BUCKET/PREFIX")
    found = translated(error, ROOT, "the store's bucket")
    return OSError(found.errno, found.strerror)


def _tell(error: OSError | ValueError, as_json: bool) -> None:
    """What the system or a reader of files says, as one says it: the place first, then what is wrong with it."""
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
    """What is wrong with a command line."""
    if as_json:
        import json

        told = {"code": "invalid_argument", "cause": cause, "remediation": remedy, "context": {}}
        print(json.dumps({"error": told}))
    else:
        print(f"ramet: {cause}\n       {remedy}", file=sys.stderr)


_ends: list[Callable[[], None]] = []


def at_end(act: Callable[[], None]) -> None:
    """What to do when the verb has ended, and its errors are told."""
    _ends.append(act)


_names: list[Callable[[], list[str]]] = []


def suggest(names: Callable[[], list[str]]) -> None:
    """How to find the names that exist, for who mistypes one."""
    _names[:] = [names]


def _meant(error: RametError) -> str:
    found = re.search(r"no workspace '([^']+)'", error.cause) if error.code == "workspace_not_found" else None
    if found is None or not _names:
        return ""
    from difflib import get_close_matches

    try:
        near = get_close_matches(found[1], _names[0](), 2, 0.6)
    except (OSError, RametError):
        return ""
    return f"did you mean {' or '.join(near)}?" if near else ""


def _nobody_reads() -> None:
    """As a program ends that SIGPIPE kills, without Python's complaint about the stream."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(141)


def unwritable(error: OSError) -> int:
    """The status of a process whose output cannot be written; why is said where that still can be."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if isinstance(error, BrokenPipeError):
        return 141
    try:
        print(f"ramet: write error: {error.strerror or error}", file=sys.stderr)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    return 1
