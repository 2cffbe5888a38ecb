"""Open sandboxes of this process by session, until they are deleted."""

from __future__ import annotations

import errno
import os
import shlex
import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import PurePath
from types import MappingProxyType
from typing import Any, NamedTuple

from ramet.agents.openai_agents.archive import Marker, PackedTree, Segment
from ramet.agents.openai_agents.checkpoints import without
from ramet.agents.openai_agents.mounts import native_resource
from ramet.backends.local.disk import DiskResource
from ramet.backends.local.ram import RAMResource
from ramet.backends.local.ram_nodes import Dir
from ramet.core import ops
from ramet.core.errors import fail
from ramet.core.paths import ROOT, Path, encode, parse
from ramet.core.resource import Resource
from ramet.core.stat import Kind
from ramet.native.options import Native
from ramet.network.forward import Forward, listen_on_loopback
from ramet.network.network import Network
from ramet.workspace.mounts import MountForm, MountMode, as_mounts
from ramet.workspace.session import DEFAULT_AGENT_ID
from ramet.workspace.workspace import Workspace

MAX_PACKED = 32 << 20
"""Largest archive in bytes that is cached in memory."""

OWN = frozenset(f"/{name}" for name in ("bin", "dev", "etc", "home", "lib", "proc", "root", "sys", "tmp", "usr", "var"))
"""Sandbox directories that are host directories only if a grant sets `host_path`."""

LINES = 5
"""Number of commands in the message of a revision."""


class SessionSource(NamedTuple):
    """What a client gives its sessions: mounts for each, or one shared workspace."""

    mounts: Mapping[str, MountForm] = MappingProxyType({})
    workspace: Workspace | None = None
    agent_id: str = DEFAULT_AGENT_ID
    host_paths: bool = False
    """Whether a grant that names a path only stands for the same directory of this machine."""
    native: Native | bool | None = None
    network: Network | None = None


@dataclass
class OpenSandbox:
    """One sandbox: its workspace and the manifest's root in it."""

    root: Path
    workspace: Workspace
    label: str = "exec"
    """Prefix of its shell sessions' names; a shared workspace has others."""
    owned: bool = True
    """Whether the workspace ends with the sandbox."""
    agent_id: str = DEFAULT_AGENT_ID
    busy: set[int] = field(default_factory=set)
    """Numbers of running shell sessions."""
    reported: int = 0
    """Number of the first command that no revision names."""
    fingerprint: dict[str, str] | None = None
    """The last fingerprint of its tree."""
    packed: tuple[tuple[bytes, ...], bytes] | None = None
    """The last archive and its key: an unchanged workspace is not packed again."""
    segments: tuple[list[str], dict[str, Segment]] = field(default_factory=lambda: ([], {}))
    """Parts of the last archive by directory, and its omitted links: only changed directories are packed again."""

    forwards: dict[int, Forward] = field(default_factory=dict)
    """Ports of this machine that lead to those of the sandbox."""

    async def expose(self, port: int) -> int:
        """Return the port of this machine's loopback that leads to one of the sandbox, until it ends."""
        known = self.forwards.get(port)
        if known is None or not known.serving:
            made = Forward(listen_on_loopback(0), partial(self.workspace.connect_port, port))
            self.forwards[port] = known = await made.__aenter__()
        return known.port

    async def hide(self) -> None:
        """Close all exposed ports."""
        while self.forwards:
            await self.forwards.popitem()[1].close()

    lingering: list[int] = field(default_factory=list)
    """Numbers of shell sessions that have only background jobs, such as servers."""

    def session_id(self, number: int) -> str:
        return f"{self.label}-{number}"

    def runs(self, number: int) -> bool:
        """Whether a call has left something running."""
        processes = self.workspace.get_session(self.session_id(number)).shell.processes
        return any(not process.task.done() for process in processes.values())

    async def close_session(self, number: int) -> None:
        """Close a shell session with its background jobs."""
        await self.workspace.close_session(self.session_id(number))
        self.busy.discard(number)

    async def close_sessions(self, *, only_idle: bool = False) -> None:
        """Close the sessions that were left for their background jobs, or those whose jobs have ended."""
        for number in list(self.lingering):
            if not (only_idle and self.runs(number)):
                self.lingering.remove(number)
                await self.close_session(number)

    def packed_key(self, skip: list[str]) -> tuple[bytes, ...] | None:
        """Return the cache key of the tree's archive, without times; None if other mounts lie below the root."""
        skipped = [self.root / name for name in skip]
        for prefix in self.workspace.fs.mounts:
            if prefix != self.root and prefix.under(self.root) and not any(prefix.under(path) for path in skipped):
                return None
        place = self._memory()
        return None if place is None else (place[0].digest(place[1]), *map(encode, sorted(skip)))

    def known(self, key: tuple[bytes, ...] | None, skip: list[str]) -> tuple[dict[str, Segment], Marker | None]:
        """Return the cached parts of the last archive, and a function that checks them."""
        if key is None or self.segments[0] != skip:
            return {}, self._mark if key is not None else None
        return self.segments[1], self._mark

    def _mark(self, name: str) -> bytes:
        place = self._memory()
        assert place is not None, "only a root in memory has a key"
        return place[0].digest(place[1] / name if name else place[1])

    def _memory(self) -> tuple[RAMResource, Path] | None:
        """Return the memory resource of the root and the path in it; None if the root is not in memory."""
        holders = [mount for mount in self.workspace.mounts(scratch=True) if self.root.under(mount.prefix)]
        holder = max(holders, key=lambda mount: len(mount.prefix))
        if not isinstance(holder.resource, RAMResource):
            return None
        return holder.resource, self.root.below(holder.prefix)

    async def tree(self, skip: Iterable[str]) -> RAMResource:
        """Freeze the files below the root without some paths: shared if in memory, else copied."""
        place = self._memory()
        if place is not None:
            return await without(subtree(*place), skip)
        copy, left_out = RAMResource(), {self.root / name for name in skip}
        await _copy(self.workspace.fs, self.root, copy, ROOT, left_out)
        return copy

    async def take_up(self, found: RAMResource) -> None:
        """Replace the files below the root with a tree; a root that is a whole memory resource needs no copy."""
        place = self._memory()
        if place is not None and place[1] == ROOT:
            place[0].take_over(found)
            self.workspace.recorder.add("import", f"import a tree to {self.root}")
            if self.workspace.recorder.ledger is not None:
                self.workspace.recorder.ledger.mounted(self.root)
            return
        fs = self.workspace.fs
        for name, _ in await ops.scan_sorted(fs, self.root):
            await ops.remove_tree(fs, self.root / name)
        await _copy(found, ROOT, fs, self.root, set())

    def keep_packed(self, key: tuple[bytes, ...] | None, skip: list[str], packed: PackedTree) -> None:
        fits = key is not None and len(packed.archive) <= MAX_PACKED
        self.packed = (key, packed.archive) if key is not None and fits else None
        self.segments = (skip, packed.segments) if fits else ([], {})

    def mount(self, where: Path, entry: Any) -> None:
        """Mount an entry of the manifest, unless it is already mounted."""
        if where not in self.workspace.fs.mounts:
            mode = MountMode.READ if entry.read_only else MountMode.WRITE
            self.workspace.mount(str(where), native_resource(entry), mode)

    def message(self) -> str:
        """Return the commands since the last call, shortened, for a revision's message."""
        new = self.workspace.history.after(self.reported - 1)
        self.reported = self.workspace.history.next_number
        commands = [_command_text(record.command) for record in new if record.kind == "command"]
        lines = [self.workspace.secrets.scrub_text(command.partition("\n")[0][:72]) for command in commands]
        shown = "; ".join(lines[-LINES:])
        return f"... {shown}" if len(lines) > LINES else shown

    def take_number(self) -> int:
        """Return the lowest free number, so that session names do not grow forever."""
        number = 1
        while number in self.busy:
            number += 1
        self.busy.add(number)
        return number


def _command_text(command: str) -> str:
    """Return the text of `'sh' '-lc' 'TEXT'`, or the words of any other command line."""
    words = shlex.split(command)
    return (words[2] if len(words) == 3 and words[1] in ("-c", "-lc") else shlex.join(words)).strip()


OPEN: dict[uuid.UUID, OpenSandbox] = {}


async def open_sandbox(session_id: uuid.UUID, manifest: Any, given: SessionSource) -> OpenSandbox:
    """Return the live workspace of this session, creating it if needed; a shared one gets the root directory."""
    found = OPEN.get(session_id)
    if found is None:
        root = parse(manifest.root)
        mounts: dict[str, MountForm] = {**given.mounts}
        for grant in reversed(manifest.extra_path_grants):  # of two grants for one path, the first wins
            source = getattr(grant, "host_path", None)
            if source is None and given.host_paths and not parse(grant.path).under(root):
                source = same_on_the_machine(grant.path)
            if source is not None:
                mode = MountMode.READ if grant.read_only else MountMode.WRITE
                mounts[grant.path] = (DiskResource(str(PurePath(source))), mode)
        if given.workspace is None:
            found = OpenSandbox(
                root, Workspace({**mounts, str(root): RAMResource()}, native=given.native, network=given.network)
            )
        else:
            found = OpenSandbox(root, given.workspace, f"sandbox-{session_id.hex[:12]}", owned=False)
            for prefix, mount in as_mounts(mounts).items():
                if prefix not in given.workspace.fs.mounts:
                    given.workspace.mount(str(prefix), mount.resource, mount.mode)
            await ops.make_dirs(given.workspace.fs, root)
        found.agent_id = given.agent_id
        OPEN[session_id] = found
    return found


def same_on_the_machine(path: str) -> str | None:
    """Return the host directory of a grant: without a source, the same path, as in the SDK's local backend.

    Directories that every sandbox has for itself are never host directories.
    """
    return path if path not in OWN and os.path.isdir(path) else None


async def drop_sandbox(session_id: uuid.UUID) -> None:
    """Close the workspace of this session and drop its files; a shared workspace stays."""
    found = OPEN.pop(session_id, None)
    if found is not None:
        await found.hide()
        if found.owned:
            await found.workspace.close()
        elif not found.workspace.closed:
            await found.close_sessions()


def subtree(memory: RAMResource, top: Path) -> RAMResource:
    """Return a directory of a tree as a separate copy-on-write tree."""
    if top == ROOT:
        return memory
    twin, found = memory.fork(), RAMResource()
    directory = twin.node(top)
    if not isinstance(directory, Dir):
        raise fail(errno.ENOTDIR, top)
    found.adopt(directory, dict(twin.links))
    return found


async def _copy(src_fs: Resource, src: Path, dst_fs: Resource, dst: Path, left_out: Collection[Path]) -> None:
    """Copy everything below one directory into an existing one."""
    for name, stat in await ops.scan_sorted(src_fs, src):
        source, target = src / name, dst / name
        if source in left_out:
            continue
        if stat.kind is Kind.DIR:
            await dst_fs.mkdir(target)
            await _copy(src_fs, source, dst_fs, target, left_out)
            await ops.keep_attrs(dst_fs, target, stat)
        else:
            await ops.copy_file(src_fs, source, dst_fs, target, stat)
