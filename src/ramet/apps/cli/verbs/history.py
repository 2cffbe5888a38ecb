"""Verbs for history: log, diff, show, blame, bisect."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

from ramet.apps.cli.addresses import absolute, address, file_of, split_name
from ramet.apps.cli.options import AsJson, Name, Since, Where, known_agents, known_names, known_paths, known_revisions
from ramet.apps.cli.output import ago, iso_time, parse_time, plural, revision_row, say, show
from ramet.apps.cli.parameters import Argument, Option
from ramet.apps.cli.patches import hunks, show_patches, show_stat
from ramet.apps.cli.progress import progress_bar
from ramet.apps.cli.stores import HOME, any_store
from ramet.core.errors import RametError

NEWLINE = "\n"
NEWEST = 50
"""Revisions that `log` shows where `-n` does not say how many."""
WORDS = 40
"""Characters of a command that `blame` shows; `--json` has all of it."""

if TYPE_CHECKING:
    from ramet.apps.client.reference import RemoteRef
    from ramet.store.model.ids import RevisionId
    from ramet.store.model.revisions import Revision
    from ramet.store.verbs.diff import Difference
    from ramet.workspace.stored.reference import StoredWorkspaceRef


def log(
    name: Name,
    paths: Annotated[
        list[str] | None, Argument(help="Only revisions that changed these paths.", complete=known_paths, dashes=True)
    ] = None,
    store: Where = HOME,
    graph: Annotated[bool, Option("--graph", "-g", help="Draw branches and merges.")] = False,
    last: Annotated[
        int | None,
        Option(
            "--last",
            "-n",
            value="NUMBER",
            minimum=0,
            help="Only so many, the newest; 0 is all. Default: 50, with --json all.",
        ),
    ] = None,
    since: Since = None,
    agent: Annotated[
        str | None, Option(help="Only revisions with a record of this agent, or by this author.", complete=known_agents)
    ] = None,
    oneline: Annotated[bool, Option("--oneline", help="One line each: name, agent and message.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the revisions of a workspace, newest first; with paths, those that changed them."""
    where, revision = split_name(name)
    handle, paths = any_store(store)[where], absolute(paths)
    names: dict[bytes, list[str]] = {}
    for found in handle.tags():
        names.setdefault(found.target, []).append(found.name)
    if not graph or as_json:
        log = _select(handle, revision, paths, since, agent)
        most = last if last is not None else 0 if as_json else NEWEST
        shown = log[:most] if most else log
        known = {one.id for one in log}
        rows = [{**revision_row(r), "tags": names.get(r.id, []), **_expired_parents(handle, r, known)} for r in shown]
        if oneline and not as_json:
            _print_oneline(rows)
        else:
            empty = "no revision fits" if paths or since or agent else f"{where} has no revision yet"
            _show_log(handle, shown, rows, as_json, empty)
        if len(shown) < len(log) and last is None:
            print(f"{plural(len(log) - len(shown), 'older revision')}: pass -n 0 to see all", file=sys.stderr)
        if any("expired" in row for row in rows) and not as_json:
            print("older revisions have expired", file=sys.stderr)
        return
    for drawn in handle.graph(revision):
        if drawn.revision is None:
            print(drawn.lines)
            continue
        tags = "".join(f" ({tag})" for tag in names.get(drawn.revision.id, []))
        subject = drawn.revision.message.partition("\n")[0]
        print(f"{drawn.lines} {drawn.revision.id.hex()[:12]} {drawn.revision.name}{tags} {subject}".rstrip())


def _print_oneline(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        who = row.get("agent") or row.get("author") or "-"
        print(f"{row['revision']} {who} {row['message'].partition(NEWLINE)[0]}".rstrip())
        for note in row.get("notes", ()):
            print(f"  note: {note.partition(NEWLINE)[0]}")


def _show_log(
    handle: StoredWorkspaceRef | RemoteRef,
    log: list[Revision],
    rows: list[dict[str, Any]],
    as_json: bool,
    empty: str,
) -> None:
    """Print revisions as a table: who made each, and how many files it changed."""
    from ramet.workspace.stored.reference import StoredWorkspaceRef

    columns = ["revision", "id", "time", "by", "message"]
    if not as_json:
        local = isinstance(handle, StoredWorkspaceRef)  # over HTTP a diff is a request for each row
        for revision, row in zip(log, rows, strict=True):
            row["by"] = revision.agent or revision.author
            if local:
                changes = _changes(handle, revision)
                row["files"] = None if changes is None else len(changes)
        if local:
            columns.insert(4, "files")
    columns += [name for name in ("tags", "resumable", "notes") if any(row.get(name) for row in rows)]
    show(rows, tuple(columns), as_json, empty=empty, forms={"time": ago} if sys.stdout.isatty() else {})


def _select(
    handle: StoredWorkspaceRef | RemoteRef, revision: str | None, paths: list[str], since: str | None, agent: str | None
) -> list[Revision]:
    """The revisions since a time, of an agent, that changed one of the paths."""
    begin = parse_time(since) or 0.0
    log = handle.log(revision)
    found = [r for r in (log if agent is None else _by_agent(handle, log, agent)) if r.time >= begin]
    tops = tuple(f"{path.rstrip('/')}/" for path in paths)
    return [r for r in found if not tops or any(f"{d.path}/".startswith(tops) for d in _changes(handle, r) or ())]


def _changes(handle: StoredWorkspaceRef | RemoteRef, revision: Revision) -> list[Difference] | None:
    """Return what a revision changed; None when its parent has expired."""
    try:
        return handle.diff(newer=revision)
    except RametError as error:
        if error.code != "revision_expired":
            raise
        return None


def _by_agent(handle: StoredWorkspaceRef | RemoteRef, log: list[Revision], agent: str) -> list[Revision]:
    """Return the revisions of an agent or author, and those with a record of the agent.

    Histories only grow, so the newest revision of a chain of first parents has the records of all of it.
    """
    numbers: dict[RevisionId, set[int]] = {}
    found: list[Revision] = []
    for revision in log:
        if revision.id not in numbers:
            numbers[revision.id] = {one.number for one in handle.history(revision) if one.agent_id == agent}
        mine = numbers[revision.id]
        for parent in revision.parents[:1]:
            numbers.setdefault(parent, mine)
        ops = revision.ops or {}
        # Before revisions had `lines`, a revert took records back and their numbers were used again.
        own = range(ops["first"], ops["last"] + 1) if "lines" in ops else range(0)
        if agent in (revision.agent, revision.author) or any(number in own for number in mine):
            found.append(revision)
    return found


def _expired_parents(
    handle: StoredWorkspaceRef | RemoteRef, revision: Revision, known: set[RevisionId]
) -> dict[str, list[str]]:
    """Return the expired parents of a revision, if any; known parents have not expired."""
    if known.issuperset(revision.parents):
        return {}
    gone = [parent.hex() for parent in handle.expired_parents(revision)]
    return {"expired": gone} if gone else {}


def diff(
    name: Name,
    newer: Annotated[
        str | None, Argument(help="Newer revision, OTHER or OTHER@REVISION.", complete=known_revisions)
    ] = None,
    paths: Annotated[
        list[str] | None, Argument(help="Only these files and directories.", complete=known_paths, dashes=True)
    ] = None,
    store: Where = HOME,
    stat: Annotated[bool, Option("--stat", help="Only count the changed lines of each file.")] = False,
    name_only: Annotated[bool, Option("--name-only", help="Only list the changed paths.")] = False,
    context: Annotated[
        int, Option("--context", "-U", value="LINES", minimum=0, help="Lines of context around each change.")
    ] = 3,
    as_json: AsJson = False,
) -> None:
    """Show what changed from one revision to another, as a patch; with one revision, what it changed.
    --json lists the changed paths with their hunks; with --name-only without them.
    """
    if newer is not None and newer.startswith("/"):
        paths, newer = [newer, *(paths or [])], None
    where, revision = split_name(name)
    found, chosen_paths = any_store(store), absolute(paths)
    if newer is not None and newer in found:
        newer = f"{newer}@head"
    older = revision if newer is None else revision or "head"
    if stat or not (as_json or name_only):
        patches = found[where].patch(older, newer, chosen_paths)
        if stat:
            show_stat(list(patches), as_json)
        else:
            show_patches(patches, context)
        return
    tops = tuple(f"{path.rstrip('/')}/" for path in chosen_paths)
    chosen = [d for d in found[where].diff(older, newer) if not tops or f"{d.path}/".startswith(tops)]
    if name_only and not as_json:
        print("".join(f"{d.path}\n" for d in chosen), end="")
        return
    rows: dict[str, dict[str, Any]] = {
        d.path: {"change": d.what, "path": d.path, **({"from": d.old} if d.old else {})} for d in chosen
    }
    for patch in () if name_only else found[where].patch(older, newer, chosen_paths):
        note = {"note": patch.note} if patch.note else {}
        counts = {"added": patch.added, "removed": patch.removed}
        rows[patch.path] |= {**counts, **note, "hunks": hunks(patch, context)}
    show(list(rows.values()), (), True)


def show_file(
    place: Annotated[str, Argument(help="NAME[@REVISION]:/path of a file, or NAME[@REVISION].", complete=known_names)],
    store: Where = HOME,
    as_json: AsJson = False,
) -> None:
    """Print a file of a revision, or a revision.

    Without a path it prints who made the revision, by which commands, and its patch.
    """
    if address(place).path is None:
        where, spec = split_name(place)
        show_revision(any_store(store)[where], spec, as_json)
        return
    name, revision, path = file_of(place)
    if as_json:
        handle = any_store(store)[name]
        data = b"".join(handle.show(path, revision))
        try:
            content, encoding = data.decode(), "utf-8"
        except UnicodeDecodeError:
            import base64

            content, encoding = base64.b64encode(data).decode(), "base64"
        found = handle.find(revision).name
        say({"revision": found, "path": path, "encoding": encoding, "content": content}, "", True)
        return
    for block in any_store(store)[name].show(path, revision):
        sys.stdout.buffer.write(block)


def show_revision(handle: StoredWorkspaceRef | RemoteRef, spec: str | None, as_json: bool = False) -> None:
    """Print who made a revision, by which commands, and its patch."""
    (revision,) = handle.log(handle.find(spec), limit=1)  # with its notes
    ops = revision.ops or {}
    own = range(ops["first"], ops["last"] + 1) if "lines" in ops else range(0)
    records = [one for one in handle.history(revision) if one.number in own]
    if as_json:
        changes = [{"change": one.what, "path": one.path} for one in _changes(handle, revision) or ()]
        say({**revision_row(revision), "records": [one.as_dict() for one in records], "changes": changes}, "", True)
        return
    who, time = revision.agent or revision.author, iso_time(revision.time)
    tags = [found.name for found in handle.tags() if found.target == revision.id]
    rows = [
        ("revision", " ".join((revision.name, revision.id.hex()[:12], *(f"({tag})" for tag in tags)))),
        ("by", who), ("time", ago(time) if sys.stdout.isatty() else time), ("message", revision.message),
        *(("record", f"{one.number} {one.agent_id}: {one.command} -> {one.exit_code}") for one in records),
        *(("note", f"{note.author}: {note}" if note.author else str(note)) for note in revision.notes),
    ]  # fmt: skip
    shown = [f"{label:<9} {text.strip().replace(NEWLINE, NEWLINE + ' ' * 10)}".rstrip() for label, text in rows if text]
    show_patches(handle.patch(revision), head="".join(f"{line}\n" for line in [*shown, ""]))


def blame(
    place: Annotated[str, Argument(help="NAME[@REVISION]:/path of a file.", complete=known_names)],
    store: Where = HOME,
    as_json: AsJson = False,
) -> None:
    """Show for each line of a file the revision, agent and command that wrote it."""
    name, revision, path = file_of(place)
    rows: list[dict[str, Any]] = []
    for line in any_store(store)[name].blame(path, revision):
        writer = line.writer
        rows.append({
            "line": line.number, "revision": line.revision.name, "author": line.author, "path": line.path,
            "record": writer.number if writer else 0, "kind": writer.kind if writer else "",
            "session": writer.session_id if writer else "", "agent": writer.agent_id if writer else "",
            "principal": writer.principal if writer else "", "command": writer.command if writer else "",
            "by": (writer.agent_id if writer else "") or line.author or "unknown",
            "text": line.text.decode("utf-8", "replace").rstrip("\n"),
        })  # fmt: skip
    show(rows, ("line", "revision", "by", "command", "text"), as_json, forms={"command": _first_words})


def _first_words(command: str) -> str:
    subject = command.partition("\n")[0]
    return subject if len(subject) <= WORDS else subject[: WORDS - 1] + "…"


def bisect(
    name: Name,
    good: Annotated[str, Argument(help="Revision in which the command succeeds.", complete=known_revisions)],
    bad: Annotated[str, Argument(help="Later revision in which it fails.", complete=known_revisions)],
    command: Annotated[list[str], Argument(help="Command after `--`: status 0 is good, 125 skips, else it is bad.")],
    store: Where = HOME,
    timeout: Annotated[float | None, Option(value="SECONDS", help="Seconds per run.")] = None,
    as_json: AsJson = False,
) -> None:
    """Find the first revision in which a command fails. Nothing is written to the store."""
    import asyncio
    import shlex

    text = command[0] if len(command) == 1 else shlex.join(command)
    handle = any_store(store)[split_name(name)[0]]
    found = asyncio.run(handle.bisect(good, bad, text, timeout=timeout, progress=progress_bar()))
    rows: list[dict[str, Any]] = [
        {"tried": s.revision.name, "verdict": s.verdict, "status": s.exit_code} for s in found.steps
    ]
    if as_json:
        first, suspects = found.first_bad, [revision.name for revision in found.suspects]
        rows.append({"suspects": suspects} if first is None else {"first_bad": first.name, **revision_row(first)})
        show(rows, (), as_json)
        return
    if rows:
        show(rows, ("tried", "verdict", "status"), False)
    if found.first_bad is not None:
        subject = found.first_bad.message.partition("\n")[0]
        print(f"first bad: {found.first_bad.name} {found.first_bad.id.hex()[:12]} {subject}".rstrip())
    else:
        print(f"first bad: one of {', '.join(revision.name for revision in found.suspects)}")
