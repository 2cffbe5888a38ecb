"""Programs in a box: streams, exit statuses, the shared tree, and what a cancelled program leaves."""

from __future__ import annotations

import asyncio
import os
import socket
import tempfile
from collections.abc import Iterator, Mapping

import pytest

from ramet.backends.local.ram import RAMResource
from ramet.core.errors import RametError
from ramet.core.limits import Budget
from ramet.core.paths import parse
from ramet.core.proc import Proc
from ramet.core.signals import BySignal
from ramet.core.streams import BytesReader, Capture, Null, Reader, Writer, pipe
from ramet.native.box import Request
from ramet.native.runtime import Runtime
from ramet.native.server import SERVER
from ramet.native.tree import TreeResource

ENV = {"PATH": "/usr/bin:/bin"}


async def no_child(*_: object, **__: object) -> int:
    raise AssertionError("a native program starts its children itself")


def proc(script: str, stdin: Reader | None = None, out: Writer | None = None, cwd: str = "/") -> Proc:
    return Proc(
        ["sh", "-c", script], fs=None, cwd=parse(cwd), env=ENV, stdin=stdin or Null(), stdout=out or Capture(),  # type: ignore[arg-type]
        stderr=Capture(), run=no_child, budget=Budget(), now=lambda: 0.0,
    )  # fmt: skip


def opened(runtime: Runtime, files: Mapping[str, bytes] | None = None) -> TreeResource:
    ram = RAMResource()

    async def fill() -> None:
        for path, data in (files or {}).items():
            await ram.write(parse(path), data)

    asyncio.run(fill())
    runtime.add_memory("/", ram)
    return runtime.open()["/"]


def run(runtime: Runtime, made: Proc) -> int:
    return asyncio.run(runtime.run("/bin/sh", made))


def output(made: Proc) -> bytes:
    assert isinstance(made.stdout, Capture)
    return made.stdout.getvalue()


def test_both_sides_see_one_tree(runtime: Runtime) -> None:
    tree = opened(runtime, {"/a.txt": b"from memory\n"})
    made = proc("cat /a.txt; echo native > /b.txt; rm /a.txt")
    assert run(runtime, made) == 0
    assert output(made) == b"from memory\n"
    assert tree.read_now(parse("/b.txt")) == b"native\n"
    with pytest.raises(FileNotFoundError):
        tree.stat_now(parse("/a.txt"))
    asyncio.run(tree.write(parse("/c.txt"), b"in process\n"))
    made = proc("cat /c.txt && echo more >> /c.txt && cat /c.txt")
    assert run(runtime, made) == 0
    assert output(made) == b"in process\nin process\nmore\n"


def test_the_tree_does_not_show_the_directories_of_the_box(runtime: Runtime) -> None:
    tree = opened(runtime, {"/a.txt": b""})
    assert [name for row in tree.scan_now(parse("/")) for name, _ in row] == ["a.txt"]
    for path in ("/usr/bin/env", "/proc/1/status", "/etc/passwd"):
        with pytest.raises(FileNotFoundError):
            tree.stat_now(parse(path))


@pytest.mark.parametrize(
    ("script", "status"), [("exit 3", 3), ("kill -9 $$", BySignal(9)), ("kill -SEGV $$", BySignal(11))]
)
def test_exit_status(runtime: Runtime, script: str, status: int) -> None:
    opened(runtime)
    found = run(runtime, proc(script))
    assert found == status and type(found) is type(status)


def test_a_program_that_cannot_be_executed_is_an_error(runtime: Runtime) -> None:
    opened(runtime, {"/plain": b"#!/no/such/program\n"})

    async def start(path: str) -> int:
        return await runtime.run(path, proc(""))

    with pytest.raises(FileNotFoundError):
        asyncio.run(start("/usr/bin/no-such-program"))
    with pytest.raises(PermissionError):
        asyncio.run(start("/plain"))


def test_input_streams_and_the_rest_goes_back(runtime: Runtime) -> None:
    opened(runtime)
    stdin = BytesReader(b"one\n", b"two\n" * 50_000)
    made = proc("head -c 4", stdin)

    async def steps() -> bytes:
        assert await runtime.run("/bin/sh", made) == 0
        return await stdin.read_all()

    # `head` reads a block; a program that reads nothing takes nothing.
    assert output(made) == b"" and asyncio.run(steps()).endswith(b"two\n" * 100)
    stdin = BytesReader(b"all of it")
    made = proc("true", stdin)
    assert asyncio.run(steps()) == b"all of it"


def test_a_reader_that_leaves_ends_the_program_with_sigpipe(runtime: Runtime) -> None:
    opened(runtime)

    async def steps() -> int:
        reader, writer = pipe()
        running = asyncio.create_task(runtime.run("/bin/sh", proc("exec yes", out=writer)))
        assert (await reader.read()).startswith(b"y\n")
        await reader.close()
        return await running

    assert asyncio.run(steps()) == BySignal(13)


def test_a_full_reader_stops_the_program(runtime: Runtime) -> None:
    opened(runtime)

    async def steps() -> tuple[int, int]:
        reader, writer = pipe()

        async def produce() -> int:
            status = await runtime.run("/bin/sh", proc("head -c 8388608 /dev/zero", out=writer))
            await writer.close()
            return status

        running = asyncio.create_task(produce())
        total = len(await reader.read())
        held = 0
        while block := await reader.read():
            total += len(block)
            held = max(held, reader._channel.size)
        assert await running == 0
        return held, total

    held, total = asyncio.run(steps())
    assert held <= 1 << 20 and total == 8 << 20


def test_cancel_ends_the_whole_process_tree(runtime: Runtime) -> None:
    """Also what left its session and its parent."""
    tree = opened(runtime)

    async def steps() -> None:
        script = "(setsid sh -c '(trap \"\" TERM; touch /ready; sleep 1000) &' &); sleep 1000"
        running = asyncio.create_task(runtime.run("/bin/sh", proc(script)))
        while not running.done():
            try:
                tree.stat_now(parse("/ready"))
                break
            except FileNotFoundError:
                await asyncio.sleep(0.01)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        made = proc("cat /proc/[0-9]*/cmdline")
        await runtime.run("/bin/sh", made)
        assert b"sleep" not in output(made)

    asyncio.run(steps())


def test_a_daemon_survives_its_program(runtime: Runtime) -> None:
    opened(runtime)

    async def steps() -> bytes:
        assert await runtime.run("/bin/sh", proc("setsid sleep 4321 & echo started")) == 0
        made = proc("cat /proc/[0-9]*/cmdline")
        await runtime.run("/bin/sh", made)
        return output(made)

    assert b"4321" in asyncio.run(steps())


def test_a_box_that_died_is_built_again_on_the_same_tree(runtime: Runtime) -> None:
    tree = opened(runtime)

    async def steps() -> bytes:
        await runtime.run("/bin/sh", proc("echo kept > /f"))
        box = runtime._box
        assert box is not None
        box.kill()
        made = proc("cat /f")
        assert await runtime.run("/bin/sh", made) == 0
        return output(made)

    assert asyncio.run(steps()) == b"kept\n" == tree.read_now(parse("/f"))


def test_changed_paths(runtime: Runtime) -> None:
    opened(runtime, {"/keep": b"1", "/gone": b"2", "/edited": b"3"})
    assert runtime.changes() == []
    run(runtime, proc("mkdir /d; echo x > /d/new; rm /gone; echo y >> /edited; cat /keep"))
    assert [(path, verb) for path, verb, *_ in runtime.changes()] == [
        ("/d", "mkdir"), ("/d/new", "write"), ("/edited", "write"), ("/gone", "remove"),
    ]  # fmt: skip
    assert runtime.changes() == []


def test_names_of_the_box_cannot_be_in_the_workspace(runtime: Runtime) -> None:
    ram = RAMResource()
    asyncio.run(ram.mkdir(parse("/usr")))
    with pytest.raises(RametError) as refused:
        runtime.add_memory("/", ram)
    assert refused.value.code == "native_unavailable" and "/usr" in refused.value.cause


@pytest.fixture
def shared() -> Iterator[str]:
    """A directory that the user of root's box can reach and write."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        yield folder


def test_directories_are_bound(runtime: Runtime, shared: str) -> None:
    ours = shared
    with open(f"{ours}/f", "w") as file:
        file.write("seen\n")
    runtime.add_memory("/", RAMResource())
    runtime.add_directory("/data", ours, writable=True)
    runtime.add_directory("/fixed", ours, writable=False)
    runtime.open()
    made = proc("cat /data/f; echo x > /data/g; echo y > /fixed/h", cwd="/data")
    assert run(runtime, made) != 0
    assert output(made) == b"seen\n"
    assert sorted(os.listdir(ours)) == ["f", "g"]


def test_only_the_given_environment_is_inside(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAMET_TEST_SECRET", "leak")
    opened(runtime)
    made = proc("/usr/bin/env; tr '\\0' '\\n' < /proc/1/environ; cat /proc/*/environ")
    run(runtime, made)
    assert b"leak" not in output(made) and b"PATH=/usr/bin:/bin" in output(made)


def test_close_leaves_nothing(runtime: Runtime) -> None:
    opened(runtime)
    run(runtime, proc("mkdir -p /a/b; echo x > /a/b/c; chmod 500 /a/b; mkdir /locked; chmod 0 /locked"))
    runtime.close()
    assert not os.path.exists(runtime.layout.root)
    runtime.layout.remove = lambda: None  # type: ignore[method-assign]


def test_a_signal_to_all_processes_leaves_the_next_program_a_worker(runtime: Runtime) -> None:
    opened(runtime)
    assert run(runtime, proc("trap '' TERM; kill -TERM -1; echo on")) == 0
    box = runtime._box
    assert box is not None
    run(runtime, proc("kill -KILL -1"))
    after = proc("echo after")
    assert run(runtime, after) == 0
    assert output(after) == b"after\n"
    assert box.generation == 1, "the box itself has lived on"


def test_boxes_of_one_process_share_a_server_that_ends_with_the_last(runtime: Runtime) -> None:
    opened(runtime)
    first = SERVER.pid
    other = Runtime(runtime.options)
    try:
        opened(other)
        assert SERVER.pid == first
    finally:
        other.close()
    assert SERVER.pid == first
    runtime.end()
    assert SERVER.pid is None


def test_a_terminal_of_the_box_has_a_size_and_sends_interrupts(runtime: Runtime) -> None:
    opened(runtime)
    box = runtime._box
    assert box is not None
    script = "trap 'echo interrupted; exit 7' INT; stty size; while :; do sleep 0.1; done"
    with box.start(Request("/bin/sh", ["sh", "-c", script], ENV, "/", {}, terminal=(30, 99))) as channel:
        channel.settimeout(60)
        said, fds = b"", list[int]()
        while b"S\n" not in said:
            data, more, _, _ = socket.recv_fds(channel, 64, 1)
            said, fds = said + data, fds + more
        with os.fdopen(fds[0], "r+b", buffering=0) as terminal:
            assert terminal.readline() == b"30 99\r\n"
            terminal.write(b"\x03")
            assert b"interrupted" in terminal.readline()
            while data := channel.recv(64):
                said += data
    assert said.split() == [b"T", b"S", b"X%d" % (7 << 8)]
