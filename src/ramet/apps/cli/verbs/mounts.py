"""Verbs about where the files of a workspace are: what is mounted, and a real directory while a program runs."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ramet.apps.cli.options import HOME, Name, Quiet, Where, opened, reported, split, watched
from ramet.apps.cli.verbs.exec import SERVERS, connected
from ramet.core.errors import RametError

if TYPE_CHECKING:
    from ramet.workspace.stored.store import WorkspaceOpener

Prefix = Annotated[str, typer.Argument(help="Where in the workspace, as in /data.")]
Message = Annotated[str, typer.Option("--message", "-m", help="Message of the revision.")]


def mount(
    name: Name,
    prefix: Prefix,
    folder: Annotated[str | None, typer.Argument(help="Directory whose content it gets; empty when left out.")] = None,
    store: Where = HOME,
    mode: Annotated[
        str, typer.Option(help="`write`, or `read` for what nothing in the workspace may change.")
    ] = "write",
    message: Message = "",
    quiet: Quiet = False,
) -> None:
    """Add a mount to a workspace: empty, or with the content that a directory has now.
    The content is in the store from then on. What is to stay elsewhere is described in a file: `ramet config init`.
    """

    async def there() -> str:
        async with connected(store).open(_named(name)) as ws:
            await ws.mount(prefix, mode=mode)
            return (await ws.commit(message or f"mount {prefix}")).name

    async def act() -> str:
        from ramet.backends.local.disk import DiskResource
        from ramet.backends.local.ram import RAMResource

        async with opened(store).open(_named(name), commit="never") as ws:
            ws.mount(prefix, RAMResource() if folder is None else DiskResource(folder), mode)
            with watched(quiet) as progress:
                return (await ws.commit(message or f"mount {prefix}", progress=progress)).name

    with reported():
        if not prefix.startswith("/"):
            raise RametError("invalid_argument", f"{prefix!r} is no place in a workspace", f"write /{prefix}")
        if mode not in ("read", "write"):
            raise RametError("invalid_argument", f"a mount cannot be {mode!r}", "give --mode read or --mode write")
        if folder is not None and not Path(folder).is_dir():
            raise RametError("not_found", f"{folder} is no directory", "give one, or leave it out")
        if not store.startswith(SERVERS):
            print(asyncio.run(act()))
        elif folder is None:
            print(asyncio.run(there()))
        else:
            print(_sent(store, _named(name), prefix, folder, mode, message, quiet))


def _sent(store: str, name: str, prefix: str, folder: str, mode: str, message: str, quiet: bool) -> str:
    """A directory of this machine as a mount of a workspace on a server: what a commit would take, as a tar."""
    import tarfile
    import tempfile

    from ramet.store.commit.ignore_rules import DEFAULT_RULES

    if mode != "write":
        raise RametError("unsupported", "a server cannot make it read-only", "leave --mode out")
    handle = connected(store)[name]
    if any(one.prefix == prefix.rstrip("/") for one in handle.mounts()):
        raise RametError("already_exists", f"something is mounted at {prefix}", "umount it first")
    with tempfile.TemporaryFile(prefix="ramet-mount-") as file, watched(quiet) as progress:
        with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for top, folders, files in os.walk(folder):
                left_out = DEFAULT_RULES.matching(os.path.basename(top), [*folders, *files])
                folders[:] = sorted(set(folders) - left_out)
                for one in sorted({*folders, *files} - left_out):
                    place = os.path.join(top, one)
                    tar.add(place, os.path.relpath(place, folder), recursive=False)
        file.seek(0)
        made = handle.import_archive(
            file, prefix=prefix, kind="tar", message=message or f"mount {prefix}", progress=progress
        )  # fmt: skip
    for text in made.left_out:
        print(f"left out: {text}", file=sys.stderr)
    return made.revision.name


def umount(name: Name, prefix: Prefix, store: Where = HOME, message: Message = "") -> None:
    """Take a mount out of a workspace. Past revisions keep it."""

    async def act() -> str:
        async with opened(store).open(_named(name), commit="never") as ws:
            await (await ws.unmount(prefix)).close()
            return (await ws.commit(message or f"umount {prefix}")).name

    async def there() -> str:
        async with connected(store).open(_named(name)) as ws:
            await ws.unmount(prefix)
            return (await ws.commit(message or f"umount {prefix}")).name

    with reported():
        print(asyncio.run(there() if store.startswith(SERVERS) else act()))


def bind(
    name: Name,
    folder: Annotated[str, typer.Argument(help="Directory, empty or not there yet, that becomes the workspace's.")],
    program: Annotated[
        list[str] | None,
        typer.Argument(metavar="PROGRAM", help="What runs in it, behind `--`; your shell when left out."),
    ] = None,
    store: Where = HOME,
    prefix: Annotated[str, typer.Option(help="Mount to bind.")] = "/",
    keep: Annotated[
        bool, typer.Option("--keep", help="What is in the directory stays, and is the next revision.")
    ] = False,
    message: Message = "",
    quiet: Quiet = False,
) -> None:
    """Bind a real directory to a workspace while a program runs in it, and commit what it leaves there.
    The program is one of this machine, and nothing holds it inside the directory. Nobody else writes to the workspace
    meanwhile. What a crash leaves in the directory is committed when the workspace is opened again. The status is the
    program's.
    """
    from ramet.backends.local.disk import DiskResource

    with reported():
        words = program or [os.environ.get("SHELL") or "/bin/sh"]
        found, where, place = opened(store), _named(name), Path(folder).expanduser()
        head = found[where].head
        there = head is not None and any(one.prefix == prefix and one.tree is not None for one in head.mounts)
        if there and not keep and place.is_dir() and any(place.iterdir()):
            raise RametError(
                "already_exists", f"{folder} is not empty",
                "give an empty directory, or --keep to commit what is in it",
            )  # fmt: skip
        place.mkdir(parents=True, exist_ok=True)
        given: Any = {prefix: DiskResource(str(place))}
        opening = found.open(where, commit="never", **{"resources" if there and not keep else "mounts": given})
        status, made = asyncio.run(_bound(opening, str(place), words, message, quiet))
        if not quiet:
            print(made, file=sys.stderr)
        raise typer.Exit(status)


async def _bound(
    opening: WorkspaceOpener, folder: str, program: list[str], message: str, quiet: bool
) -> tuple[int, str]:
    async with opening as ws:
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, lambda: None)  # it is for the program
        try:
            child = await asyncio.create_subprocess_exec(
                *program, cwd=folder, env={**os.environ, "RAMET_WORKSPACE": ws.name}
            )
        except OSError as error:
            raise RametError("not_found", f"{program[0]}: {error.strerror}", "see whether it is installed") from None
        status = await child.wait()
        subject = message or ws.secrets.scrub_text(" ".join(program)[:72])
        with watched(quiet) as progress:
            made = await ws.commit(subject, progress=progress)
        return status if status >= 0 else 128 - status, made.name


def _named(text: str) -> str:
    name, revision = split(text)
    if revision is not None:
        raise RametError(
            "invalid_argument", f"{text!r} names a revision, which does not change", "write NAME, or fork it"
        )
    return name
