"""`FilePatch`: what changed in one file between two revisions, as text in git's patch format.

`git apply` and `patch -p1` take the text of several one after the other. A file that is binary or larger than
`PATCH_BYTES` has a patch without lines that says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from stat import S_ISLNK
from typing import TYPE_CHECKING, Final, Protocol

from ramet.commands.diff.changes import Change, changes
from ramet.commands.diff.output import Side, Style, unified
from ramet.core.paths import encode
from ramet.store.model.trees import DIR, FILE, LINK, Node
from ramet.store.verbs.diff import ChangeKind, Difference

if TYPE_CHECKING:
    from ramet.store.model.revisions import Revision
    from ramet.store.refs.resolve import RevisionLike
    from ramet.store.repository import Repository

PATCH_BYTES: Final = 4 * 1024 * 1024
"""Size of a file up to which its lines are compared."""
_FORMATS: Final = {DIR: 0o040000, LINK: 0o120000}


class Revisions(Protocol):
    """A workspace whose revisions can be compared: in a store, or behind a server."""

    def find(self, revision: RevisionLike | None = None) -> Revision: ...
    def show(self, path: str, revision: RevisionLike | None = None) -> Iterator[bytes]: ...
    def diff(self, older: RevisionLike | None = None, newer: RevisionLike | None = None) -> list[Difference]: ...


class UnsavedRevisions:
    """The last revision of an open workspace, and a revision of its present state that nothing names."""

    def __init__(self, repository: Repository, base: Revision | None, now: Revision) -> None:
        self._repository, self._base, self._now = repository, base, now

    def find(self, revision: RevisionLike | None = None) -> Revision:
        return self._now if self._base is None or revision is self._now else self._base

    def show(self, path: str, revision: RevisionLike | None = None) -> Iterator[bytes]:
        return self._repository.read_file(self.find(revision), path)

    def diff(self, older: RevisionLike | None = None, newer: RevisionLike | None = None) -> list[Difference]:
        return self._repository.diff(self._base, self._now)


@dataclass(frozen=True)
class FilePatch:
    """One changed path: how many lines were added and removed, and the text of the patch."""

    path: str
    what: ChangeKind
    old: str | None = None
    added: int = 0
    removed: int = 0
    note: str = ""
    """Why there are no lines: `binary`, `too large`, `directory`."""
    before: Node | None = None
    after: Node | None = None
    sides: tuple[Side, Side] | None = None
    changes: tuple[Change, ...] = ()

    def lines(self, *, color: bool = False, context: int = 3) -> Iterator[bytes]:
        """Yield the lines of the patch; with `color`, for a terminal, escape characters of the content as `^[`."""
        bold, end = (b"\x1b[1m", b"\x1b[0m") if color else (b"", b"")
        for line in self._head():
            yield bold + line + end + b"\n"
        if self.sides is not None and self.changes:
            sides = [_visible(side) for side in self.sides] if color else self.sides
            yield from unified(sides[0], sides[1], list(self.changes), Style(context=context, color=color))

    def __str__(self) -> str:
        return b"".join(self.lines()).decode("utf-8", "replace")

    def _head(self) -> Iterator[bytes]:
        old, new = _name(self.old or self.path), _name(self.path)
        yield b"diff --git a%s b%s" % (old, new)
        if self.before is None and self.after is not None:
            yield b"new file mode %o" % _mode(self.after)
        elif self.after is None and self.before is not None:
            yield b"deleted file mode %o" % _mode(self.before)
        elif self.before is not None and self.after is not None and _mode(self.before) != _mode(self.after):
            yield b"old mode %o" % _mode(self.before)
            yield b"new mode %o" % _mode(self.after)
        if self.old is not None:
            yield b"rename from %s" % old[1:]
            yield b"rename to %s" % new[1:]
        if self.note == "binary":
            yield b"Binary files differ"
        elif self.note == "too large":
            yield b"Files larger than %d MiB differ" % (PATCH_BYTES // 1024**2)


def file_patches(
    workspace: Revisions,
    older: RevisionLike | None = None,
    newer: RevisionLike | None = None,
    paths: Iterable[str] = (),
) -> Iterator[FilePatch]:
    """Yield a patch for each path that differs, as `diff` takes its revisions; with `paths`, only at or below them."""
    differences = workspace.diff(older, newer)
    if not differences:
        return
    after = workspace.find(older if newer is None else newer)
    if older is not None and newer is not None:
        before: RevisionLike | None = workspace.find(older)
    else:
        before = after.parents[0].hex() if after.parents else None
    tops = tuple(f"{path.rstrip('/')}/" for path in paths)
    chosen = [one for one in differences if not tops or f"{one.path}/".startswith(tops)]
    full = {path.rpartition("/")[0] for one in chosen for path in (one.path, one.old) if path}
    for one in chosen:
        if _is_directory(one) and one.what != "modified" and one.path in full:
            continue  # the entries below it say it
        yield _patch(workspace, one, before, after)


def file_patch(
    path: str, before: bytes | None, after: bytes | None, modes: tuple[int, int] = (0o100644, 0o100644)
) -> FilePatch:
    """Compare two contents of one path; None where there is none. `modes` are those of stat(2)."""
    what: ChangeKind = "added" if before is None else "removed" if after is None else "modified"
    old, new = (
        None if data is None else Node(b"", LINK if S_ISLNK(mode) else FILE, mode & 0o7777, 0, len(data), b"")
        for data, mode in zip((before, after), modes, strict=True)
    )
    return _compare(Difference(path, what, old, new), before or b"", after or b"")


def _patch(
    workspace: Revisions, found: Difference, before: RevisionLike | None, after: RevisionLike | None
) -> FilePatch:
    if _is_directory(found):
        return FilePatch(found.path, found.what, found.old, note="directory", before=found.before, after=found.after)
    sizes = [node.size for node in (found.before, found.after) if node is not None]
    if found.what == "renamed" or max(sizes) > PATCH_BYTES:
        note = "" if found.what == "renamed" else "too large"
        return FilePatch(found.path, found.what, found.old, note=note, before=found.before, after=found.after)
    contents = []
    for node, revision in ((found.before, before), (found.after, after)):
        if node is None:
            contents.append(b"")
        elif node.kind == LINK:
            contents.append(node.payload)
        else:
            contents.append(b"".join(workspace.show(found.path, revision)))
    return _compare(found, *contents)


def _compare(found: Difference, old: bytes, new: bytes) -> FilePatch:
    if b"\0" in old[:8192] or b"\0" in new[:8192]:
        return FilePatch(found.path, found.what, found.old, note="binary", before=found.before, after=found.after)
    sides = (_side(b"a", found.path, found.before, old), _side(b"b", found.path, found.after, new))
    first, second = ([side.line(i) for i in range(len(side.lines))] for side in sides)
    script = tuple(changes(first, second))
    added, removed = sum(c.d - c.c for c in script), sum(c.b - c.a for c in script)
    return FilePatch(found.path, found.what, found.old, added, removed, "", found.before, found.after, sides, script)


def _side(letter: bytes, path: str, node: Node | None, data: bytes) -> Side:
    label = b"/dev/null" if node is None else letter + _name(path)
    lines = data.split(b"\n")
    ended = not lines[-1]
    return Side(path, label, lines[:-1] if ended else lines, ended)


def _visible(side: Side) -> Side:
    """The side with escape characters that no terminal obeys."""
    return replace(side, lines=[line.replace(b"\x1b", b"^[") for line in side.lines])


def _name(path: str) -> bytes:
    """A path on one line: control characters are escaped."""
    return encode(path).replace(b"\\", b"\\\\").replace(b"\n", b"\\n").replace(b"\t", b"\\t").replace(b"\x1b", b"\\033")


def _mode(node: Node) -> int:
    return _FORMATS.get(node.kind, 0o100000) | (node.mode & 0o7777 if node.kind != LINK else 0)


def _is_directory(found: Difference) -> bool:
    node = found.after or found.before
    return node is not None and node.kind == DIR
