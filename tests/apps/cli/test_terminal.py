"""`ramet exec -t`: a program on the terminal of the user."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.workspace.native.conftest import missing, need

SECONDS = 60


def test_exec_on_a_terminal(tmp_path: Path) -> None:
    if missing():
        pytest.skip(f"no native programs here: {missing()}")
    need("python3")
    ramet = [sys.executable, "-m", "ramet.apps.cli"]
    env = {**os.environ, "RAMET_HOME": str(tmp_path / "store"), "TERM": "xterm"}
    subprocess.run([*ramet, "create", "--native", "app"], env=env, check=True, stdout=subprocess.DEVNULL)
    ours, theirs = os.openpty()
    command = [*ramet, "exec", "--tty", "app", "python3 -q; exit 4"]
    child = subprocess.Popen(command, env=env, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
    os.close(theirs)

    def expect(text: bytes) -> None:
        seen, deadline = b"", time.monotonic() + SECONDS
        while text not in seen:
            assert select.select([ours], [], [], deadline - time.monotonic())[0], seen
            seen += os.read(ours, 4096)

    try:
        expect(b">>> ")
        os.write(ours, b"6 * 7\n")
        expect(b"42\r\n>>> ")
        os.write(ours, b"open('/made', 'w').close(); exit()\n")
        assert child.wait(SECONDS) == 4
    finally:
        child.kill()
        child.wait()
        os.close(ours)
    shown = subprocess.run([*ramet, "exec", "app", "ls /made"], env=env, capture_output=True, check=True)
    assert shown.stdout == b"/made\n"
    refused = subprocess.run(
        [*ramet, "exec", "-t", "app", "true"], env=env, capture_output=True, check=False, input=b""
    )
    assert refused.returncode != 0 and b"without a terminal" in refused.stderr
