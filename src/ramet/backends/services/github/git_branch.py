"""`GitBranch`: the files of a branch, which can be written: each write is a commit.

Rules that this file keeps:
- A commit is conditional on the blobs that it replaces; `apply` makes one commit of many edits.
- Only the last request of a commit changes the branch, and only from the commit that was looked at.
"""

from __future__ import annotations

import base64
import errno
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from ramet.backends.services.contents import bounded
from ramet.backends.services.github.git_archive import blob_id
from ramet.backends.services.github.git_tree import SHA, Commit, GitEntry, GitTree
from ramet.backends.services.rest import Rest
from ramet.core.errors import fail
from ramet.core.paths import ROOT, Path, encode
from ramet.core.resource import Cap, Data, Edit, How
from ramet.core.stat import Attrs, Kind, Stat


class GitBranch(GitTree):
    caps = Cap.WRITE | Cap.CREATE | Cap.RENAME | Cap.PRECONDITIONS | Cap.VERSIONS

    def __init__(self, rest: Rest, repository: str, ref: str | None, ttl: float) -> None:
        super().__init__(rest, repository, ref, ttl)
        self._branch: str | None = None

    async def _on_branch(self, path: Path) -> str:
        """The branch that commits go to."""
        if self._ref is not None and (SHA.fullmatch(self._ref) or self._ref.startswith("refs/tags/")):
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

    def _keep_directory(self, commit: Commit, path: Path) -> None:
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

    async def _files(self, commit: Commit, path: Path, entry: GitEntry) -> list[tuple[Path, GitEntry]]:
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


def _node(path: Path, entry: GitEntry, sha: str | None) -> dict[str, Any]:
    """A file of a new tree; without a sha it is removed."""
    return {"path": path[1:], "mode": entry.mode, "type": "commit" if entry.mode == "160000" else "blob", "sha": sha}
