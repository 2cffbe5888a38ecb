"""Terminals: commands that outlive one call, with live output and input."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agents.sandbox.errors import PtySessionNotFoundError
from agents.sandbox.session.pty_output import collect_pty_output
from agents.sandbox.session.pty_types import (
    PTY_PROCESSES_MAX,
    PTY_PROCESSES_WARNING,
    PtyExecUpdate,
    allocate_pty_process_id,
    process_id_to_prune_from_meta,
)

from ramet.agents.openai_agents.open_sandboxes import OpenSandbox
from ramet.core.paths import encode
from ramet.core.streams import PipeReader, PipeWriter, pipe
from ramet.core.terminal import TerminalInput

END_OF_INPUT = "\x04"
ENDING_KEY = re.compile("[\x03\x1c]")
ENDINGS = {"\x03": (b"^C\n", 130), "\x1c": (b"^\\\n", 131)}
"""Keys that end the command: their echo and the exit status, for SIGINT and SIGQUIT."""
KILLED, BROKEN = 137, 1

logger = logging.getLogger(__name__)


@dataclass
class Terminal:
    """One running command and its unread output."""

    stdin: PipeWriter | None
    """None if it was started without a terminal."""
    real: bool = False
    """Whether programs of the machine draw on a terminal of the kernel."""
    chunks: deque[bytes] = field(default_factory=deque)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    notify: asyncio.Event = field(default_factory=asyncio.Event)
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    exit_code: int | None = None
    last_used: float = field(default_factory=time.monotonic)
    task: asyncio.Task[None] | None = None

    def say(self, data: bytes) -> None:
        self.chunks.append(data)
        self.notify.set()

    async def end(self, exit_code: int) -> None:
        """Stop the command; a command that has ended keeps its own exit code."""
        if self.exit_code is None:
            self.exit_code = exit_code
        if self.task is not None:
            self.task.cancel()
            await asyncio.gather(self.task, return_exceptions=True)
        self.closed.set()  # a task cancelled before its first step closes nothing itself
        self.notify.set()


class Terminals:
    """The terminals of one session by their process ids."""

    def __init__(self) -> None:
        self._terminals: dict[int, Terminal] = {}

    async def start(self, live: OpenSandbox, text: str, env: Mapping[str, str], *, tty: bool) -> int:
        reader, writer = pipe() if tty else (None, None)
        if reader is not None:
            reader.terminal = True
        terminal = Terminal(writer, real=tty and live.workspace.programs is not None)
        terminal.task = asyncio.create_task(_run(live, text, env, terminal, reader))
        await self._make_room()
        process_id = int(allocate_pty_process_id(set(self._terminals)))
        self._terminals[process_id] = terminal
        if len(self._terminals) >= PTY_PROCESSES_WARNING:
            logger.warning("%d commands are running in terminals of this session", len(self._terminals))
        return process_id

    async def type(self, process_id: int, chars: str) -> None:
        """Type input: it is echoed, ^C and ^\\ end the command, ^D ends the input."""
        terminal = self._find(process_id)
        terminal.last_used = time.monotonic()
        if not chars:
            return
        if terminal.stdin is None:
            raise RuntimeError("stdin is not available for this process")
        key = ENDING_KEY.search(chars)
        if terminal.real:
            terminal.stdin.write(encode(chars))  # the program's terminal echoes and interprets it
            return
        before = chars[: key.start()] if key is not None else chars
        typed, ended, _ = before.partition(END_OF_INPUT)
        if typed and not terminal.closed.is_set():
            terminal.say(encode(typed))
            try:
                terminal.stdin.write(encode(typed))
            except BrokenPipeError:
                pass  # the command has closed its input; its output tells why
        if ended:
            terminal.stdin.close_now()
        if key is not None:
            shown, exit_code = ENDINGS[key[0]]
            terminal.say(shown)
            await terminal.end(exit_code)

    async def collect(self, process_id: int, yield_time_ms: int, max_output_tokens: int | None) -> PtyExecUpdate:
        """Return the output until the command ends or the time is up."""
        terminal = self._find(process_id)
        collected: tuple[Any, ...] = await collect_pty_output(
            output_chunks=terminal.chunks,
            output_lock=terminal.lock,
            output_notify=terminal.notify,
            is_done=terminal.closed.is_set,
            yield_time_ms=yield_time_ms,
            max_output_tokens=max_output_tokens,
        )
        output, tokens = collected[:2]
        # Older SDK versions let the caller check whether that was all.
        done = collected[2] if len(collected) > 2 else terminal.closed.is_set() and not terminal.chunks
        if done:
            self._terminals.pop(process_id, None)
        return PtyExecUpdate(
            process_id=None if done else process_id,
            output=output,
            exit_code=terminal.exit_code if done else None,
            original_token_count=tokens,
        )

    async def end_all(self) -> None:
        terminals, self._terminals = self._terminals, {}
        for terminal in terminals.values():
            await terminal.end(KILLED)

    def _find(self, process_id: int) -> Terminal:
        found = self._terminals.get(process_id)
        if found is None:
            raise PtySessionNotFoundError(session_id=process_id)
        return found

    async def _make_room(self) -> None:
        if len(self._terminals) < PTY_PROCESSES_MAX:
            return
        known = [(number, found.last_used, found.closed.is_set()) for number, found in self._terminals.items()]
        oldest = process_id_to_prune_from_meta(known)
        if oldest is not None:
            await self._terminals.pop(oldest).end(KILLED)


async def _run(
    live: OpenSandbox, text: str, env: Mapping[str, str], terminal: Terminal, stdin: PipeReader | None
) -> None:
    number = live.take_number()
    session_id = f"{live.label}-{number}"
    exit_code = BROKEN
    try:
        live.workspace.create_session(session_id, env=env, cwd=str(live.root))
        try:
            native = True if terminal.real else None
            given = TerminalInput(stdin.read) if stdin is not None and terminal.real else stdin
            execution = live.workspace.execute(text, session_id, stdin=given, agent_id=live.agent_id, native=native)
            async for output in execution:
                terminal.say(output.data)
            if execution.result is not None:
                exit_code = execution.result.exit_code
        finally:
            await live.workspace.close_session(session_id)
    except Exception as error:
        terminal.say(encode(f"ramet: {error}\n"))
    finally:
        live.busy.discard(number)
        if terminal.exit_code is None:
            terminal.exit_code = exit_code
        terminal.closed.set()
        terminal.notify.set()
