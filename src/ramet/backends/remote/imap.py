"""`Imap`: one asynchronous connection to an IMAP server: commands, literals, parsed responses.

- Values are raw bytes, lists for parentheses and None for NIL.
- A connection runs one command at a time; after an interrupted command its owner drops it.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import re
import ssl
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

LINE_LIMIT: Final = 8 << 20
LITERAL_LIMIT: Final = 64 << 20
_TOKEN: Final = re.compile(rb'[()]|"(?:[^"\\]|\\.)*"|[^\s()"\[\]]*\[[^\]]*\](?:<\d+>)?|[^\s()"]+')
_LITERAL: Final = re.compile(rb"\{(\d+)\+?\}$")
_STATUS: Final = re.compile(rb"(OK|NO|BAD|BYE|PREAUTH)(?: \[([^\]]*)\])? ?(.*)", re.DOTALL | re.IGNORECASE)

Value = Any
"""bytes, None, or a list of values."""


class ImapRefused(Exception):
    """The server said NO or BAD; `code` is what it put in brackets."""

    def __init__(self, code: str, text: str) -> None:
        self.code = code
        super().__init__(text)


class ImapLost(Exception):
    """The connection is gone, or what comes over it cannot be understood."""


class Selected(NamedTuple):
    """A mailbox as it was when it was opened."""

    folder: bytes
    validity: int
    next_uid: int
    exists: int


class Literal(bytes):
    """An argument that travels by its length."""


class Imap:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, timeout: float = 60.0) -> None:
        self._reader, self._writer = reader, writer
        self._timeout = timeout
        self._count = 0
        self.capabilities: frozenset[str] = frozenset()
        self.selected: Selected | None = None

    @classmethod
    async def connect(
        cls,
        host: str,
        port: int,
        context: ssl.SSLContext | None,
        *,
        start_tls: bool = False,
        timeout: float = 60.0,
    ) -> Imap:
        """A connection whose greeting was read; `context` None is plain text, `start_tls` upgrades it at once.

        `timeout` is how long the server may be silent where something is expected of it.
        """
        direct = None if start_tls else context
        secure: dict[str, Any] = {}
        if direct is not None:
            # A handshake that comes to nothing is not followed by a long farewell.
            secure = {"server_hostname": host, "ssl_handshake_timeout": timeout, "ssl_shutdown_timeout": 0.5}
        reader, writer = await asyncio.open_connection(host, port, ssl=direct, limit=LINE_LIMIT, **secure)
        client = cls(reader, writer, timeout)
        try:
            greeting = await client._answer()
            if greeting[:2] == [b"*", b"BYE"]:
                raise ImapLost((greeting[3] or b"it is closed").decode("utf-8", "replace"))
            if greeting[0] != b"*" or greeting[1:2] not in ([b"OK"], [b"PREAUTH"]):
                raise ImapLost("no IMAP server answers there")
            if start_tls and context is not None:
                await client.command("STARTTLS")
                await writer.start_tls(context, server_hostname=host)
            await client.learn()
        except BaseException:
            client.drop()
            raise
        return client

    async def learn(self) -> None:
        """Ask what the server can do."""
        for answer in await self.command("CAPABILITY"):
            if answer[:1] == [b"CAPABILITY"]:
                with understood():
                    self.capabilities = frozenset(word.decode().upper() for word in answer[1:])

    async def login(self, username: str, password: str) -> None:
        plain = base64.b64encode(f"\0{username}\0{password}".encode())
        if "AUTH=PLAIN" in self.capabilities and "SASL-IR" in self.capabilities:
            await self.command("AUTHENTICATE PLAIN", plain)
        else:
            await self.command("LOGIN", text(username), text(password))
        await self.learn()

    async def login_by_token(self, username: str, token: str) -> None:
        words = f"user={username}\1auth=Bearer {token}\1\1".encode()
        await self.command("AUTHENTICATE XOAUTH2", base64.b64encode(words))
        await self.learn()

    async def folders(self) -> list[tuple[frozenset[str], str | None, bytes]]:
        """Flags, separator and name of every mailbox."""
        found = []
        for answer in await self.command("LIST", b'""', b'"*"'):
            if answer[:1] == [b"LIST"] and len(answer) >= 4:
                with understood():
                    flags = frozenset(flag.decode().lower() for flag in answer[1])
                    found.append((flags, None if answer[2] is None else answer[2].decode(), bytes(answer[3])))
        return found

    async def examine(self, folder: bytes) -> Selected:
        """Open a mailbox to look at; nothing that is done there marks a message as seen."""
        self.selected = None
        validity = next_uid = exists = 0
        for answer in await self.command("EXAMINE", text(folder)):
            with understood():
                if len(answer) == 2 and answer[1] == b"EXISTS":
                    exists = int(answer[0])
                elif answer[:1] == [b"OK"] and isinstance(answer[1], bytes):
                    name, _, number = answer[1].partition(b" ")
                    if name.upper() == b"UIDVALIDITY":
                        validity = int(number)
                    elif name.upper() == b"UIDNEXT":
                        next_uid = int(number)
        self.selected = Selected(folder, validity, next_uid, exists)
        return self.selected

    async def fetch(self, uids: str, items: str) -> AsyncIterator[dict[str, Value]]:
        """What is asked for of each message that exists, by item; every answer has `UID`."""
        async for answer in self._run("UID FETCH", uids.encode(), f"(UID {items})".encode()):
            if len(answer) == 3 and answer[1] == b"FETCH" and isinstance(answer[2], list):
                pairs = answer[2]
                with understood():
                    found = {pairs[i].decode().upper(): pairs[i + 1] for i in range(0, len(pairs) - 1, 2)}
                    int(found.get("UID") or 0)
                if "UID" in found:
                    yield found

    async def search(self, *criteria: bytes) -> list[int]:
        uids: list[int] = []
        for answer in await self.command("UID SEARCH", *criteria):
            if answer[:1] == [b"SEARCH"]:
                with understood():
                    uids += map(int, answer[1:])
        return uids

    async def append(self, folder: bytes, data: bytes) -> None:
        await self.command("APPEND", text(folder), b"(\\Seen)", Literal(data))

    async def command(self, name: str, *arguments: bytes) -> list[list[Value]]:
        """Run a command to its end; return the untagged responses."""
        return [answer async for answer in self._run(name, *arguments)]

    async def _run(self, name: str, *arguments: bytes) -> AsyncIterator[list[Value]]:
        self._count += 1
        tag = b"R%d" % self._count
        line = tag + b" " + name.encode()
        for argument in arguments:
            if not isinstance(argument, Literal):
                line += b" " + argument
                continue
            if "LITERAL+" in self.capabilities:
                line += b" {%d+}\r\n" % len(argument) + argument
                continue
            await self._send(line + b" {%d}\r\n" % len(argument))
            while (answer := await self._answer())[0] != b"+":
                if answer[0] == tag:
                    raise refused(answer)
            line = bytes(argument)
        await self._send(line + b"\r\n")
        while True:
            answer = await self._answer()
            if answer[0] == tag:
                if answer[1:2] != [b"OK"]:
                    raise refused(answer)
                return
            if answer[0] not in (b"*", b"+"):
                raise ImapLost("the server's answer cannot be understood")
            if answer[0] == b"+":  # a challenge without an answer: the error follows it
                await self._send(b"\r\n")
            elif answer[1:2] == [b"BYE"] and name != "LOGOUT":
                raise ImapLost("the server closed the connection")
            else:
                yield answer[1:]

    async def _send(self, data: bytes) -> None:
        try:
            self._writer.write(data)
            async with asyncio.timeout(self._timeout):
                await self._writer.drain()
        except (OSError, ssl.SSLError) as error:
            raise ImapLost(str(error) or type(error).__name__) from None

    async def _answer(self) -> list[Value]:
        """One response: its tag and what follows."""
        pieces: list[bytes | Literal] = []
        try:
            async with asyncio.timeout(self._timeout):
                while True:
                    line = (await self._reader.readuntil(b"\n")).rstrip(b"\r\n")
                    pieces.append(line)
                    found = _LITERAL.search(line)
                    if found is None:
                        break
                    size = int(found[1])
                    if size > LITERAL_LIMIT:
                        raise ImapLost("the server sends more than was asked for")
                    pieces[-1] = line[: found.start()]
                    pieces.append(Literal(await self._reader.readexactly(size)))
        except TimeoutError:
            raise ImapLost(f"no answer within {self._timeout:g} seconds") from None
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError, ssl.SSLError) as error:
            raise ImapLost(str(error) or type(error).__name__) from None
        tag, _, rest = pieces[0].partition(b" ")
        status = _STATUS.fullmatch(rest) if len(pieces) == 1 else None
        if status is not None:
            return [tag, status[1].upper(), status[2], status[3]]
        return [tag, *parsed([rest, *pieces[1:]])] if tag != b"+" else [tag]

    async def logout(self) -> None:
        try:
            await asyncio.wait_for(self.command("LOGOUT"), 2)
        except (ImapLost, ImapRefused, TimeoutError):
            pass  # it was ending anyway
        self.drop()
        try:
            await self._writer.wait_closed()
        except (OSError, ssl.SSLError):
            pass  # the server was quicker

    def drop(self) -> None:
        """Let go of the connection as it is."""
        transport: asyncio.WriteTransport = self._writer.transport
        transport.abort()


@contextmanager
def understood() -> Iterator[None]:
    """What a server says is made into values here; if that is no use, neither is the connection."""
    try:
        yield
    except (ValueError, TypeError, AttributeError, LookupError):
        raise ImapLost("the server's answer cannot be understood") from None


def refused(answer: list[Value]) -> ImapRefused:
    if len(answer) != 4 or answer[1] not in (b"NO", b"BAD"):
        raise ImapLost("the server's answer cannot be understood")
    code = (answer[2] or b"").decode("utf-8", "replace").split(" ")[0].upper()
    return ImapRefused(code, answer[3].decode("utf-8", "replace"))


def parsed(pieces: Iterable[bytes | Literal]) -> list[Value]:
    """The values of a response; literals stand between the pieces of its line."""
    top: list[Value] = []
    open_lists = [top]
    for piece in pieces:
        if isinstance(piece, Literal):
            open_lists[-1].append(bytes(piece))
            continue
        for token in _TOKEN.findall(piece):
            if token == b"(":
                open_lists[-1].append([])
                open_lists.append(open_lists[-1][-1])
            elif token == b")":
                if len(open_lists) == 1:
                    raise ImapLost("the server's answer cannot be understood")
                open_lists.pop()
            elif token[:1] == b'"':
                open_lists[-1].append(re.sub(rb"\\(.)", rb"\1", token[1:-1]))
            else:
                open_lists[-1].append(None if token.upper() == b"NIL" else token)
    return top


def text(value: str | bytes) -> bytes:
    """A string as an argument: quoted where that is enough."""
    raw = value.encode() if isinstance(value, str) else value
    if raw.isascii() and not re.search(rb"[\r\n\0]", raw):
        return b'"' + raw.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'
    return Literal(raw)


def uid_set(uids: Iterable[int]) -> str:
    """`1:4,7`: a set of messages, as short as it can be said."""
    ranges: list[list[int]] = []
    for uid in sorted(uids):
        if ranges and uid == ranges[-1][1] + 1:
            ranges[-1][1] = uid
        else:
            ranges.append([uid, uid])
    return ",".join(str(first) if first == last else f"{first}:{last}" for first, last in ranges)


def folder_text(raw: bytes) -> str:
    """A mailbox's name: IMAP writes what is not ASCII as base64 between `&` and `-`."""

    def decode(found: re.Match[bytes]) -> bytes:
        if not found[1]:
            return b"&"
        padded = found[1].replace(b",", b"/") + b"=" * (-len(found[1]) % 4)
        try:
            return base64.b64decode(padded, validate=True).decode("utf-16-be").encode()
        except (binascii.Error, UnicodeDecodeError):
            return found[0]

    return re.sub(rb"&([^-]*)-", decode, raw).decode("utf-8", "surrogateescape")
