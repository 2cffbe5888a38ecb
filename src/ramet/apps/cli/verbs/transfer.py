"""Verbs that move revisions in and out: checkout, snapshot, export, import."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

from ramet.apps.cli.addresses import split_name
from ramet.apps.cli.options import AsJson, Message, Name, Quiet, Where
from ramet.apps.cli.output import plural, revision_row, say
from ramet.apps.cli.parameters import Argument, Option
from ramet.apps.cli.progress import progress_bar
from ramet.apps.cli.stores import HOME, any_store
from ramet.core.errors import RametError

Compress = Annotated[str | None, Option(help="gz, bz2 or xz.")]


def checkout(
    name: Name,
    target: Annotated[str, Argument(help="Directory to write; becomes equal to the tree.")],
    store: Where = HOME,
    prefix: Annotated[str | None, Option(help="Write only this mount. Default: all mounts.")] = None,
    replace: Annotated[
        bool, Option("--replace", help="Replace the directory's content: files not in the revision are removed.")
    ] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write a revision to a directory on disk.
    With --replace, write only differences and remove files that are not in the revision.
    """
    where, revision = split_name(name)
    place = Path(target).expanduser()
    if not replace and place.is_dir() and any(place.iterdir()):
        raise RametError(
            "already_exists", f"cannot check out to {target}: not empty",
            "use an empty directory, or pass --replace to remove files that are not in the revision",
        )  # fmt: skip
    with progress_bar(quiet) as progress:
        receipt = any_store(store)[where].checkout(str(place), revision, prefix, progress=progress)
    told = {"written": receipt.written, "kept": receipt.kept, "removed": receipt.removed}
    text = ", ".join(f"{number} {what}" for what, number in told.items())
    tree = receipt.tree.hex()
    left_out = list(receipt.left_out)
    shown = {**told, "tree": tree, "problems": receipt.problems, "left_out": left_out}
    say(shown, f"{text}; tree {tree[:12]}", as_json)
    for mount in left_out:
        print(f"left out: {mount} (a remote mount, whose files are not in the store)", file=sys.stderr)


def snapshot(
    name: Name,
    target: Annotated[str, Argument(help="Tar file to write; `-` is standard output.")],
    store: Where = HOME,
    compress: Compress = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Write a workspace to a snapshot tar."""
    with progress_bar(quiet) as progress:
        where, revision = split_name(name)
        sink = sys.stdout.buffer if target == "-" else target
        any_store(store)[where].export(sink, revision, compress=compress, progress=progress)
    if as_json and target != "-":
        say({"workspace": where, "file": target}, "", True)


def export(
    name: Name,
    target: Annotated[str, Argument(help="File or directory to write; `-` is standard output.")],
    store: Where = HOME,
    tar: Annotated[bool, Option("--tar", help="Write a plain tar of the files.")] = False,
    git: Annotated[bool, Option("--git", help="Write the whole history as a git repository.")] = False,
    git_stream: Annotated[bool, Option("--git-stream", help="Write the history for `git fast-import`.")] = False,
    compress: Compress = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Write a revision as a snapshot tar (or with --tar a plain one), or the history as git."""
    from ramet.store.checkout.whole_tree import mounts_without_content

    left_out: list[str] = []
    shown: dict[str, object] = {"file": target}
    text = ""
    with progress_bar(quiet) as progress:
        where, revision = split_name(name)
        handle = any_store(store)[where]
        if git + git_stream + tar > 1 or ((git or git_stream) and (revision or compress)):
            raise RametError("invalid_argument", "--tar, --git and --git-stream exclude each other", "pass one of them")
        if git:
            done = handle.export_git(target, progress=progress)
            counts = {"commit": done.commits, "blob": done.blobs, "tag": done.tags}
            text = f"{', '.join(plural(n, what) for what, n in counts.items())} on branch {done.branch}"
            shown |= {"branch": done.branch, **{f"{what}s": number for what, number in counts.items()}}
            left_out = list(done.left_out)
        elif git_stream:
            with nullcontext(sys.stdout.buffer) if target == "-" else open(target, "wb") as file:
                for piece in handle.git_stream(progress=progress):
                    file.write(piece)
        else:
            sink = sys.stdout.buffer if target == "-" else target
            kind = "tar" if tar else "snapshot"
            written = handle.export(sink, revision, kind=kind, compress=compress, progress=progress)
            remote = " (a remote mount, whose files are not in the store)"
            left_out = [mount + remote for mount in mounts_without_content(written)] if tar else []
    for path in left_out:
        print(f"left out: {path}", file=sys.stderr)
    if target != "-" and (text or as_json):
        say({**shown, "left_out": left_out}, text, as_json)


def import_archive(
    name: Annotated[str, Argument(help="Name of the workspace; created if it does not exist.")],
    source: Annotated[str, Argument(help="Snapshot or any other tar; `-` is standard input.")],
    store: Where = HOME,
    prefix: Annotated[str, Option(help="Mount that a plain tar replaces.")] = "/",
    kind: Annotated[str | None, Option(help="snapshot or tar. Default: detected.")] = None,
    message: Message = "",
    author: Annotated[str, Option(help="Author of the revision.")] = "",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Import a snapshot tar, or any other tar, as a revision."""
    with progress_bar(quiet) as progress:
        if source != "-" and not Path(source).expanduser().exists():
            raise RametError(
                "not_found", f"cannot open {source}: no such file", "name an existing tar, or - for standard input"
            )
        given = sys.stdin.buffer if source == "-" else str(Path(source).expanduser())
        done = any_store(store).import_archive(
            name, given, prefix=prefix, kind=kind, message=message, author=author, progress=progress
        )
        say({**revision_row(done.revision), "left_out": list(done.left_out)}, done.revision.name, as_json)
        for text in done.left_out:
            print(f"left out: {text}", file=sys.stderr)
