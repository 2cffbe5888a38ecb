"""Verbs that add and remove mounts."""

from __future__ import annotations

import asyncio
import os
import sys
from functools import partial
from pathlib import Path
from typing import Annotated

from ramet.apps.cli.addresses import name_only
from ramet.apps.cli.options import Message, Name, Quiet, Where
from ramet.apps.cli.output import report_note
from ramet.apps.cli.parameters import Argument, Option
from ramet.apps.cli.progress import progress_bar
from ramet.apps.cli.stores import HOME, SERVERS, local_store, remote_store
from ramet.core.errors import RametError

Prefix = Annotated[str, Argument(help="Path in the workspace, such as /data.")]


def mount(
    name: Name,
    prefix: Prefix,
    folder: Annotated[str | None, Argument(help="Directory to copy into it. Default: empty.")] = None,
    store: Where = HOME,
    mode: Annotated[str, Option(help="`write`, or `read` for read-only.")] = "write",
    message: Message = "",
    quiet: Quiet = False,
) -> None:
    """Add a mount to a workspace: empty, or with a copy of a directory.
    The store then holds the content. For a mount whose content stays elsewhere, write a configuration file: `ramet
    config init`.
    """

    async def there() -> str:
        async with remote_store(store).open(name_only(name)) as ws:
            await ws.mount(prefix, mode=mode)
            return (await ws.commit(message or f"mount {prefix}")).name

    async def act() -> str:
        from ramet.backends.local.disk import DiskResource
        from ramet.backends.local.ram import RAMResource

        async with local_store(store).open(name_only(name), commit="never") as ws:
            ws.mount(prefix, RAMResource() if folder is None else DiskResource(folder), mode)
            with progress_bar(quiet) as progress:
                made = await ws.commit(message, subject=f"mount {prefix}", progress=progress)
            report_note(made, message)
            for path in made.withheld:
                print(f"withheld: {path}", file=sys.stderr)
            return made.name

    if not prefix.startswith("/"):
        raise RametError("invalid_argument", f"{prefix!r} is not an absolute path", f"write /{prefix}")
    if mode not in ("read", "write"):
        raise RametError("invalid_argument", f"unknown mode {mode!r}", "pass --mode read or --mode write")
    if folder is not None and not Path(folder).is_dir():
        raise RametError("not_found", f"{folder} is not a directory", "name a directory, or omit it")
    if not store.startswith(SERVERS):
        print(asyncio.run(act()))
    elif folder is None:
        print(asyncio.run(there()))
    else:
        print(_upload(store, name_only(name), prefix, folder, mode, message, quiet))


def _upload(store: str, name: str, prefix: str, folder: str, mode: str, message: str, quiet: bool) -> str:
    """Upload a local directory as a mount of a server's workspace: a tar of what a commit would take."""
    import tarfile
    import tempfile

    from ramet.store.commit.directory import first_bytes
    from ramet.store.commit.ignore_rules import DEFAULT_RULES

    if mode != "write":
        raise RametError("unsupported", "cannot add a read-only mount on a server", "omit --mode")
    handle = remote_store(store)[name]
    withheld: list[str] = []
    if any(one.prefix == prefix.rstrip("/") for one in handle.mounts()):
        raise RametError("already_exists", f"cannot mount at {prefix}: already a mount", "umount it first")
    with tempfile.TemporaryFile(prefix="ramet-mount-") as file, progress_bar(quiet) as progress:
        with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for top, folders, files in os.walk(folder):
                inside = partial(first_bytes, os.fsencode(top))
                left_out = DEFAULT_RULES.matching(os.path.basename(top), [*folders, *files], inside)
                withheld += sorted(f"{prefix.rstrip('/')}/{os.path.relpath(top, folder)}/{one}" for one in left_out)
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
    for path in withheld:
        print(f"withheld: {os.path.normpath(path)}", file=sys.stderr)
    return made.revision.name


def umount(name: Name, prefix: Prefix, store: Where = HOME, message: Message = "") -> None:
    """Remove a mount from a workspace. Past revisions keep it."""

    async def act() -> str:
        async with local_store(store).open(name_only(name), commit="never") as ws:
            await (await ws.unmount(prefix)).close()
            return (await ws.commit(message, subject=f"umount {prefix}")).name

    async def there() -> str:
        async with remote_store(store).open(name_only(name)) as ws:
            await ws.unmount(prefix)
            return (await ws.commit(message or f"umount {prefix}")).name

    print(asyncio.run(there() if store.startswith(SERVERS) else act()))
