"""Clone a manifest's git repository with the host's git and copy its files into the sandbox.

Git ignores the user's configuration, runs no hook, and never prompts for a password.
"""

from __future__ import annotations

import asyncio
import os
import pathlib
import shutil
import tempfile
from typing import Any, Final

from agents.sandbox.errors import GitCloneError, GitCopyError, GitMissingInImageError

from ramet.backends.local.disk import DiskResource
from ramet.core import ops
from ramet.core.paths import ROOT, Path
from ramet.core.resource import How
from ramet.core.stat import Attrs, Kind
from ramet.vfs.vfs import VFS

PROTOCOLS: Final = "https"


def url_of(entry: Any) -> str:
    return f"https://{entry.host}/{entry.repo}.git"


async def fetch_repository(fs: VFS, entry: Any, dest: Path) -> None:
    """Clone a GitRepo entry to `dest`; `.git` is included if the whole repository is wanted."""
    below = entry._validate_subpath()
    git = shutil.which("git")
    if git is None:
        raise GitMissingInImageError(context={"repo": entry.repo, "ref": entry.ref})
    with tempfile.TemporaryDirectory(prefix="ramet-git-") as home:
        clone = os.path.join(home, "clone")
        url = url_of(entry)
        said = await _clone(git, home, clone, url, entry)
        if said is not None:
            raise GitCloneError(
                url=url, ref=entry.ref, stderr=said, context={"repo": entry.repo, "subpath": entry.subpath}
            )
        source = clone if below is None else os.path.join(clone, below.as_posix())
        if not _is_inside(source, clone):
            raise GitCopyError(
                src_root=source,
                dest=pathlib.Path(str(dest)),
                stderr="no such directory in the repository",
                context={"repo": entry.repo, "ref": entry.ref, "subpath": entry.subpath},
            )
        await copy_in(DiskResource(source), fs, dest)


def _is_inside(source: str, clone: str) -> bool:
    """Return whether this is a directory inside the clone; a link in the repository may lead outside."""
    real, top = os.path.realpath(source), os.path.realpath(clone)
    return os.path.isdir(real) and (real == top or real.startswith(top + os.sep))


async def _clone(git: str, home: str, clone: str, url: str, entry: Any) -> str | None:
    """Run git; return None, or its error output."""
    named: list[tuple[str, ...]] = [
        ("clone", "--quiet", "--depth", "1", "--no-tags", "--branch", entry.ref, "--", url, clone)
    ]
    fetched: list[tuple[str, ...]] = [
        ("init", "--quiet", clone),
        ("-C", clone, "remote", "add", "origin", url),
        ("-C", clone, "fetch", "--quiet", "--depth", "1", "--no-tags", "origin", entry.ref),
        ("-C", clone, "checkout", "--quiet", "--detach", "FETCH_HEAD"),
    ]
    ways = [fetched, named] if entry._looks_like_commit_ref(entry.ref) else [named]
    first: str | None = None
    for way in ways:
        shutil.rmtree(clone, ignore_errors=True)
        said = None
        for words in way:
            said = await _git(git, home, *words)
            if said is not None:
                break
        if said is None:
            return None
        first = first or said
    return first


async def _git(git: str, home: str, *words: str) -> str | None:
    process = await asyncio.create_subprocess_exec(
        git, *words, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env={
            "PATH": os.environ.get("PATH", os.defpath), "HOME": home, "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C",
            "GIT_CONFIG_GLOBAL": os.devnull, "GIT_TEMPLATE_DIR": "", "GIT_TERMINAL_PROMPT": "0",
            "GIT_ALLOW_PROTOCOL": PROTOCOLS,
        },
    )  # fmt: skip
    try:
        _, said = await process.communicate()
    except BaseException:
        if process.returncode is None:
            process.kill()
            await process.wait()
        raise
    return said.decode("utf-8", "replace") or f"git ended with {process.returncode}" if process.returncode else None


async def copy_in(source: DiskResource, fs: VFS, dest: Path) -> None:
    """Copy a host directory to `dest`; links stay links."""
    await ops.make_dirs(fs, dest)
    async for path, stat in ops.walk(source, ROOT):
        target = dest
        for part in path[1:].split("/"):
            target = target / part
        if stat.kind is Kind.DIR:
            await ops.make_dirs(fs, target)
        elif stat.kind is Kind.LINK:
            await fs.write(target, (stat.target or "").encode("utf-8", "surrogateescape"), How.LINK)
        elif stat.kind is Kind.FILE:
            await fs.write(target, await ops.read_bytes(source, path), How.REPLACE)
            if stat.mode is not None and stat.mode & 0o111:
                await fs.setattr(target, Attrs(mode=stat.mode & 0o777))
