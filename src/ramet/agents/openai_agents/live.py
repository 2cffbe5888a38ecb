"""The workspaces alive in this process, by session: a resumed session finds its files here until it is deleted."""

from __future__ import annotations

import os
import shlex
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from ramet.agents.openai_agents.archive import Marker, Packed, Segment
from ramet.agents.openai_agents.mounts import native_resource
from ramet.backends.disk import DiskResource
from ramet.backends.ram import RAMResource
from ramet.core.paths import ROOT, Path, encode, parse
from ramet.workspace.mounts import MountForm, MountMode
from ramet.workspace.workspace import Workspace

MAX_PACKED = 32 << 20
"""Bytes of an archive that is worth keeping in memory."""

OWN = frozenset(f"/{name}" for name in ("bin", "dev", "etc", "home", "lib", "proc", "root", "sys", "tmp", "usr", "var"))
"""Directories of a sandbox that are never the machine's unless a grant says so with `host_path`."""

LINES = 5
"""Commands that the message of a revision names."""


@dataclass
class Live:
    """One sandbox: its workspace, and the tree that is mounted at the manifest's root."""

    root: Path
    files: RAMResource
    workspace: Workspace
    busy: set[int] = field(default_factory=set)
    """Numbers of the shell sessions that run now."""
    told: int = 0
    """The number of the first command that no revision speaks of."""
    packed: tuple[tuple[bytes, ...], bytes] | None = None
    """The last archive and what it was made of: a workspace that has not changed is not packed again."""
    segments: tuple[list[str], dict[str, Segment]] = field(default_factory=lambda: ([], {}))
    """Parts of the last archive by directory, and what it left out: of one that has changed, only those are packed."""

    def packed_key(self, skip: list[str]) -> tuple[bytes, ...] | None:
        """What an archive of the tree depends on, apart from times; None when other mounts lie below the root."""
        skipped = [self.root / name for name in skip]
        for prefix in self.workspace.fs.mounts:
            if prefix != self.root and prefix.under(self.root) and not any(prefix.under(path) for path in skipped):
                return None
        return (self.files.digest(ROOT), *map(encode, sorted(skip)))

    def known(self, key: tuple[bytes, ...] | None, skip: list[str]) -> tuple[dict[str, Segment], Marker | None]:
        """What is still here of the last archive, and how to see what of it is still right."""
        if key is None or self.segments[0] != skip:
            return {}, self._mark if key is not None else None
        return self.segments[1], self._mark

    def _mark(self, name: str) -> bytes:
        return self.files.digest(parse("/" + name))

    def keep_packed(self, key: tuple[bytes, ...] | None, skip: list[str], packed: Packed) -> None:
        fits = key is not None and len(packed.archive) <= MAX_PACKED
        self.packed = (key, packed.archive) if key is not None and fits else None
        self.segments = (skip, packed.segments) if fits else ([], {})

    def mount(self, where: Path, entry: Any) -> None:
        """Mount what an entry of the manifest describes; one that is mounted already stays."""
        if where not in self.workspace.fs.mounts:
            mode = MountMode.READ if entry.read_only else MountMode.WRITE
            self.workspace.mount(str(where), native_resource(entry), mode)

    def said(self) -> str:
        """The commands since this was last asked, shortened: what a revision is told to be the result of."""
        new = self.workspace.history.after(self.told - 1)
        self.told = self.workspace.history.next_number
        lines = [self.workspace.secrets.scrub_text(_asked(record.command).partition("\n")[0][:72]) for record in new]
        shown = "; ".join(lines[-LINES:])
        return f"... {shown}" if len(lines) > LINES else shown

    def take_number(self) -> int:
        """The lowest number that no running command has, so that names do not grow without end."""
        number = 1
        while number in self.busy:
            number += 1
        self.busy.add(number)
        return number


def _asked(command: str) -> str:
    """What a command line was made of: the text of `'sh' '-lc' 'TEXT'`, the words of any other."""
    words = shlex.split(command)
    return (words[2] if len(words) == 3 and words[1] in ("-c", "-lc") else shlex.join(words)).strip()


LIVE: dict[uuid.UUID, Live] = {}


def open_live(session_id: uuid.UUID, manifest: Any, more: Mapping[str, MountForm] | None = None) -> Live:
    """The live workspace of this session, made now when there is none."""
    found = LIVE.get(session_id)
    if found is None:
        root, files = parse(manifest.root), RAMResource()
        mounts: dict[str, MountForm] = {**(more or {}), str(root): files}
        for grant in reversed(manifest.extra_path_grants):  # of two grants for one path the first one holds
            source = getattr(grant, "host_path", None)
            if source is None and not parse(grant.path).under(root):  # what lies in the workspace is the workspace's
                source = same_on_the_machine(grant.path)
            if source is not None:
                mode = MountMode.READ if grant.read_only else MountMode.WRITE
                mounts[grant.path] = (DiskResource(str(PurePath(source))), mode)
        found = LIVE[session_id] = Live(root, files, Workspace(mounts))
    return found


def same_on_the_machine(path: str) -> str | None:
    """A grant that names no source is one for the same directory of the machine, as with the SDK's local backend.

    What every sandbox has of its own stays its own.
    """
    return path if path not in OWN and os.path.isdir(path) else None


async def drop_live(session_id: uuid.UUID) -> None:
    """End the workspace of this session; its files are gone."""
    found = LIVE.pop(session_id, None)
    if found is not None:
        await found.workspace.close()
