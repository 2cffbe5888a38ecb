"""Verbs that add and remove mounts."""

from __future__ import annotations

import asyncio
import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ramet.apps.cli.addresses import name_only
from ramet.apps.cli.options import AsJson, Message, Quiet, Where, WholeName, user_name
from ramet.apps.cli.output import report_note, say
from ramet.apps.cli.parameters import Argument, Option
from ramet.apps.cli.progress import progress_bar
from ramet.apps.cli.stores import HOME, SERVERS, config_for, local_store, open_local, remote_store
from ramet.core.errors import RametError
from ramet.workspace.record.recorder import acting

if TYPE_CHECKING:
    from ramet.workspace.stored.store import WorkspaceOpener

Prefix = Annotated[str, Argument(help="Path in the workspace, such as /data.")]


def mount(
    name: WholeName,
    prefix: Prefix,
    folder: Annotated[str | None, Argument(help="Directory to copy into it. Default: empty.")] = None,
    store: Where = HOME,
    live: Annotated[
        bool, Option("--live", help="Mount the directory itself: commands read and write its files, each time.")
    ] = False,
    mode: Annotated[str, Option(help="`write`, or `read` for read-only.")] = "write",
    message: Message = "",
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Add a mount to a workspace: empty, with a copy of a directory, or with --live the directory itself.
    Other live mounts, such as S3, come from a configuration file: `ramet config init`.
    """

    async def there() -> str:
        async with remote_store(store).open(name_only(name)) as ws:
            await ws.mount(prefix, mode=mode)
            return (await ws.commit(message or f"mount {prefix}")).name

    async def act() -> str:
        from ramet.backends.local.disk import DiskResource
        from ramet.backends.local.ram import RAMResource

        async with _opened(store, name) as ws:
            with acting(user_name()):
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
    if live and (folder is None or store.startswith(SERVERS)):
        remedy = "name the directory" if folder is None else "pass --mount to `ramet serve`"
        raise RametError("invalid_argument", "cannot mount live: no directory of this machine", remedy)
    if live and folder is not None:
        from ramet.workspace.config.attachment import attach_directory

        attach_directory(local_store(store), name_only(name), prefix, folder, mode)
        made = asyncio.run(_commit(store, name, message or f"mount {prefix}"))
    elif not store.startswith(SERVERS):
        made = asyncio.run(act())
    elif folder is None:
        made = asyncio.run(there())
    else:
        made = _upload(store, name_only(name), prefix, folder, mode, message, quiet)
    if folder is not None and not live and not store.startswith(SERVERS):
        print(f"copied {folder} to {prefix}; pass --live to mount the directory itself", file=sys.stderr)
    say({"revision": made, "prefix": prefix}, made, as_json)


async def _commit(store: str, name: str, message: str) -> str:
    """Commit what a live mount changes about a workspace."""
    async with _opened(store, name) as ws:
        return (await ws.commit("", author=user_name(), subject=message)).name


def _opened(store: str, name: str) -> WorkspaceOpener:
    found, where = local_store(store), name_only(name)
    return open_local(found, where, None, config_for(found, where, None), commit="never")


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


def umount(
    name: WholeName, prefix: Prefix, store: Where = HOME, message: Message = "", as_json: AsJson = False
) -> None:
    """Remove a mount from a workspace. Past revisions keep it, and so does the directory of a live mount."""

    async def act() -> str:
        async with _opened(store, name) as ws:
            with acting(user_name()):
                resource = await ws.unmount(prefix)
            await resource.close()
            return (await ws.commit(message, subject=f"umount {prefix}")).name

    async def there() -> str:
        async with remote_store(store).open(name_only(name)) as ws:
            await ws.unmount(prefix)
            return (await ws.commit(message or f"umount {prefix}")).name

    if not store.startswith(SERVERS):
        from ramet.workspace.config.attachment import detach_directory

        detach_directory(local_store(store), name_only(name), prefix)
    made = asyncio.run(there() if store.startswith(SERVERS) else act())
    say({"revision": made, "prefix": prefix}, made, as_json)
