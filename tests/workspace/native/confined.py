"""Run Python in a bubblewrap sandbox: a machine that lacks something, or has little of it."""

from __future__ import annotations

import os
import subprocess
import sys

from ramet.native.bubblewrap import find_bubblewrap

USER = "1234"


def run_in_sandbox(source: str, *options: str, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    """Run a script as uid 1234 of a user namespace, on this machine's files; the shared memory is its own."""
    program = find_bubblewrap()
    assert program is not None
    command = [
        program, "--unshare-user", "--uid", USER, "--gid", USER, "--dev-bind", "/", "/", "--die-with-parent",
        *options, "--setenv", "PYTHONPATH", os.pathsep.join(path for path in sys.path if path),
        "--setenv", "PYTHONDONTWRITEBYTECODE", "1", sys.executable, "-c", source,
    ]  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
