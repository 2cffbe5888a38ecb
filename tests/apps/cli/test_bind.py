"""`ramet bind`: the program sees the bound directory and what it was given, and nothing else of the machine."""

from __future__ import annotations

import fcntl
import json
import os
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.apps.cli.runner import invoke
from tests.support.web_fake import Web, web_fake
from tests.workspace.native.conftest import missing, need, need_writable

RAMET = [sys.executable, "-m", "ramet.apps.cli"]
SECONDS = 60
Done = subprocess.CompletedProcess[str]
Bind = Callable[..., Done]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    if missing():
        pytest.skip(f"no native programs here: {missing()}")
    need_writable(str(tmp_path))
    run(tmp_path / "home", "create", "demo")
    (tmp_path / "work").mkdir()
    return tmp_path / "home"


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with web_fake() as running:
        yield running


def environ(home: Path, **env: str) -> dict[str, str]:
    return {**os.environ, "RAMET_HOME": str(home), "SHELL": "/bin/sh", **env}


def run(home: Path, *words: str, stdin: str = "", **env: str) -> Done:
    return subprocess.run(
        [*RAMET, *words], env=environ(home, **env), capture_output=True, text=True, check=False, input=stdin
    )


@pytest.fixture
def bind(home: Path) -> Bind:
    def act(script: str, *options: str, stdin: str = "", **env: str) -> Done:
        words = ("bind", "demo", str(home.parent / "work"), "--keep", "-q", *options, "--", "sh", "-c", script)
        return run(home, *words, stdin=stdin, **env)

    return act


def test_what_the_program_wrote_is_of_the_agent_that_bound_it(home: Path, bind: Bind) -> None:
    assert bind("echo 1 > a", RAMET_AGENT="ann").returncode == 0
    (line,) = json.loads(run(home, "blame", "demo:/a", "--json").stdout)
    assert line["by"] == "ann", line
    assert json.loads(run(home, "log", "demo", "--json").stdout)[0]["author"] == "ann"


def test_the_program_sees_the_directory_and_nothing_beside_it(home: Path, bind: Bind) -> None:
    (home.parent / "beside").write_text("secret")
    work = home.parent / "work"
    script = f"pwd; echo made > made; cat; ls {home.parent}; cat ../beside {home}/* 2>&1; echo [$TOKEN$KEPT]; exit 7"
    done = bind(script, "--env", "KEPT", stdin="typed\n", TOKEN="hidden", KEPT="kept")
    lines = done.stdout.splitlines()
    assert lines[:3] == [str(work), "typed", "work"] and lines[-1] == "[kept]" and done.returncode == 7, done
    assert "No such file" in lines[3] and "secret" not in done.stdout and "hidden" not in done.stdout
    assert (work / "made").read_text() == "made\n"
    assert run(home, "show", "demo:/made").stdout == "made\n"


def test_directories_are_given_by_name(home: Path, bind: Bind) -> None:
    for name in ("shown", "open"):
        (home.parent / name).mkdir()
        (home.parent / name).chmod(0o777)
        (home.parent / name / "f").write_text(name)
    script = f"cd {home.parent}; cat shown/f open/f; echo changed > open/f; echo changed > shown/f"
    done = bind(script, "--read", str(home.parent / "shown"), "--write", str(home.parent / "open"))
    assert done.stdout == "shownopen" and done.returncode != 0 and "Read-only file system" in done.stderr
    assert (home.parent / "open" / "f").read_text() == "changed\n"
    assert (home.parent / "shown" / "f").read_text() == "shown"


def test_the_network_is_what_was_allowed(bind: Bind, web: Web) -> None:
    need("curl")
    script = f"curl --noproxy '' -sS -m 10 {web.url}/hello"  # else the loopback is that of the box
    assert bind(script).returncode == 7
    assert bind(script, "--allow-host", f"127.0.0.1:{web.port}").stdout == "hello\n"
    refused = bind(script, "--allow-host", "example.org")
    assert "hello" not in refused.stdout


@pytest.mark.parametrize(
    ("options", "cause"),
    [
        (("--env", "NONE_SUCH"), "no variable NONE_SUCH is set"),
        (("--read", "/none/such"), "cannot read /none/such: it is no directory"),
        (("--write", "/etc"), "cannot write to /etc: it belongs to the box"),
        (("--write", ".."), "the program could change the store"),
        (("--write", "home"), "the program could change the store"),
        (("--write", "home/below"), "the program could change the store"),
        (("--unconfined", "--env", "HOME"), "an unconfined program sees everything"),
        (("--alow-host", "x"), "did you mean --allow-host?"),
    ],
)
def test_what_is_refused(home: Path, options: tuple[str, ...], cause: str) -> None:
    words = [*RAMET, "bind", "demo", "work", "--keep", *options, "--", "touch", "made"]
    work = home.parent / "work"
    (home / "below").mkdir()
    done = subprocess.run(words, env=environ(home), capture_output=True, text=True, check=False, cwd=home.parent)
    assert done.returncode != 0 and cause in done.stderr, done
    assert not (work / "made").exists()


def test_a_program_that_the_box_does_not_see_is_named(home: Path, tmp_path: Path) -> None:
    tool = tmp_path / "bin" / "tool"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\necho ran\n")
    tool.chmod(0o755)
    words = ("bind", "demo", str(tmp_path / "work"), "--keep", "-q")
    path = f"{tool.parent}:{os.environ['PATH']}"
    done = run(home, *words, "--", "tool", PATH=path)
    assert f"the box does not see {tool}" in done.stderr and done.returncode == 3
    assert run(home, *words, "--read", str(tool.parent), "--", "tool", PATH=path).stdout == "ran\n"
    assert "no such program" in run(home, *words, "--", "none-such").stderr
    (tool.parent / "cat").write_text("#!/bin/sh\necho of the host\n")
    (tool.parent / "cat").chmod(0o755)
    assert run(home, *words, "--", "cat", stdin="of the box", PATH=path).stdout == "of the box"


def test_without_a_box_nothing_runs(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ramet.native.box.find_bubblewrap", lambda: None)
    work = home.parent / "work"
    words = ["bind", "demo", str(work), "--keep", "--", "touch", "made"]
    done = invoke(words, "", {"RAMET_HOME": str(home)})
    assert done.exit_code == 1 and "bubblewrap" in done.output and "--unconfined" in done.output
    assert not (work / "made").exists()
    assert run(home, "exec", "demo", "echo free").stdout == "free\n", "the lease was given back"


def test_a_directory_that_a_box_of_root_cannot_change_is_refused(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() != 0:
        pytest.skip("only boxes of root belong to another user")
    monkeypatch.setattr("ramet.workspace.stored.directory_box.open_mapped", lambda *_, **__: -1)
    work = home.parent / "work"
    done = invoke(["bind", "demo", str(work), "--keep", "--", "touch", "made"], "", {"RAMET_HOME": str(home)})
    assert done.exit_code == 1 and "maps no owners" in done.output and "--unconfined" in done.output
    assert not (work / "made").exists()


TURNS = """
echo one > a; ramet turn -m first; ramet turn; echo two > a; ramet turn demo --message 'two words'; ramet rewind; cat a
ramet rewind demo@9; echo $?; ramet turn other; echo $?; ramet turn --nope; echo $?; ramet log; echo $?
ramet turn -m "$(head -c 5000 /dev/zero | tr '\\0' x)"; echo $?; ramet turn --json; ramet turn --help
"""


def test_turns_and_rewinds_from_inside(home: Path, bind: Bind) -> None:
    done = bind(TURNS)
    lines = done.stdout.splitlines()
    assert lines[:10] == ["demo-1", "demo-1", "demo-2", "demo-3", "one", "3", "3", "2", "2", "2"], done
    assert json.loads(lines[10]) == {"revision": "demo-3", "changed": False}
    assert lines[11].startswith("Usage: ramet turn")
    for told in ("no revision '9'", "other is not bound here", "no option --nope", "only turn and rewind", "too long"):
        assert told in done.stderr
    messages = [row["message"] for row in json.loads(run(home, "log", "demo", "--json").stdout)]
    assert messages == ["rewind to demo-1", "two words", "first"]


HOSTILE = """
cd /run/ramet
printf 'answer.AAAAAAAAAA =%s\\n' "$(printf turn | base64)" > ask
echo plain > answer.BBBBBBBBBB; printf 'answer.BBBBBBBBBB =%s\\n' "$(printf turn | base64)" > ask
ln -s OUT answer.CCCCCCCCCC; printf 'answer.CCCCCCCCCC =%s\\n' "$(printf turn | base64)" > ask
printf '../../x =dHVybg==\\nanswer.DDDDDDDDDD =bG9n\\n\\377\\376\\n' > ask
head -c 100000 /dev/zero > ask; echo > ask
ramet turn -m still
cat answer.BBBBBBBBBB
"""


def test_a_hostile_program_gets_no_more_than_turns(home: Path, bind: Bind) -> None:
    outside = home.parent / "work" / "outside"
    outside.write_text("safe")
    done = bind(HOSTILE.replace("OUT", str(outside)))
    assert done.stdout.splitlines() == ["demo-1", "plain"], done
    assert outside.read_text() == "safe"


def test_ports_of_a_bound_program(home: Path) -> None:
    need("python3")
    script = "python3 -m http.server 8123 --bind 127.0.0.1 > /dev/null 2>&1 & until [ -e end ]; do sleep 0.05; done"
    work = home.parent / "work"
    words = [*RAMET, "bind", "demo", str(work), "--keep", "-q", "--", "sh", "-c", script]
    with subprocess.Popen(words, env=environ(home)) as child:
        try:
            rows = json.loads(run(home, "port", "demo", "--json", "--wait", str(SECONDS)).stdout)
            assert [(row["port"], "http.server" in row["program"]) for row in rows] == [(8123, True)]
            with Forwarded(home, "8123", "--local", "0") as local, socket.create_connection(local) as link:
                link.sendall(b"GET / HTTP/1.0\r\n\r\n")
                assert link.recv(100).startswith(b"HTTP/1.0 200")
        finally:
            (work / "end").touch()
            assert child.wait(SECONDS) == 0


class Forwarded:
    """`ramet port demo ...` while the block runs; gives where it listens."""

    def __init__(self, home: Path, *words: str) -> None:
        self._command, self._env = [*RAMET, "port", "demo", *words], environ(home)

    def __enter__(self) -> tuple[str, int]:
        self._child = subprocess.Popen(self._command, env=self._env, stdout=subprocess.PIPE, text=True)
        assert self._child.stdout is not None
        told = re.match(r"(127\.0\.0\.1):(\d+) leads to port 8123 of demo", self._child.stdout.readline())
        assert told is not None
        return told[1], int(told[2])

    def __exit__(self, *_: object) -> None:
        self._child.send_signal(signal.SIGINT)
        self._child.communicate(timeout=SECONDS)
        assert self._child.returncode == 0


def test_a_signal_ends_the_program_and_what_it_did_is_kept(home: Path) -> None:
    work = home.parent / "work"
    script = "echo 1 > made; echo begun; sleep 1000"
    words = [*RAMET, "bind", "demo", str(work), "--keep", "-q", "--", "sh", "-c", script]
    for number in (signal.SIGINT, signal.SIGTERM):
        with subprocess.Popen(words, env=environ(home), stdout=subprocess.PIPE) as child:
            assert child.stdout is not None and child.stdout.readline() == b"begun\n"
            child.send_signal(number)
            assert child.wait(SECONDS) == 128 + number
        (work / "made").unlink()
        assert run(home, "show", "demo:/made").stdout == "1\n"


def test_a_terminal_with_its_keys_window_and_jobs(home: Path) -> None:
    need("bash")
    ours, theirs = os.openpty()
    fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 101, 0, 0))
    words = [*RAMET, "bind", "demo", str(home.parent / "work"), "--keep", "--", "bash", "--norc", "--noediting"]
    child = subprocess.Popen(
        words, env=environ(home, TERM="dumb", PS1="> "), stdin=theirs, stdout=theirs, stderr=theirs,
        start_new_session=True,
    )  # fmt: skip
    os.close(theirs)

    seen = b""

    def expect(text: bytes) -> None:
        nonlocal seen
        deadline = time.monotonic() + SECONDS
        while text not in seen:
            assert select.select([ours], [], [], max(0.0, deadline - time.monotonic()))[0], seen
            seen += os.read(ours, 4096)
        seen = seen.partition(text)[2]

    try:
        expect(b"$ ")
        os.write(ours, b"stty size\n")
        expect(b"33 101\r\n")
        fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        os.kill(child.pid, signal.SIGWINCH)
        os.write(ours, b"until [ \"$(stty size)\" = '40 120' ]; do :; done; echo resized $((1 + 1))\n")
        expect(b"resized 2")
        os.write(ours, b"sh -c 'echo go $((1 + 1)); exec sleep 1000'\n")
        expect(b"go 2\r\n")
        os.write(ours, b"\x03")
        expect(b"$ ")
        os.write(ours, b"echo status $?\n")
        expect(b"status 130")
        # Without a child: one that is stopped between vfork and exec would hold its parent.
        os.write(ours, b"sh -c 'trap \"echo back $((2 + 2))\" CONT; echo go $((1 + 2)); while :; do :; done'\n")
        expect(b"go 3\r\n")
        os.write(ours, b"\x1a")
        expect(b"Stopped")
        expect(b"$ ")
        os.write(ours, b"fg\n")
        expect(b"back 4\r\n")  # bash names the job before it gives it the terminal
        os.write(ours, b"\x03")
        expect(b"$ ")
        os.write(ours, b"exit 3\n")
        assert child.wait(SECONDS) == 3
    finally:
        child.kill()
        child.wait()
        os.close(ours)
