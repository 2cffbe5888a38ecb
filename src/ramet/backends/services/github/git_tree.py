"""`GitTree`: the files of a repository at a ref, over GitHub's git database.

Rules that this file keeps:
- A file's version is the id of its blob. The commit of the ref is asked for again when `ttl` has ended, conditionally.
- One recursive tree describes everything; a walk that reads many files takes one tarball instead of as many blobs.
- A write is a commit on the branch, conditional on the blob that it replaces; `apply` makes one commit of many.
- git keeps no empty directories: one that was made here lasts until the resource is closed.
"""

from __future__ import annotations

import asyncio
import base64
import errno
import re
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from ramet.backends.services.contents import bounded
from ramet.backends.services.github.git_archive import OVERHEAD, GitArchive, blob_id
from ramet.backends.services.rest import Rest
from ramet.core.errors import fail
from ramet.core.paths import ROOT, Path, decode, encode
from ramet.core.resource import Cap, Data, Edit, How
from ramet.core.stat import Attrs, Kind, Stat
from ramet.core.streams import closing

ARCHIVE_AFTER: Final = 8
"""Blobs of one commit that are asked for one by one before a tarball is."""
ARCHIVE_MOST: Final = 512 << 20
"""Bytes of a tree up to which a tarball is fetched, into a temporary file."""
_SHA: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
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
class _Commit:
    """A commit: its directories as far as they are known, and its tarball if it was fetched."""

    sha: str
    directories: dict[Path, dict[str, GitEntry]]
    whole: bool
    total: int = 0
    reads: int = 0
    archives: dict[asyncio.AbstractEventLoop, asyncio.Task[GitArchive | None]] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)


class GitTree:
    caps = Cap.WRITE | Cap.CREATE | Cap.RENAME | Cap.PRECONDITIONS | Cap.VERSIONS

    def __init__(self, rest: Rest, repository: str, ref: str | None, ttl: float) -> None:
        self._rest, self._repository, self._ref = rest, repository, ref
        self._ttl: float | None = None if ref is not None and _SHA.fullmatch(ref) else ttl
        name = f"{repository.removeprefix('/repos/')} at {ref or 'HEAD'}"
        self._missing = f"No such file or directory: {name} is not there, or the token cannot read it"
        self._commit: _Commit | None = None
        self._until = 0.0
        self._loading: dict[asyncio.AbstractEventLoop, asyncio.Task[_Commit]] = {}
        self._empty: set[Path] = set()
        self._branch: str | None = None

    # -------------------------------------------------------------------------------------------- the commit

    async def _now(self, path: Path) -> _Commit:
        """The commit that the ref points to."""
        if self._commit is not None and (self._ttl is None or time.monotonic() < self._until):
            return self._commit
        loop = asyncio.get_running_loop()
        if loop not in self._loading:  # readers that come at once share one look
            task = self._loading[loop] = asyncio.ensure_future(self._look(path))
            task.add_done_callback(lambda done: self._forget_lookup(loop, done))
        return await asyncio.shield(self._loading[loop])

    def _forget_lookup(self, loop: asyncio.AbstractEventLoop, task: asyncio.Task[_Commit]) -> None:
        del self._loading[loop]
        if not task.cancelled():
            task.exception()  # all readers may have gone

    async def _look(self, path: Path) -> _Commit:
        sha = await self._head(path)
        if self._commit is None or self._commit.sha != sha:
            loaded = await self._load(sha, path)
            self._drop()
            self._commit = loaded
        self._until = time.monotonic() + (self._ttl or 0.0)
        return self._commit

    async def _head(self, path: Path) -> str:
        if self._ref is not None and _SHA.fullmatch(self._ref):
            return self._ref
        ref = quote(self._ref or "HEAD", safe="/")
        answer = await self._rest.get(
            f"{self._repository}/commits/{ref}", path=path, accept="application/vnd.github.sha", missing=self._missing
        )
        sha = answer.body.decode("ascii", "replace").strip()
        if sha.startswith("{"):  # a server that knows no media types answers with the whole commit
            sha = str(answer.json().get("sha"))
        if _SHA.fullmatch(sha) is None:
            raise fail(errno.EIO, path, "the service names a commit by something that is not an id")
        return sha

    async def _load(self, sha: str, path: Path) -> _Commit:
        entries, truncated = await self._tree(sha, path, recursive=True)
        if truncated:  # too large for one answer: directories are asked for when they are looked at
            entries, _ = await self._tree(sha, path, recursive=False)
            return _Commit(sha, {ROOT: {decode(encode(one["path"])): _entry(one) for one in entries}}, whole=False)
        commit = _Commit(sha, {ROOT: {}}, whole=True)
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

    async def _directory(self, commit: _Commit, path: Path) -> dict[str, GitEntry]:
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

    async def _entry(self, commit: _Commit, path: Path) -> GitEntry:
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

    async def _stat(self, commit: _Commit, path: Path, entry: GitEntry) -> Stat:
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

    async def _content(self, commit: _Commit, path: Path, entry: GitEntry) -> bytes:
        content = await self._archived(commit, path, entry)
        return b"".join([block async for block in self._blob(path, entry)]) if content is None else content

    async def _archived(self, commit: _Commit, path: Path, entry: GitEntry) -> bytes | None:
        """A content out of the tarball, once enough files were read for one to be worth it."""
        commit.reads += 1
        loop = asyncio.get_running_loop()
        if loop not in commit.archives:
            if commit.reads <= ARCHIVE_AFTER or not commit.whole or commit.total > ARCHIVE_MOST:
                return None
            commit.archives[loop] = asyncio.ensure_future(self._fetch(commit, path))
        archive = await asyncio.shield(commit.archives[loop])
        return None if archive is None else archive.read(path[1:], entry.sha)

    async def _fetch(self, commit: _Commit, path: Path) -> GitArchive | None:
        files = sum(len(entries) for entries in commit.directories.values())
        most = commit.total + (files + 16) * OVERHEAD
        try:
            blocks = self._rest.stream(f"{self._repository}/tarball/{commit.sha}", path=path)
            return await GitArchive.load(blocks, path, most)
        except OSError:
            return None  # every content can be had as a blob, which then reports the error

    # ---------------------------------------------------------------------------------------------- writing

    async def _on_branch(self, path: Path) -> str:
        """The branch that commits go to."""
        if self._ref is not None and (_SHA.fullmatch(self._ref) or self._ref.startswith("refs/tags/")):
            raise fail(errno.EROFS, path, f"Read-only file system: {self._ref} is not a branch; set ref to one")
        if self._ref is not None:
            return self._ref.removeprefix("refs/heads/")
        if self._branch is None:
            answer = await self._rest.get(self._repository, path=path, missing=self._missing)
            self._branch = str(answer.json()["default_branch"])
        return self._branch

    async def write(
        self, path: Path, data: Data, how: How = How.REPLACE, *, at: int = 0, if_version: str | None = None
    ) -> Stat:
        if how not in (How.REPLACE, How.CREATE, How.APPEND):
            raise fail(errno.ENOTSUP, path)
        content = await bounded(data, path)
        for attempt in (1, 2):
            found = await self._find(path)
            if found is not None and how is How.CREATE:
                raise fail(errno.EEXIST, path)
            if found is not None and found.kind is not Kind.FILE:
                raise fail(errno.EISDIR if found.kind is Kind.DIR else errno.ELOOP, path)
            if if_version is not None and (found is None or found.sha != if_version):
                raise fail(errno.ESTALE, path)
            if how is How.APPEND and found is not None:
                content = await self._content(await self._now(path), path, found) + content
            await self._check_parents(path)
            try:
                sha = await self._put(path, content, None if found is None else found.sha)
                break
            except OSError as error:
                # What is replaced unconditionally may have changed since it was looked at.
                self.forget()
                if error.errno == errno.ESTALE and if_version is None and how is How.CREATE:
                    raise fail(errno.EEXIST, path) from None
                if error.errno != errno.ESTALE or if_version is not None or how is not How.REPLACE or attempt == 2:
                    raise
        self._empty = {made for made in self._empty if not path.under(made)}
        self.forget()
        return Stat(Kind.FILE, len(content), None, sha, self._ttl)

    async def _find(self, path: Path) -> GitEntry | None:
        if path == ROOT or self._is_empty(path):
            raise fail(errno.EISDIR, path)
        try:
            return await self._entry(await self._now(path), path)
        except FileNotFoundError:
            return None

    async def _check_parents(self, path: Path) -> None:
        """A directory must be there before its files, as everywhere, though git would not need it."""
        if path.parent != ROOT and not (await self.stat(path.parent)).is_dir:
            raise fail(errno.ENOTDIR, path)

    async def _put(self, path: Path, content: bytes, sha: str | None) -> str:
        body: dict[str, str] = {
            "message": f"Write {path[1:]}", "branch": await self._on_branch(path),
            "content": base64.b64encode(content).decode(),
        }  # fmt: skip
        if sha is not None:
            body["sha"] = sha
        address = f"{self._repository}/contents/{quote(encode(path[1:]), safe='/')}"
        answer = await self._rest.send("PUT", address, path=path, json_body=body)
        return str(answer.json()["content"]["sha"])

    async def mkdir(self, path: Path) -> None:
        if path == ROOT or self._is_empty(path) or await self._find(path) is not None:
            raise fail(errno.EEXIST, path)
        await self._check_parents(path)
        self._empty.add(path)

    async def remove(self, path: Path) -> None:
        if path == ROOT:
            raise fail(errno.EBUSY, path)
        commit = await self._now(path)
        try:
            entry = await self._entry(commit, path)
        except FileNotFoundError:
            if path not in self._empty:
                raise fail(errno.ENOTEMPTY if self._is_empty(path) else errno.ENOENT, path) from None
            if any(made != path and made.under(path) for made in self._empty):
                raise fail(errno.ENOTEMPTY, path) from None
            self._empty.discard(path)
            return
        if entry.kind is Kind.DIR:
            raise fail(errno.ENOTEMPTY, path)
        body = {"message": f"Remove {path[1:]}", "branch": await self._on_branch(path), "sha": entry.sha}
        address = f"{self._repository}/contents/{quote(encode(path[1:]), safe='/')}"
        try:
            await self._rest.send("DELETE", address, path=path, json_body=body)
        finally:
            self.forget()
        self._keep_directory(commit, path)

    def _keep_directory(self, commit: _Commit, path: Path) -> None:
        """The last file of a directory leaves it empty, not gone."""
        above = path.parent
        if above != ROOT and set(commit.directories.get(above, ())) == {path.name}:
            self._empty.add(above)

    async def rename(self, src: Path, dst: Path) -> None:
        commit = await self._now(src)
        entry = GitEntry("040000", "", None) if self._is_empty(src) else await self._entry(commit, src)
        if src == dst:
            return
        if dst.under(src):
            raise fail(errno.EINVAL, dst)
        await self._check_parents(dst)
        there = None if not self._is_empty(dst) else GitEntry("040000", "", None)
        there = there or await self._find(dst)
        if there is not None and (there.kind is Kind.DIR) != (entry.kind is Kind.DIR):
            raise fail(errno.EISDIR if there.kind is Kind.DIR else errno.ENOTDIR, dst)
        if there is not None and there.kind is Kind.DIR and dst not in self._empty:
            raise fail(errno.ENOTEMPTY, dst)
        moved = await self._files(commit, src, entry)
        tree = [_node(path, found, None) for path, found in moved]
        tree += [_node(path.below(src).onto(dst), found, found.sha) for path, found in moved]
        if tree:
            await self._commit_tree(tree, f"Rename {src[1:]} to {dst[1:]}", commit.sha, src)
        self._empty = {made.below(src).onto(dst) if made.under(src) else made for made in self._empty}
        if moved:
            self._empty.discard(dst)
        self._keep_directory(commit, src)

    async def _files(self, commit: _Commit, path: Path, entry: GitEntry) -> list[tuple[Path, GitEntry]]:
        if entry.kind is not Kind.DIR or entry.mode == "160000":
            return [(path, entry)]
        if not entry.sha:
            return []
        found: list[tuple[Path, GitEntry]] = []
        for name, below in (await self._directory(commit, path)).items():
            found += await self._files(commit, path / name, below)
        return found

    async def copy(self, src: Path, dst: Path) -> None:
        raise fail(errno.ENOTSUP, dst)

    async def setattr(self, path: Path, attrs: Attrs) -> None:
        await self.stat(path)
        raise fail(errno.ENOTSUP, path)

    async def apply(self, edits: Sequence[Edit]) -> None:
        """Make one commit of all edits; ESTALE if one of them replaces another version than it names."""
        for edit in edits:
            await bounded(edit.content or b"", edit.path)
        self.forget()
        commit = await self._now(edits[0].path)
        tree: list[dict[str, Any]] = []
        for edit in edits:
            found = await self._find(edit.path)
            if edit.version is not None and (found is None or found.sha != edit.version):
                raise fail(errno.ESTALE, edit.path)
            if edit.content is None:
                if found is not None:
                    tree.append(_node(edit.path, found, None))
                continue
            entry = found or GitEntry("100644", "", None)
            if blob_id(edit.content) != entry.sha:
                tree.append(await self._new_node(edit.path, entry, edit.content))
        if tree:
            message = f"Write {edits[0].path[1:]}" if len(edits) == 1 else f"Change {len(edits)} files"
            await self._commit_tree(tree, message, commit.sha, edits[0].path)

    async def _new_node(self, path: Path, entry: GitEntry, content: bytes) -> dict[str, Any]:
        if len(content) > (1 << 20):
            return _node(path, entry, await self._upload(path, content))
        try:
            text = content.decode()
        except UnicodeDecodeError:
            return _node(path, entry, await self._upload(path, content))
        return {"path": path[1:], "mode": entry.mode, "type": "blob", "content": text}

    async def _upload(self, path: Path, content: bytes) -> str:
        body = {"content": base64.b64encode(content).decode(), "encoding": "base64"}
        # A blob that no tree names changes nothing, so it may be sent again.
        address = f"{self._repository}/git/blobs"
        answer = await self._rest.send("POST", address, path=path, json_body=body, repeatable=True)
        return str(answer.json()["sha"])

    async def _commit_tree(self, tree: list[dict[str, Any]], message: str, parent: str, path: Path) -> None:
        branch = await self._on_branch(path)
        made = await self._rest.send(
            "POST", f"{self._repository}/git/trees", path=path, json_body={"base_tree": parent, "tree": tree},
            repeatable=True,
        )  # fmt: skip
        body = {"message": message, "tree": made.json()["sha"], "parents": [parent]}
        commit = await self._rest.send(
            "POST", f"{self._repository}/git/commits", path=path, json_body=body, repeatable=True
        )
        try:
            # Only this request changes the branch, and it does so only from the commit that was looked at.
            await self._rest.send(
                "PATCH", f"{self._repository}/git/refs/heads/{quote(branch, safe='/')}", path=path,
                json_body={"sha": commit.json()["sha"], "force": False}, repeatable=True,
            )  # fmt: skip
        finally:
            self.forget()

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


def _node(path: Path, entry: GitEntry, sha: str | None) -> dict[str, Any]:
    """A file of a new tree; without a sha it is removed."""
    return {"path": path[1:], "mode": entry.mode, "type": "commit" if entry.mode == "160000" else "blob", "sha": sha}
