"""The helper as a program: what it imports, and that code of others never becomes part of it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from ramet.native.layout import box_owner
from ramet.native.server import PROGRAM, HelperServer

FOLDER = os.path.dirname(PROGRAM)
START = """
import sys
sys.path.append({folder!r})
from helper import server
server.serve_boxes = lambda sock: {work}
server.main()
"""


def started(work: str) -> subprocess.CompletedProcess[str]:
    """Run the server as it is started for boxes, with other work for it."""
    code = START.format(folder=os.path.dirname(FOLDER), work=work)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        return subprocess.run(
            [sys.executable, "-I", "-S", "-c", code], stdin=theirs.fileno(), env={}, capture_output=True,
            text=True, timeout=60, check=False,
        )  # fmt: skip


def test_it_imports_little_of_the_standard_library_and_nothing_else() -> None:
    done = started("print(*sys.modules)")
    assert done.returncode == 0, done.stderr
    found = set(done.stdout.split())
    assert found >= {f"helper.{name}" for name in ("server", "box_helper", "zygote", "worker", "view", "hard_links")}
    named = {name.partition(".")[0] for name in found} - {"__main__", "helper"}
    assert named <= sys.stdlib_module_names
    assert not named & {"typing", "runpy", "subprocess", "threading", "logging", "asyncio", "dataclasses"}


def test_every_module_of_the_folder_is_loaded_at_the_start() -> None:
    loaded = set(started("print(*sys.modules)").stdout.split())
    assert {f"helper.{path.stem}" for path in Path(FOLDER).glob("[!_]*.py")} <= loaded


@pytest.mark.parametrize("name", ["this", "_bisect", "encodings.idna"])
def test_nothing_is_imported_after_the_start(name: str) -> None:
    """A zygote has the root of its box: modules of the workspace would be found where Python's are outside."""
    done = started(f"__import__({name!r})")
    assert done.returncode == 1 and f"No module named '{name}'" in done.stderr


def test_modules_of_the_host_that_have_its_names_are_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the environment nor the directory of Ramet decides what the helper consists of."""
    (tmp_path / "helper").mkdir()
    for name in ("helper/__init__", "protocol", "kernel", "socket", "json", "sitecustomize", "usercustomize"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    monkeypatch.chdir(tmp_path)
    for name in ("PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONSTARTUP"):
        monkeypatch.setenv(name, str(tmp_path))
    server = HelperServer()
    ours, process = server.fork(box_owner())
    with ours:
        assert process.alive
    server.release()
    assert not (tmp_path / "ran").exists()
