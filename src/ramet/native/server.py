"""`HelperServer`: one process per Ramet process that forks the helper of each box.

Starting Python takes longer than building a box, and forks of one process share its memory. The server starts with the
first box of this process and ends with the last.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import threading
from typing import Final

from ramet.core.errors import RametError
from ramet.native.layout import Owner

ANSWER_SECONDS: Final = 20.0
"""How long a helper may take to answer on a busy machine."""
END_SECONDS: Final = 5.0
"""How long a killed process may take to end."""
PROGRAM: Final = os.path.join(os.path.dirname(__file__), "helper", "__main__.py")
"""What the server, the helpers, the zygotes and the workers run: in the command line of each."""


class Process:
    """A process of the machine that this one did not start, by a descriptor that no other process can take over."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._fd = os.pidfd_open(pid)

    @property
    def alive(self) -> bool:
        return not select.select([self._fd], [], [], 0)[0]

    def kill(self) -> None:
        """Kill it, and wait for its end."""
        try:
            signal.pidfd_send_signal(self._fd, signal.SIGKILL)
        except ProcessLookupError:
            pass  # it ended meanwhile
        select.select([self._fd], [], [], END_SECONDS)
        os.close(self._fd)


class HelperServer:
    """Call `fork` for each box, and `release` when its helper has ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._helpers = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._starter = 0
        """The process that started the server: a fork of it starts another."""

    def fork(self, owner: Owner) -> tuple[socket.socket, Process]:
        """Return the socket and the process of a new helper."""
        with self._lock:
            if self._starter != os.getpid():
                self._forget()
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                try:
                    process = self._ask(owner, theirs)
                except (OSError, ValueError):  # the server was killed
                    self._end()
                    try:
                        process = self._ask(owner, theirs)
                    except (OSError, ValueError) as error:
                        ours.close()
                        raise RametError(
                            "native_unavailable", f"cannot start the helper of native programs: {error}",
                            "`ramet doctor` checks what native programs need.",
                        ) from error  # fmt: skip
            ours.settimeout(ANSWER_SECONDS)
            self._helpers += 1
            return ours, process

    @property
    def pid(self) -> int | None:
        """The process id of the server while it runs."""
        return None if self._process is None else self._process.pid

    def release(self) -> None:
        """Count a helper as ended; the last one ends the server."""
        with self._lock:
            if self._starter != os.getpid():
                return
            self._helpers -= 1
            if self._helpers == 0:
                self._end()

    def _ask(self, owner: Owner, theirs: socket.socket) -> Process:
        if self._socket is None:
            self._start(owner)
        assert self._socket is not None
        socket.send_fds(self._socket, [b"fork"], [theirs.fileno()])
        return Process(int(self._socket.recv(64)))

    def _start(self, owner: Owner) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.settimeout(ANSWER_SECONDS)
        self._starter = os.getpid()
        identity = [str(owner.uid), str(owner.gid)] if owner.foreign else []
        options = ["-I", "-S", *(["-B"] if sys.dont_write_bytecode else [])]
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, *options, PROGRAM, *identity],
                stdin=theirs.fileno(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={}, cwd="/",
                start_new_session=True,
            )  # fmt: skip

    def _end(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _forget(self) -> None:
        """Leave the server to the process that started it."""
        if self._socket is not None:
            self._socket.close()
        self._helpers, self._socket = 0, None
        if self._process is not None:
            self._process.returncode = 0  # it is no child of this process
            self._process = None


SERVER: Final = HelperServer()
