"""`ramet shell`: an interactive terminal. The main thread reads lines; a second thread runs commands.

Python delivers SIGINT to the main thread only, so Ctrl-C ends the running command or the typed line, never the shell.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import os
import re
import shlex
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

from ramet.apps.cli.addresses import split_name
from ramet.apps.cli.line_history import LineHistory
from ramet.apps.cli.live_mounts import carry
from ramet.apps.cli.options import (
    AllowHost,
    ConfigFile,
    NativeFlag,
    NativeImage,
    NativeMemory,
    Where,
    native_option,
    network_options,
    user_name,
)
from ramet.apps.cli.output import ago, iso_time, report_note
from ramet.apps.cli.parameters import Argument, Option
from ramet.apps.cli.patches import show_patches
from ramet.apps.cli.progress import progress_bar
from ramet.apps.cli.questions import ask_at_terminal
from ramet.apps.cli.stores import (
    HOME,
    SERVERS,
    config_for,
    config_of,
    local_store,
    open_local,
    remote_store,
    store_for,
)
from ramet.apps.cli.terminal import UserTerminal, has_terminal
from ramet.apps.cli.verbs.history import show_revision
from ramet.core.errors import RametError
from ramet.workspace.changes import WRITES
from ramet.workspace.completion import is_incomplete
from ramet.workspace.loop_thread import LoopThread

if TYPE_CHECKING:
    from ramet.apps.client.client import RemoteStore
    from ramet.workspace.config import Config
    from ramet.workspace.stored.store import Store, WorkspaceOpener

T = TypeVar("T")
NEWEST: Final = 20
"""Revisions that `!log` shows."""
LINES: Final = 3
"""Number of commands named in the message of a shell's last revision."""
VERBS: Final = {
    "!commit": ("[MESSAGE]", "commit now"),
    "!log": ("[NUMBER]", "show the newest revisions"),
    "!show": ("[REVISION:]PATH", "print a file of a revision, or of the newest; `!show @3` shows a revision"),
    "!blame": ("PATH", "show who wrote each line up to the newest revision"),
    "!diff": ("[PATH...]", "show changes since the last revision"),
    "!undo": ("[AGENT]", "undo the last change, or what an agent changed; later changes stay"),
    "!revert": ("REVISION [PATH...]", "restore a past revision, all of it or some paths"),
    "!rewind": ("[REVISION]", "make everything what it was one revision before, or at this one"),
    "!fork": ("NAME", "commit, then create another workspace from here"),
    "!tag": ("TAG", "tag the last revision"),
    "!mounts": ("", "show the mounts"),
    "!help": ("", "this list"),
    "!exit": ("", "commit and leave, like `exit` and Ctrl-D"),
}


def shell(
    name: Annotated[str | None, Argument(help="Name of a workspace, or NAME@REVISION to explore a past state.")] = None,
    store: Where = HOME,
    create: Annotated[bool, Option("--create", "-c", help="Create the workspace if it does not exist.")] = False,
    config: ConfigFile = None,
    native: NativeFlag = False,
    native_memory: NativeMemory = None,
    native_image: NativeImage = None,
    allow_host: AllowHost = None,
) -> int:
    """Open an interactive shell in a workspace. Leaving commits your changes; `!help` lists the shell's own verbs."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # the parent process may have ignored it
    with LoopThread() as loop:
        described_by = config_of(config)
        name = name or (described_by.name if described_by is not None else None)
        if name is None:
            raise RametError("invalid_argument", "missing argument NAME", "write ramet shell NAME, or -c NAME")
        where, revision = split_name(name)
        place = store if described_by is None else store_for(store, described_by)
        wanted = native_option(native, native_memory, native_image)
        if place.startswith(SERVERS):
            if wanted:
                raise RametError(
                    "unsupported", "cannot turn on native programs of a server's workspace",
                    "Create it with --native, on a server that was started with --native.",
                )  # fmt: skip
            network_options(None, allow_host, place)
            return _remote_shell(loop, place, where, revision, create, described_by is not None)
        found = local_store(place)
        if create and config is None and where not in found:
            found.create(where, native=wanted)
        described_by = config_for(found, where, config, revision)
        more: dict[str, Any] = {"native": wanted} if wanted else {}
        more.update(network_options(described_by, allow_host, place))
        opened = OpenedWorkspace(loop, partial(open_local, found, where, revision, described_by, **more), described_by)
        try:
            terminal = Terminal(loop, found, opened.ws, opened)
            status = terminal.run()
            terminal.leave()
        finally:
            opened.close()
        return status


class OpenedWorkspace:
    """The workspace of a shell, which is closed and opened again around what changes its history."""

    def __init__(self, loop: LoopThread, opens: Callable[[], WorkspaceOpener], config: Config | None) -> None:
        self._loop, self._opens, self._config = loop, opens, config
        self.open()

    def open(self) -> None:
        self._opening: WorkspaceOpener | None = self._opens()
        self.ws = self._loop.run(self._opening.__aenter__())
        for session in self.ws.sessions:
            session.sticky_options = True

    def close(self) -> None:
        if self._opening is not None:
            opening, self._opening = self._opening, None
            self._loop.run(opening.__aexit__(None, None, None))

    def around(self, act: Callable[[], T]) -> T:
        """Call `act` while the workspace is closed, then open it again, live directories included."""
        before = self.ws.base
        self.close()
        try:
            return act()
        finally:
            self.open()
            if self._config is not None:
                self._loop.run(carry(self.ws, self._config, before))


def _remote_shell(loop: LoopThread, store: str, name: str, revision: str | None, create: bool, described: bool) -> int:
    if described:
        raise RametError("unsupported", "cannot use --config with a server", "pass it to `ramet serve` instead")
    found = remote_store(store)
    if create and name not in found:
        found.create(name)
    ws = loop.run(found.open(name, revision).__aenter__())
    try:
        return RemoteTerminal(loop, found, ws).run()
    finally:
        loop.run(ws.close())


class Terminal:
    """The terminal of a workspace that is open in this process."""

    def __init__(
        self, loop: LoopThread, store: Store | RemoteStore, ws: Any, opened: OpenedWorkspace | None = None
    ) -> None:
        self._loop, self._store, self._ws, self._opened = loop, store, ws, opened
        self._since = time.time()
        self._told = getattr(ws.history, "next_number", 0)  # a server knows its own
        self._status, self._agent = 0, user_name()
        if self._local and has_terminal():
            self._user = UserTerminal()
            self._more = {"stdin": self._user.input}
        ask_at_terminal(ws, self._user)
        self._own: dict[str, Callable[[str], None]] = {
            "!commit": self._commit, "!log": self._log, "!show": self._show, "!blame": self._blame, "!diff": self._diff,
            "!fork": self._fork, "!tag": self._tag, "!undo": self._undo, "!revert": self._revert,
            "!rewind": self._rewind,
            "!mounts": self._mounts, "!help": self._help,
        }  # fmt: skip

    _leaving = "commits and leaves"
    _local = True
    """Whether commands run in this process, and can read the terminal."""
    _user: UserTerminal | None = None
    """What commands read, and programs of the machine draw on."""
    _more: Mapping[str, Any] = MappingProxyType({})

    def run(self) -> int:
        """Read and run commands until the user leaves; return the last status, or the argument of `exit`."""
        self._prepare()
        if sys.stdin.isatty():
            print(f"workspace {self._ws.name}; !help lists verbs, Ctrl-D {self._leaving}")
        while True:
            try:
                text = self._read()
            except KeyboardInterrupt:
                print("^C")
                continue
            except EOFError:
                if sys.stdin.isatty():
                    print()
                return self._status
            if leaving := _LEAVING.fullmatch(text.strip()):
                return self._status if leaving[1] is None else int(leaving[1]) % 256
            if text.strip():
                self._do(text)

    def leave(self) -> None:
        """Commit changes since the last revision; the message names the last commands."""
        if self._ws.lease is None:
            return
        lines = [record.command.strip().partition("\n")[0][:72] for record in self._ws.history.after(self._told - 1)]
        if lines:
            shown = self._ws.secrets.scrub_text("; ".join(lines[-LINES:]))
            with progress_bar() as progress:
                before = self._ws.base
                made = self._loop.run(self._ws.save(f"... {shown}" if len(lines) > LINES else shown, progress=progress))
            if made is not None and made != before and sys.stdin.isatty():
                print(f"committed {made.name}")

    def _do(self, text: str) -> None:
        word, _, rest = text.strip().partition(" ")
        try:
            if word in self._own:
                self._own[word](rest.strip())
            elif word.startswith("!") and word != "!":
                print(f"ramet: no verb {word}; see !help", file=sys.stderr)
            else:
                self._execute(text)
        except RametError as error:
            print(f"ramet: {error.cause}\n       {error.remediation}", file=sys.stderr)

    # ---------------------------------------------------------------------------------------------- lines

    def _prompt(self) -> str:
        base = self._ws.base
        where = self._ws.name + ("" if base is None else f"@{base.seq}") + ("*" if self._dirty() else "")
        return _colored_prompt(where, self._ws.get_session().cwd)

    def _dirty(self) -> bool:
        return any(
            operation.verb in WRITES and not operation.error for operation in self._ws.history.since(self._since)
        )

    def _read(self) -> str:
        """Read one command; prompt for more lines until it is complete."""
        text = input(self._prompt() if sys.stdin.isatty() else "")
        lines = 1
        while is_incomplete(text):
            text += "\n" + input("> " if sys.stdin.isatty() else "")
            lines += 1
        if lines > 1 and self._history is not None:
            self._history.join(text, lines)
        return text

    def _prepare(self) -> None:
        """Set up line editing, history and completion if the terminal supports them."""
        if not sys.stdin.isatty():
            return
        try:
            import readline
        except ImportError:
            return
        self._history = LineHistory(os.path.expanduser("~/.ramet_history"))
        readline.set_completer_delims(" \t\n;|&<>()'\"")
        readline.set_completer(self._complete)
        readline.parse_and_bind("tab: complete")
        import atexit

        atexit.register(self._history.save)

    _history: LineHistory | None = None
    _found: tuple[str, ...] = ()

    def _complete(self, word: str, number: int) -> str | None:
        if number == 0:
            import readline

            line, begin = readline.get_line_buffer()[: readline.get_endidx()], readline.get_begidx()
            self._found = self._loop.run(self._candidates(line, begin))
        return self._found[number] if number < len(self._found) else None

    async def _candidates(self, line: str, begin: int) -> tuple[str, ...]:
        """Complete a line; return what replaces it from `begin` on, where readline sees the last word begin."""
        try:
            start, words = await self._ws.complete(line)
        except (RametError, OSError):
            return ()  # readline would hide the error and break the line
        if not line.rstrip(" \t")[:start].strip() and line.startswith("!"):
            words = [*words, *(f"{verb} " for verb in VERBS if verb.startswith(line))]
        return tuple(f"{line[begin:start]}{word}"[max(0, begin - start) :] for word in words)

    # ------------------------------------------------------------------------------------------- commands

    def _execute(self, text: str) -> None:
        # Ctrl-C may arrive while the command is being submitted and already runs: cancel its own task.
        tasks: list[asyncio.Task[Any] | None] = []
        stopped = threading.Event()

        async def act() -> None:
            tasks.append(asyncio.current_task())
            if not stopped.is_set():
                await self._run(text)

        def stop() -> None:
            for task in filter(None, tasks):
                task.cancel()

        try:
            with self._user.watched(self._loop.loop) if self._user is not None else contextlib.nullcontext():
                self._loop.start(act()).result()
        except KeyboardInterrupt:
            stopped.set()
            self._loop.loop.call_soon_threadsafe(stop)
            self._status = 130
            print(file=sys.stderr)  # the terminal has echoed ^C
        except concurrent.futures.CancelledError:
            pass

    async def _run(self, text: str) -> None:
        execution = self._ws.execute(text, agent_id=self._agent, **self._more, **self._surroundings())
        async for piece in execution:
            stream = sys.stdout if piece.fd == 1 else sys.stderr
            stream.buffer.write(piece.data)
            stream.flush()
        self._status = 0 if execution.result is None else execution.result.exit_code

    def _surroundings(self) -> dict[str, Any]:
        """The variables by which commands know the terminal, as it is now."""
        if self._user is None:
            return {}
        lines, columns = self._user.input.size
        known = {"TERM": os.environ.get("TERM", "xterm"), "COLUMNS": str(columns), "LINES": str(lines)}
        color = {"NO_COLOR": "1"} if "NO_COLOR" in os.environ else {"CLICOLOR": "1"}
        return {"env": {**known, **color}}

    def _undo(self, agent: str) -> None:
        result = self._change(lambda: self._store[self._ws.name].undo(agent=agent or None))
        if result.revision is not None:
            print(f"{result.revision.name}: {result.revision.message}")
            return
        for conflict in result.conflicts:
            print(f"conflict: {conflict.path}: {conflict.why}", file=sys.stderr)
        print("nothing was undone", file=sys.stderr)

    def _revert(self, words: str) -> None:
        revision, *paths = shlex.split(words) or [""]
        if not revision:
            raise RametError("invalid_argument", "missing revision", "Write !revert 3, or !revert 3 /path; see !log.")
        chosen = [self._absolute(path) for path in paths] or None
        made = self._change(lambda: self._store[self._ws.name].revert(revision, "", chosen))
        print(f"{made.name}: {made.message}")

    def _rewind(self, revision: str) -> None:
        made = self._change(lambda: self._store[self._ws.name].revert(revision or "head~1"))
        print(f"{made.name}: {made.message}")

    def _change(self, act: Callable[[], T]) -> T:
        """Commit, then change the history, and go on from the new head."""
        if self._opened is None:
            return act()
        if self._ws.lease is None:
            raise RametError("unsupported", "cannot change a past revision", "Leave, and open the workspace itself.")
        self.leave()
        try:
            return self._opened.around(act)
        finally:
            self._ws = self._opened.ws
            ask_at_terminal(self._ws, self._user)
            self._since, self._told = time.time(), self._ws.history.next_number

    def _commit(self, message: str) -> None:
        message = _message(message)
        with progress_bar() as progress:
            revision = self._loop.run(self._ws.commit(message, subject="by hand", progress=progress))
        self._since, self._told = time.time(), self._ws.history.next_number
        print(revision.name)
        report_note(revision, message)

    def _log(self, number: str) -> None:
        if number and not number.isdecimal():
            raise RametError("invalid_argument", f"{number!r} is not a number", "Write !log 50.")
        log = self._store[self._ws.name].log()
        most = int(number or NEWEST)
        for revision in log[:most]:
            who = revision.agent or revision.author
            print(f"{revision.name:<16} {ago(iso_time(revision.time)):<16} {who:<10} {revision.message}")
        if len(log) > most:
            print(f"... {len(log) - most} more: !log {len(log)}")

    def _show(self, place: str) -> None:
        if place.startswith("@"):
            show_revision(self._store[self._ws.name], place[1:])
            return
        revision, colon, path = place.rpartition(":")
        if not path:
            raise RametError("invalid_argument", "missing path", "Write !show /path, !show 3:/path or !show @3.")
        for block in self._store[self._ws.name].show(self._absolute(path), revision if colon else None):
            sys.stdout.buffer.write(block)
        sys.stdout.flush()

    def _blame(self, path: str) -> None:
        if not path:
            raise RametError("invalid_argument", "missing path", "Write !blame /path.")
        for line in self._store[self._ws.name].blame(self._absolute(path)):
            who = line.writer.agent_id if line.writer is not None else line.author
            print(f"{line.revision.name:<16} {who:<10} {line.number:>5} {line.text.decode('utf-8', 'replace')}", end="")

    def _absolute(self, path: str) -> str:
        from ramet.core.paths import parse

        return str(parse(path, parse(str(self._cwd()))))

    def _cwd(self) -> object:
        return self._ws.get_session().cwd

    def _diff(self, words: str) -> None:
        paths = [self._absolute(path) for path in shlex.split(words)]
        show_patches(self._loop.run(self._ws.unsaved(paths)))

    def _fork(self, name: str) -> None:
        if not name:
            raise RametError("invalid_argument", "missing argument NAME", "write !fork NAME")
        self._loop.run(self._ws.commit(subject="before a fork"))
        print(self._store[self._ws.name].fork(None, name).name)

    def _tag(self, name: str) -> None:
        if not name:
            raise RametError("invalid_argument", "missing argument TAG", "write !tag TAG")
        self._store[self._ws.name].tag(name)
        print(f"{self._ws.name}@{name}")

    def _mounts(self, _: str) -> None:
        for mount in self._ws.mounts():
            print(f"{mount.prefix!s:<20} {type(mount.resource).__name__:<16} {mount.mode.value}")

    def _help(self, _: str) -> None:
        width = max(len(f"{name} {takes}") for name, (takes, _) in VERBS.items())
        for name, (takes, text) in VERBS.items():
            print(f"{f'{name} {takes}':<{width}}  {text}")


class RemoteTerminal(Terminal):
    """The terminal of a server's workspace; by default the server commits before each response."""

    _leaving = "leaves"
    _local = False

    def _prompt(self) -> str:
        head = self._store[self._ws.name].head
        seq = self._ws.revision or ("" if head is None else head.seq)
        cwd = self._loop.run(self._ws.get_session()).cwd
        return _colored_prompt(f"{self._ws.name}{f'@{seq}' if seq else ''}", cwd)

    def _cwd(self) -> object:
        return self._loop.run(self._ws.get_session()).cwd

    def _commit(self, message: str) -> None:
        made = self._loop.run(self._ws.commit(_message(message)))
        print(made.name)
        report_note(made, _message(message))

    def _diff(self, words: str) -> None:
        paths = [self._absolute(path) for path in shlex.split(words)]
        show_patches(self._store[self._ws.name].patch(self._ws.revision, paths=paths))

    def _mounts(self, _: str) -> None:
        for mount in self._loop.run(self._ws.mounts()):
            print(f"{mount.prefix:<20} {mount.type:<16} {mount.mode}")


_LEAVING: Final = re.compile(r"(?:!exit|!quit|exit|logout)(?:\s+(\d+))?")


def _message(text: str) -> str:
    """Return the message of `!commit MESSAGE`, or of `!commit -m MESSAGE`."""
    if not text.startswith("-m"):
        return text
    try:
        return " ".join(shlex.split(text[2:]))
    except ValueError:
        return text[2:].strip()


def _colored_prompt(where: str, cwd: object) -> str:
    """Return the prompt; colours are marked as zero width for readline."""
    if "NO_COLOR" in os.environ or not sys.stdout.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        return f"{where}:{cwd}$ "
    return f"\001\033[1;32m\002{where}\001\033[0m\002:\001\033[1;34m\002{cwd}\001\033[0m\002$ "
