"""`Runtime`: the native side of one workspace: its trees, its box, programs by name, changed paths."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final, NamedTuple

from ramet.backends.local.ram import RAMResource
from ramet.core.errors import RametError
from ramet.core.proc import Proc
from ramet.core.signals import BySignal
from ramet.native.box import Bind, Box
from ramet.native.confinement import Point
from ramet.native.fuse.callers import Caller
from ramet.native.fuse.mounts import RemoteMounts
from ramet.native.image.store import Images
from ramet.native.layout import IMAGE_DIRECTORIES, SYSTEM_NAMES, Layout, TreePlace, make_directory, own_everything
from ramet.native.limits.disk_guard import DiskGuard
from ramet.native.lowers import DEEPEST, Checkout, Lowers, StoredTrees, succeed, unchanged_since
from ramet.native.options import Native
from ramet.native.ports import BoxNetwork, Ports, leave_note
from ramet.native.program import Daemons, run_program
from ramet.native.system_files import SystemFiles
from ramet.native.tree import SharedLayers, TreeResource, materialize
from ramet.native.upper import TooLarge, Upper, assemble, exists_below
from ramet.network.door import SessionDoor
from ramet.network.proxy import PORT, Proxy

ENDING_SECONDS: Final = 0.1
"""How long the last processes of a call may take to end after their program."""
FOLDED: Final = 4096
"""Changed paths from which on they become a lower layer, when nothing runs."""
LOOKED: Final = 10_000
"""Entries of a host directory up to which its changes are recorded: two looks of about 30 ms for each call."""
EMPTY: Final[Mapping[str, str]] = MappingProxyType({})
SYSTEM_PATHS: Final = ("/usr/", "/bin", "/sbin")
"""Where programs of the host are: what else PATH names lies in the tree."""


class ProgramChange(NamedTuple):
    """A path of the workspace that programs changed."""

    path: str
    verb: str
    size: int
    made: bool
    """Whether it is known that the path was not there before."""
    before: tuple[int, int] | None = None
    """mtime_ns and size of a file of a host directory or an upper layer before the change."""
    rewritten: bool = False
    """Whether the content of a file may differ."""


def _below(prefix: str, path: str) -> str:
    return path if prefix == "/" else prefix + path


class Runtime:
    """Add trees and directories, then `open`. Without `close`, its directory stays for recovery."""

    def __init__(self, options: Native, proxy: Proxy | None = None) -> None:
        self.options = options
        self.proxy = proxy
        """What leads programs to the network; None where it is off."""
        self.layout = Layout(options.directory)
        if options.image is not None:
            self._use_image(options.image)
        self._lowers = Lowers(self.layout.base, self.layout.owner)
        self.used = 0
        """Programs that were started."""
        self._running = 0
        self._places: dict[str, TreePlace] = {}
        self._binds: list[Bind] = []
        self._fixed: set[str] = set()
        self._uppers: dict[str, Upper] = {}
        self._hosts: dict[str, Upper] = {}
        """Writable directories of the host that are small enough to be looked at."""
        self._trees: dict[str, TreeResource] = {}
        self.system: dict[str, SystemFiles] = {}
        """The directories of the box that are no part of the workspace, by path."""
        self._box: Box | None = None
        self._network: BoxNetwork | None = None
        self.ports = Ports(lambda: self._network, own=0 if proxy is None else PORT)
        """What listens on the loopback of the box."""
        self.daemons = Daemons()
        most = options.limits.disk_bytes
        self.remote = RemoteMounts(self.layout.root, most)
        """Mounts that this process serves to programs."""
        self._guard = DiskGuard(self.layout.base, most, lambda: [place.upper for place in self._places.values()])

    def _use_image(self, path: str) -> None:
        layout = self.layout
        try:
            layout.use(Images(layout.base, layout.owner).take(layout, path, self.options.limits.disk_bytes))
        except BaseException:
            layout.remove()
            raise

    # ------------------------------------------------------------------------------------------------- assembly

    def add_memory(self, prefix: str, ram: RAMResource) -> None:
        """Write a tree in memory to the disk as the lower layer of an overlay."""
        self.add_tree(prefix, lambda folder: materialize(ram, folder, self.layout.owner))

    def add_tree(self, prefix: str, fill: Callable[[str], object]) -> TreePlace:
        """Add an overlay at a prefix; `fill` writes its lower layer to a directory."""
        place = self.layout.add_tree()
        fill(place.lower)
        own_everything(place.lower, self.layout.owner)
        return self._add(prefix, place)

    def add_checkout(self, prefix: str, checkout: Checkout) -> TreePlace:
        """Add an overlay on a stored tree, whose lower layers are shared where that is allowed."""
        place = replace(self.layout.add_tree(), key=checkout.key)
        if checkout.kept:
            place = replace(place, shared=self._lowers.take(place.folder, checkout))
        else:
            checkout.fill(place.lower)
            own_everything(place.lower, self.layout.owner)
        return self._add(prefix, place)

    def add_overlay(self, prefix: str, directory: str, copy: Callable[[str], object]) -> TreePlace:
        """Add an overlay over a directory of the host. Root's box, whose user is another, gets a copy of it."""
        if self.layout.owner.foreign:
            return self.add_tree(prefix, copy)
        return self._add(prefix, replace(self.layout.add_tree(), shared=(directory,)))

    def add_layers(self, prefix: str, found: SharedLayers) -> TreePlace:
        """Add an overlay over the frozen layers of another box."""
        self.layout.borrow(found.layout)
        return self._add(prefix, replace(self.layout.add_tree(), shared=found.place.shared))

    def fold(self, stored: StoredTrees | None = None) -> None:
        """Freeze the trees when looking at what has changed takes long; `stored` names what the frozen layers make."""
        if sum(upper.entries for upper in self._uppers.values()) >= FOLDED and self.idle:
            keys = {} if stored is None else stored.keys
            known = {prefix: key for prefix, key in keys.items() if stored is not None and self._kept(prefix, stored)}
            self.freeze(known)
            for prefix, key in known.items():
                if not os.listdir(self._places[prefix].upper):
                    self._trees[prefix].place = self._places[prefix] = replace(self._places[prefix], key=key)

    def _kept(self, prefix: str, stored: StoredTrees) -> bool:
        """Whether a stored tree is all of what is there: no pipes, and nothing that changed meanwhile."""
        place = self._places.get(prefix)
        return place is not None and unchanged_since(place.upper, stored.began)

    def freeze(self, keys: Mapping[str, str] = EMPTY) -> dict[str, SharedLayers]:
        """Let the trees as they are now be lower layers, which copies may share; no program may run.

        `keys` names the content of some of them.
        """
        self.changes()
        changed = [prefix for prefix, place in self._places.items() if os.listdir(place.upper)]
        for prefix in changed:
            old = self._places[prefix]
            shared = (*(layer for layer in old.lowers if os.listdir(layer)), old.upper)
            if len(shared) > DEEPEST:
                shared = (self._assembled(old),)
            key = keys.get(prefix)
            frozen = () if key is not None else (*old.frozen, old.upper)
            new = replace(self.layout.add_tree(), shared=shared, frozen=frozen, key=key)
            succeed(old, new)
            self._places[prefix] = new
        if changed:
            self._renew(changed)
        return {prefix: SharedLayers(place, self.layout) for prefix, place in self._places.items()}

    def discard(self) -> None:
        """Undo all that was changed since the trees were added; no program may run."""
        for prefix, old in self._places.items():
            if os.listdir(old.upper):
                self._places[prefix] = replace(self.layout.add_tree(), shared=old.lowers, frozen=old.frozen)
        self._renew(self._places)

    def _renew(self, prefixes: Iterable[str]) -> None:
        """Build the box on the new places of these trees."""
        self.reopen()
        for prefix in prefixes:
            self._trees[prefix].place = self._places[prefix]
            self._uppers[prefix] = Upper(self._places[prefix].upper)

    def _assembled(self, old: TreePlace) -> str:
        """Make one layer of all, by hard links."""
        target = f"{old.folder}/assembled"
        assemble((*old.lowers, old.upper), target)
        own_everything(target, self.layout.owner, files=False)
        return target

    def _add(self, prefix: str, place: TreePlace) -> TreePlace:
        if prefix == "/":
            taken = sorted(name for name in SYSTEM_NAMES if place.has(name))
            if taken:
                raise RametError(
                    "native_unavailable", f"cannot run native programs: the workspace has its own /{taken[0]}",
                    f"Move /{taken[0]} elsewhere; /{', /'.join(sorted(SYSTEM_NAMES))} belong to the box.",
                )  # fmt: skip
        self._places[prefix] = place
        return place

    def protect(self, prefix: str) -> None:
        """Let programs read a tree only."""
        self._fixed.add(prefix)

    def add_directory(self, prefix: str, directory: str, *, writable: bool) -> None:
        """Let programs see a host directory."""
        self._binds.append(Bind(directory, prefix, writable))
        if writable:
            self._hosts[prefix] = Upper(directory, LOOKED, own=False)

    def open(self) -> Mapping[str, TreeResource]:
        """Build the box, and return the in-process view of each tree."""
        self.layout.extras = [name for name in IMAGE_DIRECTORIES if self._lacks(name)]
        for prefix in self._prefixes:
            self._check_prefix(prefix)
        self._build()
        self.changes()
        return self._trees

    def _lacks(self, name: str) -> bool:
        """Whether a directory at the top comes from the image: the workspace has none."""
        image, root = self.layout.image, self._places.get("/")
        free = not any(f"{prefix}/".startswith(f"/{name}/") for prefix in self._prefixes)
        return free and not image.is_host and image.has_directory(name) and (root is None or not root.has(name))

    def _names(self, prefix: str) -> frozenset[str]:
        return self.layout.names if prefix == "/" else frozenset()

    @property
    def mounted(self) -> list[str]:
        """Where the kernel has mounts of the workspace."""
        return [*self._places, *(bind.prefix for bind in self._binds)]

    @property
    def _prefixes(self) -> list[str]:
        """Where something is mounted in the box."""
        return [*self.mounted, *self.remote.outermost]

    def reopen(self) -> None:
        """Build the box again, with trees and directories that were added since; no program may run."""
        self.remote.detach()
        if self._box is not None:
            self._box.kill()
        self._build()

    def check_view(self) -> str:
        """Return why programs cannot be held to the paths of a policy."""
        return "there is no box" if self._box is None else self._box.check_view()

    @property
    def first_pid(self) -> int:
        """The first process of the box; 0 where none runs."""
        return self._box.first_pid if self._box is not None and self._box.alive else 0

    @property
    def idle(self) -> bool:
        """Whether no program runs, not even a daemon."""
        return not self._running and not self.daemons.alive(ENDING_SECONDS)

    def _build(self) -> None:
        self._make_mount_points()
        remote = self.remote
        self._box = Box(
            self.options, self.layout, self._places, self._binds, self._fixed, remote.outermost, remote.callers
        )
        if self.proxy is not None:
            self._box.listen(PORT)
            self._show_certificates(self._box, self.proxy)
        self._start(self._box)

    def _show_certificates(self, box: Box, proxy: Proxy) -> None:
        """Let programs trust the certificates that Ramet makes, where it reads their HTTPS."""
        bundle = proxy.bundle
        if bundle is None:
            return
        from ramet.network.authority import bundle_path

        place = f"{self.layout.root}/certificates.pem"
        with open(place, "wb") as file:
            file.write(bundle)
        os.chmod(place, 0o644)
        box.show(place, bundle_path())

    def _start(self, box: Box) -> None:
        """Build the box, and take over the descriptors of its trees."""
        owner = self.layout.owner
        built = box.build()
        self.remote.adopt(box.devices, box.remote_problem)
        self._network = BoxNetwork.of(box.first_pid)
        leave_note(self.layout.root, self._network)
        for prefix, fd in built.items():
            if prefix not in self._places:
                if prefix in self.system:  # it does not change
                    os.close(fd)
                else:
                    self.system[prefix] = SystemFiles(fd, owner)
                continue
            if prefix in self._trees:
                self._trees[prefix].adopt(fd)
                continue
            self._trees[prefix] = TreeResource(fd, self._places[prefix], owner, hidden=self._names(prefix))
            self._uppers[prefix] = Upper(self._places[prefix].upper)

    def _check_prefix(self, prefix: str) -> None:
        first = prefix[1:].partition("/")[0]
        if first in self.layout.names:
            raise RametError(
                "native_unavailable", f"cannot run native programs: {prefix} is mounted in the box's own /{first}",
                "Mount it elsewhere.",
            )  # fmt: skip

    def _make_mount_points(self) -> None:
        """Create the directories of nested mounts in a layer where they are no change of the workspace."""
        for prefix in [*self._prefixes, *(f"/{name}" for name in self.layout.extras)]:
            folder = self.layout.points
            for name in prefix[1:].split("/") if prefix != "/" else ():
                folder = f"{folder}/{name}"
                if not os.path.isdir(folder):
                    make_directory(folder)

    # ------------------------------------------------------------------------------------------------- programs

    def find(self, name: str, path: str) -> str | None:
        """Return where the box's PATH has a program of the host."""
        for directory in path.split(":"):
            if self.has(f"{directory.rstrip('/')}/{name}"):
                return f"{directory.rstrip('/')}/{name}"
        return None

    def has(self, path: str) -> bool:
        """Whether a path names a program of the host that the box sees."""
        return self._of_system(path) and self.layout.image.is_program(path)

    def _of_system(self, path: str) -> bool:
        return path.startswith((*SYSTEM_PATHS, *(f"/{name}/" for name in self.layout.extras)))

    def names(self, folder: str) -> list[str]:
        """List what a directory of the system has, which PATH may name; nothing for one of the tree."""
        return self.layout.image.names(folder) if self._of_system(f"{folder}/") else []

    async def run(self, path: str, proc: Proc, points: tuple[Point, ...] = ()) -> int:
        """Run a program, which may do at `points` what they say; a box that has died is built again first."""
        box = self._box
        if box is None:
            raise RametError("closed", "the workspace is closed", "Open it again.")
        if not box.alive:
            self.remote.detach()
            box.kill()
            self._start(box)
        self.used += 1
        door = proc.services.network
        if self.proxy is None or box.listener is None or not isinstance(door, SessionDoor):
            return await self._run(box, path, proc, proc.env, points)
        await self.proxy.serve(box.listener)
        async with self.proxy.member(door.caller("native")) as leading:
            return await self._run(box, path, proc, {**self.proxy.trust, **proc.env, **leading}, points)

    async def _run(self, box: Box, path: str, proc: Proc, env: Mapping[str, str], points: tuple[Point, ...]) -> int:
        self._running += 1
        try:
            with self.remote.member(proc.fs) as caller:
                status = await self._bounded(
                    run_program(box, self.daemons, path, proc, env, caller.number, points), proc, caller
                )
                await self.remote.settle(caller)
        finally:
            self._running -= 1
        for text in caller.take_failures():
            proc.complain(text)
        return status

    async def _bounded(self, program: Coroutine[None, None, int], proc: Proc, caller: Caller) -> int:
        """Run a program until it ends, or the disk is full."""
        running = asyncio.ensure_future(program)
        guard = asyncio.ensure_future(self._guard.watch())
        try:
            await asyncio.wait({running, guard}, return_when=asyncio.FIRST_COMPLETED)
            if guard.done() and not running.done():
                guard.result()
                proc.complain("killed: the limit native.disk_bytes of this workspace was reached")
                caller.cancel()
                running.cancel()
                await asyncio.wait({running})
                return BySignal(signal.SIGKILL)
            return await running
        except asyncio.CancelledError:
            caller.cancel()
            running.cancel()
            await asyncio.wait({running})
            raise
        finally:
            guard.cancel()

    @property
    def entries(self) -> int:
        """Paths that the last look saw: what the next one costs."""
        return sum(upper.entries for upper in (*self._uppers.values(), *self._hosts.values()))

    def changes(self) -> list[ProgramChange]:
        """Return all that changed in the trees and host directories since the last call."""
        found: list[ProgramChange] = []
        for prefix, upper in self._uppers.items():
            lowers = self._places[prefix].lowers
            for one in upper.changed():
                made = one.removed_before or (
                    one.before is None and not any(exists_below(layer, one.path) for layer in lowers)
                )
                path = _below(prefix, one.path)
                found.append(ProgramChange(path, one.verb, one.size, made, one.before, one.rewritten))
        return found + self.host_changes()

    def host_changes(self) -> list[ProgramChange]:
        """Return what changed in host directories since the last call."""
        found: list[ProgramChange] = []
        for prefix, host in list(self._hosts.items()):
            try:
                for one in host.changed():
                    made, path = one.before is None, _below(prefix, one.path)
                    found.append(ProgramChange(path, one.verb, one.size, made, one.before, one.rewritten))
            except TooLarge:
                del self._hosts[prefix]
        return found

    # ---------------------------------------------------------------------------------------------------- ending

    def end(self) -> None:
        """End all programs; the trees stay on the disk."""
        self.remote.close()
        if self._box is not None:
            self._box.kill()
            self._box = self._network = None
        self.ports.close()
        self.daemons.close()

    def close(self, stored: StoredTrees | None = None) -> None:
        """End all programs and delete the trees; what is stored may be a lower layer of the next box."""
        self.end()
        if stored is not None:
            for prefix, place in self._places.items():
                key = stored.keys.get(prefix)
                if key is not None and place.key is not None and self._lowers.layers(place.key):
                    self._lowers.add(key, place.key, place.upper, stored.began)
        for tree in self._trees.values():
            tree.release()
        for files in self.system.values():
            files.release()
        self.layout.remove()
