"""A workspace with native programs: its options, its record, copies, and what others see when it is off."""

from __future__ import annotations

import asyncio
import io
import os

import pytest
from tests.workspace.native.conftest import SECONDS, Run, need, need_writable

from ramet.backends.local.disk import DiskResource
from ramet.backends.local.ram import RAMResource
from ramet.core.errors import RametError
from ramet.core.paths import parse
from ramet.native.options import Native
from ramet.workspace.mounts import MountMode
from ramet.workspace.result import IOResult
from ramet.workspace.workspace import Workspace

SLEEPER = "sh -c 'setsid sleep 1000 & echo $! > /pid; exec sleep 1000'"


async def call(ws: Workspace, text: str, native: bool | None = None) -> IOResult:
    return await ws.execute(text, timeout=SECONDS, native=native)


def test_native_false_runs_no_program_and_true_runs_only_programs(native: Native) -> None:
    async def steps() -> None:
        async with Workspace(native=native) as ws:
            refused = await call(ws, "perl -v", native=False)
            assert refused.exit_code == 127
            real = await call(ws, "echo $BASH_VERSION $0; x=1; echo $x | cat; exit 3", native=True)
            assert real.exit_code == 3
            assert real.stdout.endswith(b" bash\n1\n")
            assert (await call(ws, "ls -d /usr/lib", native=True)).exit_code == 0

    asyncio.run(steps())


def test_without_native_the_reason_is_said_once_per_session() -> None:
    async def steps() -> None:
        async with Workspace() as ws:
            first, second = await call(ws, "python3 -V"), await call(ws, "git status")
            assert first.exit_code == second.exit_code == 127
            assert first.stderr.count(b"--native") == 1 and b"--native" not in second.stderr
            assert b"--native" not in (await call(ws, "no-such-word")).stderr
            with pytest.raises(RametError) as refused:
                await call(ws, "true", native=True)
            assert refused.value.code == "native_unavailable" and refused.value.remediation

    asyncio.run(steps())


def test_the_record_has_the_paths_that_programs_changed(native: Native) -> None:
    async def steps() -> None:
        async with Workspace({"/": RAMResource()}, native=native) as ws:
            await call(ws, "echo 1 > /ours; echo 2 > /gone")
            await call(ws, "sh -c 'true'; /usr/bin/perl -e 'open F, \">/theirs\"; unlink \"/gone\"'")
            first, second = ws.history.after(0)
            assert first.paths_written == ("/ours", "/gone")
            assert (second.paths_written, second.paths_removed) == (("/theirs",), ("/gone",))

    asyncio.run(steps())


def test_cancel_leaves_no_process(native: Native) -> None:
    async def steps() -> None:
        async with Workspace(native=native) as ws:
            running = asyncio.ensure_future(call(ws, f"/usr/bin/env {SLEEPER}"))
            while not running.done():
                try:
                    await ws.fs.stat(parse("/pid"))
                    break
                except FileNotFoundError:
                    await asyncio.sleep(0.01)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            left = await call(ws, "cat /proc/[0-9]*/comm", native=True)
            assert b"sleep" not in left.stdout

    asyncio.run(steps())


def test_a_timeout_is_124_and_leaves_no_process(native: Native) -> None:
    async def steps() -> None:
        async with Workspace(native=native) as ws:
            late = await ws.execute(f"{SLEEPER}; echo not reached", timeout=1.0, native=True)
            assert (late.exit_code, late.timed_out) == (124, True)
            left = await call(ws, "cat /proc/[0-9]*/comm", native=True)
            assert b"sleep" not in left.stdout

    asyncio.run(steps())


def test_stdin_streams(native: Native) -> None:
    async def lines() -> None:
        async def source() -> object:
            for number in range(3):
                yield f"{number}\n".encode()

        async with Workspace(native=native) as ws:
            result = await ws.execute("perl -ne 'print $_ * 2, \"\\n\"'", stdin=source(), timeout=SECONDS)  # type: ignore[arg-type]
            assert result.stdout == b"0\n2\n4\n"

    asyncio.run(lines())


def test_copies_and_snapshots_have_the_content_and_nothing_of_the_box(native: Native) -> None:
    async def steps() -> None:
        async with Workspace(native=native) as ws:
            await call(ws, 'perl -e \'open F, ">/f"; print F "x"\'; mkdir -p /d; ln -s f /l; chmod 600 /f')
            async with ws.copy() as twin:
                await call(twin, "perl -e 'unlink \"/f\"'")
                assert (await call(twin, "ls /")).stdout.split() == [b"d", b"home", b"l", b"tmp"]
            assert (await call(ws, "cat /f")).stdout == b"x"
            stream = io.BytesIO()
            ws.snapshot(stream)
        stream.seek(0)
        async with Workspace.load(stream) as loaded:
            listed = await call(loaded, "ls /; stat -c %a /f; readlink /l; cat /f")
            assert listed.stdout == b"d\nf\nhome\nl\ntmp\n600\nf\nx"

    asyncio.run(steps())


def test_directories_of_the_host_are_shared(native: Native, tmp_path: object) -> None:
    need_writable(str(tmp_path))
    disk = DiskResource(f"{tmp_path}/d", create=True)

    async def steps() -> None:
        async with Workspace({"/data": disk, "/fixed": (disk, MountMode.READ)}, native=native) as ws:
            result = await call(
                ws, "echo in > /data/f; perl -pe 's/in/out/' /data/f; perl -e 'open(F, \">/fixed/g\") or exit 3'"
            )
            assert (result.stdout, result.exit_code) == (b"out\n", 3)
            made = await call(
                ws, "cd /data; perl -e 'mkdir q(sub); open F, q(>sub/f)'; mv f g; ls -l; rm g; stat -c %U ."
            )
            assert made.stderr == b"" and made.stdout.endswith(b"user\n"), made

    asyncio.run(steps())
    assert os.stat(f"{tmp_path}/d/sub/f").st_uid == os.stat(str(tmp_path)).st_uid
    assert sorted(os.listdir(f"{tmp_path}/d")) == ["sub"]


def test_two_sessions_share_the_box(native: Native) -> None:
    async def steps() -> None:
        async with Workspace(native=native) as ws:
            ws.create_session("other")
            wait = "until [ -e /go ]; do perl -e 'select undef, undef, undef, 0.02'; done; echo seen"
            first = asyncio.ensure_future(ws.execute(wait, timeout=SECONDS))
            second = await ws.execute("perl -e 'open F, \">/go\"'", "other", timeout=SECONDS)
            assert second.exit_code == 0
            assert (await first).stdout == b"seen\n"

    asyncio.run(steps())


def test_what_is_left_behind_may_print_when_its_call_has_ended(native: Native) -> None:
    """Nobody reads it; it gets no SIGPIPE, and what it printed before is there."""
    chat = """perl -e 'fork and exit; $| = 1; print "first\n"; open G, ">", "/begun"; close G; open F, "<", "/go"; <F>;
    print "x" x 1000, "\n" for 1 .. 5000; rename "/begun", "/said"'"""

    async def steps() -> None:
        async with Workspace(native=native) as ws:
            first = await call(ws, f"mkfifo /go; {chat}; until [ -e /begun ]; do sleep 0.02; done")
            assert (first.stdout, first.exit_code) == (b"first\n", 0)
            second = await call(ws, "echo > /go; until [ -e /said ]; do sleep 0.02; done; jobs")
            assert b"x" * 1000 not in second.stdout and second.exit_code == 0

    asyncio.run(steps())


def test_a_workspace_with_its_own_usr_is_refused(native: Native) -> None:
    ram = RAMResource()
    asyncio.run(ram.mkdir(parse("/usr")))
    with pytest.raises(RametError) as refused:
        Workspace({"/": ram}, native=native)
    assert refused.value.code == "native_unavailable"


def test_programs_by_path_and_errors(run: Run) -> None:
    result = run(
        "/usr/bin/perl -e 'print 1'; printf '#!/no/such\\n' > x; chmod +x x; ./x; echo $?; : > e; ./e; echo $?"
    )
    assert result.stdout.split() == [b"1127", b"126"]
    assert b"Permission denied" in result.stderr


def test_a_script_that_is_called_as_the_helper_is_listed(native: Native) -> None:
    async def steps() -> str:
        async with Workspace(native=native) as ws:
            await call(ws, "mkdir /helper; printf 'sleep 1000; :' > /helper/__main__.py; cp /helper/*.py /helper.py")
            start = "for f in /helper.py /helper/__main__.py; do sh $f > /dev/null 2>&1 < /dev/null & done"
            await call(ws, start, native=True)
            listed = "until [ $(pgrep -xc sleep) = 2 ]; do sleep 0.02; done; ps -e -o args= | grep /helper"
            return (await call(ws, f"{listed} | grep -v ' -c '; pkill -x sleep")).text

    assert asyncio.run(steps()).splitlines() == ["sh /helper.py", "sh /helper/__main__.py"]


def test_a_program_begins_under_the_limits_of_its_shell(native: Native) -> None:
    need("perl")
    shown = "open F, '</proc/self/limits'; print grep /address space/, <F>;"

    async def steps() -> str:
        async with Workspace(native=native) as ws:
            await ws.execute("cat > /p.pl", stdin=shown.encode())
            return (await call(ws, "ulimit -v 500000; for i in {1..20}; do perl /p.pl; done")).text

    assert [line.split()[3] for line in asyncio.run(steps()).splitlines()] == ["512000000"] * 20
