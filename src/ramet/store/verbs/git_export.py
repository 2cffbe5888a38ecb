"""Export a history as a `git fast-import` stream. Equal histories give equal commits.

Left out and reported: empty directories, paths with a component named `.git`, file times, and modes other than the
executable bit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from ramet.core.paths import encode
from ramet.core.progress import Progress, silent
from ramet.store.checkout.walk import content, find_node, hidden_paths, no_such_path, walk
from ramet.store.checkout.whole_tree import mounts_without_content
from ramet.store.commit.kernel_state import records_of
from ramet.store.model.graph import newest_first
from ramet.store.model.ids import RevisionId
from ramet.store.model.revisions import Revision
from ramet.store.model.trees import DIR, LINK, Node
from ramet.store.verbs.diff import compare

if TYPE_CHECKING:
    from ramet.store.repository import Repository

_PLAIN: Final = re.compile(rb"[^\x21-\x7e]|[\"\\]")
UNNAMED: Final = "default"
"""The agent of a command that named none."""
_REF: Final = re.compile(r"\.{2,}|\.$|\.lock$")


@dataclass
class GitExport:
    """What was exported, and what git cannot store."""

    branch: str
    commits: int = 0
    blobs: int = 0
    tags: int = 0
    left_out: list[str] = field(default_factory=list)


def branch_name(workspace: str) -> str:
    """Return the git branch name of a workspace."""
    return _REF.sub("_", workspace)


def fast_import(repository: Repository, name: str, done: GitExport, progress: Progress = silent) -> Iterator[bytes]:
    """Yield the stream; `done` is updated on the way."""
    return _FastImportStream(repository, name, done, progress).run()


def single_commit(
    repository: Repository,
    revision: Revision,
    roots: Mapping[str, str],
    branch: str,
    parent: str | None,
    done: GitExport,
) -> Iterator[bytes]:
    """Yield one commit with the files of a revision at or below some paths; `roots` maps them to paths of the commit.

    Raises `not_found` for a path that is not in the revision, before the first byte of the stream.
    """
    for root in roots:
        if root != "/" and not _holds(repository, revision, root):
            raise no_such_path(revision, root)
    return _single_commit(repository, revision, roots, branch, parent, done)


def _holds(repository: Repository, revision: Revision, path: str) -> bool:
    """Return whether a path is in a revision, or leads to a mount of it."""
    inside = any(f"{mount.prefix}/".startswith(path + "/") for mount in revision.mounts if mount.tree is not None)
    return inside or find_node(repository.packs.read, revision, path) is not None


def _single_commit(
    repository: Repository,
    revision: Revision,
    roots: Mapping[str, str],
    branch: str,
    parent: str | None,
    done: GitExport,
) -> Iterator[bytes]:
    stream = _FastImportStream(repository, revision.workspace, done, silent)
    placed: list[tuple[str, Node]] = []
    yield b"feature done\n"
    for path, node in walk(repository.packs.read, revision):
        for root, target in roots.items():
            top = root.rstrip("/")
            below = path[len(top) :] if path.startswith(top + "/") else None
            if path == root:  # a file by itself keeps its name
                target, below = "", f"/{path.rpartition('/')[2]}"
            if below is not None and stream._fits(below, node, revision):
                yield from stream._blob(node)
                placed.append((target + below, node))
    credit = _credit(repository, revision)
    text, person = encode(_message(revision, credit)), _person(credit.author, revision.time)
    yield b"commit refs/heads/%b\nauthor %b\ncommitter %b\n" % (encode(branch), person, person)
    yield b"data %d\n%b\n" % (len(text), text)
    if parent is not None:
        yield b"from %b\n" % parent.encode()
    yield b"deleteall\n"
    for path, node in placed:
        yield b"M %b :%d %b\n" % (_mode(node), stream._marks[_key(node)], _quote(path))
    done.commits += 1
    yield b"\ndone\n"


class _FastImportStream:
    def __init__(self, repository: Repository, name: str, done: GitExport, progress: Progress) -> None:
        self._repository, self._read, self._name = repository, repository.packs.read, name
        self._done, self._progress = done, progress
        self._marks: dict[bytes, int] = {}
        self._commits: dict[RevisionId, int] = {}
        self._last = 0

    def run(self) -> Iterator[bytes]:
        tags = self._repository.tags.of(self._name)
        wanted = {revision.id: revision for revision in self._repository.log(self._name)}
        for tag in tags:  # a tag may name a revision outside of the head's history
            wanted.update(self._repository.ancestors(self._repository.read_revision(tag.target)))
        history = newest_first(wanted.values())
        history.reverse()
        branch = f"refs/heads/{branch_name(self._name)}".encode()
        yield b"feature done\n"
        for number, revision in enumerate(history):
            self._progress("revisions", number, len(history))
            yield from self._commit(branch, revision)
        head = self._repository.head(self._name)
        if head is not None:
            self._done.left_out += [f"{head.name}:{prefix}" for prefix in mounts_without_content(head)]
            yield b"reset %b\nfrom :%d\n\n" % (branch, self._commits[head.id])
        for tag in tags:
            self._done.tags += 1
            target, ref = self._commits[tag.target], branch_name(tag.name).encode()
            if tag.message:
                text = encode(tag.message)
                yield b"tag %b\nfrom :%d\ntagger %b\n" % (ref, target, _person(tag.author, tag.time))
                yield b"data %d\n%b\n" % (len(text), text)
            else:
                yield b"reset refs/tags/%b\nfrom :%d\n\n" % (ref, target)
        yield b"done\n"
        self._progress("revisions", len(history), len(history))

    def _commit(self, branch: bytes, revision: Revision) -> Iterator[bytes]:
        parents = list({parent.id: parent for parent in self._repository.parents_of(revision)}.values())
        removed, changed = self._changes(parents[0] if parents else None, revision)
        for _, node in changed:
            yield from self._blob(node)
        self._last += 1
        self._commits[revision.id] = self._last
        self._done.commits += 1
        if not parents:
            yield b"reset %b\n\n" % branch  # else the commit would follow the previous one
        credit = _credit(self._repository, revision)
        text, person = encode(_message(revision, credit)), _person(credit.author, revision.time)
        yield b"commit %b\nmark :%d\nauthor %b\ncommitter %b\n" % (branch, self._last, person, person)
        yield b"data %d\n%b\n" % (len(text), text)
        for number, parent in enumerate(parents):
            yield b"%b :%d\n" % (b"merge" if number else b"from", self._commits[parent.id])
        for path in removed:
            yield b"D %b\n" % _quote(path)
        for path, node in changed:
            yield b"M %b :%d %b\n" % (_mode(node), self._marks[_key(node)], _quote(path))
        yield b"\n"

    def _changes(self, parent: Revision | None, revision: Revision) -> tuple[list[str], list[tuple[str, Node]]]:
        """Return removed paths, and new or changed files and links."""
        if parent is None:
            return [], [(path, node) for path, node in walk(self._read, revision) if self._fits(path, node, revision)]
        prefixes = [mount.prefix for mount in revision.mounts]
        if [mount.prefix for mount in parent.mounts] != prefixes:
            old = {path: node for path, node in walk(self._read, parent) if self._fits(path, node, revision)}
            new = {path: node for path, node in walk(self._read, revision) if self._fits(path, node, revision)}
            differing = [(path, node) for path, node in new.items() if not _equal(old.get(path), node)]
            return [path for path in old if path not in new], differing
        trees = {mount.prefix: mount.tree for mount in parent.mounts}
        removed: list[str] = []
        changed: list[tuple[str, Node]] = []
        for mount in revision.mounts:
            hidden, top = hidden_paths(revision, mount.prefix), mount.prefix.rstrip("/")
            for difference in compare(self._read, trees[mount.prefix], mount.tree, renames=False):
                path, before, after = top + difference.path, difference.before, difference.after
                if hidden(path):
                    continue
                if difference.what == "removed" and before is not None and self._fits(path, before, revision):
                    removed.append(path)
                elif after is not None and self._fits(path, after, revision):
                    changed.append((path, after))
        return removed, changed

    def _fits(self, path: str, node: Node, revision: Revision) -> bool:
        if node.kind not in (0, LINK):
            if node.kind == DIR and ".git" in path.lower().split("/")[-1:]:
                self._done.left_out.append(f"{revision.name}:{path}")
            return False
        return ".git" not in path.lower().split("/")

    def _blob(self, node: Node) -> Iterator[bytes]:
        key = _key(node)
        if key in self._marks:
            return
        self._last += 1
        self._marks[key] = self._last
        self._done.blobs += 1
        if node.kind == LINK:
            yield b"blob\nmark :%d\ndata %d\n%b\n" % (self._last, len(node.payload), node.payload)
            return
        yield b"blob\nmark :%d\ndata %d\n" % (self._last, node.size)
        yield from content(self._read, node)
        yield b"\n"


def _key(node: Node) -> bytes:
    return b"%d" % node.kind + node.payload


def _equal(one: Node | None, other: Node) -> bool:
    return one is not None and (one.kind, one.payload, _mode(one)) == (other.kind, other.payload, _mode(other))


def _mode(node: Node) -> bytes:
    if node.kind == LINK:
        return b"120000"
    return b"100755" if node.mode & 0o100 else b"100644"


def _quote(path: str) -> bytes:
    return b'"' + _PLAIN.sub(lambda found: b"\\%03o" % found[0][0], encode(path[1:])) + b'"'


def _person(who: str, when: float) -> bytes:
    """Format `name <address> seconds zone`, without characters that git treats as syntax."""
    name, _, address = who.partition("<")
    plain = re.sub(r"[<>\n\0]", "", name).strip() or "ramet"
    mail = re.sub(r"[<>\n\0\s]", "", address) or "ramet@localhost"
    return encode(f"{plain} <{mail}> {max(int(when), 0)} +0000")


class _Credit(NamedTuple):
    """Who made a revision: the author of the commit, and all agents."""

    author: str
    agents: list[str]


def _credit(repository: Repository, revision: Revision) -> _Credit:
    """Return the author of a revision, else the agent or person that ran its commands, if there was only one."""
    ops = revision.ops
    records = [] if ops is None else records_of(repository.packs, revision, ops["first"], ops["last"])
    agents = {revision.agent: None, **{str(record.get("agent_id") or ""): None for record in records}}
    named = [agent for agent in agents if agent not in ("", UNNAMED)]
    people = {str(record.get("principal") or "") for record in records} - {""}
    alone = named if len(named) == 1 else sorted(people)
    return _Credit(revision.author or revision.agent or (alone[0] if len(alone) == 1 else ""), named)


def _message(revision: Revision, credit: _Credit) -> str:
    lines = [revision.message or revision.name, "", f"Ramet-Revision: {revision.name} {revision.id.hex()}"]
    agents = [("Agent", agent) for agent in credit.agents if agent != revision.author]
    for label, value in (("Lineage", revision.lineage), *agents, ("Trace", revision.trace_id)):
        if value:
            lines.append(f"Ramet-{label}: {' '.join(value.split())}")
    return "\n".join(lines) + "\n"
