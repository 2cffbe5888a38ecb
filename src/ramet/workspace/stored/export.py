"""Export a revision as a snapshot tar or plain tar, or a history as a git repository.

Content streams from the store to the target; only names are in memory. Equal revisions give equal bytes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import IO, Any

from ramet.core.errors import RametError
from ramet.core.paths import decode as decode_name
from ramet.core.paths import parse
from ramet.core.progress import Progress, silent
from ramet.store.checkout.walk import walk, walk_tree
from ramet.store.commit.kernel_state import kernel_of
from ramet.store.model.revisions import MountState, Revision
from ramet.store.model.trees import DIR, LINK, Node, split_group
from ramet.store.repository import Repository
from ramet.store.verbs.git_export import GitExport, branch_name, fast_import
from ramet.workspace.snapshot.archive import VERSION, Blob, Target, open_target, split_manifest_and_blobs, write_tar
from ramet.workspace.snapshot.resource_codec import leads_out
from ramet.workspace.snapshot.state import FORMAT
from ramet.workspace.snapshot.tar import TarWriter


def export_snapshot(
    repository: Repository,
    revision: Revision,
    target: Target,
    compress: str | None = None,
    progress: Progress = silent,
    latest: Revision | None = None,
) -> None:
    """Write a revision as a snapshot, for `Workspace.load` and `import`; with the history of `latest`, if given."""
    kernel = kernel_of(repository.packs, revision if latest is None else latest)
    kernel.pop("mounts", None)
    counted = _ProgressCounter(progress)
    state = {
        "format": FORMAT,
        "version": VERSION,
        "created_at": revision.time,
        "mounts": [_mount(repository, mount, counted) for mount in revision.mounts],
        "sessions": [], "max_drain_bytes": 0, "dirty_inodes": [], "history": {"records": []}, "jobs": [],
        "left_out": [], **kernel, "cache": {"entries": []},
    }  # fmt: skip
    write_tar(target, split_manifest_and_blobs(state), compress)
    counted.end()


class _ProgressCounter:
    """Reports progress in files as their content is read."""

    def __init__(self, progress: Progress) -> None:
        self._progress, self.total, self.done = progress, 0, 0

    def blocks(self, repository: Repository, node: Node) -> Callable[[], Iterator[bytes]]:
        self.total += 1

        def run() -> Iterator[bytes]:
            self.count()
            yield from repository.packs.stream(node.chunks)

        return run

    def count(self) -> None:
        if self.done % 256 == 0:
            self._progress("files", self.done, self.total or None)
        self.done += 1

    def end(self) -> None:
        self._progress("files", self.done, self.done)


def _mount(repository: Repository, mount: MountState, counted: _ProgressCounter) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "prefix": mount.prefix, "mode": mount.mode, "scratch": mount.scratch, "type": mount.type,
        "needs_override": mount.needs_override, "redacted_fields": list(mount.redacted_fields),
        "config": dict(mount.config),
    }  # fmt: skip
    if mount.tree is None:
        return plain
    files: dict[str, Blob] = {}
    dirs: list[str] = []
    links: dict[str, str] = {}
    same: dict[str, str] = {}
    attrs: dict[str, list[int]] = {}
    link_times: dict[str, int] = {}
    first: dict[int, str] = {}
    disk = mount.type == "disk"
    shown: tuple[list[tuple[str, int, int]], list[tuple[str, str, int]]] = ([], [])
    for path, node in walk_tree(repository.packs.read, mount.tree):
        if node.kind == LINK:
            links[path], link_times[path] = decode_name(node.payload), node.mtime_ns
            if disk and not leads_out(parse(path), links[path]):
                shown[1].append((path[1:], links[path], node.mtime_ns))
            continue
        attrs[path] = [node.mode, node.mtime_ns]
        if node.kind == DIR:
            dirs.append(path)
            shown[0].append((path[1:], node.mode, node.mtime_ns))
            continue
        group = split_group(node.group)[0]
        if group and group in first and not disk:
            same[path] = first[group]
            continue
        first.setdefault(group, path)
        name = path[1:] if disk else None
        files[path] = Blob(node.size, counted.blocks(repository, node), name, node.mode, node.mtime_ns)
    plain.update(files=files, dirs=dirs, links=links, attrs=attrs, link_times=link_times)
    if disk:
        plain.update(__directories=shown[0], __links=shown[1])
    else:
        plain.update(hardlinks=same, config={"quota": None, **plain["config"]})
    return plain


def export_tar(
    repository: Repository, revision: Revision, target: Target, compress: str | None = None, progress: Progress = silent
) -> None:
    """Write the files of a revision as a plain tar: modes, exact times, links, hard links and empty directories."""
    with open_target(target, compress) as sink:
        write_files(repository, revision, sink, progress)


def write_files(repository: Repository, revision: Revision, sink: IO[bytes], progress: Progress = silent) -> None:
    tar = TarWriter(sink)
    counted = _ProgressCounter(progress)
    first: dict[tuple[str, int], str] = {}
    made: set[str] = set()
    prefixes = sorted((mount.prefix for mount in revision.mounts if mount.tree is not None), key=len, reverse=True)
    for path, node in walk(repository.packs.read, revision):
        counted.count()
        name = path[1:]
        prefix = next(prefix for prefix in prefixes if path.startswith(prefix.rstrip("/") + "/"))
        _lead_to(prefix, made, tar)
        if node.kind == DIR:
            if path in made:
                continue
            made.add(path)
        if node.mtime_ns % 1_000_000_000 or node.mtime_ns < 0:
            tar.exact_time(node.mtime_ns)
        if node.kind == DIR:
            tar.directory(name, mode=node.mode, mtime_ns=node.mtime_ns)
        elif node.kind == LINK:
            tar.link(name, decode_name(node.payload), mtime_ns=node.mtime_ns)
        else:
            group = (prefix, split_group(node.group)[0])
            if group[1] and group in first:
                tar.hard_link(name, first[group], mode=node.mode, mtime_ns=node.mtime_ns)
                continue
            first.setdefault(group, name)
            blocks = repository.packs.stream(node.chunks)
            tar.file(name, node.size, blocks, mode=node.mode, mtime_ns=node.mtime_ns)
    tar.close()
    counted.end()


def _lead_to(prefix: str, made: set[str], tar: TarWriter) -> None:
    """Write the parent directories of a mount, which are in no tree."""
    parts = prefix.strip("/").split("/") if prefix != "/" else []
    for number in range(1, len(parts) + 1):
        path = "/" + "/".join(parts[:number])
        if path not in made:
            made.add(path)
            tar.directory(path[1:])


def export_git(repository: Repository, name: str, target: str, progress: Progress = silent) -> GitExport:
    """Write the whole history as a git repository in a new directory (bare when its name ends in `.git`)."""
    done = GitExport(branch_name(name))
    write_git(target, done, fast_import(repository, name, done, progress))
    return done


def write_git(target: str, done: GitExport, pieces: Iterator[bytes]) -> None:
    """Create a git repository from a `git fast-import` stream; `done` is updated on the way."""
    git = shutil.which("git")
    if git is None:
        raise RametError("unsupported", "git is not installed", "install it, or write the fast-import stream instead")
    if os.path.isdir(target) and os.listdir(target):
        raise RametError("already_exists", f"{target} is not empty", "name a directory that does not exist yet")
    bare = target.rstrip("/").endswith(".git")
    with tempfile.TemporaryDirectory(prefix="ramet-git-") as home:
        # The user's git configuration and hooks must not affect the output.
        quiet = {
            "PATH": os.environ.get("PATH", ""), "HOME": home, "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C",
            "GIT_CONFIG_GLOBAL": os.devnull, "GIT_TEMPLATE_DIR": "",
        }  # fmt: skip
        options = ["--bare"] if bare else []
        _git(quiet, git, "init", "--quiet", f"--initial-branch={done.branch}", *options, target)
        feed_git(quiet, git, target, pieces)
        if not bare and done.commits:
            _git(quiet, git, "-C", target, "reset", "--quiet", "--hard")


def feed_git(env: dict[str, str], git: str, target: str, pieces: Iterator[bytes]) -> None:
    """Run `git fast-import` on a stream."""
    process = subprocess.Popen(
        [git, "-C", target, "fast-import", "--quiet", "--done"], stdin=subprocess.PIPE, stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL, env=env,
    )  # fmt: skip
    assert process.stdin is not None and process.stderr is not None
    try:
        for piece in pieces:
            process.stdin.write(piece)
    except BrokenPipeError:
        pass  # stderr has the reason
    except BaseException:
        process.kill()
        raise
    finally:
        with suppress(BrokenPipeError):
            process.stdin.close()
        said = process.stderr.read()
        process.stderr.close()
        status = process.wait()
    if status:
        raise RametError(
            "unsupported", f"git refused the history: {_last_line(said)}", "see left_out, or export a tar instead"
        )


def _git(env: dict[str, str], *words: str) -> None:
    done = subprocess.run(words, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    if done.returncode:
        raise RametError("unsupported", f"git failed: {_last_line(done.stderr)}", "check that the target is writable")


def _last_line(said: bytes) -> str:
    lines = said.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else "no message"
