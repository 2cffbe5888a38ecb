"""Entry point of the `ramet` process: fast start and fast exit around `main`.

Rules:
- Garbage collection is off while a verb's modules are imported, because imports leave no garbage. It is on again when
  the verb starts.
- The process exits without interpreter teardown once the verb's data is durable, exit handlers have run, streams are
  flushed and no other thread runs.
"""

from __future__ import annotations

import gc
import os
import sys


def entry() -> None:
    """Run the `ramet` command and exit."""
    gc.disable()
    _replace_closed_streams()
    from ramet.apps.cli.main import main

    try:
        main()
        code: object = 0
    except SystemExit as end:
        code = 0 if end.code is None else end.code
        if not isinstance(code, int):
            raise
    except OSError as error:  # printing help or the version also fails on a closed pipe or a full disk
        from ramet.apps.cli.errors import unwritable

        code = unwritable(error)
    _exit_now(code)


def resume_gc() -> None:
    """Turn garbage collection on again, without the modules imported so far."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


def _exit_now(code: object) -> None:
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
        sys.exit(code)  # the streams are closed
    os._exit(code & 0xFF)


def _replace_closed_streams() -> None:
    """Replace standard streams that the parent process closed: reads are empty, writes fail."""
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
