"""Verbs that carry revisions in and out, and that look after the store."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import Annotated

import typer

from ramet.apps.cli.shared import HOME, AsJson, Name, Quiet, Where, anywhere, reported, show, split, watched
from ramet.core.errors import RametError

Compress = Annotated[str | None, typer.Option(help="gz, bz2 or xz.")]


def checkout(
    name: Name,
    target: Annotated[str, typer.Argument(help="Directory that is made equal to the tree.")],
    store: Where = HOME,
    prefix: Annotated[str, typer.Option(help="Mount to take.")] = "/",
    quiet: Quiet = False,
) -> None:
    """Write a revision to a real directory: only what differs is written, what must not be there is removed."""
    with reported():
        where, revision = split(name)
        with watched(quiet) as progress:
            receipt = anywhere(store)[where].checkout(target, revision, prefix, progress=progress)
        print(
            f"{receipt.written} written, {receipt.kept} kept, {receipt.removed} removed; tree {receipt.tree.hex()[:12]}"
        )


def snapshot(
    name: Name,
    target: Annotated[str, typer.Argument(help="Tar to write.")],
    store: Where = HOME,
    compress: Compress = None,
    quiet: Quiet = False,
) -> None:
    """Write a workspace to a snapshot tar."""
    with reported(), watched(quiet) as progress:
        where, revision = split(name)
        anywhere(store)[where].export(target, revision, compress=compress, progress=progress)


def export(
    name: Name,
    target: Annotated[str, typer.Argument(help="What to write; `-` is the standard output.")],
    store: Where = HOME,
    tar: Annotated[bool, typer.Option("--tar", help="A plain tar of the files.")] = False,
    git: Annotated[bool, typer.Option("--git", help="The whole history as a git repository.")] = False,
    git_stream: Annotated[bool, typer.Option("--git-stream", help="The history for `git fast-import`.")] = False,
    compress: Compress = None,
    quiet: Quiet = False,
) -> None:
    """Write a revision as a snapshot tar (or with --tar a plain one), or the history as git."""
    with reported(), watched(quiet) as progress:
        where, revision = split(name)
        handle = anywhere(store)[where]
        if git + git_stream + tar > 1 or ((git or git_stream) and (revision or compress)):
            raise RametError("invalid_argument", "these options do not go together", "see `ramet export --help`")
        if git:
            done = handle.export_git(target, progress=progress)
            print(f"{done.commits} commits, {done.blobs} blobs, {done.tags} tags on branch {done.branch}")
            for path in done.left_out:
                print(f"left out: {path}", file=sys.stderr)
        elif git_stream:
            with nullcontext(sys.stdout.buffer) if target == "-" else open(target, "wb") as file:
                for piece in handle.git_stream(progress=progress):
                    file.write(piece)
        else:
            sink = sys.stdout.buffer if target == "-" else target
            kind = "tar" if tar else "snapshot"
            handle.export(sink, revision, kind=kind, compress=compress, progress=progress)


def import_archive(
    name: Annotated[str, typer.Argument(help="Name of the workspace; created if it does not exist.")],
    source: Annotated[str, typer.Argument(help="Snapshot or any other tar; `-` is the standard input.")],
    store: Where = HOME,
    prefix: Annotated[str, typer.Option(help="Mount that a plain tar replaces.")] = "/",
    kind: Annotated[str | None, typer.Option(help="snapshot or tar; found out when left out.")] = None,
    message: Annotated[str, typer.Option("--message", "-m", help="Message of the revision.")] = "",
    author: Annotated[str, typer.Option(help="Author of the revision.")] = "",
    quiet: Quiet = False,
) -> None:
    """Make a revision of a snapshot tar or of any other tar."""
    with reported(), watched(quiet) as progress:
        options = {"prefix": prefix, "kind": kind, "message": message, "author": author, "progress": progress}
        done = anywhere(store).import_archive(name, sys.stdin.buffer if source == "-" else source, **options)
        print(done.revision.name)
        for text in done.left_out:
            print(f"left out: {text}", file=sys.stderr)


def verify(store: Where = HOME, as_json: AsJson = False, quiet: Quiet = False) -> None:
    """Read everything in the store, check every digest and reference, and say whom each damage affects."""
    with reported():
        with watched(quiet) as progress:
            report = anywhere(store).verify(progress)
        if as_json:
            show([damage.__dict__ for damage in report.damages], (), True)
        else:
            print(f"{report.packs} packs, {report.objects} objects, {report.revisions} revisions")
            for damage in report.damages:
                print(f"damaged: {damage}", file=sys.stderr)
        if not report.ok:
            raise typer.Exit(1)


def repair(
    store: Where = HOME,
    drop: Annotated[bool, typer.Option("--drop", help="Forget what is lost: heads go back, tags go.")] = False,
    quiet: Quiet = False,
) -> None:
    """Bring back what can be had from other copies and report what is lost."""
    with reported():
        with watched(quiet) as progress:
            done = anywhere(store).repair(drop=drop, progress=progress)
        print(f"{done.salvaged} objects salvaged, {len(done.rebuilt)} indexes made again, {len(done.moved)} set aside")
        for name, head in done.heads.items():
            print(f"{name} is now at {head or 'nothing'}")
        for name in done.tags:
            print(f"tag {name} is gone")
        for damage in done.lost:
            print(f"lost: {damage}", file=sys.stderr)
        if not done.ok:
            raise typer.Exit(1)
