"""Each layer forwards every verb to the resource it wraps, with the arguments it was given."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from ramet.core import ops
from ramet.core.paths import Path, parse
from ramet.core.resource import Cap, Data, How, Resource
from ramet.core.stat import Attrs, Kind, Stat
from ramet.layers.cache import Cache
from ramet.layers.emulate import EMULATED, Emulate
from ramet.layers.hide import Hide
from ramet.layers.limit import Limit
from ramet.layers.passthrough import Passthrough
from ramet.layers.readonly import ReadOnly
from ramet.layers.retry import Retry
from ramet.layers.trace import Trace

FILE = Stat(Kind.FILE, 4, version="v1")
A, B = parse("/a"), parse("/b")


class Recorder:
    """Answers every verb and remembers how it was called."""

    caps = EMULATED | Cap.WRITE | Cap.MODES | Cap.MTIMES | Cap.LINKS

    def __init__(self) -> None:
        self.calls: list[tuple[object, ...]] = []

    async def stat(self, path: Path) -> Stat:
        self.calls.append(("stat", path))
        return FILE

    async def scan(self, path: Path) -> AsyncIterator[tuple[str, Stat]]:
        self.calls.append(("scan", path))
        yield "a", FILE

    async def read(self, path: Path, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
        self.calls.append(("read", path, start, stop))
        yield b"data"[start:stop]

    async def write(
        self, path: Path, data: Data, how: How = How.REPLACE, *, at: int = 0, if_version: str | None = None
    ) -> Stat:
        self.calls.append(("write", path, await ops.collect(data), how, at, if_version))
        return FILE

    async def mkdir(self, path: Path) -> None:
        self.calls.append(("mkdir", path))

    async def remove(self, path: Path) -> None:
        self.calls.append(("remove", path))

    async def rename(self, src: Path, dst: Path) -> None:
        self.calls.append(("rename", src, dst))

    async def copy(self, src: Path, dst: Path) -> None:
        self.calls.append(("copy", src, dst))

    async def setattr(self, path: Path, attrs: Attrs) -> None:
        self.calls.append(("setattr", path, attrs))

    async def close(self) -> None:
        self.calls.append(("close",))


async def call_read(fs: Resource) -> None:
    assert b"".join([block async for block in fs.read(A, 1, 3)]) == b"at"


async def call_scan(fs: Resource) -> None:
    assert [name async for name, _ in fs.scan(parse("/d"))] == ["a"]


async def call_entries(fs: Resource) -> None:
    assert await ops.entries(fs, parse("/d")) == [("a", FILE)]


async def call_kinds(fs: Resource) -> None:
    assert await ops.kinds(fs, parse("/d")) == [("a", FILE)]


async def call_read_bytes(fs: Resource) -> None:
    assert await ops.read_bytes(fs, A) == b"data"


async def call_small_files(fs: Resource) -> None:
    assert await ops.small_files(fs, parse("/"), ["a"]) in ([None], [b"data"])
    await fs.stat(A)


async def call_stat(fs: Resource) -> None:
    assert await fs.stat(A) == FILE


async def call_write(fs: Resource) -> None:
    assert await fs.write(A, b"x", How.PATCH, at=3, if_version="v1") == FILE


VERBS: dict[str, tuple[Callable[[Resource], object], tuple[object, ...]]] = {
    "stat": (call_stat, ("stat", A)),
    "scan": (call_scan, ("scan", parse("/d"))),
    "entries": (call_entries, ("scan", parse("/d"))),
    "kinds": (call_kinds, ("scan", parse("/d"))),
    "read_bytes": (call_read_bytes, ("read", A, 0, None)),
    "small_files": (call_small_files, ("stat", A)),
    "read": (call_read, ("read", A, 1, 3)),
    "write": (call_write, ("write", A, b"x", How.PATCH, 3, "v1")),
    "mkdir": (lambda fs: fs.mkdir(A), ("mkdir", A)),
    "remove": (lambda fs: fs.remove(A), ("remove", A)),
    "rename": (lambda fs: fs.rename(A, B), ("rename", A, B)),
    "copy": (lambda fs: fs.copy(A, B), ("copy", A, B)),
    "setattr": (lambda fs: fs.setattr(A, Attrs(mode=0o600)), ("setattr", A, Attrs(mode=0o600))),
    "close": (lambda fs: fs.close(), ("close",)),
}
LAYERS: dict[str, Callable[[Resource], Resource]] = {
    "forward": Passthrough,
    "emulate": Emulate,
    "cache": Cache,
    "retry": Retry,
    "limit": Limit,
    "trace": lambda inner: Trace(inner, lambda _: None),
    "hide": lambda inner: Hide(inner, lambda _: False),
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("layer", LAYERS)
def test_layer_forwards_the_verb(layer: str, verb: str) -> None:
    recorder = Recorder()
    call, expected = VERBS[verb]
    asyncio.run(_run(call, LAYERS[layer](recorder)))
    assert expected in recorder.calls


@pytest.mark.parametrize("verb", ["write", "mkdir", "remove", "rename", "copy", "setattr"])
def test_read_only_refuses_every_mutation(verb: str) -> None:
    recorder = Recorder()
    with pytest.raises(OSError, match="Read-only file system"):
        asyncio.run(_run(VERBS[verb][0], ReadOnly(recorder)))
    assert recorder.calls == []


@pytest.mark.parametrize("verb", ["stat", "scan", "read", "close"])
def test_read_only_forwards_the_rest(verb: str) -> None:
    recorder = Recorder()
    call, expected = VERBS[verb]
    asyncio.run(_run(call, ReadOnly(recorder)))
    assert expected in recorder.calls


async def _run(call: Callable[[Resource], object], fs: Resource) -> None:
    await call(fs)  # type: ignore[misc]
