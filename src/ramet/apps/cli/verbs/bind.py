"""`ramet bind`: bind a real directory to a workspace while a program runs in it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Protocol

from ramet.apps.cli.addresses import name_only
from ramet.apps.cli.options import AllowHost, Message, Quiet, Where, WholeName, user_name
from ramet.apps.cli.output import report_note
from ramet.apps.cli.parameters import Argument, Option
from ramet.apps.cli.progress import progress_bar
from ramet.apps.cli.stores import HOME, local_store
from ramet.apps.cli.turns import Turns, socket_path
from ramet.concurrency.tasks import give_up
from ramet.core.errors import RametError

if TYPE_CHECKING:
    from ramet.store.model.revisions import Revision
    from ramet.workspace.stored.store import StoredWorkspace, WorkspaceOpener


def bind(
    name: WholeName,
    folder: Annotated[str, Argument(help="Directory to bind; empty or not existing yet.")],
    program: Annotated[
        list[str] | None,
        Argument(help="Program to run in it, after `--`. Default: your shell."),
    ] = None,
    store: Where = HOME,
    prefix: Annotated[str | None, Option(help="Mount to bind; required if several mounts have files.")] = None,
    keep: Annotated[bool, Option("--keep", help="Keep the directory's content and commit it.")] = False,
    message: Message = "",
    read: Annotated[
        list[str] | None, Option(value="DIRECTORY", help="Other directory that the program may read; repeatable.")
    ] = None,
    write: Annotated[
        list[str] | None, Option(value="DIRECTORY", help="Other directory that it may change; repeatable.")
    ] = None,
    env: Annotated[
        list[str] | None, Option(help="NAME of a variable of yours that the program gets; repeatable.")
    ] = None,
    allow_host: AllowHost = None,
    unconfined: Annotated[
        bool, Option("--unconfined", help="Run the program without a box: it may do on this machine what you may.")
    ] = False,
    turn_on_idle: Annotated[str | None, Option(help="Make a revision after each pause of this length: 2s.")] = None,
    quiet: Quiet = False,
) -> int:
    """Bind a real directory to a workspace while a program runs in it, then commit the result.
    The program runs in a box: it changes the directory itself, at its own path, and sees no other files of yours than
    those of --read and --write, no variables but those of --env, and no network but --allow-host. `ramet turn` makes a
    revision meanwhile, also from inside, and `ramet rewind` goes back to one. No other writer can open the workspace
    meanwhile. After a crash, the next open of the workspace commits what is in the directory. The status is the
    program's.
    """
    from ramet.backends.local.disk import DiskResource
    from ramet.store.refs.retention import parse_duration

    words = program or [os.environ.get("SHELL") or "/bin/sh"]
    pause = None if turn_on_idle is None else parse_duration(turn_on_idle)
    if unconfined and (read or write or env or allow_host):
        raise RametError(
            "invalid_argument", "an unconfined program sees everything", "Leave out --unconfined, or the other options."
        )
    found, where, place = local_store(store), name_only(name), Path(folder).expanduser()
    head = found[where].head
    prefix = prefix or _only_mount(head)
    there = head is not None and any(one.prefix == prefix and one.tree is not None for one in head.mounts)
    if there and not keep and place.is_dir() and any(place.iterdir()):
        raise RametError(
            "already_exists", f"cannot bind {folder}: not empty",
            "use an empty directory, or pass --keep to commit its content",
        )  # fmt: skip
    place.mkdir(parents=True, exist_ok=True)
    given: Any = {prefix: DiskResource(str(place))}
    opening = found.open(where, commit="never", **{"resources" if there and not keep else "mounts": given})
    line = BoundProgram(str(place.absolute()), prefix, words, absolute_store(store), where, message, quiet, pause)
    if unconfined:
        runner: Runner = Unconfined(line)
    else:
        from ramet.apps.cli.confined_program import ConfinedProgram, Sight

        runner = ConfinedProgram(line, Sight(read or (), write or (), env or (), allow_host or ()))
    status, made = asyncio.run(_run_bound(opening, line, runner))
    if not quiet:
        print(made, file=sys.stderr)
    return status


def _only_mount(head: Revision | None) -> str:
    """Return the mount to bind when none was named: `/`, unless files lie elsewhere too."""
    from ramet.store.model.trees import EMPTY_ID

    full = [one.prefix for one in (head.mounts if head is not None else ()) if one.tree not in (None, EMPTY_ID)]
    if any(one != "/" for one in full):
        raise RametError(
            "invalid_argument", f"cannot bind one directory: files lie in {', '.join(full)}",
            f"Pass --prefix {full[0]} or another one of them.",
        )  # fmt: skip
    return "/"


def absolute_store(store: str) -> str:
    """Return the store's address for a program in another directory."""
    return store if "://" in store else os.path.abspath(os.path.expanduser(store))


class BoundProgram(NamedTuple):
    """What runs in which directory."""

    folder: str
    prefix: str
    words: list[str]
    store: str
    name: str
    message: str
    quiet: bool
    pause: float | None


class Runner(Protocol):
    """How the program runs."""

    def running(self, ws: StoredWorkspace, turns: Turns) -> AbstractAsyncContextManager[Awaitable[int]]:
        """Start it; what is awaited gives its status."""
        ...


class Unconfined:
    """The program as a child of this process, with its rights."""

    def __init__(self, line: BoundProgram) -> None:
        self._line = line

    @asynccontextmanager
    async def running(self, ws: StoredWorkspace, turns: Turns) -> AsyncIterator[Awaitable[int]]:
        line = self._line
        environ = {**os.environ, "RAMET_HOME": line.store, "RAMET_WORKSPACE": line.name}
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, lambda: None)  # SIGINT goes to the program
        try:
            child = await asyncio.create_subprocess_exec(*line.words, cwd=line.folder, env=environ)
        except OSError as error:
            raise RametError("not_found", f"cannot run {line.words[0]}: {error.strerror}", "install it") from None
        yield child.wait()


async def _run_bound(opening: WorkspaceOpener, line: BoundProgram, runner: Runner) -> tuple[int, str]:
    async with opening as ws:
        turns = Turns(ws, line.folder, line.prefix)
        idle: asyncio.Task[None] | None = None
        async with turns.served(socket_path(line.store, ws.name)):
            before = 0 if line.pause is None else await asyncio.to_thread(turns.state)
            async with runner.running(ws, turns) as ended:
                if line.pause is not None:
                    idle = asyncio.create_task(turns.turn_when_idle(line.pause, before))
                status = await ended
            if idle is not None:
                await give_up((idle,))
        subject = ws.secrets.scrub_text(" ".join(line.words)[:72])
        with progress_bar(line.quiet) as progress:
            made = await ws.commit(line.message, subject=subject, author=user_name(), progress=progress)
        report_note(made, line.message)
        return status if status >= 0 else 128 - status, made.name
