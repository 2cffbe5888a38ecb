"""`ramet try`: run a program over the current directory; apply what it changed afterwards, or not."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Any

from ramet.apps.cli.options import Where, user_name
from ramet.apps.cli.output import plural
from ramet.apps.cli.parameters import Argument, Option
from ramet.apps.cli.patches import show_patches, show_stat
from ramet.apps.cli.stores import HOME, local_store
from ramet.apps.cli.terminal import UserTerminal, has_terminal
from ramet.core.errors import RametError

if TYPE_CHECKING:
    from ramet.native.overlay_changes import OverlayChange
    from ramet.store.model.revisions import Revision
    from ramet.workspace.stored.store import Store
    from ramet.workspace.stored.trial import Applied, Trial

QUESTION = "apply: all, some paths, keep as a workspace, or discard? [a/s/k/D] "
PATH = "/usr/local/bin:/usr/bin:/bin"


def try_program(
    program: Annotated[list[str], Argument(help="Program and its arguments, after `--`.")],
    yes: Annotated[bool, Option("--yes", "-y", help="Apply everything if the program succeeds; do not ask.")] = False,
    keep: Annotated[
        str | None, Option(value="NAME", help="Keep the result as a new workspace; the directory stays as it is.")
    ] = None,
    read: Annotated[
        list[str] | None, Option(value="DIRECTORY", help="Other directory that the program may read; repeatable.")
    ] = None,
    store: Where = HOME,
    as_json: Annotated[
        bool, Option("--json", envvar="RAMET_OUTPUT=json", help="Print one JSON object at the end; ask nothing.")
    ] = False,
) -> int:
    """Run a program over the current directory, and see what it changed before anything changes.
    The program runs in a box: it sees this directory and the system's programs, no other files, and no network. What it
    writes goes to an overlay. Then you see the difference, and apply it, or some paths, or none. The status is the
    program's. What you keep is a fork of a workspace that holds the directory as it is, a proposal that you review and
    merge in `ramet ui`. `ramet diff NAME@1 NAME | git apply` makes it in the directory later.
    """
    from ramet.workspace.stored.trial import Trial

    if keep is not None:
        local_store(store).repository.refs.require_free(keep)
    env = {name: os.environ[name] for name in ("TERM", "LANG", "LC_ALL", "NO_COLOR") if name in os.environ}
    trial = Trial(os.getcwd(), readable=read or (), env={"PATH": PATH, **env})
    return asyncio.run(_run(trial, program, yes, keep, store, as_json))


async def _run(trial: Trial, program: list[str], yes: bool, keep: str | None, store: str, as_json: bool) -> int:
    async with trial:
        status, output = await _program(trial, program, as_json)
        changes = await asyncio.to_thread(trial.changes)
        kept: Revision | None = None
        applied: Applied | None = None
        if not as_json:
            _show(trial, changes)
        if keep is not None:
            kept = await _keep(trial, store, keep, program)
        elif yes and status == 0:
            applied = trial.apply(changes)
        elif changes and not as_json and has_terminal():
            kept, applied = await _ask(trial, changes, program, store)
        if as_json:
            _print_json(trial, changes, status, output, kept, applied)
        elif kept is not None:
            _tell_kept(local_store(store), kept)
        else:
            _tell(changes, applied)
        return status if applied is None or not applied.conflicts else status or 1


async def _program(trial: Trial, program: list[str], as_json: bool) -> tuple[int, Any]:
    user = UserTerminal() if has_terminal() and not as_json else None
    with user.watched(asyncio.get_running_loop()) if user is not None else nullcontext():
        execution = trial.workspace.execute(
            shlex.join(program), stdin=None if user is None else user.input, native=True, cwd=trial.directory,
            agent_id=user_name(),
        )  # fmt: skip
        if as_json:
            result = await execution
            return result.exit_code, result
        async for piece in execution:
            stream = sys.stdout.buffer if piece.fd == 1 else sys.stderr.buffer
            stream.write(piece.data)
            stream.flush()
    assert execution.result is not None
    return execution.result.exit_code, execution.result


def _show(trial: Trial, changes: list[OverlayChange]) -> None:
    """Show the changed lines, and of git's own files only how many they are."""
    ours = [change for change in changes if not f"{change.path}/".startswith("/.git/")]
    if ours:
        show_patches(trial.patches(ours))
        show_stat(list(trial.patches(ours)))
    if len(ours) < len(changes):
        print(f" and {plural(len(changes) - len(ours), 'path')} in .git")


async def _ask(
    trial: Trial, changes: list[OverlayChange], program: list[str], store: str
) -> tuple[Revision | None, Applied | None]:
    answer = (await asyncio.to_thread(input, QUESTION)).strip().lower()[:1]
    while answer == "k":
        name = (await asyncio.to_thread(input, "name of the workspace: ")).strip()
        try:
            return await _keep(trial, store, name, program), None
        except RametError as error:
            if not name or error.code not in ("workspace_exists", "invalid_argument"):
                raise
            print(f"{error.cause}; {error.remediation}", file=sys.stderr)
    if answer == "s":
        words = shlex.split(await asyncio.to_thread(input, "paths: "))
        return None, trial.apply(changes, [word.removeprefix("./") for word in words])
    return None, trial.apply(changes) if answer == "a" else None


async def _keep(trial: Trial, store: str, name: str, program: list[str]) -> Revision:
    return await trial.keep(local_store(store), name, shlex.join(program)[:72])


def _tell_kept(store: Store, kept: Revision) -> None:
    """Say where the result is, and for which workspace it is a proposal."""
    from ramet.store.verbs.fork import FORK

    name = kept.workspace
    base = store.find(f"{name}@1").lineage.removeprefix(FORK)
    print(f"kept as {kept.name}, a fork of {base}; nothing was applied", file=sys.stderr)
    print(f"`ramet ui {base.rpartition('-')[0]}` shows it under Review", file=sys.stderr)


def _tell(changes: list[OverlayChange], applied: Applied | None) -> None:
    if applied is None:
        print("nothing changed" if not changes else "nothing was applied; --yes applies", file=sys.stderr)
    elif applied.conflicts:
        listed = ", ".join(path[1:] for path in applied.conflicts[:5])
        raise RametError(
            "merge_conflict",
            f"cannot apply: {listed} changed in the directory meanwhile",
            "Nothing was applied: run it again, or use --keep.",
        )
    else:
        print(f"applied {plural(len(applied.paths), 'path')}", file=sys.stderr)
        for path in applied.skipped:
            print(f"left out {path[1:]}: neither file, directory nor link", file=sys.stderr)


def _print_json(
    trial: Trial,
    changes: list[OverlayChange],
    status: int,
    result: Any,
    kept: Revision | None,
    applied: Applied | None,
) -> None:
    import msgspec

    from ramet.apps.server.serialize import exec_result

    found = {
        "status": status,
        "output": exec_result(result),
        "changes": [{"what": change.what, "path": change.path[1:]} for change in changes],
        "kept": None if kept is None else kept.name,
        "applied": [] if applied is None else [path[1:] for path in applied.paths],
        "conflicts": [] if applied is None else [path[1:] for path in applied.conflicts],
    }
    sys.stdout.buffer.write(msgspec.json.encode(found) + b"\n")
