"""Making a tree from members that come in any order, as an archive gives them: content goes to packs as it passes.

Memory grows with the number of names, not with their content.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ramet.core.errors import RametError
from ramet.core.paths import encode as encode_name
from ramet.store import trees
from ramet.store.chunking import chunks
from ramet.store.ids import TreeId, chunk_id, tree_id
from ramet.store.packing import PackWriter
from ramet.store.trees import DIR, FILE, LINK, Node, hard_group


@dataclass
class _Folder:
    mode: int = 0o755
    mtime_ns: int = 0
    entries: dict[bytes, Node | _Folder] = field(default_factory=dict)


class Builder:
    """A tree that is being made. A later member replaces an earlier one of the same name."""

    def __init__(self, writer: PackWriter) -> None:
        self._writer = writer
        self._top = _Folder()
        self._same: dict[str, list[str]] = {}

    def file(self, path: str, blocks: Iterator[bytes], size: int, mode: int, mtime_ns: int) -> None:
        ids: list[bytes] = []
        for chunk in chunks(blocks, size) if size else ():
            identity = chunk_id(chunk)
            self._writer.add(identity, chunk)
            ids.append(identity)
        folder, name = self._place(path)
        folder.entries[name] = Node(name, FILE, mode, mtime_ns, size, b"".join(ids))

    def directory(self, path: str, mode: int, mtime_ns: int) -> None:
        if path.strip("/"):
            folder, name = self._place(path)
            found = folder.entries.get(name)
            if not isinstance(found, _Folder):
                found = folder.entries[name] = _Folder()
            found.mode, found.mtime_ns = mode, mtime_ns

    def link(self, path: str, target: str, mtime_ns: int) -> None:
        folder, name = self._place(path)
        folder.entries[name] = Node(name, LINK, 0o777, mtime_ns, 0, encode_name(target))

    def hard_link(self, path: str, first: str) -> None:
        """Another name of a file that is there."""
        source, old = self._place(first)
        found = source.entries.get(old)
        if not isinstance(found, Node) or found.kind != FILE:
            raise _refused(f"{path} is a hard link to {first}, which is not a file before it")
        folder, name = self._place(path)
        folder.entries[name] = found._replace(name=name)
        top = next((top for top, names in self._same.items() if first == top or first in names), first)
        self._same.setdefault(top, [top]).append(path)

    def _place(self, path: str) -> tuple[_Folder, bytes]:
        parts = [encode_name(part) for part in path.strip("/").split("/")]
        if any(part in (b"", b".", b"..") or b"\0" in part for part in parts):
            raise _refused(f"{path!r} cannot be a path of a workspace")
        here = self._top
        for part in parts[:-1]:
            below = here.entries.get(part)
            if not isinstance(below, _Folder):
                # An archive that first makes a link and then writes through it gets a directory, never the link's end.
                below = here.entries[part] = _Folder()
            here = below
        return here, parts[-1]

    def tree(self) -> TreeId:
        """Everything so far as one tree."""
        self._number()
        return TreeId(self._encoded(self._top))

    def _number(self) -> None:
        """Files with several names get numbers in the order in which a walk by name meets them."""
        names = {}
        for top, paths in self._same.items():
            kept = {tuple(encode_name(part) for part in path.strip("/").split("/")) for path in paths}
            names[top] = sorted(kept)
        for number, top in enumerate(sorted(names, key=lambda top: names[top][0]), 1):
            for parts in names[top]:
                folder, name = self._place("/".join(part.decode("utf-8", "surrogateescape") for part in parts))
                node = folder.entries.get(name)
                if isinstance(node, Node) and len(names[top]) > 1:
                    folder.entries[name] = node._replace(group=hard_group(number, len(names[top])))

    def _encoded(self, top: _Folder) -> bytes:
        done: dict[int, bytes] = {}
        stack = [(top, False)]
        while stack:
            folder, entered = stack.pop()
            below = [entry for entry in folder.entries.values() if isinstance(entry, _Folder)]
            if below and not entered:
                stack.append((folder, True))
                stack.extend((entry, False) for entry in below)
                continue
            nodes = [
                Node(name, DIR, entry.mode, entry.mtime_ns, 0, done[id(entry)]) if isinstance(entry, _Folder) else entry
                for name, entry in folder.entries.items()
            ]
            encoded = trees.encode(nodes)
            identity = done[id(folder)] = tree_id(encoded)
            self._writer.add(identity, encoded)
        return done[id(top)]


def _refused(cause: str) -> RametError:
    return RametError("snapshot_invalid", f"the archive cannot be imported: {cause}", "make it again without that")
