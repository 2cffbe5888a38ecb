"""How errors are told, and which status each ends with. Imports nothing heavy: the quick way in uses it as well."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from ramet.core.errors import RametError

STATUS: Final = {
    "workspace_not_found": 3, "revision_not_found": 3, "not_found": 3, "session_not_found": 3,
    "workspace_busy": 4, "lease_lost": 4, "head_moved": 4, "merge_conflict": 4, "workspace_exists": 4,
    "already_exists": 4,
}  # fmt: skip


@contextmanager
def reported() -> Iterator[None]:
    """Errors as people want them: one line of cause, one line of what to do."""
    try:
        yield
    except RametError as error:
        if "--json" in sys.argv:
            import json

            print(json.dumps({"error": error.as_dict()}, default=str))
        else:
            print(f"ramet: {error.cause}", file=sys.stderr)
            if error.remediation:
                print(f"       {error.remediation}", file=sys.stderr)
        sys.exit(STATUS.get(error.code, 1))
    except BrokenPipeError:
        _nobody_reads()
    except (OSError, ValueError) as error:
        print(f"ramet: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("ramet: interrupted", file=sys.stderr)
        sys.exit(130)


def _nobody_reads() -> None:
    """As a program ends that SIGPIPE kills, without Python's complaint about the stream."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(141)
