"""Random operations on resources against a plain dictionary: same answers, same errors, same tree."""

from __future__ import annotations

import asyncio
import errno
import tempfile
from collections.abc import Coroutine
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ramet.backends.local.disk import DiskResource
from ramet.backends.local.ram import RAMResource
from ramet.core import ops
from ramet.core.paths import ROOT, Path, parse
from ramet.core.resource import How, Resource
from ramet.core.stat import Kind
from ramet.layers.overlay import Overlay
from ramet.vfs.vfs import VFS

Model = dict[str, bytes | None]  # path -> content, None for a directory

NAMES = st.sampled_from(["a", "b", "c"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(lambda parts: parse("/" + "/".join(parts)))
CONTENT = st.binary(max_size=6)


def expected_error(model: Model, path: Path) -> int | None:
    """Why something cannot be made at `path`: its parent is missing or not a directory."""
    above = path.parent
    while above != ROOT:
        if above in model:
            if model[above] is not None:
                return errno.ENOTDIR
            return None if above == path.parent else errno.ENOENT
        above = above.parent
    return None if path.parent == ROOT else errno.ENOENT


def below(model: Model, path: Path) -> list[str]:
    return [p for p in model if p.startswith(path + "/")]


class TreeMachine(RuleBasedStateMachine):
    """Subclasses say which resource is under test."""

    points: tuple[Path, ...] = ()
    """Mount points, which can be neither moved nor removed."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.model: Model = {}
        self.fs: Resource = self.make()

    def make(self) -> Resource:
        return RAMResource()

    def teardown(self) -> None:
        self.run(self.fs.close())
        self.loop.close()

    def run(self, act: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(act)

    def outcome(self, act: Coroutine[Any, Any, Any]) -> int | None:
        try:
            self.run(act)
        except OSError as error:
            return error.errno
        return None

    @rule(path=PATHS, data=CONTENT)
    def write(self, path: Path, data: bytes) -> None:
        wanted = expected_error(self.model, path)
        if wanted is None and path in self.model and self.model[path] is None:
            wanted = errno.EISDIR
        assert self.outcome(self.fs.write(path, data)) == wanted
        if wanted is None:
            self.model[path] = data

    @rule(path=PATHS, data=CONTENT)
    def append(self, path: Path, data: bytes) -> None:
        wanted = expected_error(self.model, path)
        if wanted is None and path in self.model and self.model[path] is None:
            wanted = errno.EISDIR
        assert self.outcome(self.fs.write(path, data, How.APPEND)) == wanted
        if wanted is None:
            self.model[path] = (self.model.get(path) or b"") + data

    @rule(path=PATHS)
    def mkdir(self, path: Path) -> None:
        wanted = expected_error(self.model, path)
        if wanted is None and path in self.model:
            wanted = errno.EEXIST
        assert self.outcome(self.fs.mkdir(path)) == wanted
        if wanted is None:
            self.model[path] = None

    @rule(path=PATHS)
    def remove(self, path: Path) -> None:
        if path in self.points:
            assert self.outcome(self.fs.remove(path)) == errno.EBUSY
            return
        wanted = expected_error(self.model, path)
        if wanted is None:
            wanted = errno.ENOENT if path not in self.model else errno.ENOTEMPTY if below(self.model, path) else None
        assert self.outcome(self.fs.remove(path)) == wanted
        if wanted is None:
            del self.model[path]

    @rule(src=PATHS, dst=PATHS)
    def rename(self, src: Path, dst: Path) -> None:
        if src in self.points or dst in self.points:
            if src in self.model:
                assert self.outcome(self.fs.rename(src, dst)) == errno.EBUSY
            return
        if src not in self.model or expected_error(self.model, dst) is not None or dst.under(src) or src.under(dst):
            return  # kernels differ in which of several errors they report for a path above or below itself
        if self.crossing(src, dst):
            assert self.outcome(self.fs.rename(src, dst)) == errno.EXDEV
            return
        wanted = None
        if dst in self.model:
            if self.model[dst] is None:
                full = errno.ENOTEMPTY if below(self.model, dst) else None
                wanted = errno.EISDIR if self.model[src] is not None else full
            elif self.model[src] is None:
                wanted = errno.ENOTDIR
        assert self.outcome(self.fs.rename(src, dst)) == wanted
        if wanted is None:
            moved = {p: self.model.pop(p) for p in [src, *below(self.model, src)]}
            self.model.update({dst + p[len(src) :]: content for p, content in moved.items()})

    def crossing(self, src: Path, dst: Path) -> bool:
        return False

    @invariant()
    def same_tree(self) -> None:
        found: Model = {}

        async def read() -> None:
            async for path, stat in ops.walk(self.fs, ROOT):
                found[path] = None if stat.kind is Kind.DIR else await ops.read_bytes(self.fs, path)

        self.run(read())
        assert found == self.model


class DiskMachine(TreeMachine):
    def make(self) -> Resource:
        self.directory = tempfile.TemporaryDirectory()
        return DiskResource(self.directory.name)

    def teardown(self) -> None:
        super().teardown()
        self.directory.cleanup()


class MountsMachine(TreeMachine):
    """A VFS with mounts at random places, also where nothing leads to them; they nest."""

    mounts: tuple[Path, ...] = (ROOT,)

    @initialize(where=st.sets(PATHS, max_size=4))
    def mount(self, where: set[Path]) -> None:
        self.mounts = tuple(sorted({ROOT, *where}, key=len, reverse=True))
        ways: set[Path] = set()
        for path in where:
            while path != ROOT:
                ways.add(path)
                path = path.parent
        self.points = tuple(ways)
        self.model = dict.fromkeys(ways)
        self.fs = VFS({prefix: RAMResource() for prefix in self.mounts})

    def _mount(self, path: Path) -> Path:
        return next(prefix for prefix in self.mounts if path.under(prefix))

    def crossing(self, src: Path, dst: Path) -> bool:
        return self._mount(src) != self._mount(dst)


class ForkMachine(TreeMachine):
    """RAM trees that are forked at random: what happens on one side never shows on the other."""

    def __init__(self) -> None:
        super().__init__()
        self.others: list[tuple[RAMResource, Model]] = []

    @rule()
    def fork(self) -> None:
        assert isinstance(self.fs, RAMResource)
        if len(self.others) < 4:
            self.others.append((self.fs.fork(), dict(self.model)))

    @rule(index=st.integers(0, 3))
    def change_sides(self, index: int) -> None:
        if index < len(self.others):
            assert isinstance(self.fs, RAMResource)
            mine = (self.fs, self.model)
            self.fs, self.model = self.others[index]
            self.others[index] = mine

    @rule()
    def digests_follow_content(self) -> None:
        assert isinstance(self.fs, RAMResource)
        fresh = RAMResource()
        self.run(_copy_into(self.fs, fresh))
        assert self.fs.digest(ROOT) == fresh.digest(ROOT)


class OverlayMachine(TreeMachine):
    """An overlay over a tree that already holds something; commit and abort at random."""

    def make(self) -> Resource:
        self.lower = RAMResource()
        self.below_model: Model = {"/a": None, "/a/b": b"1", "/c": b"2"}
        self.run(self.lower.mkdir(parse("/a")))
        self.run(self.lower.write(parse("/a/b"), b"1"))
        self.run(self.lower.write(parse("/c"), b"2"))
        self.model = dict(self.below_model)
        return Overlay(self.lower)

    @rule()
    def commit(self) -> None:
        assert isinstance(self.fs, Overlay)
        report = self.run(self.fs.commit())
        assert report.ok, report
        self.below_model = dict(self.model)

    @rule()
    def abort(self) -> None:
        assert isinstance(self.fs, Overlay)
        self.fs.abort()
        self.model = dict(self.below_model)

    @invariant()
    def lower_is_untouched(self) -> None:
        found: Model = {}

        async def read() -> None:
            async for path, stat in ops.walk(self.lower, ROOT):
                found[path] = None if stat.kind is Kind.DIR else await ops.read_bytes(self.lower, path)

        self.run(read())
        assert found == self.below_model


async def _copy_into(src: Resource, dst: Resource) -> None:
    async for path, stat in ops.walk(src, ROOT):
        if stat.kind is Kind.DIR:
            await dst.mkdir(path)
        else:
            await dst.write(path, await ops.read_bytes(src, path))


QUICK = settings(max_examples=40, stateful_step_count=30, deadline=None)
TestRAM = TreeMachine.TestCase
TestRAM.settings = QUICK
TestDisk = DiskMachine.TestCase
TestDisk.settings = settings(max_examples=15, stateful_step_count=25, deadline=None)
TestMounts = MountsMachine.TestCase
TestMounts.settings = QUICK
TestFork = ForkMachine.TestCase
TestFork.settings = QUICK
TestOverlay = OverlayMachine.TestCase
TestOverlay.settings = QUICK
