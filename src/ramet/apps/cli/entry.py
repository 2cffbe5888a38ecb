"""The `ramet` process: fast start and exit around `main`, which any program may call.

Rules that this file keeps:
- While what a verb needs is imported, nobody looks for garbage: there is none, and what is imported stays. From the
  moment in which the verb works, it is looked for as ever.
- The process ends without taking itself apart, when nothing is left to do: everything that was promised is durable
  when a verb returns, what was registered for the end is done, the streams are flushed and no other thread runs.
"""

from __future__ import annotations

import gc
import os
import sys


def entry() -> None:
    """The entry point of the `ramet` command."""
    gc.disable()
    _have_streams()
    from ramet.apps.cli.main import main

    try:
        main()
        code: object = 0
    except SystemExit as end:
        code = 0 if end.code is None else end.code
        if not isinstance(code, int):
            raise
    except OSError as error:  # help and versions cannot be printed either where nobody reads, or a disk is full
        from ramet.apps.cli.errors import unwritable

        code = unwritable(error)
    _leave(code)


def resume_gc() -> None:
    """What is needed has been imported: garbage is looked for again, but not among that."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


def _leave(code: object) -> None:
    threading = sys.modules.get("threading")
    if not isinstance(code, int) or (threading is not None and threading.active_count() > 1):
        sys.exit(code)  # type: ignore[arg-type]
    import atexit

    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError as error:
        from ramet.apps.cli.errors import unwritable

        sys.exit(unwritable(error))
    except ValueError:
        sys.exit(code)  # somebody has closed them
    os._exit(code & 0xFF)


def _have_streams() -> None:
    """Who started the process may have closed its streams: nothing is read then, and writing is an error."""
    if sys.stdin is None:
        _open_null(0, os.O_RDONLY)
        sys.stdin = open(0, closefd=False)
    if sys.stdout is None:
        _open_null(1, os.O_RDONLY)
        sys.stdout = open(1, "w", closefd=False)
    if sys.stderr is None:
        _open_null(2, os.O_WRONLY)
        sys.stderr = open(2, "w", closefd=False)


def _open_null(descriptor: int, how: int) -> None:
    found = os.open(os.devnull, how)
    if found != descriptor:
        os.dup2(found, descriptor)
        os.close(found)
