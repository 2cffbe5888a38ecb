"""What tables cannot show: spilling, following, reaching no further than needed, and never leaving the directory."""

from __future__ import annotations

import asyncio
import io
import tarfile
import zipfile
from collections.abc import Mapping, Sequence

import pytest
from tests.support.shell_runner import run_script

from ramet.backends.local.ram import RAMResource
from ramet.commands.framework.table import COMMANDS, MODULES, Lazy
from ramet.core import ops, paths
from ramet.core.fs import Open
from ramet.core.limits import Budget, Limits, TimeUp
from ramet.core.paths import ROOT, Path
from ramet.core.proc import Proc
from ramet.core.streams import BytesReader, Capture, Reader, Writer
from ramet.vfs.vfs import VFS

CWD = Path("/w")


async def make(files: Mapping[str, bytes]) -> VFS:
    fs = VFS({ROOT: RAMResource()})
    await ops.make_dirs(fs, CWD)
    for name, data in files.items():
        path = paths.parse(name, CWD)
        await ops.make_dirs(fs, path.parent)
        await fs.write(path, data)
    return fs


async def call(
    fs: VFS, argv: Sequence[str], stdin: Reader | None = None, limits: Limits | None = None, out: Writer | None = None
) -> tuple[int, bytes, bytes]:
    captured, errors = Capture(), Capture()

    async def run(
        argv: Sequence[str],
        *,
        stdin: Reader | None = None,
        stdout: Writer | None = None,
        stderr: Writer | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        signals: Mapping[str, bool] | None = None,
    ) -> int:
        raise AssertionError("nothing runs here")

    proc = Proc(
        argv=list(argv),
        fs=fs,
        cwd=CWD,
        env={},
        stdin=BytesReader() if stdin is None else stdin,
        stdout=captured if out is None else out,
        stderr=errors,
        run=run,
        budget=Budget(limits or Limits()),
        now=lambda: 1_700_000_000.0,
    )
    status = await COMMANDS[argv[0]](proc)
    return status, captured.getvalue(), errors.getvalue()


@pytest.mark.parametrize("options", [[], ["-r"], ["-n"], ["-k2,2n"], ["-u"]])
def test_a_sort_that_spills_gives_the_same_result(options: list[str]) -> None:
    lines = [f"{i * 7919 % 1000} {i * 104729 % 997}\n" for i in range(5000)]
    data = "".join(lines).encode()

    async def both() -> tuple[bytes, bytes]:
        fs = await make({"f": data})
        small = Limits(sort_memory=30_000)
        blocks = [data[i : i + 4096] for i in range(0, len(data), 4096)]
        spilled = await call(fs, ["sort", *options], BytesReader(*blocks), small)
        return (await call(fs, ["sort", *options, "f"]))[1], spilled[1]

    whole, spilled = asyncio.run(both())
    assert whole == spilled
    assert whole.count(b"\n") > 900


def test_tail_follows_a_growing_file_until_its_time_is_up() -> None:
    async def follow(seconds: float) -> bytes:
        fs = await make({"log": b"one\n"})
        out = Capture()
        task = asyncio.create_task(call(fs, ["tail", "-f", "log"], limits=Limits(wall_time=seconds), out=out))
        await asyncio.sleep(0.1)
        stream = await fs.open(CWD / "log", Open.WRITE | Open.APPEND)
        stream.write(b"two\n")
        await stream.close()
        with pytest.raises(TimeUp):
            await task
        return out.getvalue()

    # A machine that stands still may leave no time between the write and the end.
    assert any(asyncio.run(follow(seconds)) == b"one\ntwo\n" for seconds in (0.4, 4, 20))


class Endless(Reader):
    """Counts how much was asked of it."""

    __slots__ = ("blocks",)

    def __init__(self) -> None:
        super().__init__()
        self.blocks = 0

    async def _fill(self) -> bytes:
        self.blocks += 1
        return b"line\n" * 1000


def test_head_reads_no_more_than_it_needs() -> None:
    source = Endless()

    async def first() -> bytes:
        return (await call(await make({}), ["head", "-n1"], source))[1]

    assert asyncio.run(first()) == b"line\n"
    assert source.blocks == 1


def evil_tar() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        link = tarfile.TarInfo("out")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc"
        archive.addfile(link)
        for name in ("../up", "/abs", "out/passwd", "a/../../b", "good"):
            info = tarfile.TarInfo(name)
            info.size = 2
            archive.addfile(info, io.BytesIO(b"x\n"))
        hard = tarfile.TarInfo("hard")
        hard.type, hard.linkname = tarfile.LNKTYPE, "../secret"
        archive.addfile(hard)
    return buffer.getvalue()


def evil_zip() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        link = zipfile.ZipInfo("out")
        link.external_attr = 0o120777 << 16
        link.create_system = 3
        archive.writestr(link, "/etc")
        for name in ("../up", "/abs", "out/passwd", "good"):
            archive.writestr(name, b"x\n")
    return buffer.getvalue()


@pytest.mark.parametrize(("argv", "data"), [(["tar", "xf", "a"], evil_tar()), (["unzip", "-o", "a"], evil_zip())])
def test_extraction_stays_in_its_directory(argv: list[str], data: bytes) -> None:
    async def names() -> set[str]:
        fs = await make({"a": data, "/secret": b"s", "/etc/keep": b"k"})
        await call(fs, argv)
        return {str(path) async for path, stat in ops.walk(fs, ROOT) if not stat.is_dir}

    found = asyncio.run(names())
    assert "/w/good" in found
    assert {name for name in found if not name.startswith("/w/")} == {"/secret", "/etc/keep"}


def test_listing_the_commands_imports_none_of_them() -> None:
    import subprocess
    import sys

    code = (
        "import sys, ramet.commands.framework.table as t; list(t.COMMANDS);"
        " print(sorted(m for m in sys.modules if 'commands.' in m))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['ramet.commands.framework', 'ramet.commands.framework.table']"


@pytest.mark.parametrize("name", sorted(MODULES))
def test_every_command_declares_itself(name: str) -> None:
    lazy = COMMANDS[name]
    assert isinstance(lazy, Lazy)
    command = lazy.load()
    assert command.summary
    table = command.table
    assert all(spec.help for spec in table.specs), [spec.names for spec in table.specs if not spec.help]


def test_a_cross_mount_copy_and_move_carry_modes_and_links() -> None:
    async def run() -> list[str]:
        fs = VFS({ROOT: RAMResource(), Path("/other"): RAMResource()})
        await ops.make_dirs(fs, Path("/w/d"))
        await fs.write(Path("/w/d/f"), b"data\n")
        await call(fs, ["ln", "-s", "f", "d/l"])
        await call(fs, ["chmod", "750", "d/f"])
        assert (await call(fs, ["cp", "-a", "d", "/other/copy"]))[0] == 0
        assert (await call(fs, ["mv", "d", "/other/moved"]))[0] == 0
        status, out, _ = await call(fs, ["find", "/other", "/w", "-printf", "%p %m %y\n"])
        assert status == 0
        return sorted(line for line in out.decode().splitlines() if " l" in line or line.endswith(" f"))

    assert asyncio.run(run()) == [
        "/other/copy/f 750 f",
        "/other/copy/l 777 l",
        "/other/moved/f 750 f",
        "/other/moved/l 777 l",
    ]


@pytest.mark.parametrize(
    "command", ["sed s/1/1/", "sed -n p", "awk '{ print }'", "jq .", "jq -c .", "grep .", "cat", "cut -c1-"]
)
def test_what_a_slow_source_gives_is_passed_on_while_it_goes_on(command: str) -> None:
    turn = "echo $i >&${COPROC[1]}; read -t 20 x <&${COPROC[0]}; echo $x"
    script = f"coproc {{ {command}; }}; for i in 1 2 3; do {turn}; done; kill $COPROC_PID"
    assert asyncio.run(run_script(script))[0] == b"1\n2\n3\n"
