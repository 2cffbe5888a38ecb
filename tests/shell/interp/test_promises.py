"""What a running shell promises beyond the language: depth, limits, cancellation, fairness, hooks, sessions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.support.loop_holds import Lateness, too_long

from ramet.backends.local.ram import RAMResource
from ramet.commands.framework.table import COMMANDS
from ramet.core.limits import Budget, Limits, TimeUp
from ramet.core.paths import ROOT, parse
from ramet.core.proc import Proc
from ramet.core.streams import BytesReader, Capture, pipe
from ramet.shell.interp import Hook, Shell, ShellState
from ramet.vfs.dev import DevResource
from ramet.vfs.vfs import VFS


class Box:
    """A shell, a session and what the last run printed."""

    def __init__(self, hook: Hook | None = None, commands: dict[str, Any] | None = None) -> None:
        fs = VFS({ROOT: RAMResource(), parse("/dev"): DevResource()})
        self.shell = Shell(fs, {**COMMANDS, **(commands or {})}, hook=hook)
        self.session = self.shell.session({}, cwd="/")

    async def run(self, text: str, limits: Limits | None = None, stdin: bytes = b"") -> tuple[int, str, str]:
        out, err = Capture(), Capture()
        status = await self.shell.run(
            self.session, text, stdin=BytesReader(stdin), stdout=out, stderr=err, budget=Budget(limits or Limits())
        )
        return status, out.getvalue().decode(), err.getvalue().decode()


def drive(work: Callable[[Box], Awaitable[None]], **options: Any) -> None:
    async def main() -> None:
        await work(Box(**options))

    asyncio.run(main())


@pytest.mark.parametrize(
    "body",
    [
        "if (($1 > 0)); then f $(($1 - 1)); else echo deep; fi",
        "local n=$1; [ $n -eq 0 ] && { echo deep; return; }; f $((n - 1))",
        "case $1 in 0) echo deep ;; *) for x in 1; do if true; then { f $(($1 - 1)); }; fi; done ;; esac",
    ],
)
def test_recursion_two_thousand_deep(body: str) -> None:
    async def work(box: Box) -> None:
        assert await box.run(f"f() {{ {body}; }}; f 2000") == (0, "deep\n", "")

    drive(work)


@pytest.mark.parametrize("body", ["f", "eval f", "(f)", "x=$(f)"])
def test_endless_recursion_is_an_error(body: str) -> None:
    async def work(box: Box) -> None:
        _, out, err = await box.run(f"f() {{ {body}; }}; f\necho after", Limits(recursion=300))
        assert out == "after\n"
        assert "exceeded" in err or "limit reached" in err

    drive(work)


@pytest.mark.parametrize(
    ("text", "limits", "named"),
    [
        ("printf %1000000000d 1", Limits(), "width_chars"),
        ("x=a; while :; do x=$x$x; done", Limits(string_bytes=1 << 25), "string_bytes"),
        ("x=a; while :; do a=($x $x); x=${a[*]}; done", Limits(string_bytes=1 << 20), "string_bytes"),
        ('x=a; while :; do set -- $x $x; x="$*"; done', Limits(string_bytes=1 << 20), "string_bytes"),
        ("x=aa; while :; do x=${x//a/$x}; done", Limits(string_bytes=1 << 20), "string_bytes"),
        ("x=aa; while :; do x=${x//[ab]/$x}; done", Limits(string_bytes=1 << 20), "string_bytes"),
        ("x=aa; while :; do x=${x//?/&&}; done", Limits(string_bytes=1 << 18), "string_bytes"),
        ("a[1]=x; while :; do a[1]+=${a[1]}; done", Limits(string_bytes=1 << 20), "string_bytes"),
        ("declare -A m=([k]=x); while :; do m[k]+=${m[k]}; done", Limits(string_bytes=1 << 20), "string_bytes"),
        ("read -d '' x < <(yes)", Limits(string_bytes=1 << 20), "string_bytes"),
        ("x=a; while :; do a=($x $x); x=${a[*]@Q}; done", Limits(string_bytes=1 << 20), "string_bytes"),
        ("x=a; while :; do a=($x $x); eval x=\\'${a[*]}\\'; done", Limits(string_bytes=1 << 20), "string_bytes"),
        ("echo {1..100000}", Limits(expansion_words=1000), "expansion_words"),
        ("while :; do :; done", Limits(loop_steps=1000), "loop_steps"),
        ("x=$(yes)", Limits(string_bytes=1 << 20), "string_bytes"),
    ],
)
def test_limits_are_loud(text: str, limits: Limits, named: str) -> None:
    async def work(box: Box) -> None:
        status, _, err = await box.run(text, limits)
        assert status != 0
        assert named in err

    drive(work)


def test_fork_bomb_is_contained() -> None:
    async def work(box: Box) -> None:
        with pytest.raises(TimeUp):
            await box.run("f() { f | f & }; f; while :; do :; done", Limits(wall_time=0.2, processes=64))
        await box.session.jobs.end()
        assert (await box.run("echo alive"))[1] == "alive\n"

    drive(work)


@pytest.mark.parametrize(
    "text",
    [
        "while :; do :; done",
        "for ((;;)); do [[ a == b ]]; done",
        "sleep 100",
        "yes > /dev/null",
        "sleep 100 | sleep 100 | cat",
        "while :; do echo x; done | cat > /dev/null",
        "x=$(sleep 100)",
        "read x < <(sleep 100)",
        "(sleep 100)",
        "f() { local y=1; while :; do g; done; }; g() { x=$((x + 1)); }; f",
    ],
)
def test_cancellation_is_prompt_and_leaves_the_session_usable(text: str) -> None:
    async def work(box: Box) -> float:
        task = asyncio.create_task(box.run(text))
        await asyncio.sleep(0.02)
        since = Lateness()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        late = since()
        assert (await box.run("f() { echo ${1-none} ${y-unset}; }; f ok"))[1] == "ok unset\n"
        assert len(asyncio.all_tasks()) == 1
        assert not box.session.fds
        assert not box.session.variables.scopes
        return late

    assert not too_long(lambda: work(Box()), 0.05)


def test_deadline_stops_a_tight_loop() -> None:
    async def work(box: Box) -> float:
        since = Lateness()
        with pytest.raises(TimeUp):
            await box.run("while :; do :; done", Limits(wall_time=0.05))
        return since(0.05)

    assert not too_long(lambda: work(Box()), 0.05)


def test_a_tight_loop_lets_other_sessions_run() -> None:
    async def work(box: Box) -> float:
        busy = asyncio.create_task(box.run("while :; do x=$((x + 1)); done"))
        other = Box()
        waits = []
        for _ in range(20):
            since = Lateness()
            assert (await other.run("echo hi"))[1] == "hi\n"
            await asyncio.sleep(0)
            waits.append(since())
        busy.cancel()
        return sorted(waits)[10]

    assert not too_long(lambda: work(Box()), 0.02)


def test_short_commands_need_no_event_loop() -> None:
    """Nothing in this script waits, so one step of its coroutine finishes it."""
    box = Box()
    out = Capture()
    script = "for i in 1 2; do x=$(echo $i); f() { echo $x; }; f; done > /f; case $x in 2) cat < /f;; esac"
    unhurried = Budget(clock=lambda: 0.0)  # no slice of time ends, so nothing gives way to the event loop
    work = box.shell.run(box.session, script, stdin=BytesReader(), stdout=out, stderr=out, budget=unhurried)
    with pytest.raises(StopIteration):
        work.send(None)
    assert out.getvalue() == b"1\n2\n"


def test_output_arrives_while_the_command_runs() -> None:
    async def work(box: Box) -> None:
        reader, writer = pipe()
        task = asyncio.create_task(
            box.shell.run(box.session, "echo first; sleep 30", stdin=BytesReader(), stdout=writer, stderr=writer)
        )
        assert await reader.readline() == b"first\n"
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    drive(work)


def test_a_reader_that_leaves_ends_the_writer() -> None:
    async def work(box: Box) -> None:
        assert await box.run("yes | head -1; echo ${PIPESTATUS[@]}") == (0, "y\n141 0\n", "")
        assert await box.run("while :; do echo x; done | head -1; echo ${PIPESTATUS[@]}") == (0, "x\n141 0\n", "")

    drive(work)


def test_the_hook_sees_every_command_and_may_refuse() -> None:
    seen: list[list[str]] = []

    def hook(_: ShellState, argv: list[str]) -> str | None:
        seen.append(list(argv))
        return "not today" if argv[0] == "rm" else None

    async def work(box: Box) -> None:
        status, out, err = await box.run("f() { echo $1; }; f a; rm -rf /; echo b | cat; x=$(echo c)")
        assert out == "a\nb\n"
        assert "rm: Permission denied: not today" in err
        assert status == 0
        assert [words[0] for words in seen] == ["f", "echo", "rm", "echo", "cat", "echo"]

    drive(work, hook=hook)


def test_state_outlives_a_run_and_streams_do_not() -> None:
    async def work(box: Box) -> None:
        await box.run("x=1; f() { echo f $x; }; cd /dev; exec 5>/log; set -u; alias a=b; umask 077; arr=(1 2)")
        status, out, err = await box.run(
            "f; pwd; echo log >&5; umask; echo ${#arr[@]}; echo $-; read l; echo $l", stdin=b"in\n"
        )
        assert (status, err) == (0, "")
        assert out.split("\n")[:4] == ["f 1", "/dev", "0077", "2"]
        assert out.endswith("in\n")
        assert (await box.run("cat /log"))[1] == "log\n"

    drive(work)


def test_a_subshell_changes_nothing_outside() -> None:
    async def work(box: Box) -> None:
        script = """
        x=1; a=(1 2); declare -A m=([k]=v); f() { echo old; }; set +e; trap 'echo t' USR1
        (x=2; a[0]=9; m[k]=9; f() { echo new; }; set -e; cd /dev; umask 0; trap - USR1; shopt -s nullglob)
        y=$(x=3; a+=(3); m[j]=1; echo "${a[*]}")
        echo "$x ${a[*]} ${m[*]} $(f) $PWD $y"; case $- in *e*) echo e;; esac; umask; shopt nullglob; trap -p
        """
        _, out, _ = await box.run(script)
        assert out == "1 1 2 v old / 1 2 3\n0022\nnullglob       \toff\ntrap -- 'echo t' SIGUSR1\n"

    drive(work)


def test_jobs_are_waited_for_killed_and_listed() -> None:
    async def work(box: Box) -> None:
        _, out, _ = await box.run("sleep 30 & p=$!; jobs; kill $p; wait $p; echo $?; (exit 3) & wait $!; echo $?; jobs")
        assert out.splitlines()[1:] == ["143", "3"]
        assert "Running" in out and "sleep 30 &" in out

    drive(work)


def test_a_job_outlives_its_run_and_ends_with_the_session() -> None:
    async def work(box: Box) -> None:
        await box.run("sleep 30 &")
        assert "sleep 30" in (await box.run("jobs"))[1]
        await box.session.jobs.end()
        assert len(asyncio.all_tasks()) == 1

    drive(work)


def test_a_defect_in_a_command_ends_that_command_only() -> None:
    async def broken(proc: Proc) -> int:
        raise ZeroDivisionError("oops")

    async def work(box: Box) -> None:
        status, out, err = await box.run("broken; echo $?")
        assert (status, out) == (0, "70\n")
        assert "internal error" in err and "Traceback" not in err

    drive(work, commands={"broken": broken})


def test_sessions_run_concurrently() -> None:
    async def work(box: Box) -> None:
        sessions = [box.shell.session({"N": str(n)}, cwd="/") for n in range(200)]

        async def one(session: ShellState) -> bytes:
            out = Capture()
            for text in ("x=$N; echo $x > /f$N", "cat /f$N; echo $((x * 2))"):
                await box.shell.run(session, text, stdin=BytesReader(), stdout=out, stderr=out)
            return out.getvalue()

        found = await asyncio.gather(*(one(session) for session in sessions))
        assert found == [f"{n}\n{n * 2}\n".encode() for n in range(200)]

    drive(work)


def test_a_substitution_that_suspends_in_a_subscript_ends_with_one_message() -> None:
    async def work(box: Box) -> None:
        status, out, err = await box.run("a=(1 2); x='a[$(sleep 60 | cat)]'; echo ${!x}")
        assert (status, out) == (1, "")
        assert err.count("\n") == 1 and "must not wait" in err
        assert await box.run("echo ${a[1]}") == (0, "2\n", "")

    drive(work)
