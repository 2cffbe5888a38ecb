"""`GitTree`: the files of a repository at a ref, to be read, over GitHub's git database; `git_branch` writes them.

Rules that this file keeps:
- A file's version is the id of its blob. The commit of the ref is asked for again when `ttl` has ended, conditionally.
- One recursive tree describes everything; a walk that reads many files takes one tarball instead of as many blobs.
- git keeps no empty directories: one that was made here lasts until the resource is closed.
"""

from __future__ import annotations

import asyncio
import errno
import re
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from ramet.backends.services.github.git_archive import OVERHEAD, GitArchive
from ramet.backends.services.rest import Rest
from ramet.core.errors import fail
from ramet.core.paths import ROOT, Path, decode, encode
from ramet.core.resource import Cap
from ramet.core.stat import Kind, Stat
from ramet.core.streams import closing

ARCHIVE_AFTER: Final = 8
"""Blobs of one commit that are asked for one by one before a tarball is."""
ARCHIVE_MOST: Final = 512 << 20
"""Bytes of a tree up to which a tarball is fetched, into a temporary file."""
SHA: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_RAW: Final = "application/vnd.github.raw+json"
_LINK, _PROGRAM = "120000", "100755"


class GitEntry(NamedTuple):
    mode: str
    sha: str
    size: int | None

    @property
    def kind(self) -> Kind:
        if self.mode == _LINK:
            return Kind.LINK
        return Kind.DIR if self.mode in ("040000", "160000") else Kind.FILE


@dataclass
class Commit:
    """A commit: its directories as far as they are known, and its tarball if it was fetched."""

    sha: str
    directories: dict[Path, dict[str, GitEntry]]
    whole: bool
    total: int = 0
    reads: int = 0
    archives: dict[asyncio.AbstractEventLoop, asyncio.Task[GitArchive | None]] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)


class GitTree:
    caps = Cap.VERSIONS

    def __init__(self, rest: Rest, repository: str, ref: str | None, ttl: float) -> None:
        self._rest, self._repository, self._ref = rest, repository, ref
        self._ttl: float | None = None if ref is not None and SHA.fullmatch(ref) else ttl
        name = f"{repository.removeprefix('/repos/')} at {ref or 'HEAD'}"
        self._missing = f"No such file or directory: {name} is not there, or the token cannot read it"
        self._commit: Commit | None = None
        self._until = 0.0
        self._loading: dict[asyncio.AbstractEventLoop, asyncio.Task[Commit]] = {}
        self._empty: set[Path] = set()

    # -------------------------------------------------------------------------------------------- the commit

    async def _now(self, path: Path) -> Commit:
        """The commit that the ref points to."""
        if self._commit is not None and (self._ttl is None or time.monotonic() < self._until):
            return self._commit
        loop = asyncio.get_running_loop()
        if loop not in self._loading:  # readers that come at once share one look
            task = self._loading[loop] = asyncio.ensure_future(self._look(path))
            task.add_done_callback(lambda done: self._forget_lookup(loop, done))
        return await asyncio.shield(self._loading[loop])

    def _forget_lookup(self, loop: asyncio.AbstractEventLoop, task: asyncio.Task[Commit]) -> None:
        del self._loading[loop]
        if not task.cancelled():
            task.exception()  # all readers may have gone

    async def _look(self, path: Path) -> Commit:
        sha = await self._head(path)
        if self._commit is None or self._commit.sha != sha:
            loaded = await self._load(sha, path)
            self._drop()
            self._commit = loaded
        self._until = time.monotonic() + (self._ttl or 0.0)
        return self._commit

    async def _head(self, path: Path) -> str:
        if self._ref is not None and SHA.fullmatch(self._ref):
            return self._ref
        ref = quote(self._ref or "HEAD", safe="/")
        answer = await self._rest.get(
            f"{self._repository}/commits/{ref}", path=path, accept="application/vnd.github.sha", missing=self._missing
        )
        sha = answer.body.decode("ascii", "replace").strip()
        if sha.startswith("{"):  # a server that knows no media types answers with the whole commit
            sha = str(answer.json().get("sha"))
        if SHA.fullmatch(sha) is None:
            raise fail(errno.EIO, path, "the service names a commit by something that is not an id")
        return sha

    async def _load(self, sha: str, path: Path) -> Commit:
        entries, truncated = await self._tree(sha, path, recursive=True)
        if truncated:  # too large for one answer: directories are asked for when they are looked at
            entries, _ = await self._tree(sha, path, recursive=False)
            return Commit(sha, {ROOT: {decode(encode(one["path"])): _entry(one) for one in entries}}, whole=False)
        commit = Commit(sha, {ROOT: {}}, whole=True)
        for one in entries:
            at = Path("/" + one["path"])
            entry = _entry(one)
            commit.directories.setdefault(at.parent, {})[at.name] = entry
            commit.total += entry.size or 0
            if entry.kind is Kind.DIR:
                commit.directories.setdefault(at, {})
        return commit

    async def _tree(self, sha: str, path: Path, *, recursive: bool) -> tuple[list[dict[str, Any]], bool]:
        params = {"recursive": "1"} if recursive else None
        answer = await self._rest.get(
            f"{self._repository}/git/trees/{sha}", path=path, params=params, missing=self._missing
        )
        found = answer.json()
        return found["tree"], bool(found.get("truncated"))

    async def _directory(self, commit: Commit, path: Path) -> dict[str, GitEntry]:
        known = commit.directories.get(path)
        if known is not None:
            return known
        entry = await self._entry(commit, path)
        if entry.kind is not Kind.DIR:
            raise fail(errno.ELOOP if entry.kind is Kind.LINK else errno.ENOTDIR, path)
        if commit.whole or entry.mode == "160000":
            return {}
        entries, truncated = await self._tree(entry.sha, path, recursive=False)
        if truncated:
            raise fail(errno.EFBIG, path, "the service lists only a part of this directory; use git to read it")
        found = commit.directories[path] = {decode(encode(one["path"])): _entry(one) for one in entries}
        return found

    async def _entry(self, commit: Commit, path: Path) -> GitEntry:
        if path == ROOT:
            return GitEntry("040000", commit.sha, None)
        if commit.whole:
            above = commit.directories.get(path.parent)
            if above is None:
                parent = await self._entry(commit, path.parent)
                if parent.kind is not Kind.DIR:
                    raise fail(errno.ELOOP if parent.kind is Kind.LINK else errno.ENOTDIR, path)
                raise fail(errno.ENOENT, path)
        else:
            above = await self._directory(commit, path.parent)
        entry = above.get(path.name)
        if entry is None:
            raise fail(errno.ENOENT, path)
        return entry

    # ---------------------------------------------------------------------------------------------- looking

    async def stat(self, path: Path) -> Stat:
        commit = await self._now(path)
        try:
            return await self._stat(commit, path, await self._entry(commit, path))
        except FileNotFoundError:
            if self._is_empty(path):
                return Stat(Kind.DIR, ttl=self._ttl)
            raise

    def _is_empty(self, path: Path) -> bool:
        return any(made.under(path) for made in self._empty)

    async def _stat(self, commit: Commit, path: Path, entry: GitEntry) -> Stat:
        if entry.kind is Kind.DIR:
            return Stat(Kind.DIR, ttl=self._ttl)
        if entry.kind is Kind.LINK:
            target = commit.links.get(entry.sha)
            if target is None:
                target = commit.links[entry.sha] = decode(await self._content(commit, path, entry))
            return Stat(Kind.LINK, len(encode(target)), None, entry.sha, self._ttl, target=target)
        mode = 0o755 if entry.mode == _PROGRAM else None
        return Stat(Kind.FILE, entry.size, None, entry.sha, self._ttl, mode)

    async def scan(self, path: Path) -> AsyncIterator[tuple[str, Stat]]:
        commit = await self._now(path)
        try:
            entries = await self._directory(commit, path)
        except FileNotFoundError:
            if not self._is_empty(path):
                raise
            entries = {}
        for name, entry in entries.items():
            yield name, await self._stat(commit, path / name, entry)
        for name in {made.below(path).parts[0] for made in self._empty if made != path and made.under(path)}:
            if name not in entries:
                yield name, Stat(Kind.DIR, ttl=self._ttl)

    # ---------------------------------------------------------------------------------------------- reading

    async def read(self, path: Path, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
        commit = await self._now(path)
        try:
            entry = await self._entry(commit, path)
        except FileNotFoundError:
            if self._is_empty(path):
                raise fail(errno.EISDIR, path) from None
            raise
        if entry.kind is not Kind.FILE:
            raise fail(errno.EISDIR if entry.kind is Kind.DIR else errno.ELOOP, path)
        content = await self._archived(commit, path, entry)
        if content is not None:
            yield content
            return
        async with closing(self._blob(path, entry)) as blocks:
            async for block in blocks:
                yield block

    def _blob(self, path: Path, entry: GitEntry) -> AsyncIterator[bytes]:
        return self._rest.stream(f"{self._repository}/git/blobs/{entry.sha}", path=path, accept=_RAW)

    async def _content(self, commit: Commit, path: Path, entry: GitEntry) -> bytes:
        content = await self._archived(commit, path, entry)
        return b"".join([block async for block in self._blob(path, entry)]) if content is None else content

    async def _archived(self, commit: Commit, path: Path, entry: GitEntry) -> bytes | None:
        """A content out of the tarball, once enough files were read for one to be worth it."""
        commit.reads += 1
        loop = asyncio.get_running_loop()
        if loop not in commit.archives:
            if commit.reads <= ARCHIVE_AFTER or not commit.whole or commit.total > ARCHIVE_MOST:
                return None
            commit.archives[loop] = asyncio.ensure_future(self._fetch(commit, path))
        archive = await asyncio.shield(commit.archives[loop])
        return None if archive is None else archive.read(path[1:], entry.sha)

    async def _fetch(self, commit: Commit, path: Path) -> GitArchive | None:
        files = sum(len(entries) for entries in commit.directories.values())
        most = commit.total + (files + 16) * OVERHEAD
        try:
            blocks = self._rest.stream(f"{self._repository}/tarball/{commit.sha}", path=path)
            return await GitArchive.load(blocks, path, most)
        except OSError:
            return None  # every content can be had as a blob, which then reports the error

    # -------------------------------------------------------------------------------------------- lifecycle

    def forget(self, path: Path = ROOT) -> None:
        """Look at the ref again before the next answer."""
        self._until = 0.0

    def _drop(self) -> None:
        """Close the tarballs of the last commit; a reader that still has one falls back to blobs."""
        commit, self._commit = self._commit, None
        for task in () if commit is None else commit.archives.values():
            if not task.done():
                task.cancel()
            elif not task.cancelled() and (archive := task.result()) is not None:
                archive.close()

    async def close(self) -> None:
        self._drop()


def _entry(found: dict[str, Any]) -> GitEntry:
    return GitEntry(found["mode"], found["sha"], found.get("size"))
