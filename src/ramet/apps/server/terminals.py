"""`TerminalConnection`: the terminal of a person over a WebSocket: commands of one session, their keys and output.

The client sends text frames with JSON, and keys as binary frames:

    {"type": "run", "command": "python3", "rows": 24, "columns": 80}   one command at a time
    {"type": "resize", "rows": 30, "columns": 100}
    {"type": "shown", "bytes": 4096}     output that it has drawn
    {"type": "stop"}                     end the command, as Ctrl-C does where no program has the keys
    {"type": "end"}                      end of the input, as Ctrl-D does

The server sends output as binary frames, and:

    {"type": "ready", "cwd": "/src", "native": true}
    {"type": "raw", "on": true}          a program has the keys: each one goes to it at once
    {"type": "incomplete"}               the command goes on in another line; nothing has run
    {"type": "ended", "exit_code": 0, "timed_out": false, "duration_ms": 3.1, "cwd": "/src"}
    {"type": "problem", "code": ..., "cause": ..., "remediation": ...}

Rules that this file keeps:
- Between commands it holds nothing: others can open the workspace.
- At most `WINDOW` bytes are on their way; a program that prints more waits until the client has drawn them.
- A client that disconnects, or types nothing for `terminal_idle_seconds`, ends its command.
- Each command is checked, recorded and committed like a command of `POST /exec`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from msgspec import Meta

from ramet.apps.server import models
from ramet.apps.server.handlers.exec import executed
from ramet.apps.server.problems import Refusal, internal, problem_of
from ramet.apps.server.request import Call, Receive, Send, encode_json
from ramet.core.errors import RametError
from ramet.core.limits import Limits
from ramet.core.terminal import TerminalInput
from ramet.workspace.completion import is_incomplete

if TYPE_CHECKING:
    from ramet.apps.server.api import Api

PROTOCOL: Final = "ramet.terminal"
BEARER: Final = "ramet.bearer."
"""Prefix of the subprotocol that carries the token, in base64 without padding: browsers cannot send a header."""
WINDOW: Final = 512 * 1024
KEYS: Final = 1 << 20
"""Bytes that were typed and not read by a program; a client that sends more is disconnected."""
TERM: Final = {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
UNACCEPTABLE, TRY_LATER, TOO_BIG = 1008, 1013, 1009

Size = Annotated[int, Meta(ge=1, le=1000)]


class _Frame(msgspec.Struct, tag_field="type", forbid_unknown_fields=True):
    pass


class RunFrame(_Frame, tag="run"):
    command: Annotated[str, Meta(max_length=1 << 20)]
    rows: Size = 24
    columns: Size = 80


class ResizeFrame(_Frame, tag="resize"):
    rows: Size
    columns: Size


class ShownFrame(_Frame, tag="shown"):
    bytes: Annotated[int, Meta(ge=0)]


class StopFrame(_Frame, tag="stop"):
    pass


class EndFrame(_Frame, tag="end"):
    pass


_decoder: Final = msgspec.json.Decoder(RunFrame | ResizeFrame | ShownFrame | StopFrame | EndFrame)


class TerminalQuery(models.Body):
    session: models.Id = "default"


class _Closed(Exception):
    """The conversation is over; the client is told why where it can be."""

    def __init__(self, code: int = 1000, reason: str = "") -> None:
        super().__init__(reason)
        self.code, self.reason = code, reason


class TerminalConnection:
    """One connected client."""

    def __init__(self, api: Api, call: Call, receive: Receive, send: Send) -> None:
        self._api, self._call, self._receive, self._send = api, call, receive, send
        self._name = call.parts[0]
        self._session = "default"
        self._rows, self._columns = 24, 80
        self._keys: deque[bytes] = deque()
        self._typed = 0
        self._key = asyncio.Event()
        self._input = TerminalInput(self._read_keys, lambda: (self._rows, self._columns), self._raw)
        self._out: asyncio.Queue[bytes | dict[str, Any]] = asyncio.Queue()
        self._drawing = 0
        """Bytes of output that the client has not drawn yet."""
        self._drawn = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    async def serve(self) -> None:
        """Talk to the client until either side ends it."""
        assert (await self._receive())["type"] == "websocket.connect"
        offered = self._call.scope.get("subprotocols", ())
        await self._send({"type": "websocket.accept", "subprotocol": PROTOCOL if PROTOCOL in offered else None})
        closed = _Closed()
        writing = asyncio.create_task(self._write())
        try:
            await self._begin()
            await self._listen()
        except _Closed as why:
            closed = why
        except (RametError, OSError, Refusal) as error:
            self._out.put_nowait(_problem(error))
            closed = _Closed(UNACCEPTABLE)
        finally:
            await self._stop()
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)
            if not self._call.gone:
                await self._farewell(closed)

    async def _farewell(self, closed: _Closed) -> None:
        """Send what is left, and close."""
        with contextlib.suppress(OSError):  # the client has gone meanwhile
            while not self._out.empty():
                await self._send_item(self._out.get_nowait())
            await self._send({"type": "websocket.close", "code": closed.code, "reason": closed.reason})

    async def _begin(self) -> None:
        self._session = self._call.query(TerminalQuery).session
        api = self._api
        await api.access.may_run(self._call, self._name)
        bound = api.settings.bounds.terminals
        if api.terminals > bound:
            raise RametError("limit_exceeded", f"{bound} terminals are open", "Close one, and try again.")
        found = {"cwd": await self._saved_cwd(), "native": await api.workspaces.runs_native(self._name)}
        self._out.put_nowait({"type": "ready", **found})

    async def _saved_cwd(self) -> str | None:
        """The directory of the session, without opening the workspace; None for a new session."""
        hosted = self._api.workspaces.find(self._name)
        if hosted is not None:
            return next((str(one.cwd) for one in hosted.ws.list_sessions() if one.session_id == self._session), None)
        handle = self._api.handle(self._call)

        def look() -> str | None:
            ref = handle()
            saved = ref.sessions(None) if ref.head is not None else []
            return next((one.cwd for one in saved if one.session_id == self._session), None)

        return await self._api.workspaces.blocking(look)

    # ------------------------------------------------------------------------------------------- the client's frames

    async def _listen(self) -> None:
        idle = self._api.settings.bounds.terminal_idle_seconds
        loop = asyncio.get_running_loop()
        until = loop.time() + idle
        while True:
            try:
                async with asyncio.timeout_at(until):
                    message = await self._receive()
            except TimeoutError:
                raise _Closed(TRY_LATER, f"nothing was typed for {idle:g} s") from None
            if message["type"] == "websocket.disconnect":
                self._call.gone = True
                raise _Closed
            keys = message.get("bytes")
            if keys is None:
                active = self._take(message["text"])
            else:
                active = True
                self._type(keys)
            if active:
                until = loop.time() + idle

    def _take(self, text: str) -> bool:
        """Act on a frame; return whether a person has done something."""
        try:
            frame = _decoder.decode(text)
        except msgspec.MsgspecError as error:
            raise _Closed(UNACCEPTABLE, str(error)[:100]) from None
        if isinstance(frame, ShownFrame):
            self._drawing = max(0, self._drawing - frame.bytes)
            self._drawn.set()
            return False
        if isinstance(frame, RunFrame):
            self._run(frame)
        elif isinstance(frame, ResizeFrame):
            self._rows, self._columns = frame.rows, frame.columns
            self._input.resized()
        elif isinstance(frame, EndFrame):
            self._type(b"")
        elif self._running is not None:
            self._running.cancel()
        return True

    def _type(self, keys: bytes) -> None:
        if self._running is None:
            return  # its program has ended
        self._typed += len(keys)
        if self._typed > KEYS:
            raise _Closed(TOO_BIG, "the program does not read what is typed")
        self._keys.append(keys)
        self._key.set()

    async def _read_keys(self) -> bytes:
        while not self._keys:
            self._key.clear()
            await self._key.wait()
        keys = self._keys.popleft()
        self._typed -= len(keys)
        return keys

    # ----------------------------------------------------------------------------------------------------- commands

    def _run(self, frame: RunFrame) -> None:
        if self._running is not None:
            raise _Closed(UNACCEPTABLE, "a command runs already")
        self._rows, self._columns = frame.rows, frame.columns
        if is_incomplete(frame.command):
            self._out.put_nowait({"type": "incomplete"})
            return
        self._running = asyncio.create_task(self._execute(frame.command))

    async def _execute(self, command: str) -> None:
        try:
            told = await self._result(command)
        except asyncio.CancelledError:
            told = {"type": "ended", "exit_code": 130, "timed_out": False, "duration_ms": 0.0, "cwd": None}
            if self._call.gone:
                raise
        except Exception as error:  # the task is awaited only to end it: any error is its outcome
            told = _problem(error)
        self._keys.clear()
        self._typed = 0
        self._running = None
        self._out.put_nowait(told)

    async def _result(self, command: str) -> dict[str, Any]:
        api = self._api
        await api.access.may_run(self._call, self._name)  # a grant may be gone meanwhile
        hosted = await api.workspaces.enter(self._name)
        try:
            asked = models.Exec(command=command, session=self._session)
            limits = replace(hosted.ws.settings.limits, output_bytes=Limits().output_bytes)
            known = {one.session_id for one in hosted.ws.list_sessions()}
            if self._session not in known:
                if len(known) >= api.settings.bounds.sessions:
                    raise RametError("limit_exceeded", f"the workspace already has {len(known)} sessions", "close one")
                hosted.ws.create_session(self._session)
            execution = hosted.ws.execute(
                command, self._session, self._input, agent_id=asked.agent, env=TERM, limits=limits
            )
            session = hosted.ws.get_session(self._session)
            async with contextlib.aclosing(executed(api, hosted, asked, execution)) as pieces:
                async for piece in pieces:
                    await self._show(piece.data)
            result = execution.result
            assert result is not None
            return {
                "type": "ended", "exit_code": result.exit_code, "timed_out": result.timed_out,
                "duration_ms": result.duration * 1000, "cwd": str(session.cwd),
            }  # fmt: skip
        finally:
            hosted.leave()

    async def _stop(self) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    # ------------------------------------------------------------------------------------------------------- output

    def _raw(self, on: bool) -> None:
        self._out.put_nowait({"type": "raw", "on": on})

    async def _show(self, data: bytes) -> None:
        while self._drawing >= WINDOW:
            self._drawn.clear()
            await self._drawn.wait()
        self._drawing += len(data)
        self._out.put_nowait(data)

    async def _write(self) -> None:
        while True:
            await self._send_item(await self._out.get())

    async def _send_item(self, item: bytes | dict[str, Any]) -> None:
        if isinstance(item, bytes):
            await self._send({"type": "websocket.send", "bytes": item})
        else:
            await self._send({"type": "websocket.send", "text": encode_json(item).decode()})


def _problem(error: BaseException) -> dict[str, Any]:
    found = error.problem if isinstance(error, Refusal) else problem_of(error) or internal()
    plain: dict[str, Any] = msgspec.to_builtins(found)
    return {**plain, "type": "problem"}
