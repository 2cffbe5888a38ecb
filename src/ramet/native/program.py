"""Run one native program with the streams of a shell stage: pumps, exit status, kill on cancel.

- Pipes between stages and files of the tree are given to the program as they are (`lend`). Every other stream is a
  kernel pipe on the program's side and is pumped with back-pressure: a full reader stops the program.
- Input that the program did not read goes back to its stream, so that `while read x; do program; done` sees all lines.
- A cancelled stage kills the program's whole process tree before it returns.
- What a program leaves behind is a job of its shell. What that prints arrives as long as its call lasts; a command
  substitution waits for it. After the call it is discarded.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import select
import shlex
import signal
import socket
import struct
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ramet.core.errors import RametError, fail, strerror
from ramet.core.proc import Daemon, Proc
from ramet.core.signals import BySignal
from ramet.core.streams import FileStream, Null, PipeReader, PipeWriter, Reader, Writer
from ramet.core.terminal import DEFAULT_SIZE, TerminalInput
from ramet.native.box import Box, Request
from ramet.native.confinement import Point
from ramet.native.layout import file_owner

BLOCK: Final = 256 * 1024
KILL_SECONDS: Final = 3.0
"""How long a process tree may take to end before the whole box is ended."""
TERM_SECONDS: Final = 0.1
"""What a program has for its last words; a cancelled call ends within 200 ms."""
END_KEY: Final = b"\x04"
LAST_SECONDS: Final = 0.05
"""How long the kernel may take to pass on the last output of a terminal."""
TERMINAL: Final = -1
"""The number of the program's terminal among our descriptors."""
ORPHAN_SECONDS: Final = 0.02
"""What processes have to end after their program: those that take longer are daemons."""
TEXT: Final = 200
"""Characters of a daemon's command line that are shown."""
INHERITED: Final = 256
"""Descriptors from this number on are the shell's own."""


@dataclass
class _Ending:
    """What the worker has said so far."""

    taken: bool = False
    failure: int = 0
    stage: str = ""
    wait_status: int | None = None
    limit: str = ""
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    """The program has ended, or was never started."""
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    """Its whole process tree has."""


class Daemons:
    """Process trees that outlive their program: their pipes are read until they end, and they end with the box."""

    def __init__(self) -> None:
        self._fds: dict[int, asyncio.AbstractEventLoop] = {}
        self._ended: dict[int, asyncio.Event] = {}
        self._writers: dict[int, Writer] = {}
        """Where output goes, by pipe."""
        self._heard: dict[int, asyncio.Event] = {}
        """Set when the output of a pipe has no reader any more, or it has ended."""
        self._waiting: dict[int, asyncio.Task[None]] = {}
        """Pipes that are not read until their writer has room."""

    def drain(self, fd: int, ended: asyncio.Event | None = None) -> None:
        """Discard what arrives at a pipe until its end, and close it; then set `ended`."""
        loop = asyncio.get_running_loop()

        self._fds[fd] = loop
        if ended is not None:
            self._ended[fd] = ended
        loop.add_reader(fd, self._read, fd)

    def pass_on(self, fd: int, writer: Writer) -> asyncio.Event:
        """Write what arrives at a pipe until it ends or the writer is let go of; the event says that."""
        self._writers[fd] = writer
        heard = self._heard[fd] = asyncio.Event()
        self.drain(fd)
        return heard

    def let_go(self, writers: Sequence[Writer]) -> None:
        """Discard what these would get from now on: their call has ended."""
        for fd in [fd for fd, writer in self._writers.items() if any(writer is one for one in writers)]:
            self._discard(fd)

    def _discard(self, fd: int) -> None:
        self._writers.pop(fd, None)
        if (heard := self._heard.pop(fd, None)) is not None:
            heard.set()
        if (task := self._waiting.pop(fd, None)) is not None:
            task.cancel()
            self._fds[fd].add_reader(fd, self._read, fd)

    def tell(self, fd: int, message: bytes) -> None:
        """Send a message to the worker of a process tree, if there still is one."""
        if fd in self._fds:
            try:
                os.write(fd, message)
            except OSError:
                pass  # it is ending

    def _read(self, fd: int) -> None:
        try:
            data = os.read(fd, BLOCK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._fds[fd].remove_reader(fd)
            self._close(fd)
        elif (writer := self._writers.get(fd)) is not None:
            self._write(fd, writer, data)

    def _write(self, fd: int, writer: Writer, data: bytes) -> None:
        try:
            writer.write(data)
            if not writer.full:
                return
        except (OSError, RametError):  # its reader has gone, or has had enough
            self._discard(fd)
            return
        loop = self._fds[fd]
        loop.remove_reader(fd)
        self._waiting[fd] = loop.create_task(self._resume(fd, writer))

    async def _resume(self, fd: int, writer: Writer) -> None:
        """Read a pipe again once its writer has room."""
        try:
            await writer.drain()
        except (OSError, RametError):
            self._discard(fd)
            return
        del self._waiting[fd]
        self._fds[fd].add_reader(fd, self._read, fd)

    def _close(self, fd: int) -> None:
        self._fds.pop(fd, None)
        self._writers.pop(fd, None)
        if (task := self._waiting.pop(fd, None)) is not None:
            task.cancel()
        os.close(fd)
        for event in (self._heard.pop(fd, None), self._ended.pop(fd, None)):
            if event is not None:
                event.set()

    def alive(self, seconds: float = 0.0) -> bool:
        """Whether a process is left, after waiting for the end of those that are ending."""
        deadline = time.monotonic() + seconds
        while self._fds:
            ready, _, _ = select.select([*self._fds], [], [], max(0.0, deadline - time.monotonic()))
            if not ready or any(fd in self._waiting for fd in ready):
                return True
            for fd in ready:
                self._read(fd)
        return False

    def close(self) -> None:
        try:
            running: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        while self._fds:
            fd, loop = next(iter(self._fds.items()))
            if loop is running:
                loop.remove_reader(fd)
            self._close(fd)


async def run_program(
    box: Box, daemons: Daemons, path: str, proc: Proc, env: Mapping[str, str], caller: int = 0,
    points: tuple[Point, ...] = (),
) -> int:  # fmt: skip
    """Start a program in the box with the streams of `proc`, and return its exit status.

    `caller` is its number for the files of remote mounts, `points` say what it may do where.
    """
    while True:
        run = _start(box, daemons, path, proc, env, caller, points)
        status = await run.finish()
        if run.taken or not box.alive:
            return status
        # A program has killed the worker before it took the request; the next one has a new worker.


def _start(
    box: Box, daemons: Daemons, path: str, proc: Proc, env: Mapping[str, str], caller: int, points: tuple[Point, ...]
) -> _Run:
    with file_owner(box.owner):
        streams = _Streams.of(proc)
    ends: dict[int, tuple[int, int]] = {}
    try:
        with file_owner(box.owner):
            for number in streams.pumped:
                ends[number] = _kernel_pipe()
    except OSError:
        _close_all(ends)
        raise
    inputs, outputs = streams.inputs, streams.outputs
    theirs = {number: ends[number][0 if number in inputs else 1] for number in ends}
    ours = {number: ends[number][1 if number in inputs else 0] for number in ends}
    request = Request(
        path, proc.argv, env, str(proc.cwd), theirs | streams.lent, proc.umask, [*proc.services.ignored()],
        streams.size(proc), streams.lines, caller, proc.services.rlimits(), points,
    )  # fmt: skip
    try:
        channel = box.start(request)
    except OSError:
        _close_all(ends)
        raise
    for number in outputs:
        os.close(theirs[number])
    unread = {number: theirs[number] for number in inputs}
    return _Run(box, daemons, proc, channel, inputs, outputs, ours, unread, streams.lines)


def _kernel_pipe() -> tuple[int, int]:
    return os.pipe2(os.O_CLOEXEC)


@dataclass
class _Streams:
    """The streams of a program by its descriptor; /dev/null is opened inside the box."""

    inputs: dict[int, Reader] = field(default_factory=dict)
    outputs: dict[int, Writer] = field(default_factory=dict)
    lent: dict[int, int] = field(default_factory=dict)
    """Descriptors that the program gets as they are."""
    lines: list[int] = field(default_factory=list)
    """Those that lead to its terminal."""

    def size(self, proc: Proc) -> tuple[int, int] | None:
        """Return the rows and columns of the program's terminal."""
        if not self.lines:
            return None
        return proc.stdin.size if isinstance(proc.stdin, TerminalInput) else DEFAULT_SIZE

    @property
    def pumped(self) -> list[int]:
        return [*self.inputs, *self.outputs]

    @classmethod
    def of(cls, proc: Proc) -> _Streams:
        found = cls()
        if not found._lend(0, proc.stdin) and not isinstance(proc.stdin, Null):
            found.inputs[0] = proc.stdin
        for number, stream in ((1, proc.stdout), (2, proc.stderr)):
            if not found._lend(number, stream) and not isinstance(stream, Null):
                found.outputs[number] = stream
        for number, other in proc.fds.items():
            if number >= INHERITED or isinstance(other, Null) or found._lend(number, other):
                continue
            if isinstance(other, Writer) and not (isinstance(other, Reader) and f"/dev/fd/{number}" in proc.argv):
                found.outputs[number] = other
            elif isinstance(other, Reader):
                found.inputs[number] = other
        return found

    def _lend(self, number: int, stream: Reader | Writer) -> bool:
        fd = -1
        if stream.refused == errno.EBADF:
            return True
        if stream.terminal and number <= 2:
            self.lines.append(number)
            return True
        if isinstance(stream, FileStream):
            fd = stream.lend() if stream.lendable else -1
        elif isinstance(stream, PipeReader | PipeWriter):
            fd = stream.lend(_kernel_pipe)
        if fd >= 0:
            self.lent[number] = fd
        return fd >= 0


def _close_all(ends: Mapping[int, tuple[int, int]]) -> None:
    for pair in ends.values():
        for fd in pair:
            os.close(fd)


class _Run:
    def __init__(
        self,
        box: Box,
        daemons: Daemons,
        proc: Proc,
        channel: socket.socket,
        inputs: Mapping[int, Reader],
        outputs: Mapping[int, Writer],
        ours: Mapping[int, int],
        unread: Mapping[int, int],
        lines: Sequence[int] = (),
    ) -> None:
        self._box, self._daemons, self._proc, self._channel = box, daemons, proc, channel
        self._inputs, self._outputs, self._ours, self._unread = inputs, outputs, dict(ours), unread
        self._loop = asyncio.get_running_loop()
        self._lines = lines
        """The program's descriptors that lead to its terminal."""
        self._terminal: asyncio.Future[int] = self._loop.create_future()
        """The other end of its terminal; -1 when the program could not be started."""
        self._ending = _Ending()
        self._told = b""
        self._finishing = False
        self._waiting: set[asyncio.Future[None]] = set()
        """Pumps that wait for output."""
        self._held: dict[int, bytes] = {}
        """Input that was read and not yet written to the program's pipe."""
        channel.setblocking(False)
        for fd in ours.values():
            os.set_blocking(fd, False)
        self._loop.add_reader(channel, self._hear)
        if proc.services.receive is not None:
            proc.services.receive(self._signal)

    @property
    def taken(self) -> bool:
        """Whether a worker took the request: else nothing has happened."""
        return self._ending.taken

    # --------------------------------------------------------------------------------------------------- status

    def _hear(self) -> None:
        ending = self._ending
        try:
            data, fds, _, _ = socket.recv_fds(self._channel, 4096, 1)
        except BlockingIOError:
            return
        except ConnectionResetError:
            data, fds = b"", []
        for fd in fds:
            os.set_blocking(fd, False)
            self._terminal.set_result(fd)
            if isinstance(self._proc.stdin, TerminalInput):
                self._resize(*self._proc.stdin.size)
        if not data:
            self._no_terminal()
            self._loop.remove_reader(self._channel)
            ending.ended.set()
            ending.gone.set()
            return
        self._told += data
        *lines, self._told = self._told.split(b"\n")
        for line in lines:
            kind, rest = line[:1], line[1:].decode()
            if kind == b"T":
                ending.taken = True
            elif kind == b"E":
                number, _, ending.stage = rest.partition(":")
                ending.failure = int(number)
                self._no_terminal()
                ending.ended.set()
            elif kind == b"X":
                ending.wait_status = int(rest)
                ending.ended.set()
            elif kind == b"L":
                ending.limit = rest

    def _no_terminal(self) -> None:
        if not self._terminal.done():
            self._terminal.set_result(-1)

    # -------------------------------------------------------------------------------------------------- running

    async def finish(self) -> int:
        pumps = [asyncio.create_task(self._pump_in(number)) for number in self._inputs]
        outs = [asyncio.create_task(self._pump_out(number)) for number in self._outputs]
        if self._lines:
            pumps.append(asyncio.create_task(self._type()))
            outs.append(asyncio.create_task(self._show()))
            self._attach(True)
        ending = self._ending
        try:
            await self._wait_ended(outs)
            for task in pumps:
                task.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            await self._last_output(outs)
            await self._last_processes()
        except BaseException:
            for task in (*pumps, *outs):
                task.cancel()
            await asyncio.gather(*pumps, *outs, return_exceptions=True)
            await asyncio.shield(self._kill())
            raise
        finally:
            if self._proc.services.receive is not None:
                self._proc.services.receive(None)
            if self._lines:
                self._attach(False)
            self._release()
        return self._status(ending)

    async def _wait_ended(self, outs: list[asyncio.Task[None]]) -> None:
        """Wait for the program; an output stream that fails for another reason than its reader ends it."""
        ended = asyncio.ensure_future(self._ending.ended.wait())
        waiting: set[asyncio.Future[object]] = {ended, *outs}  # type: ignore[arg-type]
        try:
            while not ended.done():
                done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
        finally:
            ended.cancel()

    async def _last_output(self, outs: list[asyncio.Task[None]]) -> None:
        """Pass on what the program wrote before it ended: all of it is in the pipes, which a daemon may keep open."""
        self._finishing = True
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)
        await asyncio.gather(*outs)

    async def _last_processes(self) -> None:
        """Let what the program started end with it."""
        try:
            async with asyncio.timeout(ORPHAN_SECONDS):
                await self._ending.gone.wait()
        except TimeoutError:
            return  # daemons

    def _attach(self, on: bool) -> None:
        """Give the user's keys and window to the program's terminal, or take them back."""
        user = self._proc.stdin
        if isinstance(user, TerminalInput):
            user.raw(on)
            user.on_resize = self._resize if on else None

    def _resize(self, rows: int, columns: int) -> None:
        """Resize the program's terminal before it gets the keys that are typed next."""
        if self._terminal.done() and (fd := self._terminal.result()) >= 0:
            fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    async def _type(self) -> None:
        """Type what the user types; the end of that is the key ^D."""
        fd = await asyncio.shield(self._terminal)
        try:
            while 0 in self._lines and fd >= 0:
                keys = await self._proc.stdin.read(BLOCK)
                data = keys or END_KEY
                while data:
                    try:
                        data = data[os.write(fd, data) :]
                    except BlockingIOError:
                        await self._ready(fd, write=True)
                if not keys:
                    return
        except OSError:
            return  # the program has closed its terminal

    async def _show(self) -> None:
        """Show what the program prints at its terminal."""
        fd = await asyncio.shield(self._terminal)
        writer = self._proc.stdout if 1 in self._lines else self._proc.stderr
        try:
            while fd >= 0:
                try:
                    data = os.read(fd, BLOCK)
                except BlockingIOError:
                    try:
                        async with asyncio.timeout(LAST_SECONDS if self._finishing else None):
                            await self._ready(fd, write=False)
                    except TimeoutError:
                        return  # a daemon keeps the terminal open
                    continue
                if not data:
                    return
                writer.write(data)
                if writer.full:
                    await writer.drain()
        except BrokenPipeError:
            return  # who looked at it has gone
        except OSError as error:
            if error.errno != errno.EIO:  # the last program has closed the terminal
                raise

    async def _pump_out(self, number: int) -> None:
        fd, writer = self._ours[number], self._outputs[number]
        try:
            while True:
                try:
                    data = os.read(fd, BLOCK)
                except BlockingIOError:
                    if self._finishing:
                        return
                    await self._ready(fd, write=False)
                    continue
                if not data:
                    self._close(number)
                    return
                writer.write(data)
                if writer.full:
                    await writer.drain()
                await self._proc.budget.yield_turn()
        except BrokenPipeError:
            self._close(number)  # the program gets SIGPIPE

    async def _pump_in(self, number: int) -> None:
        fd, reader = self._ours[number], self._inputs[number]
        try:
            while True:
                data = self._held.get(number) or await reader.read(BLOCK)
                if not data:
                    return
                self._held[number] = data
                while data:
                    try:
                        data = data[os.write(fd, data) :]
                        self._held[number] = data
                    except BlockingIOError:
                        await self._ready(fd, write=True)
        except BrokenPipeError:
            return  # the program reads no more
        finally:
            self._close(number)

    async def _ready(self, fd: int, *, write: bool) -> None:
        ready: asyncio.Future[None] = self._loop.create_future()
        add, remove = (
            (self._loop.add_writer, self._loop.remove_writer)
            if write
            else (self._loop.add_reader, self._loop.remove_reader)
        )
        add(fd, lambda: None if ready.done() else ready.set_result(None))
        if not write:
            self._waiting.add(ready)
        try:
            await ready
        finally:
            self._waiting.discard(ready)
            remove(fd)

    # --------------------------------------------------------------------------------------------------- ending

    def _signal(self, number: int) -> None:
        """Send a signal to the program and what it has started."""
        self._tell(b"s%d\n" % number)

    def _tell(self, message: bytes) -> None:
        try:
            self._channel.send(message)
        except OSError:
            pass  # the worker has ended

    async def _kill(self) -> None:
        """Kill the whole process tree, after SIGTERM; where that fails, the box with everything in it."""
        for message, seconds in ((b"s%d\n" % signal.SIGTERM, TERM_SECONDS), (b"K", KILL_SECONDS)):
            self._tell(message)
            try:
                async with asyncio.timeout(seconds):
                    await self._ending.gone.wait()
                    return
            except TimeoutError:
                continue
        self._box.kill()

    def _release(self) -> None:
        """Give back unread input and close the pipes; those of daemons stay until they end."""
        for number, fd in self._unread.items():
            self._close(number)
            os.set_blocking(fd, False)
            parts: list[bytes] = []
            try:
                while block := os.read(fd, BLOCK):
                    parts.append(block)
            except BlockingIOError:
                pass  # a daemon still has the other end
            os.close(fd)
            parts.append(self._held.get(number, b""))
            if rest := b"".join(parts):
                self._inputs[number].unread(rest)
        self._no_terminal()
        if (terminal := self._terminal.result()) >= 0:
            self._ours[TERMINAL] = terminal
        if self._ending.gone.is_set():
            for number in list(self._ours):
                self._close(number)
            self._channel.close()
            return
        self._loop.remove_reader(self._channel)
        daemons, adopt = self._daemons, self._proc.services.adopt
        adopted = adopt is not None and not sys.exc_info()[0]
        printing = [number for number in self._ours if number in self._outputs] if adopted else []
        heard = [daemons.pass_on(self._ours[number], self._outputs[number]) for number in printing]
        for number, fd in self._ours.items():
            if number not in printing:
                daemons.drain(fd)
        channel, gone = self._channel.detach(), self._ending.gone  # closing the channel would kill them
        daemons.drain(channel, gone)
        if adopt is not None and adopted:
            text = shlex.join(self._proc.argv)
            shown = text if len(text) <= TEXT else f"{text[:TEXT]}..."

            async def silent() -> None:
                for one in heard:
                    await one.wait()

            adopt(Daemon(shown, gone.wait, lambda n: daemons.tell(channel, b"s%d\n" % n), silent, printing))

    def _close(self, number: int) -> None:
        fd = self._ours.pop(number, -1)
        if fd >= 0:
            os.close(fd)

    def _status(self, ending: _Ending) -> int:
        proc = self._proc
        if ending.limit:
            proc.complain(f"killed: the limit native.{ending.limit} of this workspace was reached")
        if ending.failure:
            if ending.stage == "cwd":
                proc.complain(f"cannot enter {proc.cwd}: {strerror(ending.failure)}: native programs do not see it")
                return 126
            raise fail(ending.failure, proc.name)
        if ending.wait_status is None:  # the worker was killed: by a program, or with the box
            return BySignal(signal.SIGKILL)
        if os.WIFSIGNALED(ending.wait_status):
            return BySignal(os.WTERMSIG(ending.wait_status))
        return os.WEXITSTATUS(ending.wait_status)


def cannot_execute(error: OSError) -> int:
    """Return the status of a program that could not be started: 127 when it is missing, else 126."""
    return 127 if error.errno == errno.ENOENT else 126
