"""Verbs that add and remove mounts."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Annotated

from ramet.apps.cli.addresses import name_only
from ramet.apps.cli.options import Message, Name, Quiet, Where
from ramet.apps.cli.parameters import Argument, Option
from ramet.apps.cli.progress import progress_bar
from ramet.apps.cli.stores import HOME, SERVERS, local_store, remote_store
from ramet.core.errors import RametError

Prefix = Annotated[str, Argument(help="Where in the workspace, as in /data.")]


def mount(
    name: Name,
    prefix: Prefix,
    folder: Annotated[str | None, Argument(help="Directory whose content it gets; empty when left out.")] = None,
    store: Where = HOME,
    mode: Annotated[str, Option(help="`write`, or `read` for what nothing in the workspace may change.")] = "write",
    message: Message = "",
    quiet: Quiet = False,
) -> None:
    """Add a mount to a workspace: empty, or with the content that a directory has now.
    The content is in the store from then on. What is to stay elsewhere is described in a file: `ramet config init`.
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
                return (await ws.commit(message or f"mount {prefix}", progress=progress)).name

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
        print(_sent(store, name_only(name), prefix, folder, mode, message, quiet))


def _sent(store: str, name: str, prefix: str, folder: str, mode: str, message: str, quiet: bool) -> str:
    """A directory of this machine as a mount of a workspace on a server: what a commit would take, as a tar."""
    import tarfile
    import tempfile

    from ramet.store.commit.ignore_rules import DEFAULT_RULES

    if mode != "write":
        raise RametError("unsupported", "a server cannot make it read-only", "leave --mode out")
    handle = remote_store(store)[name]
    if any(one.prefix == prefix.rstrip("/") for one in handle.mounts()):
        raise RametError("already_exists", f"something is mounted at {prefix}", "umount it first")
    with tempfile.TemporaryFile(prefix="ramet-mount-") as file, progress_bar(quiet) as progress:
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
        async with local_store(store).open(name_only(name), commit="never") as ws:
            await (await ws.unmount(prefix)).close()
            return (await ws.commit(message or f"umount {prefix}")).name

    async def there() -> str:
        async with remote_store(store).open(name_only(name)) as ws:
            await ws.unmount(prefix)
            return (await ws.commit(message or f"umount {prefix}")).name

    print(asyncio.run(there() if store.startswith(SERVERS) else act()))
