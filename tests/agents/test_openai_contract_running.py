"""The contract of the SDK's commands and terminals, on its own local backend and on ours."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("agents.sandbox")

from agents.sandbox import Manifest
from agents.sandbox.entries import Dir, File
from agents.sandbox.errors import ExecTimeoutError, PtySessionNotFoundError
from agents.sandbox.manifest import EnvEntry, Environment, EnvValue
from agents.sandbox.sandboxes import unix_local
from agents.sandbox.types import ExecResult
from tests.agents.openai_local import CLIENTS, Box, in_box

from ramet.agents.openai_agents import terminals

pytestmark = [  # the SDK's backend leaves processes that were ended for the collector
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
Check = Callable[[Box], Awaitable[Any]]


class Found(EnvValue):
    """A value that is looked up when a command starts."""

    async def resolve(self) -> str:
        return "with words"


SCRIPT = b'#!/bin/sh\necho "$0 $1"\nexit 3\n'
MANIFEST = Manifest(
    entries={"a.txt": File(content=b"alpha\n"), "d": Dir(), "s.sh": File(content=b'#!/bin/sh\necho "$0 $1"\nexit 3\n')},
    environment=Environment(
        value={
            "GREETING": "hello there",
            "HOME": "/elsewhere",
            "DESCRIBED": EnvEntry(value=Found(), description="what it is for"),
            "ODD": "a'b\"c$d\ne",
        }
    ),
)


async def triple(box: Box, *command: Any, **options: Any) -> tuple[bytes, bytes, int]:
    result: ExecResult = await box.session.exec(*command, **options)
    assert result.ok() is (result.exit_code == 0)
    return result.stdout, result.stderr, result.exit_code


async def home(box: Box) -> bool:
    return await box.out('printf %s "$HOME"') == str(box.root).encode()


async def pwd(box: Box) -> bool:
    return await box.out("pwd") == str(box.root).encode() + b"\n" == await box.out("pwd", shell=["bash", "-c"])


async def no_leak(box: Box) -> bytes:
    await box.out("export LEAK=1; LEAK2=2; cd d; umask 077; alias x=y; f() { :; }")
    return await box.out('echo "[$LEAK$LEAK2]"; umask; f 2>/dev/null; ls a.txt; :')


async def side_by_side(box: Box) -> list[bytes]:
    """Each waits for all others."""
    await box.out("mkdir here")
    wait = "until [ $(ls here | wc -l) = 6 ]; do sleep 0.02; done"
    async with asyncio.timeout(120):
        return await asyncio.gather(*(box.out(f"touch here/{n}; {wait}; echo {n}") for n in range(6)))


async def timed_out(box: Box) -> tuple[Any, bool, bytes]:
    started = time.monotonic()
    with pytest.raises(ExecTimeoutError) as caught:
        await box.session.exec("echo before; sleep 30", timeout=0.3)
    quick = time.monotonic() - started < 25
    error: Any = caught.value
    assert "sleep 30" in " ".join(str(word) for word in error.command)
    return error.timeout_s, quick, await box.out("echo still here")


async def stopped_by_timeout(box: Box) -> bytes:
    with pytest.raises(ExecTimeoutError):
        await box.session.exec("(sleep 1; echo late > late) & sleep 30", timeout=0.2)
    await asyncio.sleep(1.3)
    return await box.out("ls late 2>/dev/null || echo none")


async def cancelled(box: Box) -> bytes:
    task = asyncio.create_task(box.session.exec("sleep 30"))
    await asyncio.sleep(0.1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    return await box.out("echo fine")


async def sees_each_other(box: Box) -> bytes:
    """Files that the API writes are there for commands, and the other way round, at once."""
    await box.put("f", b"1")
    await box.out("printf 2 >> f")
    await box.put("f", await box.get("f") + b"3")
    return await box.out("cat f")


GIVES: dict[str, tuple[Check, Any]] = {
    "three results": (lambda b: triple(b, "echo out; echo err >&2; exit 7"), (b"out\n", b"err\n", 7)),
    "binary output": (lambda b: triple(b, "printf '\\000\\377\\r\\n'"), (b"\0\xff\r\n", b"", 0)),
    "no output": (lambda b: triple(b, ":"), (b"", b"", 0)),
    "large output": (lambda b: _size(b, "head -c 3000000 /dev/zero"), 3000000),
    "both streams at once": (lambda b: _size(b, "yes | head -c 300000; yes | head -c 300000 >&2"), 300000),
    "a script with lines": (lambda b: b.out("x=1\nif [ $x = 1 ]; then\n  echo one\nfi"), b"one\n"),
    "a here-document": (lambda b: b.out("cat <<'E'\n$x\nE"), b"$x\n"),
    "a pipeline": (lambda b: b.out("printf 'b\\na\\n' | sort | tr a-z A-Z"), b"A\nB\n"),
    "one word with a shell": (lambda b: b.out("echo $((1 + 2))"), b"3\n"),
    "words with a shell are quoted": (
        lambda b: triple(b, "echo", "$HOME", "a  b", ";", "x"), (b"$HOME a  b ; x\n", b"", 0)),
    "words without a shell": (
        lambda b: triple(b, "echo", "*", "a  b", "$X", "", shell=False), (b"* a  b $X \n", b"", 0)),
    "a path among the words": (lambda b: triple(b, "cat", Path("a.txt"), shell=False), (b"alpha\n", b"", 0)),
    "a path in the root": (lambda b: triple(b, "cat", b.root / "a.txt", shell=False), (b"alpha\n", b"", 0)),
    "a shell without a shell": (
        lambda b: triple(b, "sh", "-c", 'echo "$0 $1"', "n", "x y", shell=False), (b"n x y\n", b"", 0)),
    "sh -lc": (lambda b: b.out("echo $0", shell=["sh", "-lc"]), b"sh\n"),
    "bash -lc": (lambda b: b.out("echo ${GREETING^^}", shell=["bash", "-lc"]), b"HELLO THERE\n"),
    "bash -c": (lambda b: b.out("a=(1 2); echo ${a[1]}", shell=["bash", "-c"]), b"2\n"),
    "bash -e": (lambda b: triple(b, "false; echo no", shell=["bash", "-ec"]), (b"", b"", 1)),
    "env before the shell": (lambda b: b.out("echo $X", shell=["env", "X=5", "sh", "-c"]), b"5\n"),
    "words with a shell of choice": (lambda b: triple(b, "echo", "a  b", shell=["bash", "-c"]), (b"a  b\n", b"", 0)),
    "a script file": (lambda b: triple(b, "./s.sh", "x y", shell=False), (b"./s.sh x y\n", b"", 3)),
    "a script file in a shell": (lambda b: triple(b, "./s.sh 1 || echo $?"), (b"./s.sh 1\n3\n", b"", 0)),
    "a script by sh": (lambda b: triple(b, "sh s.sh 1"), (b"s.sh 1\n", b"", 3)),
    "a word that is not there": (lambda b: _code(b, "no-such-program-x"), 127),
    "a file that cannot run": (lambda b: _code(b, "chmod 644 a.txt; ./a.txt"), 126),
    "killed by itself": (lambda b: _code(b, "sh -c 'kill -9 $$'"), 137),
    "a signal's trap": (lambda b: b.out("trap 'echo bye' EXIT; echo hi"), b"hi\nbye\n"),
    "environment": (lambda b: b.out('echo "$GREETING|$DESCRIBED"'), b"hello there|with words\n"),
    "environment without a shell": (
        lambda b: triple(b, "printenv", "GREETING", shell=False), (b"hello there\n", b"", 0)),
    "environment with odd characters": (lambda b: b.out('printf %s "$ODD"'), b"a'b\"c$d\ne"),
    "home is the root": (home, True),
    "commands start in the root": (pwd, True),
    "nothing is left behind": (no_leak, b"[]\n0022\na.txt\n"),
    "commands side by side": (side_by_side, [b"%d\n" % n for n in range(6)]),
    "a timeout": (timed_out, (0.3, True, b"still here\n")),
    "a timeout that is not reached": (lambda b: triple(b, "echo in time", timeout=20), (b"in time\n", b"", 0)),
    "a timeout ends the children": (stopped_by_timeout, b"none\n"),
    "a cancelled command": (cancelled, b"fine\n"),
    "files and commands": (sees_each_other, b"123"),
}  # fmt: skip


async def _size(box: Box, command: str) -> int:
    return len(await box.out(command))


async def _code(box: Box, command: str) -> int:
    result = await box.session.exec(command)
    assert result.stderr or result.exit_code > 128
    code: int = result.exit_code
    return code


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("name", GIVES)
def test_gives(client: Any, name: str) -> None:
    act, expected = GIVES[name]
    assert in_box(client, act, manifest=MANIFEST) == expected


# --------------------------------------------------------------------------------------------------- terminals


async def begin(box: Box, command: str, **options: Any) -> Any:
    return await box.session.pty_exec_start(command, **{"tty": True, "yield_time_s": 0.4, **options})


async def type_in(box: Box, started: Any, chars: str, wait: float = 5) -> Any:
    return await box.session.pty_write_stdin(session_id=started.process_id, chars=chars, yield_time_s=wait)


async def until(box: Box, started: Any, text: bytes, tries: int = 20) -> bytes:
    """What the command says until it has said `text`."""
    said: bytes = started.output
    for _ in range(tries):
        if text in said:
            break
        said += (await box.session.pty_write_stdin(session_id=started.process_id, chars="", yield_time_s=0.3)).output
    assert text in said, said
    return said


async def ended(box: Box, update: Any) -> tuple[bytes, Any]:
    """What the command says until its end, and its last update."""
    said: bytes = update.output
    for _ in range(20):
        if update.process_id is None:
            break
        update = await type_in(box, update, "")
        said += update.output
    return said, update


async def short(box: Box) -> tuple[Any, ...]:
    done = await begin(box, "echo out; echo err >&2; exit 4", tty=False, yield_time_s=10)
    return sorted(done.output.split()), done.exit_code, done.process_id


async def in_terminal(box: Box) -> tuple[Any, ...]:
    done = await begin(box, "[ -t 0 ] && [ -t 1 ] && echo terminal; exit 2", yield_time_s=10)
    return b"terminal" in done.output, done.exit_code, done.process_id


async def not_in_terminal(box: Box) -> bytes:
    done = await begin(box, "[ -t 1 ] || echo none", tty=False, yield_time_s=10)
    found: bytes = done.output
    return found


async def still_running(box: Box) -> tuple[Any, ...]:
    started = await begin(box, "echo one; until [ -e go ]; do sleep 0.02; done; echo two", tty=False)
    assert started.process_id is not None and started.exit_code is None
    first = await until(box, started, b"one")
    await box.put("go", b"")
    rest, last = await ended(box, await type_in(box, started, ""))
    return first, rest, last.exit_code


async def answered(box: Box) -> tuple[Any, ...]:
    started = await begin(box, "printf 'name? '; read x; echo hello $x; read y; echo bye $y; exit 5")
    await until(box, started, b"name?")
    await until(box, await type_in(box, started, "ada\n", 0.4), b"hello ada")
    said, last = await ended(box, await type_in(box, started, "lovelace\n"))
    return b"bye lovelace" in said, last.exit_code, last.process_id


async def shell_with_state(box: Box) -> Any:
    started = await begin(box, "sh")
    await type_in(box, started, "X=5; cd d\n", 0.4)
    await until(box, await type_in(box, started, "echo v$X-$(basename $PWD)\n", 1), b"v5-d")
    _, last = await ended(box, await type_in(box, started, "exit\n"))
    return last.process_id


async def ended_by(box: Box, key: str) -> tuple[bool, Any]:
    started = await begin(box, "echo up; sleep 60")
    await until(box, started, b"up")
    _, last = await ended(box, await type_in(box, started, key))
    return last.exit_code not in (None, 0), last.process_id


async def end_of_input(box: Box) -> tuple[bool, Any]:
    started = await begin(box, "cat; echo ended")
    await type_in(box, started, "line\n", 0.4)
    said, last = await ended(box, await type_in(box, started, "\x04"))
    return b"ended" in said, last.exit_code


async def gone(box: Box) -> list[str]:
    started = await begin(box, "sleep 60")
    other = await begin(box, "sleep 60", tty=False)
    await box.session.pty_terminate_all()
    return [await _refusal(box, number) for number in (started.process_id, other.process_id, 424242)]


async def forgotten_after_end(box: Box) -> str:
    started = await begin(box, "read x; echo done")
    await ended(box, await type_in(box, started, "\n"))
    return await _refusal(box, started.process_id)


async def _refusal(box: Box, number: int) -> str:
    try:
        await box.session.pty_write_stdin(session_id=number, chars="x")
    except PtySessionNotFoundError:
        return "unknown"
    return "known"


async def no_input(box: Box) -> bool:
    started = await begin(box, "sleep 60", tty=False)
    with pytest.raises(RuntimeError):
        await type_in(box, started, "x")
    await box.session.pty_terminate_all()
    return True


async def shortened(box: Box) -> tuple[bool, bool]:
    done = await begin(box, "seq 5000", tty=False, yield_time_s=10, max_output_tokens=50)
    return len(done.output) < 1000, done.original_token_count > 50


async def separate(box: Box) -> tuple[bool, bool]:
    one, two = await begin(box, "read x; echo one-$x"), await begin(box, "read x; echo two-$x")
    assert one.process_id != two.process_id
    last, _ = await ended(box, await type_in(box, two, "b\n"))
    first, _ = await ended(box, await type_in(box, one, "a\n"))
    return b"two-b" in last, b"one-a" in first


async def environment(box: Box) -> bool:
    done = await begin(box, 'echo "$GREETING"; cat a.txt', tty=False, yield_time_s=10)
    return bytes(done.output) == b"hello there\nalpha\n"


async def kept_files(box: Box) -> bytes:
    await begin(box, "echo x > made", yield_time_s=10)
    return await box.get("made")


TERMINALS: dict[str, tuple[Check, Any]] = {
    "supported": (lambda b: _now(b.session.supports_pty()), True),
    "a short command": (short, ([b"err", b"out"], 4, None)),
    "a terminal": (in_terminal, (True, 2, None)),
    "no terminal": (not_in_terminal, b"none\n"),
    "output as it appears": (still_running, (b"one\n", b"two\n", 0)),
    "questions and answers": (answered, (True, 5, None)),
    "a shell keeps its state": (shell_with_state, None),
    "an interrupt": (lambda b: ended_by(b, "\x03"), (True, None)),
    "a quit": (lambda b: ended_by(b, "\x1c"), (True, None)),
    "the end of the input": (end_of_input, (True, 0)),
    "ended together": (gone, ["unknown", "unknown", "unknown"]),
    "forgotten after its end": (forgotten_after_end, "unknown"),
    "no input without a terminal": (no_input, True),
    "output that is too long": (shortened, (True, True)),
    "two at a time": (separate, (True, True)),
    "environment and directory": (environment, True),
    "files": (kept_files, b"x\n"),
}


async def _now(value: Any) -> Any:
    return value


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("name", TERMINALS)
def test_terminals(client: Any, name: str) -> None:
    act, expected = TERMINALS[name]
    assert in_box(client, act, manifest=MANIFEST) == expected


@pytest.mark.parametrize("client", CLIENTS)
def test_the_least_used_terminal_makes_room(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (terminals, unix_local):
        monkeypatch.setattr(module, "PTY_PROCESSES_MAX", 10)

    async def use(box: Box) -> None:
        started = [await begin(box, "sleep 60", tty=False, yield_time_s=0.25) for _ in range(11)]
        with pytest.raises(PtySessionNotFoundError):
            await type_in(box, started[0], "", 0.3)
        assert (await type_in(box, started[-1], "", 0.3)).process_id == started[-1].process_id

    in_box(client, use, manifest=MANIFEST)
