"""`TreeBuilder`: build a tree from archive members in any order, writing content as it arrives.

Memory grows with the directories, and by about seventy bytes per file: older entries are kept encoded, per directory. A
later member replaces an earlier one of the same name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from ramet.core.errors import RametError
from ramet.core.paths import encode as encode_name
from ramet.store.model import trees
from ramet.store.model.chunker import chunks
from ramet.store.model.ids import TreeId, chunk_id, tree_id
from ramet.store.model.trees import DIR, FILE, LINK, Node, hard_group
from ramet.store.packs.writer import PackWriter

LIVE_ENTRIES: Final = 20_000
"""Entries that are kept as Python objects."""


@dataclass(eq=False, slots=True)
class _Directory:
    mode: int = 0o755
    mtime_ns: int = 0
    folders: dict[bytes, _Directory] = field(default_factory=dict)
    """Subdirectories. An entry here came after any file or link of its name."""
    recent: dict[bytes, Node] = field(default_factory=dict)
    """Recent files and links."""
    packed: list[bytes] = field(default_factory=list)
    """Older files and links, encoded, in order of arrival."""

    def others(self) -> dict[bytes, Node]:
        """Return all files and links."""
        found = {node.name: node for part in self.packed for node in trees.decode(part)}
        found.update(self.recent)
        return {name: node for name, node in found.items() if name not in self.folders}


class TreeBuilder:
    """Builds one tree. A later member replaces an earlier one of the same name."""

    def __init__(self, writer: PackWriter) -> None:
        self._writer = writer
        self._top = _Directory()
        self._live: dict[_Directory, None] = {}
        """Directories with recent entries."""
        self._count = 0
        self._same: dict[str, list[str]] = {}
        """Names of hard-linked files, by their first name."""
        self._first: dict[str, str] = {}
        """First name of a hard-linked file, by its other names."""
        self._looked: tuple[_Directory | None, int, dict[bytes, Node]] = (None, 0, {})
        """The last decoded directory, for repeated lookups."""

    def file(self, path: str, blocks: Iterator[bytes], size: int, mode: int, mtime_ns: int) -> None:
        ids: list[bytes] = []
        for chunk in chunks(blocks, size) if size else ():
            identity = chunk_id(chunk)
            self._writer.add(identity, chunk)
            ids.append(identity)
        self._put(path, Node(b"", FILE, mode, mtime_ns, size, b"".join(ids)))

    def directory(self, path: str, mode: int, mtime_ns: int) -> None:
        if path.strip("/"):
            folder, name = self._place(path)
            found = folder.folders.setdefault(name, _Directory())
            found.mode, found.mtime_ns = mode, mtime_ns

    def link(self, path: str, target: str, mtime_ns: int) -> None:
        self._put(path, Node(b"", LINK, 0o777, mtime_ns, 0, encode_name(target)))

    def hard_link(self, path: str, first: str) -> None:
        """Add another name of an existing file."""
        found = self._find(*self._place(first))
        if found is None or found.kind != FILE:
            raise _import_error(f"{path} is a hard link to {first}, which is not a file before it")
        self._put(path, found)
        top = self._first.get(first, first)
        self._same.setdefault(top, [top]).append(path)
        self._first[path] = top

    def _place(self, path: str) -> tuple[_Directory, bytes]:
        parts = [encode_name(part) for part in path.strip("/").split("/")]
        if any(part in (b"", b".", b"..") or b"\0" in part for part in parts):
            raise _import_error(f"{path!r} cannot be a path of a workspace")
        here = self._top
        for part in parts[:-1]:
            # A path through an archived symlink becomes a directory, never the target of the link.
            below = here.folders.get(part)
            here = here.folders.setdefault(part, _Directory()) if below is None else below
        return here, parts[-1]

    def _put(self, path: str, node: Node) -> None:
        folder, name = self._place(path)
        folder.folders.pop(name, None)
        folder.recent[name] = node._replace(name=name)
        self._live[folder] = None
        self._count += 1
        if self._count >= LIVE_ENTRIES:
            for folder in self._live:
                folder.packed.append(trees.encode(folder.recent.values()))
                folder.recent = {}
            self._live, self._count = {}, 0

    def _find(self, folder: _Directory, name: bytes) -> Node | None:
        if name in folder.folders:
            return None
        found = folder.recent.get(name)
        if found is not None or not folder.packed:
            return found
        if self._looked[:2] != (folder, len(folder.packed)):
            self._looked = folder, len(folder.packed), folder.others()
        return self._looked[2].get(name)

    # ------------------------------------------------------------------------------------------------- the tree

    def tree(self) -> TreeId:
        """Write everything so far as one tree."""
        self._looked = (None, 0, {})
        return TreeId(self._write_trees(self._number_hard_links()))

    def _number_hard_links(self) -> dict[_Directory, dict[bytes, int]]:
        """Number the hard-linked files in the order of a walk by name."""
        names = {}
        for top, paths in self._same.items():
            kept = {tuple(encode_name(part) for part in path.strip("/").split("/")) for path in paths}
            if len(kept) > 1:
                names[top] = sorted(kept)
        groups: dict[_Directory, dict[bytes, int]] = {}
        for number, top in enumerate(sorted(names, key=lambda top: names[top][0]), 1):
            for parts in names[top]:
                folder, name = self._place("/".join(part.decode("utf-8", "surrogateescape") for part in parts))
                groups.setdefault(folder, {})[name] = hard_group(number, len(names[top]))
        return groups

    def _write_trees(self, groups: dict[_Directory, dict[bytes, int]]) -> bytes:
        done: dict[_Directory, bytes] = {}
        stack = [(self._top, False)]
        while stack:
            folder, entered = stack.pop()
            if folder.folders and not entered:
                stack.append((folder, True))
                stack.extend((below, False) for below in folder.folders.values())
                continue
            nodes = list(folder.others().values())
            if folder in groups:
                mine = groups[folder]
                nodes = [node._replace(group=mine.get(node.name, 0)) if node.kind == FILE else node for node in nodes]
            nodes += [
                Node(name, DIR, below.mode, below.mtime_ns, 0, done.pop(below))
                for name, below in folder.folders.items()
            ]
            encoded = trees.encode(nodes)
            identity = done[folder] = tree_id(encoded)
            self._writer.add_tree(identity, encoded)
        return done[self._top]


def _import_error(cause: str) -> RametError:
    return RametError("snapshot_invalid", f"cannot import the archive: {cause}", "create the archive without it")
