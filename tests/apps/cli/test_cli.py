"""The `ramet` command as a person types it."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.apps.cli.runner import invoke

from ramet import AgentRun, Store
from ramet.apps.cli.help import help_text
from ramet.apps.cli.parser import UsageError, parse
from ramet.apps.cli.verb_table import VERBS, find, leaves, near
from ramet.apps.server import models
from ramet.workspace.loop_thread import LoopThread


def test_first_minute(ramet, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    assert ramet("create", "demo") == "demo\n"
    assert ramet("exec", "demo", "echo hello > /greeting; cat /greeting", stdin="") == "hello\n"
    assert ramet("exec", "demo", "cat > /in; exit 3", status=3, stdin="typed") == ""
    rows = json.loads(ramet("log", "--json", "demo"))
    assert [row["revision"] for row in rows] == ["demo-2", "demo-1"]
    assert json.loads(ramet("diff", "demo", "--json", "--name-only")) == [{"change": "added", "path": "/in"}]
    assert ramet("show", "demo@1:/greeting") == "hello\n"
    assert ramet("fork", "demo@demo-1", "other") == "other-1\n"
    assert [row["workspace"] for row in json.loads(ramet("ls", "--json"))] == ["demo", "other"]
    assert ramet("revert", "demo@1") == "demo-3\n"
    assert ramet("checkout", "demo", str(tmp_path / "out")).startswith("1 written")
    assert (tmp_path / "out" / "greeting").read_text() == "hello\n"
    (tmp_path / "out" / "mine").write_text("not yours")
    assert "not empty" in ramet("checkout", "demo", str(tmp_path / "out"), status=4)
    done = json.loads(ramet("checkout", "demo", str(tmp_path / "out"), "--replace", "--json"))
    assert (done["written"], done["kept"], done["removed"]) == (0, 1, 1)
    ramet("snapshot", "demo", str(tmp_path / "s.tar"))
    assert (tmp_path / "s.tar").stat().st_size > 0
    assert "3 revisions" in ramet("verify") or "4 revisions" in ramet("verify")
    ramet("rm", "other")
    assert [row["workspace"] for row in json.loads(ramet("ls", "--json"))] == ["demo"]


def test_tags_merges_blame_and_bisect(ramet, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    ramet("create", "demo")
    for number in range(1, 5):
        ramet(
            "exec", "demo", f"echo {number} >> /n; test {number} -lt 3 || touch /bug", "-m", f"step {number}", stdin=""
        )
    assert ramet("tag", "demo@2", "good", "-m", "it works") == "demo@good\n"
    assert json.loads(ramet("tag", "--json", "demo"))[0]["revision"] == "demo-2"
    assert ramet("show", "demo@good:/n") == "1\n2\n" and ramet("show", "demo@head~3:/n") == "1\n"
    rows = json.loads(ramet("blame", "--json", "demo:/n"))
    assert [row["revision"] for row in rows] == ["demo-1", "demo-2", "demo-3", "demo-4"]
    assert rows[2]["command"].startswith("echo 3") and rows[2]["session"] == "default"
    found = json.loads(ramet("bisect", "--json", "demo", "good", "head", "--", "test", "!", "-e", "/bug"))
    assert found[-1]["first_bad"] == "demo-3"
    ramet("fork", "demo@good", "side")
    ramet("exec", "side", "echo s > /s", stdin="")
    assert ramet("merge", "demo", "side") == "demo-5\n"
    graph = ramet("log", "demo", "--graph")
    assert "demo-2 (good) step 2" in graph and "|\\" in graph and "|/" in graph
    assert json.loads(ramet("log", "--json", "demo@good"))[0]["tags"] == ["good"]
    ramet("exec", "side", "echo other > /n", stdin="")
    ramet("exec", "demo", "echo mine > /n", stdin="")
    assert json.loads(ramet("merge", "--json", "demo", "side", status=4)) == [
        {"conflict": "both changed", "path": "/n"}
    ]
    assert ramet("revert", "demo@good", "/n") == "demo-7\n" and ramet("show", "demo:/bug") == ""
    ramet("tag", "demo", "good", "--delete")
    assert "no revision 'good'" in ramet("show", "demo@good:/n", status=3)


def test_exec_tells_its_result_as_the_server_does(ramet, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    ramet("create", "demo")
    told = json.loads(ramet("exec", "demo", "--json", "printf in > /f; cat /f; echo e >&2; exit 3", stdin="", status=3))
    assert list(told) == list(models.ExecResult.__struct_fields__)
    assert (told["stdout"], told["stderr"], told["exit_code"], told["encoding"]) == ("in", "e\n", 3, "utf-8")
    assert told["bytes_written"] == {"/": 2} and told["duration_ms"] > 0 and not told["timed_out"]
    assert ramet("show", "demo:/f") == "in", "it is committed"
    told = json.loads(ramet("exec", "demo", "--json", "printf '\\377'", stdin=""))
    assert (told["stdout"], told["encoding"]) == ("/w==", "base64")
    told = json.loads(
        ramet("exec", "demo", "--json", "--timeout", "0.05", "echo so far; sleep 9", stdin="", status=124)
    )
    assert told["timed_out"] and told["stdout"] == "so far\n"


def test_in_and_out(ramet, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    ramet("create", "demo")
    ramet("exec", "demo", "mkdir /d; echo 1 > /d/f", stdin="")
    ramet("snapshot", "demo", str(tmp_path / "snap.tar"))
    assert ramet("snapshot", "demo", "-").count("ustar") == (tmp_path / "snap.tar").read_bytes().count(b"ustar") > 0
    for kind in ((), ("--tar",), ("--tar", "--compress", "gz")):
        ramet("export", "demo@1", str(tmp_path / "out.tar"), *kind)
        name = f"in{len(kind)}"
        assert ramet("import", name, str(tmp_path / "out.tar")) == f"{name}-1\n"
        assert ramet("show", f"{name}:/d/f") == "1\n"
    assert ramet("import", "demo", str(tmp_path / "out.tar"), "-m", "again") == "demo-2\n"
    assert "5 packs," in ramet("verify") and json.loads(ramet("verify", "--json"))["damages"] == []
    assert "2 commits" in ramet("export", "demo", str(tmp_path / "repo"), "--git")
    ramet("export", "demo", str(tmp_path / "stream"), "--git-stream")
    assert (tmp_path / "stream").read_bytes().endswith(b"done\n")
    assert "exclude each other" in ramet("export", "demo", "x", "--git", "--tar", status=2)
    pack = next((tmp_path / "home" / "packs").glob("*.pack"))
    pack.write_bytes(pack.read_bytes()[:20])
    assert "affects" in ramet("verify", status=1)
    assert "lost: object" in ramet("repair", status=1)
    assert "is now at" in ramet("repair", "--drop", status=1)


@pytest.mark.parametrize(
    ("words", "status", "cause"),
    [
        (("log", "nobody"), 3, "no workspace 'nobody'"),
        (("show", "demo"), 1, "no revision yet"),
        (("revert", "demo"), 2, "missing revision"),
        (("log", "demo:/f"), 2, "names a path"),
        (("tag", "demo", "head"), 1, "no revision yet"),
        (("blame", "demo@x"), 2, "does not name a path"),
        (("import", "demo", "/nowhere.tar"), 3, "cannot open /nowhere.tar"),
        (("create", "demo"), 4, "exists already"),
        (("create", "a/b"), 2, "cannot name a workspace"),
        (("exec", "demo", "sleep 9", "--timeout", "0.05"), 124, ""),
    ],
)
def test_errors_say_what_to_do(ramet, words: tuple[str, ...], status: int, cause: str) -> None:  # type: ignore[no-untyped-def]
    ramet("create", "demo")
    assert cause in ramet(*words, status=status, stdin="")


def test_the_installed_command_answers() -> None:
    done = subprocess.run([sys.executable, "-m", "ramet.apps.cli", "version"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.strip()


def command(*words: str, home: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ramet.apps.cli", *words],
        input=stdin, capture_output=True, text=True, env={**os.environ, "RAMET_HOME": str(home)}, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("words", "cause", "remedy"),
    [
        ("create", "missing argument NAME", "write ramet create NAME"),
        ("bisect x 1 2", "bisect: missing argument COMMAND", "write ramet bisect NAME GOOD BAD COMMAND... [OPTIONS]"),
        ("create a b", "create: extra arguments: b", "write ramet create [NAME]"),
        ("ls --jsno", "ls has no option --jsno", "did you mean --json?"),
        ("ls --xyz", "ls has no option --xyz", "see `ramet ls --help`"),
        ("agents x --run monday", "agents has no option --run", "see `ramet agents --help`"),
        ("exec x ls -la", "exec has no option -l", "write `--` before a command that has options"),
        ("exec x --timout 3 ls", "exec has no option --timout", "did you mean --timeout?"),
        ("log x -n -1", "log: -n/--last: -1 is below 0", "see `ramet log --help`"),
        ("keys foo", "keys has no 'foo'", "use one of new, init, show, rotate, shred"),
        ("keys rotat", "keys has no 'rotat'", "did you mean rotate?"),
        ("history x -n y", "history: -n/--last: 'y' is not a whole number", "see `ramet history --help`"),
        ("lsx", "no verb 'lsx'", "did you mean ls?"),
    ],
)
def test_a_wrong_line_is_reported_in_two_lines(words: str, cause: str, remedy: str, tmp_path: Path) -> None:
    done = command(*words.split(), home=tmp_path)
    first, second = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (2, "")
    assert first.startswith(f"ramet: {cause}") and second.startswith(f"       {remedy}")


@pytest.mark.parametrize("verb", ["serve", "rendezvous repos", "mcp demo", "ui --no-browser"])
def test_a_port_that_cannot_be_had_is_reported_before_anything_is_served(verb: str, tmp_path: Path) -> None:
    option = "--http" if verb.startswith("mcp") else "--port"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        for port, status, cause in (
            (99999, 2, "99999 is not a port"),
            (taken.getsockname()[1], 4, "cannot listen on"),
        ):
            done = subprocess.run(
                [sys.executable, "-m", "ramet.apps.cli", *verb.split(), option, str(port)], cwd=tmp_path,
                capture_output=True, text=True, env={**os.environ, "RAMET_HOME": str(tmp_path / "home")}, timeout=280,
                check=False,
            )  # fmt: skip
            assert done.returncode == status and done.stderr.startswith(f"ramet: {cause}") and not done.stdout


def test_help_of_verbs(tmp_path: Path) -> None:
    told = command("bind", "--help", home=tmp_path).stdout
    assert told.startswith("Usage: ramet bind NAME FOLDER [PROGRAM...] [OPTIONS]\n\nBind a real directory")
    assert "Examples\n  ramet bind demo ./work -- make test\n" in told
    assert "\n  -m, --message MESSAGE   Message of the revision.\n" in told
    assert max(map(len, told.splitlines())) <= 100
    assert "Verbs\n  new     Create a key in a new file." in command("keys", "-h", home=tmp_path).stdout
    assert command("keys", home=tmp_path).returncode == 2
    assert command("rm", "x", "--jsno", "--json", home=tmp_path).stdout.startswith('{"error": {"code": "invalid_argu')


@pytest.mark.parametrize("verb", [verb for verbs in VERBS.values() for verb in verbs], ids=lambda verb: verb.name)
def test_the_table_says_what_the_verbs_say(verb: Any) -> None:
    assert verb.help().startswith(verb.summary)
    assert verb.name in help_text(bold=False)


def test_the_table_says_what_verbs_inside_of_verbs_say() -> None:
    for path, verb in leaves():
        assert verb.command(path).help.startswith(verb.summary)


def test_help_imports_no_engine(tmp_path: Path) -> None:
    script = (
        "import sys; sys.argv = ['ramet', '--help']\nfrom ramet.apps.cli.main import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print({'dataclasses', 'rich', 'asyncio', 'obstore', 'msgspec'} & set(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "ramet exec demo" in done.stdout and done.stderr == "set()\n"


def test_an_ordinary_exec_imports_only_what_it_needs(tmp_path: Path) -> None:
    assert command("create", "demo", home=tmp_path).returncode == 0
    heavy = ("rich", "pydantic", "obstore", "re2", "regex", "pyfastcdc", "importlib.metadata", "email", "http")
    script = (
        "import sys; sys.argv = ['ramet', 'exec', 'demo', 'echo hi']\nfrom ramet.apps.cli.main import main\n"
        f"try: main()\nexcept SystemExit: pass\nprint(sorted({set(heavy)!r} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL,
        env={**os.environ, "RAMET_HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.stdout == "hi\n[]\n"


def test_a_typo_gets_a_suggestion(tmp_path: Path) -> None:
    done = command("exce", "x", home=tmp_path)
    assert done.returncode == 2 and "did you mean exec" in done.stderr


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("creat", ["create"]), ("lgo", ["log"]), ("umuont", ["umount"]), ("bogus", []), ("grnt", ["grant"])],
)
def test_only_what_is_near_is_suggested(typed: str, meant: list[str]) -> None:
    assert near(typed) == meant


def test_help_fits_a_narrow_terminal() -> None:
    assert max(map(len, help_text(bold=False, width=80).splitlines())) <= 80


def test_doctor(tmp_path: Path) -> None:
    done = command("doctor", "--json", home=tmp_path)
    rows = {row["check"]: row["state"] for row in json.loads(done.stdout)}
    assert {"native bubblewrap", "CRIU", "git"} <= rows.keys()
    assert done.returncode == 0 and rows["python"] == rows["shell"] == rows[f"store {tmp_path}"] == "ok"


def test_a_session_by_hand(tmp_path: Path) -> None:
    typed = """echo hello > /greeting
for i in 1 2
do echo $i
done
!commit first
!diff
cd /tmp
rm /greeting
!diff
!fork other
!nonsense
false; echo $?
!log
"""
    done = command("shell", "--create", "demo", home=tmp_path, stdin=typed)
    assert done.returncode == 0
    assert command("shell", "demo", home=tmp_path, stdin="(exit 9)\n").returncode == 9
    assert (
        command("shell", "demo", home=tmp_path, stdin="echo > /n\n!commit -m 'as git'\nexit 3\necho no\n").returncode
        == 3
    )
    command("shell", "demo", home=tmp_path, stdin="echo 1\necho 2\necho 3\necho 4 > /m\n")
    messages = [row["message"] for row in json.loads(command("log", "--json", "demo", home=tmp_path).stdout)]
    assert messages[:3] == ["... echo 2; echo 3; echo 4 > /m", "as git", "before a fork"]
    lines = done.stdout.splitlines()
    assert lines[:3] == ["1", "2", "demo-1"] and "diff --git a/greeting b/greeting" in lines and "other-1" in lines
    assert "1" in lines and any(line.startswith("demo-1") and "first" in line for line in lines)
    assert "no verb !nonsense" in done.stderr


def test_control_c_while_a_command_is_handed_over_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from ramet.apps.cli.verbs.shell import Terminal

    begun, ended = threading.Event(), threading.Event()

    async def run(_: str) -> None:
        begun.set()
        try:
            await asyncio.sleep(600)
        finally:
            ended.set()

    with LoopThread() as loop:
        terminal, start = Terminal.__new__(Terminal), loop.start

        def interrupted(work: Any) -> Any:
            start(work)
            begun.wait()
            raise KeyboardInterrupt

        monkeypatch.setattr(terminal, "_loop", loop, raising=False)
        monkeypatch.setattr(terminal, "_run", run)
        monkeypatch.setattr(loop, "start", interrupted)
        terminal._execute("sleep")
        assert ended.wait(200) and terminal._status == 130


def test_control_c_ends_the_command_and_not_the_shell(tmp_path: Path) -> None:
    """Typed into a real terminal: the prompt, a command that is interrupted, and one after it."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(RAMET_HOME=str(tmp_path / "home"), HOME=str(tmp_path), TERM="dumb")
        os.execv(sys.executable, [sys.executable, "-m", "ramet.apps.cli", "shell", "-c", "demo"])
    screen = Screen(terminal)
    try:
        screen.until(b"demo:/$ ")
        os.write(terminal, b"echo begun; sleep 100\n")
        screen.until(b"begun\r\n")
        os.write(terminal, b"\x03")
        screen.until(b"demo:/$ ")
        os.write(terminal, b"echo al''ive > /file\n")
        screen.until(b"demo*:/$ ")
        os.write(terminal, b"cat /fi\t\n")
        screen.until(b"alive\r\n")
        screen.until(b"demo*:/$ ")
        os.write(terminal, b"touch 'a b'\n")
        screen.until(b"demo*:/$ ")
        os.write(terminal, b"grep --files-with-m\talive /file a\t\n")
        screen.until(b"\r\n/file\r\n")
        screen.until(b"demo*:/$ ")
        os.write(terminal, b"\x04")
        screen.until(b"\r\n")
        _, status = os.waitpid(pid, 0)
    except BaseException:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise
    finally:
        os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 0


class Screen:
    """What a terminal shows; each look goes on after the one before."""

    def __init__(self, terminal: int) -> None:
        self._terminal, self._seen = terminal, b""

    def until(self, wanted: bytes) -> None:
        while wanted not in self._seen:
            assert select.select([self._terminal], [], [], 200)[0], self._seen
            self._seen += os.read(self._terminal, 4096)
        self._seen = self._seen.partition(wanted)[2]


def test_what_is_kept_and_for_whom(ramet, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    ramet("create", "w")
    for number in range(4):
        ramet("exec", "w", f"echo {number} > /x", stdin="")
    (row,) = json.loads(ramet("retention", "--json", "--keep-last", "2", "--keep-within", "1s", "--grace", "1d"))
    assert (row["keep_last"], row["keep_within"], row["grace"]) == (2, 1.0, 86400.0)
    (row,) = json.loads(ramet("retention", "--json", "w", "--keep-within", "none"))
    assert row["keep_last"] == 2, "what a workspace does not say, the store says"
    ramet("retention", "--keep-within", "none")
    ramet("pin", "w@1", "--for", "1h", "--why", "review")
    (pin,) = json.loads(ramet("pin", "--json"))
    assert pin["why"] == "review"
    ramet("hold", "w", "case 42")
    assert ramet("hold", "w") == "case 42\n" and json.loads(ramet("gc", "--json", "--dry-run"))[0]["expired"] == []
    ramet("rm", "w", status=4)
    ramet("hold", "w", "--lift")
    assert json.loads(ramet("gc", "--json", "--dry-run"))[0]["expired"] == ["w-2"]
    done = json.loads(ramet("gc", "--json", "--grace", "0"))[0]
    assert done["expired"] == ["w-2"] and done["revisions"] == 1
    rows = json.loads(ramet("log", "--json", "w"))
    assert [row["revision"] for row in rows] == ["w-4", "w-3"] and len(rows[1]["expired"]) == 1
    ramet("show", "w@2:/x", status=3)
    ramet("pin", "--delete", pin["pin"])
    assert json.loads(ramet("cost", "--json"))[0]["workspace"] == "w"
    ramet("grant", "w", "ada", "readwrite", status=2)  # the caller would lose its access
    ramet("log", "w")
    ramet("grant", "w", "ada", "readwrite", "--force")
    ramet("log", "w", status=1)
    monkeypatch.setenv("RAMET_PRINCIPAL", "ada")
    ramet("grant", "w", "bob", "readonly")
    assert json.loads(ramet("grants", "--json", "w")) == [
        {"principal": "ada", "access": "readwrite"}, {"principal": "bob", "access": "readonly"},
    ]  # fmt: skip
    monkeypatch.setenv("RAMET_PRINCIPAL", "bob")
    assert ramet("show", "w:/x") == "3\n"
    ramet("exec", "w", "true", status=1, stdin="")
    ramet("grant", "w", "bob", "readwrite", status=1)


def test_mounts_come_and_go(ramet, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "f").write_text("from outside")
    ramet("create", "demo")
    made = ramet("mount", "demo", "/data", str(tmp_path / "data"), "--mode", "read")
    assert "to /data; pass --live to mount" in made and made.endswith("demo-1\n")
    (tmp_path / "data" / "f").write_text("changed later")
    assert "from outside" in ramet("exec", "demo", "cat /data/f; echo x > /data/g", stdin="", status=1)
    assert ramet("mount", "demo", "/empty") == "demo-3\n"
    rows = {row["prefix"]: row["mode"] for row in json.loads(ramet("mounts", "--json", "demo"))}
    assert rows["/data"] == "read" and rows["/empty"] == "write"
    assert "cannot mount at /data" in ramet("mount", "demo", "/data", status=4)
    assert "not a directory" in ramet("mount", "demo", "/x", str(tmp_path / "none"), status=3)
    assert "is a past revision" in ramet("mount", "demo@1", "/x", status=2)
    assert "write /x" in ramet("mount", "demo", "x", status=2)
    assert "unknown mode 'rw'" in ramet("mount", "demo", "/x", "--mode", "rw", status=2)
    assert ramet("umount", "demo", "/data") == "demo-4\n"
    assert "cannot unmount" in ramet("umount", "demo", "/data", status=3)
    assert ramet("show", "demo@1:/data/f") == "from outside"
    assert "/data" not in {row["prefix"] for row in json.loads(ramet("mounts", "--json", "demo"))}


def test_a_directory_is_bound_while_a_program_runs(ramet, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    work, full = tmp_path / "work", tmp_path / "full"
    ramet("create", "demo")
    ramet("exec", "demo", "mkdir /src; echo one > /src/a; echo two > /src/b", stdin="")
    script = (
        "import os, sys; assert os.environ['RAMET_WORKSPACE'] == 'demo' and os.environ['RAMET_HOME'] == sys.argv[1]\n"
        "os.remove('src/a'); open('new', 'w').write('made')"
    )
    home = str(tmp_path / "home")
    assert (
        ramet("bind", "demo", str(work), "--unconfined", "--", sys.executable, "-c", script, home).splitlines()[-1]
        == "demo-2"
    )
    changes = {row["path"]: row["change"] for row in json.loads(ramet("diff", "demo", "--json"))}
    assert changes == {"/new": "added", "/src/a": "removed"} and ramet("show", "demo:/new") == "made"
    ramet(
        "bind",
        "demo",
        str(tmp_path / "other"),
        "-q",
        "--unconfined",
        "--",
        sys.executable,
        "-c",
        "raise SystemExit(7)",
        status=7,
    )
    assert "not empty" in ramet("bind", "demo", str(work), status=4), "nothing that is there is taken away"
    full.mkdir()
    (full / "only").write_text("this")
    ramet("bind", "demo", str(full), "--keep", "-q", "-m", "taken as it is", "--unconfined", "--", "true")
    assert json.loads(ramet("log", "--json", "demo"))[0]["message"] == "taken as it is"
    assert "this" in ramet("exec", "demo", "cat /only; ls /src", stdin="", status=2)
    assert "none-such" in ramet("bind", "demo", str(tmp_path / "e"), "--unconfined", "--", "none-such", status=3)
    assert ramet("exec", "demo", "echo free", stdin="") == "free\n", "the lease was given back"


def test_what_people_try(tmp_path: Path) -> None:
    """Other spellings, typos and the wrong place lead somewhere."""
    assert command("create", "demo", home=tmp_path).returncode == 0
    assert command("run", "demo", "echo $((6 * 7)) > /f; cd /tmp", home=tmp_path).returncode == 0
    assert json.loads(command("ws", "log", "--json", "demo", home=tmp_path).stdout)[0]["revision"] == "demo-1"
    assert "did you mean demo?" in command("exec", "dmeo", "true", home=tmp_path).stderr
    assert "Usage: ramet fork" in command("help", "fork", home=tmp_path).stdout
    past = command("exec", "demo@1", "echo lost > /f; echo fine > /tmp/f; cat /f", home=tmp_path)
    assert (past.returncode, past.stdout) == (0, "lost\n") and "are not kept" in past.stderr
    assert command("exec", "demo@1", "cat /f > /tmp/f", home=tmp_path).stderr == ""
    assert "in neither revision" in command("revert", "demo@1", "/none", home=tmp_path).stderr
    assert "ramet fork demo@1" in command("fork", "--help", home=tmp_path).stdout
    for words in (["--store", str(tmp_path / "other")], [f"--store={tmp_path / 'other'}"]):
        assert json.loads(command(*words, "ls", "--json", home=tmp_path).stdout) == []
    AgentRun(namespace="team-a", store=str(tmp_path)).create_workspace("theirs")
    for words in (["-n", "team-a"], ["--namespace=team-a"], ["--store", str(tmp_path), "-n", "team-a"]):
        assert [
            row["workspace"] for row in json.loads(command(*words, "ws", "ls", "--json", home=tmp_path).stdout)
        ] == ["theirs"]
    for words, told in (
        (["--store"], "--store needs a value\n       write ramet --store WHERE VERB\n"),
        (["-n"], "-n needs a value\n       write ramet -n NAMESPACE VERB\n"),
        (["--jsn", "ls"], "no option --jsn before a verb\n"),
    ):
        wrong = command(*words, home=tmp_path)
        assert wrong.returncode == 2 and wrong.stderr.startswith(f"ramet: {told}"), words
    assert command("ws", home=tmp_path).stdout == command(home=tmp_path).stdout == help_text(bold=False)
    assert "invalid namespace" in command("-n", "a/b", "ls", home=tmp_path).stderr
    broken = command("ls", "--store", "s3://", home=tmp_path)
    assert broken.returncode == 1 and broken.stderr.startswith("ramet: not the address of a store")
    assert command("exec", "demo", "--nonsense", home=tmp_path).returncode == 2
    assert command("exec", "demo", "exit 3", "-q", "--timeout=9", home=tmp_path).returncode == 3


@pytest.mark.parametrize("words", [["--help"], ["version"], ["ls", "--json"], ["exec", "--help"]])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_that_cannot_be_written_is_reported_in_a_line(words: list[str], unbuffered: str, tmp_path: Path) -> None:
    env = {**os.environ, "RAMET_HOME": str(tmp_path), "PYTHONUNBUFFERED": unbuffered}
    line = [sys.executable, "-m", "ramet.apps.cli", *words]
    with open("/dev/full", "w") as full:
        done = subprocess.run(line, stdout=full, stderr=subprocess.PIPE, text=True, env=env, check=False)
    assert done.returncode == 1 and done.stderr.splitlines()[-1].endswith("No space left on device")
    assert len(done.stderr.splitlines()) <= 2 and "Traceback" not in done.stderr
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(line, stdout=writing, stderr=subprocess.PIPE, text=True, env=env, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize(("how", "status"), [("nobody reads", 141), ("interrupted", 130)])
def test_what_was_done_before_the_end_is_kept(how: str, status: int, tmp_path: Path) -> None:
    command("create", "demo", home=tmp_path)
    line = "echo kept > /f; echo begun; while :; do sleep 0.05; echo on; done"
    with subprocess.Popen(
        [sys.executable, "-m", "ramet.apps.cli", "exec", "demo", line], env={**os.environ, "RAMET_HOME": str(tmp_path)},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    ) as running:  # fmt: skip
        assert running.stdout is not None and running.stdout.readline() == b"begun\n"
        if how == "interrupted":
            running.send_signal(signal.SIGINT)
            running.stdout.read()
        running.stdout.close()
        assert running.wait(200) == status
    assert json.loads(command("log", "--json", "demo", home=tmp_path).stdout)[0]["message"] == line
    assert command("show", "demo:/f", home=tmp_path).stdout == "kept\n"


def test_streams_that_are_closed_are_no_accident(tmp_path: Path) -> None:
    def closed(*which: int, words: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "ramet.apps.cli", *words], capture_output=True, text=True, check=False, stdin=0,
            env={**os.environ, "RAMET_HOME": str(tmp_path)}, preexec_fn=lambda: list(map(os.close, which)),
        )  # fmt: skip

    command("create", "demo", home=tmp_path)
    read = closed(0, words=("exec", "demo", "cat; echo read nothing"))
    assert (read.returncode, read.stdout, read.stderr) == (0, "read nothing\n", "")
    lost = closed(1, words=("version",))
    assert (lost.returncode, lost.stderr) == (1, "ramet: write error: Bad file descriptor\n")
    assert closed(0, 2, words=("exec", "demo", "echo out; echo err >&2")).stdout == "out\n"


OPTIONAL = "starlette uvicorn httpx2 mcp yaml watchfiles redis asyncssh psycopg asyncpg pymongo fsspec agents boto3"
WITHOUT = f"""
import sys
for name in {OPTIONAL.split()}:
    sys.modules[name] = None
from ramet import *
from ramet.apps.cli.main import main
for words in (["ui", "x"], ["serve"], ["rendezvous", "r"], ["mcp", "x"], ["ls", "--store", "http://127.0.0.1:1"]):
    sys.argv[1:] = words
    try:
        main()
    except SystemExit as end:
        print(words[0], end.code)
for extra, use in (("client", lambda: connect("http://x")), ("fsspec", lambda: __import__("ramet.agents.fsspec"))):
    try:
        use()
    except RametError as error:
        print(extra, error.remediation)
"""


def test_what_is_not_installed_is_named(tmp_path: Path) -> None:
    env = {**os.environ, "RAMET_HOME": str(tmp_path)}
    line = [sys.executable, "-c", WITHOUT]
    done = subprocess.run(line, capture_output=True, text=True, env=env, cwd=tmp_path, timeout=280, check=False)
    assert done.stdout.splitlines() == [
        "ui 1", "serve 1", "rendezvous 1", "mcp 1", "ls 1",
        "client pip install 'ramet[client]'", "fsspec pip install 'ramet[fsspec]'",
    ]  # fmt: skip
    told = [told.strip() for told in done.stderr.splitlines() if told.startswith(" ")]
    assert told == [f"pip install 'ramet[{extra}]'" for extra in ("server", "server", "server", "mcp", "client")]


def test_looking_inside(ramet) -> None:  # type: ignore[no-untyped-def]
    ramet("create", "demo")
    ramet("exec", "demo", "true & wait; cd /tmp", stdin="")
    ramet("exec", "demo", "false; (exit 3)", status=3, stdin="")
    rows = json.loads(ramet("history", "--json", "demo"))
    assert [(row["number"], row["status"], row["cwd"]) for row in rows] == [(1, 0, "/tmp"), (2, 3, "/tmp")]
    assert [row["number"] for row in json.loads(ramet("history", "--json", "demo@1"))] == [1]
    assert json.loads(ramet("history", "--json", "demo", "--session", "nobody")) == []
    assert json.loads(ramet("sessions", "--json", "demo"))[0] == {"session": "default", "cwd": "/tmp", "last_status": 3}
    assert json.loads(ramet("jobs", "--json", "demo"))[0]["command"] == "true"
    assert json.loads(ramet("mounts", "--json", "demo"))[0]["prefix"] == "/"


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("exec demo ls", {"name": "demo", "command": ["ls"], "timeout": None, "quiet": False, "store": "/home"}),
        ("exec -q demo --timeout 2.5 ls", {"name": "demo", "command": ["ls"], "timeout": 2.5, "quiet": True}),
        ("exec demo -- -x", {"name": "demo", "command": ["-x"]}),
        ("exec demo ls -mx=1", {"message": "x=1"}),
        ("exec demo ls -qmx --message y --json", {"message": "y", "quiet": True, "as_json": True}),
        ("exec demo ls --store=x --message=", {"store": "x", "message": ""}),
        ("exec demo", {"command": None}),
        ("exec", None),
        ("exec demo a b", {"command": ["a", "b"]}),
        ("exec demo ls --timeout soon", None),
        ("exec demo ls -m", None),
        ("exec demo ls --json=1", None),
        ("exec demo ls -x", None),
        ("bisect w 1 2 -- a -b", {"name": "w", "good": "1", "bad": "2", "command": ["a", "-b"]}),
        ("revert w@1", {"paths": None}),
        ("revert w@1 /a -m x /b", {"paths": ["/a", "/b"], "message": "x"}),
        ("push w --path a --path=b", {"path": ["a", "b"], "secret": None, "branch": "{{.name}}"}),
        ("ui --no-browser", {"browser": False, "name": None, "port": 0}),
        ("ui --no-browser --browser --port 7", {"browser": True, "port": 7}),
        ("history w -n 0", {"last": 0}),
        ("history w -n -1", None),
        ("tag w -df", {"delete": True, "force": True}),
        ("events", {"secret": "hush"}),
        ("serve --port 0 --socket s", {"port": 0, "uds": "s", "every": 5.0, "given": {"port", "uds", "store"}}),
    ],
)
def test_words_become_values(line: str, found: dict[str, Any] | None) -> None:
    name, *words = line.split()
    verb = find(name)
    assert verb is not None
    environ = {"RAMET_HOME": "/home", "RAMET_CONFIG": "", "RAMET_WEBHOOK_SECRET": "hush"}
    if found is None:
        with pytest.raises(UsageError):
            parse(verb.command(), words, {}, environ)
    else:
        values = parse(verb.command(), words, {}, environ)
        assert {key: values[key] for key in found} == found


def test_a_store_before_the_verb_counts_more_than_the_variable_and_less_than_the_option() -> None:
    verb = find("ls")
    assert verb is not None
    command, environ = verb.command(), {"RAMET_HOME": "variable"}
    assert parse(command, [], {"store": "before"}, environ)["store"] == "before"
    assert parse(command, ["--store", "behind"], {"store": "before"}, environ)["store"] == "behind"
    assert parse(command, [], {}, environ)["store"] == "variable"
    assert parse(command, [], {}, {})["store"] == "~/.ramet"


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("ramet log al", ["alpha"]),
        ("ramet log ", ["alpha", "beta"]),
        ("ramet ws log al", ["alpha"]),
        ("ramet run --timeout 1 b", ["beta"]),
        ("ramet log --store {other} ", ["gamma"]),
        ("ramet --store {other} log ", ["gamma"]),
        ("ramet log alpha ", []),
        ("ramet exec alpha --timeout ", []),
        ("ramet lo", ["log"]),
        ("ramet ws ex", ["exec", "export"]),
        ("ramet help lo", ["log"]),
        ("ramet keys r", ["rotate"]),
        ("ramet keys rotate --t", ["--to"]),
        (
            "ramet log alpha --graph --",
            ["--store", "--last", "--since", "--agent", "--oneline", "--json", "--help"],
        ),
        ("ramet push a --path x --pa", ["--path"]),
        ("ramet ui --no", ["--no-browser"]),
        ("ramet --inst", ["--install-completion"]),
        ("ramet log 'al", ["alpha"]),
        ("ramet bogus ", []),
    ],
)
def test_what_may_stand_at_the_end_of_a_line(tmp_path: Path, line: str, found: list[str]) -> None:
    for home, name in (("home", "alpha"), ("home", "beta"), ("other", "gamma")):
        Store(str(tmp_path / home)).create(name)
    env = {"RAMET_HOME": str(tmp_path / "home"), "_RAMET_LINE": line.format(other=tmp_path / "other")}
    told = invoke([], env={**env, "_RAMET_COMPLETE": "bash"})
    assert (told.stdout.split("\n")[:-1], told.exit_code) == (found, 0 if found else 1)
    for shell in ("zsh", "fish"):
        told = invoke([], env={**env, "_RAMET_COMPLETE": shell})
        assert [row.partition("\t")[0] for row in told.stdout.splitlines()] == found


def program_in(folder: Path) -> Path:
    """`ramet` as a program of this name."""
    program = folder / "bin" / "ramet"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m ramet.apps.cli "$@"\n')
    program.chmod(0o755)
    return program


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_completes_with_the_script(tmp_path: Path) -> None:
    assert command("create", "alpha", home=tmp_path).returncode == 0
    assert command("exec", "alpha", "echo 1 > /file", home=tmp_path).returncode == 0
    (tmp_path / "beside").touch()
    folder = program_in(tmp_path).parent
    env = {**os.environ, "RAMET_HOME": str(tmp_path), "HOME": str(tmp_path), "PATH": f"{folder}:{os.environ['PATH']}"}
    invoke(["--install-completion", "fish"], env={"HOME": str(tmp_path)})
    for line, found in (
        ("ramet ws log al", "alpha\n"), ("ramet show alpha:/fi", "alpha:/file\n"), ("ramet nothing besi", "beside\n"),
        ("ls | ramet dem", "demo\tShow what Ramet does in a few seconds, in a temporary directory.\n"),
    ):  # fmt: skip
        done = subprocess.run(
            ["fish", "-c", f"complete -C '{line}'"], capture_output=True, text=True, env=env, cwd=tmp_path, check=True
        )
        assert done.stdout == found, line


def test_bash_completes_with_the_script(tmp_path: Path) -> None:
    assert command("create", "alpha", home=tmp_path).returncode == 0
    script = invoke(["--show-completion", "bash"]).stdout
    program = program_in(tmp_path)
    typed = f"{script}\nCOMP_LINE='ramet ws log al'; COMP_POINT=${{#COMP_LINE}}; _ramet_completion {program}\n"
    done = subprocess.run(
        ["bash", "--norc", "-c", typed + "complete -p ramet; echo ${COMPREPLY[@]}"], capture_output=True, text=True,
        env={**os.environ, "RAMET_HOME": str(tmp_path)}, check=True,
    )  # fmt: skip
    assert done.stdout == "complete -o default -F _ramet_completion ramet\nalpha\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_installed_once(shell: str, tmp_path: Path) -> None:
    (tmp_path / ".bashrc").write_text("alias x=y\n")
    env = {"HOME": str(tmp_path)}
    script = invoke([f"--show-completion={shell}"]).stdout
    for _ in range(2):
        told = invoke(["--install-completion", shell], env=env)
        place = Path(told.stdout.splitlines()[0].removeprefix(f"{shell} completion installed in "))
        assert told.exit_code == 0 and place.is_relative_to(tmp_path) and place.read_text() == script
    if shell == "bash":
        assert (tmp_path / ".bashrc").read_text() == f"alias x=y\nsource '{place}'\n"
    if shell == "zsh":
        assert (tmp_path / ".zshrc").read_text().count("compinit") == 2
    assert "no completion for tcsh" in invoke(["--install-completion", "tcsh"], env=env).output


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_push(ramet, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    subprocess.run(["git", "init", "--quiet", "--bare", str(tmp_path / "r.git")], check=True)
    ramet("create", "demo")
    ramet("exec", "demo", "mkdir /src; echo 1 > /src/f; echo 2 > /other", stdin="")
    done = json.loads(ramet("push", "--json", "demo", str(tmp_path / "r.git"), "--path", "/src"))
    assert done[0]["branch"] == "demo"
    words = ["git", "-C", str(tmp_path / "r.git"), "show", "demo:f"]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == "1\n"
    assert json.loads(ramet("push", "--json", "demo")) == []
    assert "cannot parse" in ramet("push", "demo", "--secret", "x", status=2)
    ramet("push", "demo", str(tmp_path / "none.git"), "--branch", "later", status=1)
    subprocess.run(["git", "init", "--quiet", "--bare", str(tmp_path / "none.git")], check=True)
    assert json.loads(ramet("push", "--json", "demo"))[0]["branch"] == "later"


def test_bind_names_the_mounts_when_files_lie_in_several(ramet, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "f").write_text("f")
    ramet("create", "demo")
    ramet("mount", "demo", "/data", str(tmp_path / "in"))
    refused = ramet("bind", "demo", str(tmp_path / "out"), "true", status=2)
    assert "files lie in /data" in refused and "--prefix /data" in refused
    ramet("bind", "demo", str(tmp_path / "out"), "--prefix", "/data", "--unconfined", "--", "cat", "f")
    assert (tmp_path / "out" / "f").read_text() == "f"


def test_log_finds_each_agent_of_a_revision_and_of_a_merged_one(ramet, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    store = Store(str(tmp_path / "home"))
    store.create("demo")

    async def act(name: str, *agents: str) -> None:
        async with store.open(name) as ws:
            for agent in agents:
                await ws.execute(f"echo {agent} > /{name}-{agent}", agent_id=agent)

    asyncio.run(act("demo", "ada", "bob"))
    store["demo"].fork(None, "side")
    asyncio.run(act("side", "cy", "bob", "dan"))
    asyncio.run(act("demo", "eve", "ada"))
    assert store["demo"].merge("side").ok
    for agent, expected in (
        ("ada", ["demo-1", "demo-2"]), ("bob", ["demo-1", "side-2"]), ("cy", ["side-2"]), ("eve", ["demo-2"]),
        ("none", []),
    ):  # fmt: skip
        assert (
            sorted(row["revision"] for row in json.loads(ramet("log", "--json", "demo", "--agent", agent))) == expected
        ), agent


def test_undo_agents_and_the_choices_of_log(ramet, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    ramet("create", "demo")
    ramet("exec", "demo", "echo 1 > /f", stdin="")
    ramet("exec", "demo", "echo 2 > /g", "--message", "two", stdin="")
    assert [row["revision"] for row in json.loads(ramet("log", "--json", "demo", "-n", "1"))] == ["demo-2"]
    assert [row["revision"] for row in json.loads(ramet("log", "--json", "demo", "--", "/f"))] == ["demo-1"]
    assert json.loads(ramet("log", "--json", "demo", "--since", "2999-01-01")) == []
    assert "demo-2" in ramet("log", "demo", "--oneline") and "cannot read" in ramet(
        "log", "demo", "--since", "x", status=2
    )
    assert ramet("undo", "demo").startswith("demo-3: undo demo-2")
    assert "not in demo-3" in ramet("show", "demo:/g", status=3)
    (row,) = json.loads(ramet("agents", "--json", "demo", "--by", "session"))[-1:]
    assert row["commands"] >= 1 and row["failures"] == 0


def test_a_pipe_gets_text_and_json_is_asked_for(tmp_path: Path) -> None:
    def ramet(*words: str, **env: str) -> str:
        return invoke([*words, "--store", str(tmp_path)], env=env).stdout

    ramet("create", "demo")
    ramet("exec", "demo", "echo hi > /f", "-m", "first line\nsecond line")
    assert re.fullmatch(
        r"workspace  revision  time +message\ndemo       demo-1    [-0-9]+ [:0-9]+  first line\n", ramet("ls")
    )
    assert json.loads(ramet("ls", RAMET_OUTPUT="json"))[0]["message"] == "first line\nsecond line"
    assert json.loads(ramet("create", "other", RAMET_OUTPUT="json")) == {"workspace": "other"}
    assert json.loads(ramet("log", "y", RAMET_OUTPUT="json"))["error"]["code"] == "workspace_not_found"
    assert ramet("ls", RAMET_OUTPUT="text") == ramet("ls", RAMET_OUTPUT="") == ramet("ls")
    done = invoke(["ls", "--store", str(tmp_path)], env={"RAMET_OUTPUT": "xml"})
    assert done.exit_code == 2 and done.output.splitlines() == [
        "ramet: ls: $RAMET_OUTPUT is 'xml'", "       set it to json or text; see `ramet ls --help`",
    ]  # fmt: skip
    assert ramet("tag", "demo") == "", "that there is nothing is no output"


def test_diff_shows_lines_counts_or_names(tmp_path: Path) -> None:
    def ramet(*words: str) -> str:
        done = invoke(["--store", str(tmp_path), *words])
        assert done.exit_code == 0, done.output
        return done.stdout

    ramet("create", "demo")
    ramet("exec", "demo", "mkdir /src; seq 3 > /src/n; echo old > /note")
    ramet("fork", "demo", "other")
    ramet("exec", "other", "sed -i s/2/two/ /src/n; rm /note; echo 1 > /src/m")
    assert "@@ -1,3 +1,3 @@\n 1\n-2\n+two\n 3\n" in ramet("diff", "demo", "other")
    assert ramet("diff", "other", "--name-only") == "/note\n/src/m\n/src/n\n"
    assert ramet("diff", "other", "--name-only", "--", "/src/n") == "/src/n\n"
    assert ramet("diff", "other", "--stat").splitlines() == [
        " /note  | 1 -", " /src/m | 1 +", " /src/n | 2 +-", " 3 paths changed, 2 lines added, 2 lines removed",
    ]  # fmt: skip
    assert json.loads(ramet("diff", "other", "--stat", "--json"))[2] == {
        "change": "modified", "path": "/src/n", "added": 1, "removed": 1,
    }  # fmt: skip
    whole = {row["path"]: row for row in json.loads(ramet("diff", "demo", "other", "--json"))}
    assert whole["/src/n"] == {
        "change": "modified", "path": "/src/n", "added": 1, "removed": 1, "hunks": [
            {"old_start": 1, "old_lines": 3, "new_start": 1, "new_lines": 3, "lines": [" 1", "-2", "+two", " 3"]},
        ],
    }  # fmt: skip
    assert ramet("diff", "demo@1", "demo@1") == ""


def test_a_terminal_gets_a_coloured_diff_in_a_pager(tmp_path: Path) -> None:
    store = ["--store", str(tmp_path)]
    assert invoke(["create", "demo", *store]).exit_code == 0
    assert invoke(["exec", "demo", "seq 3 > /n", *store]).exit_code == 0
    env = {**os.environ, "PAGER": "sed s/^/paged:/", "TERM": "xterm"}
    env.pop("NO_COLOR", None)
    master, slave = pty.openpty()
    line = [sys.executable, "-m", "ramet.apps.cli", "diff", "demo", *store]
    done = subprocess.Popen(line, stdout=slave, stdin=slave, stderr=slave, env=env)
    os.close(slave)
    seen = b""
    while True:
        try:
            block = os.read(master, 4096)
        except OSError:  # the terminal is closed
            break
        if not block:
            break
        seen += block
    os.close(master)
    assert done.wait() == 0
    assert b"paged:\x1b[32m+1\x1b[0m\r\n" in seen


def test_conflicts_are_shown_and_resolved(tmp_path: Path) -> None:
    def ramet(*words: str, status: int = 0, **env: str) -> str:
        done = invoke(["--store", str(tmp_path / "store"), *words], env={"VISUAL": None, "EDITOR": None, **env})
        assert done.exit_code == status, done.output
        return done.output

    ramet("create", "base")
    ramet("exec", "base", "seq 9 > /f; echo 1 > /g")
    for name in ("one", "two", "three", "four"):
        ramet("fork", "base", name)
    for name in ("one", "two", "three"):
        ramet("exec", name, "sed -i '1s/.*/first/; 5s/.*/mine/' /f; echo mine > /g")
    ramet("exec", "four", "sed -i '5s/.*/yours/; 9s/.*/last/' /f; echo yours > /g")
    shown = ramet("merge", "one", "four", status=4)
    assert "conflict: /f: both changed\nconflict: /g: both changed\n" in shown
    assert "-mine\n+yours\n" in shown and "nothing was merged; pass --ours" in shown
    assert json.loads(ramet("merge", "one", "four", "--json", status=4))[1] == {
        "conflict": "both changed",
        "path": "/g",
    }
    ramet("merge", "one", "four", "--take", "/f=theirs", "--ours")
    assert ramet("exec", "one", "head -1 /f; sed -n 5p /f; cat /g") == "1\nyours\nmine\n"
    assert "cannot resolve /h: not in conflict" in ramet(
        "merge", "two", "four", "--theirs", "--take", "/h=ours", status=2
    )
    assert "cannot edit conflicts" in ramet("merge", "two", "four", "--edit", status=2)
    assert "markers are left" in ramet("merge", "two", "four", "--edit", status=2, EDITOR="true")
    script = tmp_path / "editor"
    script.write_text("#!/bin/sh\nsed -i '/^[<=]/d; /^>>>>>>>/d; s/^yours$/both/' \"$1\"\n")
    script.chmod(0o755)
    ramet("merge", "two", "four", "--edit", EDITOR=str(script))
    assert ramet("exec", "two", "tr '\\n' ' ' < /f; tr '\\n' ' ' < /g") == "first 2 3 4 mine both 6 7 8 last mine both "


def test_an_edit_with_markers_left_can_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def ramet(*words: str, status: int = 0, stdin: str = "", **env: str | None) -> str:
        done = invoke(["--store", str(tmp_path / "store"), *words], stdin, env={"VISUAL": None, "EDITOR": None, **env})
        assert done.exit_code == status, done.output
        return done.output

    ramet("create", "one")
    ramet("exec", "one", "echo 1 > /f")
    ramet("fork", "one", "two")
    ramet("exec", "one", "echo mine > /f")
    ramet("exec", "two", "echo yours > /f")
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "editor").write_text('#!/bin/sh\ntest -e seen && echo both > "$1"; touch seen\n')
    (tools / "editor").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("ramet.apps.cli.conflicts.has_terminal", lambda: True)
    path = f"{tools}:{os.environ['PATH']}"
    asked = "/f: markers are left in it. Edit it again? [Y/n] "
    refused = ramet("merge", "one", "two", "--edit", status=2, stdin="n\n", PATH=path)
    assert asked in refused and "cannot resolve /f: markers are left in it" in refused
    (tmp_path / "seen").unlink()
    assert ramet("merge", "one", "two", "--edit", stdin="\n", PATH=path) == f"{asked}one-3\n"
    assert ramet("show", "one:/f") == "both\n", "`editor` is used where no variable names one"


def test_exec_takes_words_or_a_script_from_stdin(tmp_path: Path) -> None:
    store = ["--store", str(tmp_path)]
    assert invoke([*store, "create", "demo"]).exit_code == 0
    done = invoke([*store, "exec", "demo", "--", "printf", "%s|", "a b", "$HOME", "it's"])
    assert done.stdout == "a b|$HOME|it's|", "words are quoted"
    done = invoke([*store, "exec", "demo"], stdin="x=1\nfor i in a b; do\n  echo $x$i\ndone\nread y || echo no input\n")
    assert done.stdout == "1a\n1b\nno input\n"
    for nothing in ("", "\n"):
        done = invoke([*store, "exec", "demo"], stdin=nothing)
        assert done.exit_code == 2 and "missing argument COMMAND" in done.output


def test_every_verb_prints_json() -> None:
    interactive = {"shell", "ui", "serve", "rendezvous", "mcp", "bind", "demo"}
    always = {"events", "schema"}
    plain = {
        verb.name for path, verb in leaves() if "--json" not in str([one.flags for one in verb.command(path).options])
    }
    assert plain == interactive | always


def test_json_of_verbs_that_print_little(ramet, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    def answer(*words: str) -> Any:
        return json.loads(ramet(*words, RAMET_OUTPUT="json", stdin=""))

    out = str(tmp_path / "out")
    (tmp_path / "f").write_text("x")
    assert answer("create", "demo") == {"workspace": "demo"}
    assert answer("cp", str(tmp_path / "f"), "demo:/f") == {"copied": 1, "revision": "demo-1"}
    assert answer("show", "demo:/f") == {"revision": "demo-1", "path": "/f", "encoding": "utf-8", "content": "x"}
    assert answer("cp", "demo:/f", out) == {"copied": 1}
    assert answer("mount", "demo", "/data") == {"revision": "demo-2", "prefix": "/data"}
    assert answer("umount", "demo", "/data") == {"revision": "demo-3", "prefix": "/data"}
    assert answer("snapshot", "demo", f"{out}.tar") == {"workspace": "demo", "file": f"{out}.tar"}
    assert answer("export", "demo", f"{out}.git", "--git")["commits"] == 3
    assert answer("export", "demo", f"{out}.tar", "--tar") == {"file": f"{out}.tar", "left_out": []}
    assert answer("hold", "demo", "case 42") == {"workspace": "demo", "hold": "case 42"}
    assert answer("hold", "demo", "--lift") == {"workspace": "demo", "hold": ""}
    assert answer("repair")["ok"] is True
    assert answer("grant", "demo", "ada", "readwrite", "--force")["principal"] == "ada"
    assert list(answer("version")) == ["version"]
