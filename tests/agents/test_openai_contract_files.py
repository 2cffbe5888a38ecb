"""The contract of the SDK's file methods, class by class of error, on its own local backend and on ours."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("agents.sandbox")

from agents.sandbox import Manifest
from agents.sandbox.entries import Dir, File
from agents.sandbox.errors import (
    ExecNonZeroError,
    InvalidManifestPathError,
    WorkspaceArchiveReadError,
    WorkspaceArchiveWriteError,
    WorkspaceReadNotFoundError,
    WorkspaceWriteTypeError,
)
from agents.sandbox.files import EntryKind
from agents.sandbox.session.base_sandbox_session import BaseSandboxSession
from tests.agents.openai_local import CLIENTS, Box, in_box

from ramet.agents.openai_agents import RametSandboxClient

Check = Callable[[Box], Awaitable[Any]]
MANIFEST = Manifest(
    entries={"a.txt": File(content=b"alpha\n"), "d": Dir(children={"b.bin": File(content=b"\0\xff"), "e": Dir()})}
)


async def after(box: Box, act: Awaitable[Any], command: str) -> bytes:
    await act
    return await box.out(command)


async def prepared(box: Box, command: str, path: str) -> bytes:
    await box.out(command)
    return await box.get(path)


async def refused(box: Box, command: str, act: Callable[[], Awaitable[Any]]) -> None:
    await box.out(command)
    await act()


async def put_and(box: Box, path: str, data: bytes, command: str) -> bytes:
    await box.put(path, data)
    return await box.out(command)


async def listed(box: Box, path: str, setup: str = "") -> list[tuple[str, EntryKind, int]]:
    if setup:
        await box.out(setup)
    return sorted((Path(entry.path).name, entry.kind, entry.size) for entry in await box.session.ls(path))


async def shown_paths(box: Box) -> list[str]:
    return [str(Path(entry.path).relative_to(box.root)) for entry in await box.session.ls("d/e/..")]


async def modes(box: Box) -> list[tuple[str, str]]:
    await box.out("mkdir m; cd m; echo > f; chmod 640 f; echo > x; chmod 755 x; mkdir s; chmod 700 s")
    return sorted((Path(entry.path).name, str(entry.permissions)) for entry in await box.session.ls("m"))


async def owners(box: Box) -> bool:
    entries = await box.session.ls(".")
    return all(isinstance(part, str) and part for entry in entries for part in (entry.owner, entry.group))


class Trickle(io.RawIOBase):
    """A stream that gives a byte at a time and cannot go back."""

    def __init__(self, data: bytes) -> None:
        self._left = data

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def readinto(self, buffer: Any) -> int:
        part, self._left = self._left[:1], self._left[1:]
        buffer[: len(part)] = part
        return len(part)


async def from_the_middle(box: Box) -> bytes:
    stream = io.BytesIO(b"skipped, written")
    stream.seek(9)
    await box.session.write(Path("m"), stream)
    assert not stream.closed
    return await box.get("m")


async def large(box: Box) -> tuple[int, bytes]:
    data = bytes(range(256)) * 8192
    await box.put("large", data)
    return len(await box.get("large")), await box.out("wc -c < large; tail -c 3 large | od -An -tu1")


async def many_at_once(box: Box) -> bytes:
    await asyncio.gather(*(box.put(f"many/{n}", str(n).encode()) for n in range(20)))
    return await box.out("ls many | wc -l; cat many/7 many/19")


async def closed_streams(box: Box) -> tuple[bytes, bytes, bytes]:
    stream = await box.session.read(Path("a.txt"))
    first, rest, end = stream.read(2), stream.read(), stream.read()
    stream.close()
    return first, rest, end


async def snapshot_of_a_read(box: Box) -> bytes:
    """A stream that was opened before a file went away can still be read."""
    stream = await box.session.read(Path("a.txt"))
    await box.session.rm("a.txt")
    found: bytes = stream.read()
    stream.close()
    return found


GIVES: dict[str, tuple[Check, Any]] = {
    "an absolute path in the root": (lambda b: b.get(b.root / "a.txt"), b"alpha\n"),
    "a path that goes up and stays": (lambda b: b.get("d/../a.txt"), b"alpha\n"),
    "a path with dots and slashes": (lambda b: b.get("./d//b.bin"), b"\0\xff"),
    "a stream in parts": (closed_streams, (b"al", b"pha\n", b"")),
    "a stream of a file that was removed": (snapshot_of_a_read, b"alpha\n"),
    "read through a link": (lambda b: prepared(b, "ln -s a.txt l", "l"), b"alpha\n"),
    "read through an absolute link": (lambda b: prepared(b, 'ln -s "$PWD/a.txt" l', "l"), b"alpha\n"),
    "read through a chain": (lambda b: prepared(b, "ln -s a.txt l; ln -s l m; ln -s m n", "n"), b"alpha\n"),
    "read through a directory link": (lambda b: prepared(b, "ln -s d l", "l/b.bin"), b"\0\xff"),
    "read of a hard link": (lambda b: prepared(b, "ln a.txt h; rm a.txt", "h"), b"alpha\n"),
    "read of an empty file": (lambda b: prepared(b, ": > z", "z"), b""),
    "names with spaces": (lambda b: put_and(b, "a b/c d", b"x", "cat 'a b/c d'"), b"x"),
    "names in other scripts": (lambda b: put_and(b, "d/ä 名.txt", b"x", "cat d/ä*"), b"x"),
    "names that look like options": (lambda b: put_and(b, "-rf", b"x", "cat ./-rf"), b"x"),
    "names with a quote and a newline": (lambda b: put_and(b, "q'\"\n", b"x", "cat q*"), b"x"),
    "write makes parents": (lambda b: put_and(b, "p/q/r", b"x", "cat p/q/r"), b"x"),
    "write through a link": (lambda b: after(b, b.session.exec("ln -s a.txt l"), "cat l"), b"alpha\n"),
    "write keeps the mode": (
        lambda b: after(b, b.session.exec("chmod 751 a.txt; printf x > a.txt"), "stat -c %a a.txt"), b"751\n"),
    "write of the API keeps the mode": (
        lambda b: _twice(b, "chmod 751 a.txt", b.put("a.txt", b"n"), "stat -c %a a.txt; cat a.txt"), b"751\nn"),
    "write keeps hard links": (lambda b: _twice(b, "ln a.txt h", b.put("a.txt", b"new"), "cat h"), b"new"),
    "write into a link's target": (
        lambda b: _twice(b, "ln -s a.txt l", b.put("l", b"new"), "cat a.txt; test -L l && echo link"), b"newlink\n"),
    "write through a dangling link": (
        lambda b: _twice(b, "ln -s later l", b.put("l", b"new"), "cat later"), b"new"),
    "a new file's mode": (lambda b: put_and(b, "n", b"", "stat -c %a n"), b"644\n"),
    "write from where the stream is": (from_the_middle, b"written"),
    "write of a stream that trickles": (
        lambda b: after(b, b.session.write(Path("t"), Trickle(b"slowly")), "cat t"), b"slowly"),
    "a large file": (large, (2097152, b"2097152\n 253 254 255\n")),
    "writes side by side": (many_at_once, b"20\n719"),
    "ls": (lambda b: listed(b, "."), [("a.txt", EntryKind.FILE, 6), ("d", EntryKind.DIRECTORY, None)]),
    "ls of links and hidden files": (
        lambda b: listed(b, "n", "mkdir n; cd n; ln -s /nowhere l; : > .h; ln -s . s"),
        [(".h", EntryKind.FILE, 0), ("l", EntryKind.SYMLINK, 8), ("s", EntryKind.SYMLINK, 1)]),
    "ls through a link": (lambda b: listed(b, "l", "ln -s d/e l; : > d/e/x"), [("x", EntryKind.FILE, 0)]),
    "ls shows whole paths": (shown_paths, ["d/b.bin", "d/e"]),
    "ls shows modes": (modes, [("f", "-rw-r-----"), ("s", "drwx------"), ("x", "-rwxr-xr-x")]),
    "ls shows owners": (owners, True),
    "mkdir of the root": (lambda b: after(b, b.session.mkdir("."), "ls"), b"a.txt\nd\n"),
    "mkdir with parents again": (lambda b: after(b, b.session.mkdir("d/e", parents=True), "ls d"), b"b.bin\ne\n"),
    "mkdir by a whole path": (lambda b: after(b, b.session.mkdir(str(b.root / "w")), "test -d w && echo y"), b"y\n"),
    "rm by a whole path": (lambda b: after(b, b.session.rm(b.root / "a.txt"), "ls"), b"d\n"),
    "rm of a file, recursively": (lambda b: after(b, b.session.rm("a.txt", recursive=True), "ls"), b"d\n"),
    "rm of an empty directory, recursively": (
        lambda b: after(b, b.session.rm("d/e", recursive=True), "ls d"), b"b.bin\n"),
    "rm of one of two names": (lambda b: _twice(b, "ln a.txt h", b.session.rm("a.txt"), "cat h"), b"alpha\n"),
    "rm of a tree does not follow links in it": (
        lambda b: _twice(b, "ln -s ../a.txt d/l; ln -s .. d/up", b.session.rm("d", recursive=True), "ls"), b"a.txt\n"),
}  # fmt: skip


async def _twice(box: Box, setup: str, act: Awaitable[Any], command: str) -> bytes:
    await box.out(setup)
    await act
    return await box.out(command)


OUT = "ln -s /etc/hostname out; ln -s out chain; ln -s / top; ln -s ../.. up; ln -s /etc dir"
RAISES: dict[str, tuple[Check, Any]] = {
    "read of nothing below a file": (
        lambda b: b.get("a.txt/x"), (WorkspaceArchiveReadError, WorkspaceReadNotFoundError)),
    "read of a dangling link": (lambda b: prepared(b, "ln -s nope l", "l"), WorkspaceReadNotFoundError),
    "read of a loop": (
        lambda b: prepared(b, "ln -s l l", "l"), (WorkspaceArchiveReadError, RuntimeError, InvalidManifestPathError)),
    "read of the root": (lambda b: b.get("."), WorkspaceArchiveReadError),
    "read of an absolute path": (lambda b: b.get("/etc/hostname"), InvalidManifestPathError),
    "read of a sibling of the root": (lambda b: b.get(str(b.root) + "x/y"), InvalidManifestPathError),
    "read out": (lambda b: prepared(b, OUT, "out"), InvalidManifestPathError),
    "read out by a chain": (lambda b: prepared(b, OUT, "chain"), InvalidManifestPathError),
    "read out by a directory": (lambda b: prepared(b, OUT, "top/etc/hostname"), InvalidManifestPathError),
    "read out by a relative link": (lambda b: prepared(b, OUT, "up/etc/hostname"), InvalidManifestPathError),
    "write out": (lambda b: refused(b, OUT, lambda: b.put("out", b"")), InvalidManifestPathError),
    "write out by a chain": (lambda b: refused(b, OUT, lambda: b.put("chain", b"")), InvalidManifestPathError),
    "write out by a directory": (lambda b: refused(b, OUT, lambda: b.put("dir/x", b"")), InvalidManifestPathError),
    "write to an absolute path": (lambda b: b.put("/etc/x", b""), InvalidManifestPathError),
    "write on the root": (lambda b: b.put(".", b""), WorkspaceArchiveWriteError),
    "write of text": (lambda b: b.session.write(Path("t"), io.StringIO("text")), WorkspaceWriteTypeError),
    "write of numbers": (lambda b: b.session.write(Path("t"), Numbers()), WorkspaceWriteTypeError),
    "ls of a file": (lambda b: b.session.ls("a.txt"), ExecNonZeroError),
    "ls out": (lambda b: refused(b, OUT, lambda: b.session.ls("dir")), InvalidManifestPathError),
    "ls above": (lambda b: b.session.ls(".."), InvalidManifestPathError),
    "mkdir below a file": (lambda b: b.session.mkdir("a.txt/x", parents=True), WorkspaceArchiveWriteError),
    "mkdir out": (lambda b: refused(b, OUT, lambda: b.session.mkdir("dir/x")), InvalidManifestPathError),
    "mkdir elsewhere": (lambda b: b.session.mkdir("/etc/x"), InvalidManifestPathError),
    "rm out by a directory": (lambda b: refused(b, OUT, lambda: b.session.rm("top/etc")), InvalidManifestPathError),
    "rm of a tree out": (
        lambda b: refused(b, OUT, lambda: b.session.rm("dir", recursive=True)), InvalidManifestPathError),
    "rm elsewhere": (lambda b: b.session.rm("/etc/hostname"), InvalidManifestPathError),
    "rm below a file": (lambda b: b.session.rm("a.txt/x"), (ExecNonZeroError, WorkspaceArchiveWriteError)),
    "read of a pipe": (lambda b: prepared(b, "mkfifo p", "p"), WorkspaceArchiveReadError),
    "write on a pipe": (lambda b: refused(b, "mkfifo p", lambda: b.put("p", b"x")), WorkspaceArchiveWriteError),
}  # fmt: skip


class Numbers(io.RawIOBase):
    def read(self, size: int = -1) -> Any:
        return 5


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("name", GIVES)
def test_gives(client: Any, name: str) -> None:
    act, expected = GIVES[name]
    found = in_box(client, act, manifest=MANIFEST)
    if name == "ls":  # what a directory's size is, is the file system's
        found = [(shown, kind, None if kind is EntryKind.DIRECTORY else size) for shown, kind, size in found]
    assert found == expected


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("name", RAISES)
def test_raises(client: Any, name: str) -> None:
    act, error = RAISES[name]
    with pytest.raises(error):
        in_box(client, act, manifest=MANIFEST)


# ------------------------------------------------------------------------------------- newer methods of the SDK

MOVES: dict[str, tuple[str, str, str, str, Any]] = {
    "a file": ("", "a.txt", "n", "cat n; ls", b"alpha\nd\nn\n"),
    "over a file": ("echo old > n", "a.txt", "n", "cat n; ls", b"alpha\nd\nn\n"),
    "a link": ("ln -s a.txt l", "l", "m", "readlink m; ls", b"a.txt\na.txt\nd\nm\n"),
    "a link that leads nowhere": ("ln -s nope l", "l", "m", "readlink m", b"nope\n"),
    "over a link": ("ln -s d l", "a.txt", "l", "cat l; test -L l || echo file; ls d", b"alpha\nfile\nb.bin\ne\n"),
    "into a directory": ("", "a.txt", "d/n", "cat d/n", b"alpha\n"),
    "on itself": ("", "a.txt", "a.txt", "cat a.txt", b"alpha\n"),
    "on another name of it": ("ln a.txt h", "a.txt", "h", "cat h", b"alpha\n"),
    "nothing": ("", "nope", "n", "", ExecNonZeroError),
    "a directory": ("", "d", "n", "", ExecNonZeroError),
    "on a directory": ("", "a.txt", "d", "", ExecNonZeroError),
    "below what is not there": ("", "a.txt", "x/y", "", ExecNonZeroError),
    "below a file": ("echo > f", "a.txt", "f/y", "", ExecNonZeroError),
    "out": ("", "a.txt", "../n", "", InvalidManifestPathError),
    "in": ("", "/etc/hostname", "n", "", InvalidManifestPathError),
    "out through a link": (OUT, "a.txt", "top/n", "", InvalidManifestPathError),
}

SAME: dict[str, tuple[str, str, str, bool, bool]] = {
    "one name": ("", "a.txt", "./a.txt", True, True),
    "two files": ("cp a.txt b", "a.txt", "b", True, False),
    "two names": ("ln a.txt h", "a.txt", "h", True, True),
    "two names, entries": ("ln a.txt h", "a.txt", "h", False, True),
    "a link and its target": ("ln -s a.txt l", "a.txt", "l", True, True),
    "a link and its target, entries": ("ln -s a.txt l", "a.txt", "l", False, False),
    "a link and itself, entries": ("ln -s a.txt l", "l", "l", False, False),
    "nothing": ("", "a.txt", "nope", True, False),
    "directories": ("ln -s d l", "d", "l", True, True),
}


@pytest.mark.skipif(not hasattr(BaseSandboxSession, "mv"), reason="the SDK has no mv")
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("name", MOVES)
def test_moves(client: Any, name: str) -> None:
    setup, source, destination, command, expected = MOVES[name]

    async def use(box: Box) -> None:
        await box.out(setup or ":")
        if isinstance(expected, bytes):
            await box.session.mv(source, destination)
            assert await box.out(command) == expected
        else:
            before = await box.out("ls -R")
            with pytest.raises(expected):
                await box.session.mv(source, destination)
            assert await box.out("ls -R") == before

    in_box(client, use, manifest=MANIFEST)


@pytest.mark.skipif(not hasattr(BaseSandboxSession, "same_file"), reason="the SDK has no same_file")
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("name", SAME)
def test_same_file(client: Any, name: str) -> None:
    setup, left, right, follow, expected = SAME[name]

    async def use(box: Box) -> None:
        await box.out(setup or ":")
        assert await box.session.same_file(left, right, follow_symlinks=follow) is expected

    in_box(client, use, manifest=MANIFEST)


@pytest.mark.skipif(not hasattr(BaseSandboxSession, "read_bounded"), reason="the SDK has no bounded read yet")
@pytest.mark.parametrize("client", CLIENTS)
def test_bounded_reads(client: Any) -> None:
    async def use(box: Box) -> None:
        read = box.session.read_bounded
        assert [await read(Path("a.txt"), max_bytes=n) for n in (1, 5, 6, 99)] == [
            b"a",
            b"alpha",
            b"alpha\n",
            b"alpha\n",
        ]
        await box.out(OUT)
        refusals: list[tuple[str, int, type[Exception]]] = [
            ("nope", 5, WorkspaceReadNotFoundError), ("d", 5, WorkspaceArchiveReadError), ("a.txt", 0, ValueError),
            ("out", 5, WorkspaceArchiveReadError), ("../x", 5, WorkspaceArchiveReadError),
        ]  # fmt: skip
        for path, limit, error in refusals:
            with pytest.raises(error):
                await read(Path(path), max_bytes=limit)

    in_box(client, use, manifest=MANIFEST)


# ---------------------------------------------------------------------------------------------- what ours does better

BETTER: dict[str, tuple[Check, Any]] = {
    "rm of a link leaves its target": (
        lambda b: _twice(b, "ln -s a.txt l", b.session.rm("l"), "cat a.txt; test -L l || echo gone"), b"alpha\ngone\n"),
    "rm of a dangling link": (lambda b: _twice(b, "ln -s no l", b.session.rm("l"), "ls"), b"a.txt\nd\n"),
    "rm of a loop": (lambda b: _twice(b, "ln -s l l", b.session.rm("l"), "ls"), b"a.txt\nd\n"),
}  # fmt: skip


@pytest.mark.parametrize("name", BETTER)
def test_better(name: str) -> None:
    act, expected = BETTER[name]
    assert in_box(RametSandboxClient, act, manifest=MANIFEST) == expected
