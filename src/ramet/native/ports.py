"""`Ports`: what listens on the loopback of a box, and connections to it from outside.

- A socket belongs to the network in which it was created. A helper creates sockets in the box's, and Ramet connects
  them: they reach the box's own loopback, and never that of the machine.
- A box leaves a note in its directory, by which other processes of the same user find it.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import json
import os
import shlex
import socket
import sys
from collections.abc import Callable, Collection, Iterator
from typing import Final, NamedTuple

from ramet.core.errors import RametError
from ramet.native.layout import Owner, box_owner
from ramet.native.server import SERVER, Process

NOTE: Final = "network.json"
_LISTENING: Final = "0A"
_INODE: Final = 9
"""The column of a row of /proc/net/tcp that names the socket."""
_LINE: Final = 200
"""Characters of a program's command line that are shown."""
_LOOPBACK: Final = {socket.AF_INET: "127.0.0.1", socket.AF_INET6: "::1"}
_MOST_LENT: Final = 64
_MOST_BYTES: Final = 4096


class BoxNetwork(NamedTuple):
    """The network of a running box."""

    pid: int
    """The first process of the box."""
    inode: int
    """Of its network namespace: another process that gets the number of a dead one has another."""

    @classmethod
    def of(cls, pid: int) -> BoxNetwork:
        return cls(pid, os.stat(f"/proc/{pid}/ns/net").st_ino)

    @property
    def alive(self) -> bool:
        try:
            return os.stat(f"/proc/{self.pid}/ns/net").st_ino == self.inode
        except OSError:
            return False


class ListeningPort(NamedTuple):
    """A port at which a program of the box listens."""

    port: int
    address: str
    """`127.0.0.1`, `0.0.0.0`, `::1`, `::`."""
    program: str = ""
    """The command line of the program; empty where it is not known."""
    pid: int = 0
    """Its number in the box; 0 where it is not known."""


def leave_note(directory: str, network: BoxNetwork) -> None:
    """Let other processes of this user find the network of a box."""
    made = f"{directory}/{NOTE}.new"
    with open(made, "w") as file:
        json.dump({**network._asdict(), "uid": box_owner().uid}, file)
    os.replace(made, f"{directory}/{NOTE}")


def read_note(directory: str) -> BoxNetwork | None:
    """Find the network of the box whose directory this is; None where it does not run."""
    try:
        with open(f"{directory}/{NOTE}") as file:
            plain = json.load(file)
        found = BoxNetwork(plain["pid"], plain["inode"])
    except (OSError, ValueError, KeyError):
        return None
    return found if found.alive else None


class Ports:
    """Connects to programs of a box. `find` gives its network, which changes when the box is built again."""

    def __init__(self, find: Callable[[], BoxNetwork | None], *, owner: Owner | None = None, own: int = 0) -> None:
        self._find, self._owner = find, owner or box_owner()
        self._own = own
        """The port at which Ramet listens in the box itself; 0 for none."""
        self._lent: list[socket.socket] = []
        self._lent_by: BoxNetwork | None = None
        self._socket: socket.socket | None = None
        self._helper: Process | None = None

    def listening(self) -> list[ListeningPort]:
        """List the ports at which programs listen that its loopback reaches, by number."""
        network = self._find()
        found: dict[int, ListeningPort] = {}
        sockets: dict[str, int] = {}
        if network is None or not network.alive:
            return []
        for name in ("tcp", "tcp6"):
            try:
                with open(f"/proc/{network.pid}/net/{name}") as file:
                    rows = [row.split() for row in file.readlines()[1:]]
            except OSError:
                continue  # the box has ended, or has no IPv6
            for row in rows:
                address, _, text = row[1].partition(":")
                shown, port = _address(address), int(text, 16)
                reached = shown.is_loopback or shown.is_unspecified
                if row[3] == _LISTENING and reached and port != self._own and port not in found:
                    found[port] = ListeningPort(port, str(shown))
                    sockets[f"socket:[{row[_INODE]}]"] = port
        for pid, held in _holders(network.pid, sockets.keys()):
            port = sockets[held]
            if not found[port].program:
                found[port] = found[port]._replace(program=_command_line(network.pid, pid), pid=pid)
        return sorted(found.values())

    async def connect(self, port: int) -> socket.socket:
        """Connect to a port of the box's loopback; ECONNREFUSED where nothing listens."""
        if type(port) is not int or not 0 < port < 65536:
            raise RametError("invalid_argument", f"{port!r} is not a port", "Give a number from 1 to 65535.")
        loop = asyncio.get_running_loop()
        network = self._find()
        if network is None or port == self._own:
            raise _refused(port)
        for family in (socket.AF_INET, socket.AF_INET6):
            made = self._take(network, family)
            if made is None:
                continue
            try:
                await loop.sock_connect(made, (_LOOPBACK[family], port))
                made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return made
            except OSError as error:
                made.close()
                if error.errno not in (errno.ECONNREFUSED, errno.EADDRNOTAVAIL, errno.ENETUNREACH):
                    raise
            except BaseException:
                made.close()
                raise
        raise _refused(port)

    def close(self) -> None:
        self._give_back()
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._helper is not None:
            self._helper.kill()
            self._helper = None
            SERVER.release()

    def _take(self, network: BoxNetwork, family: socket.AddressFamily) -> socket.socket | None:
        if network != self._lent_by:
            self._give_back()
        for attempt in range(2):
            for at, one in enumerate(self._lent):
                if one.family == family:
                    return self._lent.pop(at)
            if attempt == 0 and (family == socket.AF_INET or not self._lent):
                self._borrow(network)
        return None

    def _borrow(self, network: BoxNetwork) -> None:
        if self._helper is not None and not self._helper.alive:
            self.close()
        if self._socket is None:
            self._socket, self._helper = SERVER.fork(self._owner)
        self._socket.send(json.dumps({"lend": network.pid, "network": network.inode}).encode())
        payload, fds, _, _ = socket.recv_fds(self._socket, _MOST_BYTES, _MOST_LENT, socket.MSG_CMSG_CLOEXEC)
        answer = json.loads(payload or b'{"error": "the helper process ended"}')
        if "error" in answer:
            raise RametError(
                "native_unavailable", f"cannot reach the network of the box: {answer['error']}",
                "`ramet doctor` checks what native programs need.",
            )  # fmt: skip
        self._lent_by = network
        for fd in fds:
            made = socket.socket(fileno=fd)
            made.setblocking(False)
            self._lent.append(made)

    def _give_back(self) -> None:
        """Close unused sockets: they would keep the network of a box that has ended."""
        for one in self._lent:
            one.close()
        self._lent, self._lent_by = [], None


def _holders(first: int, sockets: Collection[str]) -> Iterator[tuple[int, str]]:
    """Yield which processes of a box hold these sockets, by their number in the box."""
    processes = f"/proc/{first}/root/proc"
    if not sockets:
        return
    for pid in sorted(int(name) for name in _names(processes) if name.isdigit()):
        folder = f"{processes}/{pid}/fd"
        for name in _names(folder):
            try:
                held = os.readlink(f"{folder}/{name}")
            except OSError:
                continue  # closed meanwhile
            if held in sockets:
                yield pid, held


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []  # it has ended, or is not ours to look at


def _command_line(first: int, pid: int) -> str:
    try:
        with open(f"/proc/{first}/root/proc/{pid}/cmdline", "rb") as file:
            words = file.read(4 * _LINE).rstrip(b"\0").split(b"\0")
    except OSError:
        return ""
    text = shlex.join(word.decode("utf-8", "backslashreplace") for word in words)
    shown = "".join(char if char.isprintable() else "?" for char in text)
    return shown if len(shown) <= _LINE else f"{shown[:_LINE]}..."


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Read an address as the kernel prints it: words in the byte order of the machine."""
    raw = bytes.fromhex(text)
    words = [raw[at : at + 4] for at in range(0, len(raw), 4)]
    plain = b"".join(word[::-1] if sys.byteorder == "little" else word for word in words)
    if len(plain) == 4:
        return ipaddress.IPv4Address(plain)
    found = ipaddress.IPv6Address(plain)
    return found.ipv4_mapped or found


def _refused(port: int) -> ConnectionRefusedError:
    return ConnectionRefusedError(errno.ECONNREFUSED, f"nothing listens at port {port} of the workspace")
