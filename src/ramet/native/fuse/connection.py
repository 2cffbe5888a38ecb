"""`Connection`: one FUSE mount: take the kernel's requests from its device, run each as a task, reply.

- Nothing of it waits: the device is read when it is ready, on the loop that runs the commands.
- A request runs in the context of the command whose program asks (`callers.py`), with its view of the tree.
- A signal to the program ends a read or a look; a change is finished first, unless the call was cancelled.
- Closing the device ends the mount: the kernel fails every request with ENOTCONN, also after a kill of this process.
"""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from collections.abc import Awaitable, Callable
from typing import Final

from ramet.core.errors import reason, strerror
from ramet.core.limits import Cancelled, TimeUp
from ramet.native.fuse.callers import Caller, Callers
from ramet.native.fuse.messages import (
    BATCH_IN,
    BUFFER,
    FORGET_IN,
    FORGET_ONE,
    HEADER,
    INIT_IN,
    INIT_OUT,
    INTERRUPT_IN,
    LARGEST,
    MAJOR,
    MINOR,
    PAGES,
    READ_IN,
    READAHEAD,
    REPLY,
    Init,
    Op,
)
from ramet.native.fuse.verbs import INTERRUPTIBLE, OF_A_FILE, VERBS, Ask, MountedTree

TURN: Final = 64
"""Requests that are taken before other work of the loop gets its turn."""
CLOSE_SECONDS: Final = 5.0
"""How long a busy loop may take to close a device that another thread wants closed."""
MOST_HELD: Final = 64 << 20
"""Bytes of requests that are being answered, after which no more are taken."""
SETTLE_SECONDS: Final = 1.0
"""How long the last requests of a program may take after its end."""
EXPECTED: Final = frozenset((
    errno.ENOENT, errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENOTEMPTY, errno.EROFS, errno.EXDEV, errno.ELOOP,
    errno.ENAMETOOLONG, errno.ENOTSUP, errno.EINVAL, errno.EPERM, errno.EBUSY, errno.ESTALE,
))  # fmt: skip
"""Errors that need no words beyond those of the program."""
STORES: Final = frozenset((Op.FLUSH, Op.FSYNC, Op.RELEASE))
"""Most programs do not look at what closing a file returns."""


class Connection:
    """Serves one tree at the descriptor of its device. Call `attend` on the loop that runs programs."""

    def __init__(self, fd: int, tree: MountedTree, callers: Callers) -> None:
        self._fd, self._tree, self._callers = fd, tree, callers
        self._loop: asyncio.AbstractEventLoop | None = None
        self._buffer = bytearray(BUFFER)
        self._running: dict[int, tuple[Op, asyncio.Task[None]]] = {}
        """Tasks by the number of their request."""
        self._held = 0
        """Bytes that these were asked with, and for."""
        self._paused = False
        os.set_blocking(fd, False)

    @property
    def alive(self) -> bool:
        return self._fd >= 0

    def attend(self) -> None:
        """Serve on the running loop."""
        loop = asyncio.get_running_loop()
        if loop is self._loop or self._fd < 0:
            return
        self._paused = False
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._fd)
        self._loop = loop
        loop.add_reader(self._fd, self._readable)

    async def settle(self, caller: Caller) -> None:
        """Finish what the kernel has still to say for a program that has ended."""
        self._readable()
        if caller.last:
            await asyncio.wait(caller.last, timeout=SETTLE_SECONDS)

    def close(self) -> None:
        """Close the device, on the loop that reads it: its number may be that of another file a moment later."""
        try:
            running: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        loop = self._loop
        if loop is None or loop is running or not loop.is_running():
            self._close()
            return
        closed = threading.Event()

        def close() -> None:
            self._close()
            closed.set()

        try:
            loop.call_soon_threadsafe(close)
        except RuntimeError:  # the loop has just been closed
            self._close()
            return
        if not closed.wait(CLOSE_SECONDS):
            self._close()  # the loop waits for this thread

    def _close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd < 0:
            return
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(fd)
            for _, task in self._running.values():
                task.cancel()
        os.close(fd)
        self._tree.close()

    # ------------------------------------------------------------------------------------------------ requests

    def _readable(self) -> None:
        for _ in range(TURN):
            if self._fd < 0:
                return
            try:
                size = os.readv(self._fd, [self._buffer])
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in (errno.ENOENT, errno.EINTR):  # the request was taken back
                    continue
                self._end()
                return
            self._take(memoryview(self._buffer)[:size])
            if self._held > MOST_HELD and self._loop is not None:
                self._loop.remove_reader(self._fd)
                self._paused = True
                return

    def _resume(self, size: int) -> None:
        """Take requests again when some have been answered."""
        self._held -= size
        if self._paused and self._held <= MOST_HELD and self._fd >= 0 and self._loop is not None:
            self._paused = False
            self._loop.add_reader(self._fd, self._readable)

    def _end(self) -> None:
        """The box has gone, and the mount with it."""
        if self._loop is not None:
            self._loop.remove_reader(self._fd)

    def _take(self, message: memoryview) -> None:
        _, number, unique, node, uid, gid, pid, _ = HEADER.unpack_from(message)
        body = bytes(message[HEADER.size :])
        if number == Op.FORGET:
            self._tree.nodes.forget(node, FORGET_IN.unpack(body)[0])
        elif number == Op.BATCH_FORGET:
            count = BATCH_IN.unpack_from(body)[0]
            for at in range(count):
                self._tree.nodes.forget(*FORGET_ONE.unpack_from(body, BATCH_IN.size + at * FORGET_ONE.size))
        elif number == Op.INTERRUPT:
            self._interrupt(INTERRUPT_IN.unpack_from(body)[0])
        elif number == Op.INIT:
            self._reply(unique, 0, _init(body))
        elif number == Op.DESTROY:
            self._reply(unique, 0)
        elif number not in VERBS:
            self._reply(unique, errno.ENOSYS)
        else:
            self._start(Op(number), Ask(unique, node, uid, gid, pid, body))

    def _start(self, op: Op, ask: Ask) -> None:
        caller = self._tree.opener(ask) if op in OF_A_FILE else self._callers.find(ask.pid)
        if caller is None:
            self._reply(ask.unique, errno.EACCES)
            return
        ask.caller = caller
        loop = asyncio.get_running_loop()
        size = len(ask.body) + (READ_IN.unpack_from(ask.body)[2] if op is Op.READ else 0)
        self._held += size
        task = loop.create_task(self._answer(op, ask, caller, VERBS[op]), context=caller.context)
        self._running[ask.unique] = op, task
        task.add_done_callback(lambda _: self._resume(size))
        caller.tasks.add(task)
        task.add_done_callback(caller.tasks.discard)
        if op is Op.RELEASE:
            caller.last.add(task)
            task.add_done_callback(caller.last.discard)

    def _interrupt(self, unique: int) -> None:
        found = self._running.get(unique)
        if found is not None and found[0] in INTERRUPTIBLE:
            found[1].cancel()

    async def _answer(
        self, op: Op, ask: Ask, caller: Caller, verb: Callable[[MountedTree, Ask], Awaitable[bytes]]
    ) -> None:
        try:
            answer = await verb(self._tree, ask)
        except asyncio.CancelledError:
            self._reply(ask.unique, errno.EINTR)
        except OSError as error:
            number = error.errno or errno.EIO
            if op in STORES or (number not in EXPECTED and reason(error) != strerror(number)):
                what = "cannot store" if op in STORES else "cannot use"
                caller.report(f"{what} {error.filename or self._tree.describe(ask)}: {reason(error)}")
            self._reply(ask.unique, errno.ENOTSUP if number == errno.ENOSYS else number)
        except (Cancelled, TimeUp):
            self._reply(ask.unique, errno.EINTR)
        except Exception as error:  # a backend's fault must not leave the program waiting
            caller.report(f"cannot use {self._tree.describe(ask)}: {error or type(error).__name__}")
            self._reply(ask.unique, errno.EIO)
        else:
            self._reply(ask.unique, 0, answer)
        finally:
            self._running.pop(ask.unique, None)

    def _reply(self, unique: int, error: int, payload: bytes = b"") -> None:
        if self._fd < 0:
            return
        parts = [REPLY.pack(REPLY.size + len(payload), -error, unique)]
        if payload:
            parts.append(payload)
        try:
            os.writev(self._fd, parts)
        except OSError as failure:
            if failure.errno not in (errno.ENOENT, errno.ENODEV, errno.EINTR):  # the program or the box has gone
                raise


def _init(body: bytes) -> bytes:
    _, minor, readahead, flags = INIT_IN.unpack_from(body)
    wanted = Init.ATOMIC_O_TRUNC | Init.BIG_WRITES | Init.AUTO_INVAL_DATA | Init.PARALLEL_DIROPS | Init.MAX_PAGES
    return INIT_OUT.pack(
        MAJOR, min(minor, MINOR), min(readahead, READAHEAD), flags & wanted, 16, 12, LARGEST, 1, PAGES, 0, 0, 0
    )
