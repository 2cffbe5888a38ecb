"""`ramet exec`: run a command in a workspace and commit what it changed."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

from ramet.apps.cli.entry import resume_gc
from ramet.apps.cli.options import (
    Agent,
    AllowHost,
    ConfigFile,
    Message,
    NativeFlag,
    NativeImage,
    NativeMemory,
    Quiet,
    Wait,
    Where,
    known_names,
    native_option,
    network_options,
    user_name,
)
from ramet.apps.cli.output import report_note
from ramet.apps.cli.parameters import Argument, Option
from ramet.apps.cli.progress import progress_bar
from ramet.apps.cli.questions import ask_at_terminal
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
from ramet.apps.cli.terminal import UserTerminal, has_terminal
from ramet.core.errors import RametError

if TYPE_CHECKING:
    from ramet.native.options import Native
    from ramet.workspace.execution import Execution
    from ramet.workspace.result import IOResult
    from ramet.workspace.workspace import Workspace

SCRATCH: Final = ("/tmp", "/home/user", "/dev")


class ExecRequest(NamedTuple):
    """The arguments of `ramet exec`."""

    name: str
    command: str | None
    store: str
    options: dict[str, Any]
    """The keywords of `Workspace.execute`."""
    message: str
    author: str
    config: str | None
    quiet: bool
    as_json: bool
    native: Native | bool = False
    wait: float = 0.0
    from_stdin: bool = False
    """Whether the command was read from stdin."""
    tty: bool = False
    hosts: list[str] | None = None
    """Hosts that commands may reach."""


def execute(
    name: Annotated[
        str,
        Argument(help="Name of a workspace. Default: the one in --config.", complete=known_names),
    ],
    command: Annotated[
        list[str] | None,
        Argument(help="Command text, as for `bash -c`, or a command and its arguments after `--`. Default: stdin."),
    ] = None,
    store: Where = HOME,
    timeout: Annotated[
        float | None, Option(value="SECONDS", help="Seconds until the command is ended with status 124.")
    ] = None,
    cwd: Annotated[str | None, Option(value="PATH", help="Working directory for this command only.")] = None,
    env: Annotated[
        list[str] | None, Option(value="NAME=VALUE", help="A variable for this command only; repeatable.")
    ] = None,
    session: Annotated[str, Option(help="Session whose directory and variables it uses; made if new.")] = "default",
    agent: Agent = None,
    run: Annotated[
        str | None, Option(envvar="RAMET_RUN", help="Run it belongs to, for `undo --run` and `agents --by run`.")
    ] = None,
    meta: Annotated[
        list[str] | None, Option(value="KEY=VALUE", help="Something to record, such as tokens=812; repeatable.")
    ] = None,
    wait: Wait = 0.0,
    message: Message = "",
    author: Annotated[str, Option(help="Author of the revision.")] = "",
    config: ConfigFile = None,
    quiet: Quiet = False,
    as_json: Annotated[
        bool,
        Option(
            "--json",
            envvar="RAMET_OUTPUT=json",
            help="Print one JSON object at the end: output, status, paths it touched.",
        ),
    ] = False,
    native: NativeFlag = False,
    native_memory: NativeMemory = None,
    native_image: NativeImage = None,
    allow_host: AllowHost = None,
    tty: Annotated[
        bool, Option("--tty", "-t", help="Run the command by real bash on a terminal: editors, REPLs, progress bars.")
    ] = False,
) -> int:
    """Run a command in a workspace and commit what it changed. The exit status is the command's."""
    import asyncio
    import shlex

    text = None if not command else command[0] if len(command) == 1 else shlex.join(command)
    from_stdin = text is None and not sys.stdin.isatty() and config_of(config) is None
    if from_stdin:
        text = sys.stdin.buffer.read().decode("utf-8", "surrogateescape")
        if not text.strip():
            raise RametError("invalid_argument", "missing argument COMMAND", "write ramet exec NAME 'COMMAND'")
    if tty and (as_json or not has_terminal()):
        raise RametError("invalid_argument", "cannot use --tty without a terminal", "leave it out, and --json too")
    options = {
        "timeout": timeout, "cwd": cwd, "env": dict(_pairs("--env", env)) or None, "session_id": session,
        "agent_id": agent or user_name(),
        "meta": {key: _number(value) for key, value in _pairs("--meta", meta)} | ({"run": run} if run else {}),
    }  # fmt: skip
    request = ExecRequest(
        name, text, store, options, message, author, config, quiet, as_json,
        native_option(native, native_memory, native_image), wait, from_stdin, tty, allow_host
    )  # fmt: skip
    return asyncio.run(_run(request))


def _pairs(flag: str, words: list[str] | None) -> Iterator[tuple[str, str]]:
    for word in words or ():
        name, equals, value = word.partition("=")
        if not (name and equals):
            raise RametError("invalid_argument", f"{flag} {word!r} has no value", f"write {flag} NAME=VALUE")
        yield name, value


def _number(text: str) -> float | int | str:
    """A value of `--meta`: a number where it is one, so that totals can add it up."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


async def _run(line: ExecRequest) -> int:
    opening, text = _open(line)
    resume_gc()
    async with opening as ws:
        stdin = None if sys.stdin.isatty() or line.from_stdin else _stdin()
        await _make_session(ws, line.options["session_id"])
        user = UserTerminal() if line.tty else None
        ask_at_terminal(ws, user)
        told = {"message": line.message, "author": line.author} if line.store.startswith(SERVERS) else {}
        try:
            if user is not None:
                result = await _on_terminal(ws, user, text, line.options)
            else:
                execution = ws.execute(text, stdin=stdin, **line.options, **told)
                result = await execution if line.as_json else await _stream_output(execution)
        finally:  # also after an interrupt or a closed pipe: changes made so far are committed
            if getattr(ws, "lease", None) is not None:
                subject = ws.secrets.scrub_text(text.strip().partition("\n")[0][:72])
                with progress_bar(line.quiet) as progress:
                    before = set() if ws.base is None else set(ws.base.withheld)
                    if line.message:
                        made = await ws.commit(line.message, author=line.author, progress=progress)
                    else:
                        made = await ws.save(subject, author=line.author, progress=progress)
                if made is not None:
                    for path in sorted(set(made.withheld) - before):
                        print(f"withheld: {path} may hold credentials and is in no revision", file=sys.stderr)
                    report_note(made, line.message)
        if (
            getattr(ws, "lease", None) is None
            and "@" in line.name
            and any(n for at, n in result.bytes_written.items() if at not in SCRATCH)
        ):
            print(f"ramet: changes to {line.name} are not kept: it is a past revision", file=sys.stderr)
            print(f"       run `ramet fork {line.name} NEW_NAME` to continue from there", file=sys.stderr)
        if line.as_json:
            _print_result(result)
        return int(result.exit_code)


async def _make_session(ws: Any, session: str) -> None:
    """Make a session that does not exist yet; a past revision has only those that it was saved with."""
    from inspect import isawaitable

    listed = ws.list_sessions()
    known = await listed if isawaitable(listed) else listed
    if session not in (one.session_id for one in known) and getattr(ws, "revision", None) is None:
        made = ws.create_session(session)
        if isawaitable(made):
            await made


async def _on_terminal(ws: Workspace, user: UserTerminal, text: str, options: dict[str, Any]) -> IOResult:
    """Run the text by real bash on its own terminal."""
    import asyncio

    env = {"TERM": os.environ.get("TERM", "xterm"), **(options["env"] or {})}
    with user.watched(asyncio.get_running_loop()):
        return await _stream_output(ws.execute(text, stdin=user.input, native=True, **{**options, "env": env}))


async def _stream_output(execution: Execution) -> IOResult:
    """Copy a command's output as it arrives; a failed write ends the command."""
    async with aclosing(aiter(execution)) as pieces:  # type: ignore[type-var]
        async for piece in pieces:
            stream = sys.stdout.buffer if piece.fd == 1 else sys.stderr.buffer
            stream.write(piece.data)
            stream.flush()
    assert execution.result is not None
    return execution.result


def _print_result(result: IOResult) -> None:
    """Print the whole result after the commit, as `POST /v1/workspaces/{name}/exec` answers it."""
    import msgspec

    from ramet.apps.server.serialize import exec_result

    sys.stdout.buffer.write(msgspec.json.encode(exec_result(result)) + b"\n")


def _open(line: ExecRequest) -> tuple[Any, str]:
    """Return the opened workspace and the command text."""
    from ramet.store.model.address import parse_address

    more: dict[str, Any] = {
        **({"native": line.native} if line.native else {}),
        **({"wait": line.wait} if line.wait else {}),
    }
    if line.native and line.store.startswith(SERVERS):
        raise RametError(
            "unsupported", "cannot turn on native programs of a server's workspace",
            "Create it with --native, on a server that was started with --native.",
        )  # fmt: skip
    if line.tty and line.store.startswith(SERVERS):
        raise RametError("unsupported", "cannot use --tty with a server", "Leave it out.")
    told = config_of(line.config)
    place = line.store if told is None else store_for(line.store, told)
    if told is None and place.startswith(SERVERS) and line.command is not None:
        more.update(network_options(None, line.hosts, place))
        where = parse_address(line.name)
        return any_store(place).open(where.name, where.revision, **more), line.command
    if line.command is None and told is None:
        raise RametError("invalid_argument", "missing argument COMMAND", "write ramet exec NAME 'COMMAND'")
    if line.command is None and told is not None and told.name is None:
        return told.workspace(**more, **network_options(told, line.hosts, place)), line.name
    where = parse_address(line.name if line.command is not None or told is None else str(told.name))
    if where.path is not None:
        raise RametError("invalid_argument", f"{line.name!r} names a path", "write NAME or NAME@REVISION")
    found = local_store(place)
    config = config_for(found, where.name, line.config, where.revision)
    more.update(network_options(config, line.hosts, place))
    command = line.name if line.command is None else line.command
    return open_local(found, where.name, where.revision, config, **more), command


async def _stdin() -> AsyncIterator[bytes]:
    import asyncio

    while block := await asyncio.to_thread(os.read, 0, 65536):
        yield block
