"""Verbs for workspaces: create, list, fork, revert, merge, tag, remove."""

from __future__ import annotations

import stat
import sys
from typing import TYPE_CHECKING, Annotated, Any, Final

from ramet.apps.cli.addresses import absolute, address, name_only, split_name
from ramet.apps.cli.options import (
    AsJson,
    ConfigFile,
    Message,
    Name,
    NativeImage,
    NativeMemory,
    Where,
    WholeName,
    known_agents,
    known_names,
    known_paths,
    known_runs,
    known_sides,
    native_option,
)
from ramet.apps.cli.output import iso_time, report_note, revision_row, say, show
from ramet.apps.cli.parameters import Argument, Option
from ramet.apps.cli.stores import (
    HOME,
    SERVERS,
    any_store,
    config_for,
    config_of,
    local_store,
    open_local,
    store_for,
)
from ramet.core.errors import RametError
from ramet.core.stat import Kind, Stat, default_mode

if TYPE_CHECKING:
    from ramet.apps.client.reference import RemoteRef
    from ramet.store.model.revisions import Revision
    from ramet.store.verbs.revert import MergeResult
    from ramet.workspace.stored.reference import StoredWorkspaceRef

KEYS: Final = ("revision", "id", "time", "message", "phase", "lineage", "resumable", "content", "parents")
"""Fields of a workspace's head; empty if it has no revision yet."""


def create(
    name: Annotated[
        str | None, Argument(help="Name of the workspace. Default: the one in --config.", complete=known_names)
    ] = None,
    store: Where = HOME,
    native: Annotated[
        bool, Option("--native", help="Run real programs too, such as python3, whenever it is opened.")
    ] = False,
    native_memory: NativeMemory = None,
    native_image: NativeImage = None,
    config: Annotated[
        str | None,
        Option(
            "--config",
            value="FILE",
            envvar="RAMET_CONFIG",
            help="Configuration file that it keeps: mounts, policy, network.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Create an empty workspace. One that is made with a configuration file has its mounts and rules whenever it is
    opened; `ramet config NAME` shows them.
    """
    described = config_of(config)
    place = store if described is None else store_for(store, described)
    name = name or (None if described is None else described.name)
    if name is None:
        raise RametError("invalid_argument", "missing argument NAME", "write ramet create NAME")
    wanted = native_option(native, native_memory, native_image)
    if described is None or config is None:
        any_store(place).create(name, native=wanted)
    else:
        if place.startswith(SERVERS):
            raise RametError("unsupported", "cannot use --config with a server", "pass it to `ramet serve` instead")
        from ramet.workspace.config.attachment import attach

        found = local_store(place)
        found.create(name, native=wanted or described.native or False)
        try:
            attach(found, name, config)
        except RametError:
            found.rm(name)
            raise
    say({"workspace": name}, name, as_json)


def list_workspaces(
    place: Annotated[
        str | None, Argument(help="NAME[@REVISION][:/path] of a directory to list.", complete=known_names)
    ] = None,
    store: Where = HOME,
    trash: Annotated[bool, Option("--trash", help="List removed workspaces that can be restored.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the workspaces of the store, or a directory of a revision."""
    found = any_store(store)
    if trash:
        removed = [
            {"workspace": one.name, "removed": iso_time(one.time), "revision": one.revision} for one in found.trash()
        ]
        show(removed, ("workspace", "removed", "revision"), as_json, empty="the trash is empty")
        return
    if place is not None:
        at = address(place)
        listed = [_entry_row(*entry) for entry in found[at.name].ls(at.path or "/", at.revision)]
        columns = ("mode", "size", "time", "name", "target")
        show(listed, columns if any("target" in row for row in listed) else columns[:-1], as_json)
        return
    rows = []
    for name, head in found.heads().items():
        rows.append({"workspace": name, **(dict.fromkeys(KEYS) if head is None else revision_row(head))})
    empty = f"no workspaces in {store}; run `ramet create NAME`"
    show(rows, ("workspace", "revision", "time", "message"), as_json, empty=empty)


def _entry_row(name: str, found: Stat) -> dict[str, Any]:
    kinds = {Kind.DIR: stat.S_IFDIR, Kind.LINK: stat.S_IFLNK}
    mode = default_mode(found.kind) if found.mode is None else found.mode
    return {
        "name": name, "kind": found.kind.value, "mode": stat.filemode(kinds.get(found.kind, stat.S_IFREG) | mode),
        "size": found.size, "time": None if found.mtime is None else iso_time(found.mtime),
        **({"target": found.target} if found.target is not None else {}),
    }  # fmt: skip


def rm(name: WholeName, store: Where = HOME, as_json: AsJson = False) -> None:
    """Remove a workspace. `ramet restore` brings it back until gc deletes its revisions."""
    any_store(store).rm(name)
    if as_json:
        say({"removed": name}, "", True)
    else:
        print(f"removed {name}; `ramet restore {name}` brings it back until gc deletes it", file=sys.stderr)


def restore(name: WholeName, store: Where = HOME, as_json: AsJson = False) -> None:
    """Restore a removed workspace with its tags and grants. `ramet ls --trash` lists what can be restored."""
    any_store(store).restore(name)
    say({"workspace": name}, name, as_json)


def fork(
    name: Name,
    new_name: Annotated[str, Argument(help="Name of the new workspace.")],
    store: Where = HOME,
    as_json: AsJson = False,
) -> None:
    """Create a workspace from a revision of another one; no data is copied."""
    where, revision = split_name(name)
    made = any_store(store)[where].fork(revision, new_name)
    say({"workspace": new_name, **revision_row(made)}, made.name, as_json)


def rename(
    name: WholeName,
    new_name: Annotated[str, Argument(help="The new name.")],
    store: Where = HOME,
    as_json: AsJson = False,
) -> None:
    """Rename a workspace, with its history, tags and grants. Past revisions keep their names."""
    any_store(store)[name].rename(new_name)
    say({"workspace": new_name, "renamed": name}, new_name, as_json)


def revert(
    name: Annotated[str, Argument(help="NAME@REVISION to restore.", complete=known_names)],
    paths: Annotated[list[str] | None, Argument(help="Only these paths.", complete=known_paths)] = None,
    store: Where = HOME,
    message: Message = "",
    as_json: AsJson = False,
) -> None:
    """Restore a past revision as a new one, all of it or some paths. History stays."""
    where, revision = split_name(name)
    if revision is None:
        raise RametError("invalid_argument", "missing revision", "write NAME@REVISION; see `ramet log`")
    from ramet.apps.cli.live_mounts import change_history

    past, chosen = revision, absolute(paths) or None
    made = change_history(store, where, lambda handle: handle.revert(past, message, chosen))
    handle = any_store(store)[where]
    if chosen and handle.find(made.parents[0].hex()).content_manifest == made.content_manifest:
        print(f"ramet: {', '.join(chosen)} did not change, or is in neither revision", file=sys.stderr)
    say(revision_row(made), made.name, as_json)


def merge(
    name: WholeName,
    other: Annotated[str, Argument(help="OTHER or OTHER@REVISION to merge.", complete=known_names)],
    store: Where = HOME,
    message: Message = "",
    ours: Annotated[bool, Option("--ours", help="Resolve every conflict by this workspace's side.")] = False,
    theirs: Annotated[bool, Option("--theirs", help="Resolve every conflict by the other side.")] = False,
    take: Annotated[
        list[str] | None,
        Option(value="PATH=SIDE", complete=known_sides, help="Resolve one: PATH=ours or PATH=theirs; repeatable."),
    ] = None,
    edit: Annotated[bool, Option("--edit", "-e", help="Resolve the rest in $EDITOR, between markers.")] = False,
    as_json: AsJson = False,
) -> int:
    """Merge another workspace into this one. Conflicts are shown with both sides, change nothing, and give status 4;
    --ours, --theirs, --take and --edit resolve them.
    """
    from ramet.apps.cli.conflicts import edit_conflicts, parse_sides, show_conflicts
    from ramet.apps.cli.live_mounts import change_history

    where = split_name(name)[0]
    sides = parse_sides(take or [], ours, theirs)

    def act(handle: StoredWorkspaceRef | RemoteRef) -> MergeResult:
        result = handle.merge(other, message, take=sides)
        if result.conflicts and edit:
            result = handle.merge(other, message, take=sides, edited=edit_conflicts(handle, other, result))
        return result

    result = change_history(store, where, act)
    handle = any_store(store)[where]
    if result.revision is not None:
        say(revision_row(result.revision), result.revision.name, as_json)
        return 0
    if as_json:
        show([{"conflict": c.why, "path": c.path} for c in result.conflicts], (), as_json)
    else:
        show_conflicts(handle, other, result)
    return 4


def commit(
    name: WholeName,
    store: Where = HOME,
    message: Message = "",
    author: Annotated[str, Option(help="Author of the revision.")] = "",
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Make a revision of what changed outside: of mounted directories, or on a server of what is not committed yet.
    Without changes, the message becomes a note on the newest revision.
    """
    import asyncio

    async def act() -> Revision:
        opening: Any
        described = config_of(config)
        place = store if described is None else store_for(store, described)
        if described is None and place.startswith(SERVERS):
            opening = any_store(place).open(name_only(name))
        else:
            found, where = local_store(place), name_only(name)
            opening = open_local(found, where, None, config_for(found, where, config), commit="never")
        async with opening as ws:
            before = getattr(ws, "base", None)
            made: Revision = await ws.commit(message, author=author)
            if made == before and not message:
                print("nothing changed", file=sys.stderr)
            return made

    made = asyncio.run(act())
    report_note(made, message)
    say(revision_row(made), made.name, as_json)


def undo(
    name: WholeName,
    store: Where = HOME,
    agent: Annotated[str | None, Option(help="Undo what this agent changed.", complete=known_agents)] = None,
    run: Annotated[
        str | None, Option(help="Undo what this run changed: a trace, session or sandbox.", complete=known_runs)
    ] = None,
    message: Message = "",
    as_json: AsJson = False,
) -> int:
    """Undo the last change, or what one agent or run changed. Later changes stay; the history stays.
    Conflicts with later changes are listed, change nothing, and give status 4.
    """
    from ramet.apps.cli.live_mounts import change_history

    result = change_history(store, name_only(name), lambda handle: handle.undo(agent=agent, run=run, message=message))
    if result.revision is not None:
        say(revision_row(result.revision), f"{result.revision.name}: {result.revision.message}", as_json)
        return 0
    show([{"conflict": c.why, "path": c.path} for c in result.conflicts], ("conflict", "path"), as_json)
    return 4


def tag(
    name: Annotated[
        str, Argument(help="NAME to list its tags, NAME@REVISION to tag that revision.", complete=known_names)
    ],
    tag: Annotated[str | None, Argument(help="Name of the tag. Default: list tags.")] = None,
    store: Where = HOME,
    delete: Annotated[bool, Option("--delete", "-d", help="Remove the tag.")] = False,
    force: Annotated[bool, Option("--force", "-f", help="Move an existing tag.")] = False,
    message: Annotated[str, Option("--message", "-m", help="Message of the tag.")] = "",
    as_json: AsJson = False,
) -> None:
    """Tag a revision: NAME@TAG names it, and gc keeps it. Also list or delete tags."""
    where, revision = split_name(name)
    handle = any_store(store)[where]
    if tag is None:
        rows = [
            {"tag": t.name, "revision": handle.find(t.name).name, "id": t.target.hex(), "message": t.message}
            for t in handle.tags()
        ]
        show(rows, ("tag", "revision", "id", "message"), as_json, empty=f"{where} has no tags")
    elif delete:
        handle.untag(tag)
        if as_json:
            say({"untagged": tag}, "", True)
    else:
        made = handle.tag(tag, revision, message=message, force=force)
        say({"tag": made.name, "id": made.target.hex()}, f"{where}@{made.name}", as_json)


def note(
    place: Annotated[
        str, Argument(help="NAME[@REVISION], or NAME[@REVISION]:/path for a note on a file.", complete=known_names)
    ],
    message: Annotated[str, Argument(help="The note.")],
    store: Where = HOME,
    line: Annotated[int, Option("--line", "-l", help="The line of the file that it is about.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Add a note to a revision, or to a file or a line of it.

    `log` and the console show it. It is never changed.
    """
    found = address(place)
    made = any_store(store)[found.name].note(message, found.revision, path=found.path or "", line=line)
    say({"revision": made.name, "note": str(made.notes[-1])}, f"{made.name}: {made.notes[-1]}", as_json)
