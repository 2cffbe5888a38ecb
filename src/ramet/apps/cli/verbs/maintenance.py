"""Verbs for maintenance: verify, repair, gc, cost, retention, holds, pins, grants."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

from ramet.apps.cli.addresses import split_name
from ramet.apps.cli.options import AsJson, Quiet, Where, WholeName
from ramet.apps.cli.output import iso_time, plural, say, show
from ramet.apps.cli.parameters import Argument, Option
from ramet.apps.cli.progress import progress_bar
from ramet.apps.cli.stores import HOME, SERVERS, any_store
from ramet.core.errors import RametError

NONE = "none"


def verify(store: Where = HOME, as_json: AsJson = False, quiet: Quiet = False) -> int:
    """Check every digest and reference in the store, and list the workspaces that each damage affects."""
    with progress_bar(quiet) as progress:
        report = any_store(store).verify(progress)
    if as_json:
        found = {"packs": report.packs, "objects": report.objects, "revisions": report.revisions}
        damages = [damage.__dict__ for damage in report.damages]
        print(json.dumps({"ok": report.ok, **found, "damages": damages}, default=str))
    else:
        counts = {"pack": report.packs, "object": report.objects, "revision": report.revisions}
        print(", ".join(plural(number, what) for what, number in counts.items()) + (", no damage" * report.ok))
        for damage in report.damages:
            print(f"damaged: {damage}", file=sys.stderr)
    return 0 if report.ok else 1


def repair(
    store: Where = HOME,
    drop: Annotated[bool, Option("--drop", help="Drop references to lost data: heads move back, tags go.")] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Restore damaged data from other copies and report what is lost."""
    with progress_bar(quiet) as progress:
        done = any_store(store).repair(drop=drop, progress=progress)
    if as_json:
        shown = {
            "ok": done.ok, "salvaged": done.salvaged, "rebuilt": list(done.rebuilt), "moved": list(done.moved),
            "heads": dict(done.heads), "tags": list(done.tags), "lost": [damage.__dict__ for damage in done.lost],
        }  # fmt: skip
        say(shown, "", True)
        return 0 if done.ok else 1
    indexes = plural(len(done.rebuilt), "index", "indexes")
    moved = plural(len(done.moved), "damaged file")
    print(f"{plural(done.salvaged, 'object')} salvaged, {indexes} rebuilt, {moved} moved away")
    for name, head in done.heads.items():
        print(f"{name} is now at {head or 'no revision'}")
    for name in done.tags:
        print(f"tag {name} removed")
    for damage in done.lost:
        print(f"lost: {damage}", file=sys.stderr)
    return 0 if done.ok else 1


def gc(
    store: Where = HOME,
    dry_run: Annotated[bool, Option("--dry-run", "-n", help="Only show what would be deleted.")] = False,
    grace: Annotated[
        str | None,
        Option(help="How long unreferenced data is kept (90s, 12h, 7d); 0 deletes it at once."),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Delete expired revisions and unreferenced data. Safe while others read and write."""
    from ramet.store.refs.retention import parse_duration

    with progress_bar(quiet) as progress:
        wanted = None if grace is None else parse_duration(grace)
        done = any_store(store).gc(grace=wanted, dry=dry_run, progress=progress)
    if as_json:
        show([done.as_dict()], (), as_json)
        return
    for name in done.expired:
        print(f"{'would expire' if dry_run else 'expired'}: {name}")
    gone = f"{plural(done.removed, 'pack')} and {plural(done.revisions, 'revision')}"
    if dry_run:
        print(f"{gone} would be deleted: {size(done.waiting)}")
        return
    print(f"{plural(done.kept, 'revision')} kept; {gone} deleted, {size(done.reclaimed)} reclaimed")
    if done.written:
        print(f"{size(done.written)} rewritten")
    if done.waiting:
        print(f"{size(done.waiting)} to delete after the grace period")


def cost(store: Where = HOME, as_json: AsJson = False, quiet: Quiet = False) -> None:
    """Show what each workspace costs: the bytes that only it needs, and the bytes that it shares."""
    with progress_bar(quiet) as progress:
        found = any_store(store).cost(progress)
    rows: list[dict[str, Any]] = [
        {"workspace": c.workspace, "unique": c.unique, "shared": c.shared, "revisions": c.revisions}
        for c in found.workspaces
    ]
    rows.append({"workspace": "(all)", "shared": found.shared, "unused": found.unused, "total": found.total})
    forms = dict.fromkeys(("unique", "shared", "unused", "total"), size)
    show(rows, ("workspace", "unique", "shared", "revisions", "unused", "total"), as_json, forms=forms)


def retention(
    name: Annotated[str | None, Argument(help="A workspace. Default: the whole store.")] = None,
    store: Where = HOME,
    keep_last: Annotated[
        str | None, Option(value="NUMBER", help="Keep the newest revisions, this many; `none` removes a rule.")
    ] = None,
    keep_within: Annotated[
        str | None, Option(value="TIME", help="Keep revisions that are not older: 90s, 15m, 12h, 30d, 2w.")
    ] = None,
    min_age: Annotated[
        str | None, Option(value="TIME", help="Delete nothing that is younger, also of removed workspaces.")
    ] = None,
    grace: Annotated[str | None, Option(value="TIME", help="Keep unreferenced data this long.")] = None,
    auto: Annotated[str | None, Option(help="Run gc after this many commits; `none` turns it off.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show or set how long revisions are kept, in the whole store or in one workspace."""
    from ramet.store.refs.retention import parse_duration, policy_dict

    found = any_store(store)
    spans = {"keep_within": keep_within, "min_age": min_age, "grace": grace}
    said: dict[str, Any] = {
        key: None if text == NONE else parse_duration(text) for key, text in spans.items() if text is not None
    }
    for key, text in (("keep_last", keep_last), ("auto", auto)):
        if text is not None:
            said[key] = None if text == NONE else _number(key, text)
    if said:
        found.retention(replace(found.own_retention(name), **said), name)
    policy = found.retention(name=name)
    row = {"workspace": name or "(store)", **policy_dict(policy)}
    forms = dict.fromkeys(("keep_within", "min_age", "grace"), span)
    columns = ("workspace", "keep_last", "keep_within", "min_age", "grace", "auto", "hold")
    show([row], columns, as_json, forms=forms)


def _number(key: str, text: str) -> int:
    if not text.isdecimal():
        raise RametError("invalid_argument", f"cannot set {key} to {text!r}", "use a number, or none")
    return int(text)


def hold(
    name: WholeName,
    why: Annotated[str | None, Argument(help="Reason for the hold.")] = None,
    store: Where = HOME,
    lift: Annotated[bool, Option("--lift", help="End the hold.")] = False,
    as_json: AsJson = False,
) -> None:
    """Protect a workspace from removal until you lift the hold. Without a reason, show the hold."""
    found = any_store(store)
    if lift:
        found.lift(name)
    elif why is not None:
        found.hold(name, why)
    if as_json or (why is None and not lift):
        held = found.retention(name=name).hold
        say({"workspace": name, "hold": held}, held or "not held", as_json)


def pin(
    name: Annotated[str | None, Argument(help="NAME@REVISION to keep. Default: list all pins.")] = None,
    store: Where = HOME,
    time: Annotated[str | None, Option("--for", help="How long (12h, 30d). Default: until you remove the pin.")] = None,
    why: Annotated[str, Option(help="Reason for the pin.")] = "",
    delete: Annotated[str | None, Option("--delete", "-d", help="Remove the pin with this token.")] = None,
    as_json: AsJson = False,
) -> None:
    """Keep a revision from expiring; list or remove such pins."""
    from ramet.store.refs.retention import parse_duration

    found = any_store(store)
    if delete is not None:
        found.unpin(delete)
    elif name is not None:
        where, revision = split_name(name)
        made = found[where].pin(revision, seconds=None if time is None else parse_duration(time), why=why)
        say({"pin": made.token, "id": made.target.hex()}, made.token, as_json)
    else:
        rows = [
            {
                "pin": p.token, "workspace": p.workspace, "id": p.target.hex(),
                "until": None if p.until is None else iso_time(p.until), "why": p.why,
            }
            for p in found.pins()
        ]  # fmt: skip
        columns = ("pin", "workspace", "id", "until", "why")
        show(rows, columns, as_json, empty="no pins; `ramet pin NAME@REVISION` adds one")


def grant(
    name: WholeName,
    principal: Annotated[str, Argument(help="Name, as in RAMET_PRINCIPAL or a server's token file.")],
    access: Annotated[str | None, Argument(help="readonly or readwrite.")] = None,
    store: Where = HOME,
    revoke: Annotated[bool, Option("--revoke", help="Remove the grant.")] = False,
    force: Annotated[bool, Option("--force", help="Grant even if you lose your own access.")] = False,
    as_json: AsJson = False,
) -> None:
    """Allow a principal to read or write a workspace. After the first grant, only principals with one have access."""
    handle = any_store(store)[name]
    if revoke == (access is not None):
        raise RametError("invalid_argument", "missing argument ACCESS", "write readonly or readwrite, or pass --revoke")
    if not force and not store.startswith(SERVERS):
        left = {who: what for who, what in handle.grants().items() if who != principal}
        _keep_access(name, left if access is None else {**left, principal: access})
    if revoke:
        handle.revoke(principal)
    else:
        handle.grant(principal, access)  # type: ignore[arg-type]
    if as_json:
        say({"workspace": name, "principal": principal, "access": access}, "", True)


def _keep_access(name: str, granted: Mapping[str, str]) -> None:
    """Refuse grants after which the caller could not change them back."""
    caller = os.environ.get("RAMET_PRINCIPAL", "")
    if granted and granted.get(caller) != "readwrite":
        me = f"{caller!r}" if caller else "a caller without RAMET_PRINCIPAL"
        raise RametError(
            "invalid_argument", f"cannot change the grants of {name!r}: {me} would lose access to it",
            "set RAMET_PRINCIPAL and grant yourself readwrite first, or pass --force",
        )  # fmt: skip


def grants(name: WholeName, store: Where = HOME, as_json: AsJson = False) -> None:
    """Show who may read or write a workspace; an empty list means everyone."""
    rows = [{"principal": who, "access": access} for who, access in sorted(any_store(store)[name].grants().items())]
    show(rows, ("principal", "access"), as_json, empty="everyone may read and write it")


def span(seconds: float) -> str:
    """Format seconds as on the command line: 90s, 12h, 7d."""
    for unit, length in (("w", 604800), ("d", 86400), ("h", 3600), ("m", 60)):
        if seconds and seconds % length == 0:
            return f"{seconds / length:.0f}{unit}"
    return f"{seconds:g}s"


def size(number: float) -> str:
    """Format a number of bytes with a unit."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if number < 1024:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:.1f} TiB"
