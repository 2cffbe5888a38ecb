"""The six semantics of execution hold, alone and under concurrency."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.support.loop_holds import Lateness, too_long

from ramet import Limits, MountMode, RametError, RAMResource, Workspace
from ramet.core.limits import Cancelled
from ramet.core.paths import ROOT, parse
from ramet.workspace.execution import Output
from ramet.workspace.result import CommandFailed


def test_per_call_cwd_and_env_never_leak() -> None:
    async def act() -> None:
        ws = Workspace()
        await ws.execute("mkdir /d; export KEEP=1 FOO=before")
        commands = ["echo $FOO", "false", "exit 3", "cd /tmp; FOO=x; export FOO", "unset FOO", "sleep 9"]
        for command in commands:
            await ws.execute(command, cwd="/d", env={"FOO": "call", "NEW": "1"}, timeout=0.05)
            assert (await ws.execute("echo $FOO $NEW; pwd; echo $KEEP")).text == "before\n/\n1\n", command
        task = asyncio.create_task(ws.execute("sleep 9", cwd="/d", env={"FOO": "call"}))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await ws.execute("echo $FOO; pwd")).text == "before\n/\n"
        assert (await ws.execute("cat x", cwd="/no/such")).exit_code != 0

    asyncio.run(act())


def test_timeout_is_a_result() -> None:
    async def act() -> None:
        ws = Workspace()
        for command in (
            "echo so far; sleep 9",
            "echo so far; while :; do :; done",
            "echo so far; yes | cat > /dev/null",
        ):
            for timeout in (0.1, 1, 10):  # a machine that stands still may have no time for the beginning
                since = Lateness()
                result = await ws.execute(command, timeout=timeout)
                assert (result.exit_code, result.timed_out) == (124, True), command
                late = since(timeout)
                if result.text and late < 0.1:
                    break
            assert result.text == "so far\n" and result.duration > 0 and late < 0.1
        assert (await ws.execute("echo usable")).text == "usable\n"

    asyncio.run(act())


@pytest.mark.parametrize(
    "command",
    ["sleep 30", "while :; do :; done", "yes > /dev/null", "sleep 30 | cat", "cat", "read x", "wait; sleep 30 & wait"],
)
def test_cancellation_is_prompt_and_raises(command: str) -> None:
    async def act() -> float:
        async def never() -> AsyncIterator[bytes]:
            await asyncio.sleep(600)
            yield b""

        ws = Workspace()
        task = asyncio.create_task(ws.execute(command, stdin=never()))
        await asyncio.sleep(0.03)
        since = Lateness()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        late = since()
        assert (await ws.execute("echo $? fine")).text == "130 fine\n"
        await ws.close()
        await asyncio.sleep(0)  # generators that were left in the middle are closed by the loop on its next turn
        assert len(asyncio.all_tasks()) == 1
        return late

    assert not too_long(act, 0.05)


@pytest.mark.parametrize("command", ["sleep 9 &", "(sleep 9 &)", "x=$(sleep 9 > /dev/null &)", "sleep 9 & disown"])
def test_nothing_runs_on_in_a_closed_workspace(command: str) -> None:
    async def act() -> None:
        ws = Workspace()
        await ws.execute(command)
        assert len(asyncio.all_tasks()) == 2
        await ws.close()
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(act())


def test_a_condition_that_cannot_be_read_leaves_the_next_call_alone() -> None:
    async def act() -> None:
        ws = Workspace()
        for mistake in ("[[ a b ]]", "eval '[[ a b ]]'"):
            assert "conditional binary operator expected" in (await ws.execute(mistake)).error_text
            assert (await ws.execute("[[ -d / ]] && echo fine")).text == "fine\n"

    asyncio.run(act())


def test_the_cancel_token_stops_and_raises_even_with_a_timeout() -> None:
    async def act() -> None:
        ws, token = Workspace(), asyncio.Event()
        task = asyncio.create_task(ws.execute("sleep 30", cancel=token, timeout=20))
        await asyncio.sleep(0.01)
        token.set()
        with pytest.raises(Cancelled):
            await task
        assert (await ws.execute("echo $?")).text == "130\n"
        records = list(ws.history)
        assert records[0].cancelled and records[0].exit_code == 130

    asyncio.run(act())


def test_sessions_run_side_by_side_and_each_in_order() -> None:
    async def act() -> None:
        ws = Workspace()
        for name in "ab":
            ws.create_session(name)
        commands = [
            ws.execute(f"sleep 0.00{i % 3}; echo {i} >> /{name}; echo {i}", session_id=name)
            for i in range(8)
            for name in "ab"
        ]
        await asyncio.gather(*commands)
        assert (
            (await ws.execute("cat /a")).text
            == (await ws.execute("cat /b")).text
            == "".join(f"{i}\n" for i in range(8))
        )

    asyncio.run(act())


def test_many_sessions_with_random_ends_leak_nothing() -> None:
    async def act() -> None:
        ws = Workspace()
        rng = random.Random(7)

        async def one(number: int) -> None:
            name = f"s{number}"
            ws.create_session(name, env={"ME": name})
            await ws.execute(f"mkdir /{name}; cd /{name}; f() {{ echo $ME; }}; echo start > log", session_id=name)
            for _ in range(4):
                choice = rng.random()
                if choice < 0.3:
                    await ws.execute("sleep 5", session_id=name, timeout=0.001, cwd="/tmp", env={"ME": "x"})
                elif choice < 0.6:
                    task = asyncio.create_task(ws.execute("sleep 5", session_id=name, cwd="/", env={"ME": "y"}))
                    await asyncio.sleep(0.001)
                    task.cancel()
                    with pytest.raises(asyncio.CancelledError):
                        await task
                else:
                    await ws.execute("echo more >> log", session_id=name)
            result = await ws.execute("f; pwd; head -1 log", session_id=name)
            assert result.text == f"{name}\n/{name}\nstart\n"

        await asyncio.gather(*(one(n) for n in range(25)))
        await ws.close()
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(act())


def test_output_streams_while_it_runs() -> None:
    async def act() -> None:
        ws = Workspace()
        execution = ws.execute("echo one; echo two >&2; sleep 0.01; echo three")
        seen: list[Output] = [piece async for piece in execution]
        assert b"".join(p.data for p in seen if p.fd == 1) == b"one\nthree\n"
        assert [p.data for p in seen if p.fd == 2] == [b"two\n"]
        assert execution.result is not None and execution.result.exit_code == 0
        count = 0
        async for _ in ws.execute("yes"):
            count += 1
            if count > 3:
                break
        assert (await ws.execute("echo next")).text == "next\n"

    asyncio.run(act())


def test_stdin_may_be_bytes_text_or_a_stream() -> None:
    async def act() -> None:
        async def blocks() -> AsyncIterator[bytes]:
            yield b"from a "
            yield b"stream"

        ws = Workspace()
        for stdin, wanted in (
            (b"raw \xff", b"raw \xff"),
            ("text ü", "text ü".encode()),
            (blocks(), b"from a stream"),
            (None, b""),
        ):
            assert (await ws.execute("cat", stdin=stdin)).stdout == wanted

    asyncio.run(act())


def test_too_much_output_is_loud() -> None:
    async def act() -> None:
        ws = Workspace(limits=Limits(output_bytes=1000))
        result = await ws.execute("yes")
        assert result.truncated and result.exit_code != 0 and "output_bytes" in result.error_text
        assert (await ws.execute("echo ok")).text == "ok\n"

    asyncio.run(act())


def test_wrong_calls_fail_before_anything_runs() -> None:
    ws = Workspace()
    wrong: list[dict[str, Any]] = [
        {"command": b"echo"},
        {"command": None},
        {"command": "cat", "stdin": 5},
        {"command": "", "timeout": "x"},
        {"command": "", "timeout": -1},
        {"command": "", "env": {"A": 5}},
    ]
    for arguments in wrong:
        with pytest.raises(TypeError):
            ws.execute(**arguments)
    with pytest.raises(RametError, match="cannot be an environment variable"):
        ws.execute("", env={"1x": "y"})
    assert len(ws.history) == 0

    async def act() -> None:
        for cwd, why in (("/no", "No such file or directory"), ("/f", "Not a directory")):
            await ws.execute("echo > /f")
            result = await ws.execute("echo ran", cwd=cwd)
            assert (result.exit_code, result.text, result.error_text) == (1, "", f"bash: cd: {cwd}: {why}\n")

    asyncio.run(act())


def test_results_can_be_checked() -> None:
    async def act() -> None:
        ws = Workspace()
        assert (await ws.execute("true")).check().ok
        with pytest.raises(CommandFailed, match="exit code 1: cat: /no"):
            (await ws.execute("cat /no")).check()

    asyncio.run(act())


def test_dispatch_obeys_modes_and_is_recorded() -> None:
    async def act() -> None:
        ws = Workspace({"/ro": (RAMResource(), MountMode.READ)})
        await ws.dispatch("write", "/f", b"x")
        assert await ws.dispatch("read", "/f") == b"x"
        assert [name for name, _ in await ws.dispatch("scan", "/")] == ["f", "home", "ro", "tmp"]
        with pytest.raises(OSError, match="Read-only"):
            await ws.dispatch("write", "/ro/f", b"x")
        with pytest.raises(RametError, match="unknown operation"):
            await ws.dispatch("explode", "/f")  # type: ignore[arg-type]
        assert [op.verb for op in ws.history.operations()][:2] == ["write", "read"]

    asyncio.run(act())


READ_ONLY_ROUTES = [
    "echo x > /ro/f", "echo x >> /ro/f", "rm /ro/f", "mv /ro/f /g", "mv /w /ro/w", "cp /w /ro/w", "ln /ro/f /ro/g",
    "ln -s x /ro/l", "mkdir /ro/d", "rmdir /ro/sub", "touch /ro/f", "chmod 600 /ro/f", "truncate -s 0 /ro/f",
    "sed -i s/a/b/ /ro/f", "tee /ro/f < /w", "exec 3<>/ro/f", "dd if=/w of=/ro/f", "echo x >| /ro/f", ": > /link/f",
]  # fmt: skip


@pytest.mark.parametrize("command", READ_ONLY_ROUTES)
def test_a_read_only_mount_refuses_every_route(command: str) -> None:
    async def act() -> None:
        inner = RAMResource()
        seed = Workspace({"/": inner})
        await seed.execute("echo content > /f; mkdir /sub; touch -d 2001-01-01 /f")
        ws = Workspace({"/": RAMResource(), "/ro": (inner, MountMode.READ)})
        await ws.execute("echo w > /w; ln -s /ro /link")
        before = inner.digest(ROOT), (await inner.stat(parse("/f"))).mtime_ns
        result = await ws.execute(command)
        assert result.exit_code != 0, result
        assert (inner.digest(ROOT), (await inner.stat(parse("/f"))).mtime_ns) == before

    asyncio.run(act())


def test_a_closed_workspace_says_so() -> None:
    async def act() -> None:
        async with Workspace() as ws:
            await ws.execute("sleep 100 &")
        await ws.close()
        with pytest.raises(RametError, match="closed"):
            await ws.execute("echo")
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(act())


def test_mounting_and_unmounting_at_run_time() -> None:
    async def act() -> None:
        ws, extra = Workspace(), RAMResource()
        ws.mount("/x/y", extra)
        await ws.execute("echo deep > /x/y/f")
        assert (await ws.execute("ls /x; cat /x/y/f; ls /")).text == "y\ndeep\nhome\ntmp\nx\n"
        assert await ws.unmount("/x/y") is extra
        assert (await ws.execute("ls /x")).exit_code == 2
        with pytest.raises(RametError):
            await ws.unmount("/x/y")
        with pytest.raises(RametError, match="absolute"):
            ws.mount("relative", RAMResource())

    asyncio.run(act())


def test_the_workspace_has_a_home_and_a_tmp() -> None:
    async def act() -> None:
        ws = Workspace()
        text = (
            "cd; pwd; echo $HOME $USER $UID; whoami; echo x > ~/f; cat /home/user/f; mktemp -d /tmp/a.XXXX | cut -c1-7"
        )
        assert (await ws.execute(text)).text == "/home/user\n/home/user user 1000\nuser\nx\n/tmp/a.\n"
        assert (await ws.execute("ls /; find / -type f | sort | head -1")).text == "home\ntmp\n/home/user/f\n"

    asyncio.run(act())


def test_user_commands() -> None:
    async def act() -> None:
        ws = Workspace({"/data": RAMResource()})

        @ws.command("greet")
        async def greet(proc):  # type: ignore[no-untyped-def]
            return f"hello {' '.join(proc.argv[1:])}"

        @ws.command("cat", filetype=".rev")
        async def reversed_cat(proc):  # type: ignore[no-untyped-def]
            data = b"".join([block async for block in proc.fs.read(proc.path(proc.argv[1]))])
            await proc.emit(data[::-1])
            return 0

        assert (await ws.execute("greet world | tr a-z A-Z")).text == "HELLO WORLD\n"
        await ws.execute("printf abc > /x.rev; printf abc > /x.txt")
        assert (await ws.execute("cat /x.rev; cat /x.txt")).text == "cbaabc"

    asyncio.run(act())


def test_output_comes_in_the_order_in_which_it_was_written() -> None:
    async def act() -> None:
        ws = Workspace()
        script = "for i in 1 2 3; do echo out $i; echo err $i >&2; done; ls /nope; echo end"
        pieces = [piece async for piece in ws.execute(script)]
        told = b"".join(piece.data for piece in pieces).decode().splitlines()
        assert told[:6] == [f"{what} {number}" for number in (1, 2, 3) for what in ("out", "err")]
        assert told[6].startswith("ls: ") and told[7:] == ["end"]
        assert b"".join(piece.data for piece in pieces if piece.fd == 1) == b"out 1\nout 2\nout 3\nend\n"

        closed = [piece async for piece in ws.execute("exec >&-; echo lost; echo told >&2; exec 2>&-; echo gone >&2")]
        assert [piece.fd for piece in closed] == [2] * len(closed) and closed[-1].data.endswith(b"told\n")
        large = [piece async for piece in ws.execute("seq 300000; echo e >&2; seq 5")]
        expected = "".join(f"{number}\n" for number in (*range(1, 300_001), *range(1, 6))).encode()
        assert b"".join(piece.data for piece in large if piece.fd == 1) == expected
        await ws.close()

    asyncio.run(act())
