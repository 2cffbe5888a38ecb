"""`ramet shell` on a terminal: columns, colours, entries of several lines, and its own verbs."""

from __future__ import annotations

import asyncio
import getpass
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.apps.cli.runner import invoke

from ramet import Workspace
from ramet.core.terminal import TerminalInput

SECONDS = 60
RAMET = [sys.executable, "-m", "ramet.apps.cli"]


class Typist:
    """A person at a terminal of `ramet shell`."""

    def __init__(self, folder: Path, *words: str) -> None:
        self._ours, theirs = os.openpty()
        env = {name: value for name, value in os.environ.items() if not name.startswith("RAMET_")}
        env |= {"HOME": str(folder), "RAMET_HOME": str(folder / "store"), "TERM": "xterm", "INPUTRC": "/dev/null"}
        self._child = subprocess.Popen(
            [*RAMET, "shell", *words], env=env, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
        )
        os.close(theirs)
        self._seen = b""

    def expect(self, text: str) -> str:
        """Wait for a text, and return what came before it."""
        wanted, deadline = text.encode(), time.monotonic() + SECONDS
        while wanted not in self._seen:
            assert select.select([self._ours], [], [], deadline - time.monotonic())[0], self._seen
            self._seen += os.read(self._ours, 4096)
        before, _, self._seen = self._seen.partition(wanted)
        return before.decode("utf-8", "replace")

    def type(self, text: str) -> str:
        """Type a line, and return what is shown up to the next prompt."""
        os.write(self._ours, text.encode() + b"\n")
        return self.expect("\x1b[0m$ ")

    def leave(self) -> None:
        os.write(self._ours, b"exit\n")
        assert self._child.wait(SECONDS) == 0

    def close(self) -> None:
        self._child.kill()
        self._child.wait()
        os.close(self._ours)


@pytest.fixture
def typist(tmp_path: Path) -> Iterator[Typist]:
    made = Typist(tmp_path, "-c", "w")
    try:
        made.expect("\x1b[0m$ ")
        yield made
    finally:
        made.close()


def test_history_of_the_workspace_is_changed_from_inside(typist: Typist) -> None:
    typist.type("cd /home; echo one > /a; !nothing")
    assert "w-1" in typist.type("!commit first")
    typist.type("echo two > /a; touch /b; x=kept")
    assert "w-3: undo w-2" in typist.type("!undo")
    assert "one" in typist.type("cat /a; ls /b") and "kept" in typist.type("echo $x")
    typist.type("echo three > /a")
    assert "w-5: revert to w-3" in typist.type("!rewind")
    assert "one" in typist.type("cat /a")
    assert "w-6: revert /a to w-2" in typist.type("!revert 2 ../a")
    assert "two" in typist.type("cat /a")
    assert "Write !revert 3" in typist.type("!revert") and "no change of agent 'ada'" in typist.type("!undo ada")
    assert "/home" in typist.type("pwd")
    typist.leave()


def test_an_entry_of_several_lines_comes_back_as_one(typist: Typist, tmp_path: Path) -> None:
    os.write(typist._ours, b"for i in 1 2; do\necho n$i\ndone\n")
    typist.expect("n2")
    typist.expect("\x1b[0m$ ")
    os.write(typist._ours, b"\x1b[A\n")  # the up key
    assert "n1" in typist.expect("n2")
    typist.leave()
    again = Typist(tmp_path, "w")
    try:
        again.expect("\x1b[0m$ ")
        os.write(again._ours, b"\x1b[A\x1b[A\n")  # above `exit`
        again.expect("n1")
        again.expect("n2")
    finally:
        again.close()
    assert oct((tmp_path / ".ramet_history").stat().st_mode) == "0o100600"


def test_ls_has_columns_and_colors_on_a_terminal_only(typist: Typist) -> None:
    typist.type("mkdir /d /d/e; touch /d/f")
    assert "\x1b[01;34me\x1b[0m  f" in typist.type("ls /d").replace("\x1b[0m\x1b[01", "\x1b[01")
    assert "e\r\nf\r\n" in typist.type("ls /d | cat")
    assert "\x1b[01;31m" in typist.type("echo abc | grep b")
    typist.leave()


def test_a_terminal_without_clicolor_has_no_colors() -> None:
    async def keys() -> bytes:
        return b""

    async def act() -> None:
        async with Workspace() as ws:

            async def seen(command: str, **env: str) -> str:
                execution = ws.execute(command, stdin=TerminalInput(keys), env={"TERM": "xterm", **env})
                return b"".join([piece.data async for piece in execution]).decode()

            await ws.execute("mkdir -p /d/e; touch /d/f '/d/g h'")
            assert "".join((await seen("ls /d")).split()) == "ef'gh'"
            assert "\x1b[" in await seen("ls -1 --color=auto /d") and "\x1b[" in await seen("ls /d", CLICOLOR="1")
            assert "\x1b[" not in await seen("ls --color=auto /d", TERM="dumb")
            assert "\x1b[" not in await seen("ls /d", CLICOLOR="1", NO_COLOR="1")
            assert await seen("ls /d | cat", CLICOLOR="1") == "e\nf\ng h\n"

    asyncio.run(act())


def test_an_undo_reaches_the_directories_that_are_mounted_live(tmp_path: Path) -> None:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("RAMET_")}

    def ramet(*words: str) -> str:
        env = {**plain, "HOME": str(tmp_path), "RAMET_HOME": str(tmp_path / "store")}
        done = subprocess.run([*RAMET, *words], env=env, capture_output=True, text=True, check=True, input="")
        return done.stdout

    folder = tmp_path / "d"
    folder.mkdir()
    (folder / "f").write_text("one\n")
    (folder / ".env").write_text("A=secret")
    ramet("create", "w")
    ramet("mount", "w", "/live", str(folder), "--live")
    ramet("exec", "w", "echo two > /live/f; mkdir /live/d; echo x > /live/d/x; echo in > /in")
    (folder / "outside").write_text("typed in an editor")
    ramet("undo", "w", "--agent", getpass.getuser())
    assert (folder / "f").read_text() == "one\n" and not (folder / "d").exists()
    assert (folder / ".env").read_text() == "A=secret" and (folder / "outside").exists()
    assert ramet("exec", "w", "cat /live/f; ls /") == "one\nhome\nlive\ntmp\n"
    ramet("revert", "w@1")
    assert not (folder / "outside").exists() and (folder / ".env").exists()


def test_diff_shows_what_was_edited_in_place_moved_and_made(tmp_path: Path) -> None:
    store = ["--store", str(tmp_path)]
    assert invoke([*store, "create", "w"]).exit_code == 0
    assert invoke([*store, "exec", "w", "mkdir /d; seq 3 > /f; echo 1 > /d/g"]).exit_code == 0
    lines = ("sed -i s/2/two/ /f; mv /d /e", "!diff", "echo ---", "cd /e", "!diff ../f", "!commit", "!diff", "!show @1")
    told = invoke([*store, "shell", "w"], stdin="\n".join(lines) + "\n").output
    whole, narrowed = told.split("---\n", 1)
    assert "-2\n+two\n" in whole and "rename from d/g\nrename to e/g\n" in whole and "40755" not in whole
    assert narrowed.startswith("diff --git a/f b/f\n") and "rename" not in narrowed
    assert "\nw-2\nnothing differs\nrevision  w-1 " in narrowed and narrowed.endswith("+1\n+2\n+3\n")
