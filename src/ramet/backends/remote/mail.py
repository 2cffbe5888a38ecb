"""`MailResource`: a mailbox by IMAP as a tree, to be read; `mail send` sends by SMTP.

    /<folder>/<yyyy-mm-dd>/<subject>__<uid>.eml    the message as it came
    /<folder>/<yyyy-mm-dd>/<subject>__<uid>.json   its header in words, its text, the names of what hangs on it
    /<folder>/<yyyy-mm-dd>/<subject>__<uid>/       its attachments, decoded

Rules that this file keeps:
- Looking changes nothing: mailboxes are opened with EXAMINE and parts fetched with PEEK, so nothing becomes seen.
- A message is (UIDVALIDITY, UID), which is its version: its bytes never change.
- What is not asked for is not fetched: a range of a message is a partial FETCH, an attachment leaves the others alone.
- Both protocols are encrypted unless the configuration says `tls="off"`, and no password is kept: a variable is named.
- A letter is sent once. Nothing here sends again what may have left.
"""

from __future__ import annotations

import asyncio
import errno
import re
import ssl
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple

from ramet.backends.file_names import as_name
from ramet.backends.redacted_urls import secret_from, unreached
from ramet.backends.remote import mail_message
from ramet.backends.remote import smtp as mail_sending
from ramet.backends.remote.imap import Imap, ImapLost, ImapRefused, Selected, folder_text, text, uid_set, understood
from ramet.backends.remote.mail_message import Part
from ramet.backends.unwritable import Unwritable
from ramet.core.errors import fail, unavailable, wrong_type
from ramet.core.paths import Path
from ramet.core.resource import Cap, Description, Letter
from ramet.core.stat import Kind, Stat
from ramet.core.streams import closing

BLOCK: Final = 1 << 20
CONNECTIONS: Final = 4
"""At a time, and kept: servers allow few, and each costs a handshake and a login. None is held while a reader waits."""
AT_ONCE: Final = 500
"""Messages that one request describes."""
PASSING: Final = frozenset(("UNAVAILABLE", "INUSE", "LIMIT", "SERVERBUG"))
"""Codes of refusals that are the server's own trouble and may pass."""
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")
_ENTRY: Final = re.compile(r".*__(\d+)(\.eml|\.json|)")
_SEARCHED: Final = re.compile(r"[^\x00-\x1f\"\\=?_<>&:]{4,}")
"""Texts that a server's search finds wherever our files hold them: no syntax of ours, of MIME or of JSON in them."""

SYNTAX: Final = (
    "seen", "answered", "flagged", "deleted", "draft", "content-type", "content-transfer-encoding", "mime-version",
    "content-disposition", "attachment", "inline", "filename", "multipart/alternative", "multipart/mixed", "boundary",
    "charset", "quoted-printable", "base64", "text/plain", "text/html", "us-ascii", "iso-8859",
)  # fmt: skip
"""Words of the format, which a server may not look at."""


@dataclass(frozen=True, kw_only=True)
class MailConfig:
    """Which mailbox, and how to send. The password, or the OAuth token, is in the environment variable named here."""

    host: str
    """The IMAP server."""
    username: str
    """Who logs in, at both servers."""
    password_env: str | None = None
    """The environment variable that holds the password."""
    token_env: str | None = None
    """The environment variable that holds an OAuth token, instead of a password."""
    port: int | None = None
    """That of the protocol when not given."""
    tls: str = "implicit"
    """`implicit` (port 993), `starttls` (port 143) or `off`."""
    ca_file: str | None = None
    """Certificates to trust instead of the machine's."""
    smtp_host: str | None = None
    """Where to send; without it nothing can be sent."""
    smtp_port: int | None = None
    """That of the protocol when not given."""
    smtp_tls: str = "implicit"
    """`implicit` (port 465), `starttls` (port 587) or `off`."""
    smtp_login: bool = True
    """Log in before sending."""
    sender: str | None = None
    """The address that letters come from; the username when not given."""
    sent_folder: str | None = None
    """Where to keep what was sent, for servers that do not do so by themselves."""
    search: bool = True
    """Let the server look for the text of a recursive grep."""
    ttl: float = 5.0
    """Seconds for which what was seen may be trusted."""
    timeout: float = 60.0
    """Seconds without an answer after which the server counts as unreachable."""

    @property
    def imap_port(self) -> int:
        return self.port or (993 if self.tls == "implicit" else 143)

    @property
    def where(self) -> str:
        return f"{self.host}:{self.imap_port}"


class _Message(NamedTuple):
    """What is known of a message without its content."""

    uid: int
    stem: str
    size: int
    received: datetime
    parts: list[Part]

    @property
    def files(self) -> dict[str, Part]:
        return mail_message.attachments(self.parts)

    @property
    def date(self) -> str:
        return self.received.strftime("%Y-%m-%d")


@dataclass
class _Index:
    """A mailbox: the day of every message, and what else was asked about them."""

    selected: Selected
    days: dict[int, str] = field(default_factory=dict)
    known: dict[int, _Message] = field(default_factory=dict)
    until: float = 0.0


class MailResource(Unwritable):
    """`MailResource(MailConfig(host="imap.example", username="me@example", password_env="MAIL_PASSWORD"))`."""

    caps = Cap.RANGES

    def __init__(self, config: MailConfig) -> None:
        if not isinstance(config, MailConfig):
            raise wrong_type("the configuration of MailResource", config, "Pass a MailConfig.")
        for setting in (config.tls, config.smtp_tls):
            if setting not in ("implicit", "starttls", "off"):
                raise ValueError(f"tls is implicit, starttls or off, not {setting!r}")
        self.config = config
        self._idle: dict[asyncio.AbstractEventLoop, list[Imap]] = {}
        self._room: dict[asyncio.AbstractEventLoop, asyncio.Semaphore] = {}
        self._indexes: dict[bytes, _Index] = {}
        self._folders: tuple[dict[tuple[str, ...], tuple[bytes, bool]], float] = ({}, 0.0)

    def __repr__(self) -> str:
        return f"MailResource({self.config.username!r} at {self.config.host!r})"

    def describe(self) -> Description:
        """There is no secret in the configuration, only the names of variables."""
        return Description("mail", asdict(self.config), (), needs_override=True)

    # ------------------------------------------------------------------------------------------- connections

    async def _connect(self) -> Imap:
        config = self.config
        try:
            context = None if config.tls == "off" else ssl.create_default_context(cafile=config.ca_file)
        except OSError as error:
            text = f"Permission denied: the certificates of {config.ca_file} cannot be used: {error.strerror}"
            raise fail(errno.EACCES, None, text) from None
        port = config.imap_port
        token, password = secret_from(config.token_env), secret_from(config.password_env)
        client = await asyncio.wait_for(
            Imap.connect(config.host, port, context, start_tls=config.tls == "starttls", timeout=config.timeout),
            min(20.0, config.timeout),
        )
        try:
            if token is not None:
                await client.login_by_token(config.username, token)
            else:
                await client.login(config.username, password or "")
        except ImapRefused as error:
            client.drop()
            if error.code in PASSING:
                raise
            raise fail(errno.EACCES, None, f"Permission denied: {config.host} refuses these credentials") from None
        except BaseException:
            client.drop()
            raise
        return client

    @asynccontextmanager
    async def _connected(self, path: Path, folder: bytes | None = None) -> AsyncIterator[Imap]:
        """A connection, with that mailbox open. Errors of the protocol become ours here, and nowhere else."""
        loop = asyncio.get_running_loop()
        idle = self._idle.setdefault(loop, [])
        room = self._room.setdefault(loop, asyncio.Semaphore(CONNECTIONS))
        async with room, self._from(idle, path, folder) as client:
            yield client

    @asynccontextmanager
    async def _from(self, idle: list[Imap], path: Path, folder: bytes | None) -> AsyncIterator[Imap]:
        client, done = None, False
        try:
            fitting = [one for one in idle if one.selected is not None and one.selected.folder == folder] or idle
            if fitting:
                client = fitting[-1]
                idle.remove(client)
            else:
                client = await self._connect()
            if folder is not None and (client.selected is None or client.selected.folder != folder):
                await client.examine(folder)
            yield client
            done = True
        except ImapRefused as error:
            if error.code in PASSING:
                raise unavailable(path, f"{self.config.where} could not be reached: {error}") from None
            done = True
            number = errno.ENOENT if error.code in ("NONEXISTENT", "TRYCREATE") else errno.EACCES
            raise fail(number if error.code else errno.EIO, path, f"{self.config.host}: {error}") from None
        except ssl.SSLCertVerificationError as error:
            raise fail(errno.EACCES, path, f"{self.config.host}: {error.verify_message}") from None
        except (ImapLost, TimeoutError, ssl.SSLError) as error:
            while idle:  # they have been idle for longer, and are not any better
                idle.pop().drop()
            raise unreached(path, self.config.where, error) from None
        except OSError as error:
            if isinstance(error.filename, Path):
                done = True
                raise
            if error.errno == errno.EACCES:
                raise fail(errno.EACCES, path, error.strerror) from None
            raise unreached(path, self.config.where, error) from None
        finally:
            if client is not None:
                if done and self._idle.get(asyncio.get_running_loop()) is idle:  # not closed since
                    idle.append(client)
                else:
                    client.drop()

    # --------------------------------------------------------------------------------------------- mailboxes

    async def _tree(self, path: Path) -> dict[tuple[str, ...], tuple[bytes, bool]]:
        """The mailboxes by the segments of their paths: how the server calls them, and whether they hold messages."""
        known, until = self._folders
        if until > time.monotonic():
            return known
        async with self._connected(path) as client:
            listed = await client.folders()
        found: dict[tuple[str, ...], tuple[bytes, bool]] = {}
        for flags, separator, raw in listed:
            name = folder_text(raw)
            segments = tuple(_segment(part) for part in (name.split(separator) if separator else [name]))
            for depth in range(1, len(segments)):
                found.setdefault(segments[:depth], (b"", False))
            found[segments] = (raw, not flags & {"\\noselect", "\\nonexistent"})
        self._folders = (found, time.monotonic() + self.config.ttl)
        return found

    async def _index(self, path: Path, folder: bytes) -> _Index:
        """A mailbox as it is now: only what is new in it is asked for."""
        index = self._indexes.get(folder)
        if index is not None and index.until > time.monotonic():
            return index
        async with self._connected(path, folder) as client:
            selected = await client.examine(folder)
            if index is None or index.selected.validity != selected.validity:
                index = _Index(selected)
            if selected.next_uid == 0 or selected.next_uid != index.selected.next_uid or not index.days:
                await self._days(client, index, max(index.days, default=0) + 1)
            if len(index.days) != selected.exists:  # something is gone
                index.days.clear()
                await self._days(client, index, 1)
                index.known = {uid: message for uid, message in index.known.items() if uid in index.days}
        index.selected, index.until = selected, time.monotonic() + self.config.ttl
        self._indexes[folder] = index
        return index

    @staticmethod
    async def _days(client: Imap, index: _Index, first: int) -> None:
        async for found in client.fetch(f"{first}:*", "INTERNALDATE"):
            uid = int(found["UID"])
            if uid >= first and "INTERNALDATE" in found:  # `9:*` is the last message even where that is number 5
                with understood():
                    index.days[uid] = _received(found).strftime("%Y-%m-%d")

    async def _messages(self, path: Path, folder: bytes, uids: Iterable[int]) -> list[_Message]:
        """What is known of these; where something has to be asked, what follows them is asked for along with it."""
        index = await self._index(path, folder)
        wanted = [uid for uid in uids if uid in index.days]
        missing = [uid for uid in wanted if uid not in index.known]
        if missing:
            later = [uid for uid in index.days if uid > missing[-1] and uid not in index.known]
            missing += later[: max(0, AT_ONCE - len(missing))]
            async with self._connected(path, folder) as client:
                for start in range(0, len(missing), AT_ONCE):
                    some = uid_set(missing[start : start + AT_ONCE])
                    items = "RFC822.SIZE INTERNALDATE ENVELOPE BODYSTRUCTURE"
                    async for found in client.fetch(some, items):
                        if "RFC822.SIZE" in found:
                            with understood():
                                message = _message(found)
                            index.known[message.uid] = message
        return [index.known[uid] for uid in wanted if uid in index.known]

    # -------------------------------------------------------------------------------------------------- paths

    async def _place(self, path: Path) -> tuple[tuple[str, ...], bytes, str, _Message | None, str]:
        """Folder as segments and as the server calls it, day, message, and the file of it that a path names."""
        parts = path.parts
        cut = next((i for i, part in enumerate(parts) if _DATE.fullmatch(part)), len(parts))
        segments, rest = tuple(parts[:cut]), parts[cut:]
        if not segments and not rest:
            return (), b"", "", None, ""
        folder, holds = (await self._tree(path)).get(segments, (None, False))
        if folder is None or (rest and not holds):
            raise fail(errno.ENOENT, path)
        if not rest:
            return segments, folder if holds else b"", "", None, ""
        index = await self._index(path, folder)
        if len(rest) == 1:
            if rest[0] not in index.days.values():
                raise fail(errno.ENOENT, path)
            return segments, folder, rest[0], None, ""
        found = _ENTRY.fullmatch(rest[1])
        uid = int(found[1]) if found is not None else 0
        message = next(iter(await self._messages(path, folder, [uid])), None)
        if found is None or message is None or message.date != rest[0] or message.stem + found[2] != rest[1]:
            raise fail(errno.ENOENT, path)
        if found[2]:
            if len(rest) > 2:
                raise fail(errno.ENOTDIR, path)
            return segments, folder, rest[0], message, found[2]
        if not message.files or (len(rest) > 2 and rest[2] not in message.files):
            raise fail(errno.ENOENT, path)
        if len(rest) > 3:
            raise fail(errno.ENOTDIR, path)
        return segments, folder, rest[0], message, "/" + rest[2] if len(rest) > 2 else "/"

    def _stat(self, folder: bytes, message: _Message, file: str) -> Stat:
        stat = Stat(Kind.FILE, mtime_ns=int(message.received.timestamp()) * 10**9, ttl=self.config.ttl)
        if file == ".json":
            return stat  # it tells the flags, which change
        key = f"{self._indexes[folder].selected.validity}.{message.uid}"
        if file == ".eml":
            return stat._replace(size=message.size, version=key)
        part = message.files[file[1:]]
        return stat._replace(size=part.size if part.is_plain else None, version=f"{key}.{part.section}")

    @property
    def _directory(self) -> Stat:
        return Stat(Kind.DIR, ttl=self.config.ttl)

    async def stat(self, path: Path) -> Stat:
        _, folder, _, message, file = await self._place(path)
        return self._directory if message is None or file == "/" else self._stat(folder, message, file)

    async def scan(self, path: Path) -> AsyncIterator[tuple[str, Stat]]:
        segments, folder, day, message, file = await self._place(path)
        if message is not None:
            if file != "/":
                raise fail(errno.ENOTDIR, path)
            for name in message.files:
                yield name, self._stat(folder, message, "/" + name)
        elif day:
            index = await self._index(path, folder)
            uids = [uid for uid, its in index.days.items() if its == day]
            for one in await self._messages(path, folder, uids):
                yield one.stem + ".eml", self._stat(folder, one, ".eml")
                yield one.stem + ".json", self._stat(folder, one, ".json")
                if one.files:
                    yield one.stem, self._directory
        else:
            for below in await self._tree(path):
                if below[:-1] == segments:
                    yield below[-1], self._directory
            if folder:
                for name in dict.fromkeys((await self._index(path, folder)).days.values()):
                    yield name, self._directory

    # ----------------------------------------------------------------------------------------------- reading

    async def read(self, path: Path, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
        segments, folder, _, message, file = await self._place(path)
        if message is None or file == "/":
            raise fail(errno.EISDIR, path)
        if file == ".json":
            data = (await self._json(path, segments, folder, message))[start:stop]
            for at in range(0, len(data), BLOCK):
                yield data[at : at + BLOCK]
            return
        part = None if file == ".eml" else message.files[file[1:]]
        if part is None or part.is_plain:
            source = self._section(path, folder, message, "" if part is None else part.section, start, stop)
        else:
            source = self._decoded(path, folder, message, part, start, stop)
        async with closing(source) as blocks:
            async for block in blocks:
                yield block

    async def _decoded(
        self, path: Path, folder: bytes, message: _Message, part: Part, start: int, stop: int | None
    ) -> AsyncIterator[bytes]:
        """An attachment from its beginning, of which what lies before `start` is dropped."""
        decoder, at = mail_message.Decoder(part.encoding), 0
        async with closing(self._section(path, folder, message, part.section)) as blocks:
            async for raw in blocks:
                block = decoder.feed(raw)
                yield block[max(0, start - at) : None if stop is None else max(0, stop - at)]
                at += len(block)
                if stop is not None and at >= stop:
                    return
        yield decoder.finish()[max(0, start - at) : None if stop is None else max(0, stop - at)]

    async def _section(
        self, path: Path, folder: bytes, message: _Message, section: str, start: int = 0, stop: int | None = None
    ) -> AsyncIterator[bytes]:
        """A part of a message as it is written, piece by piece; the connection is free between the pieces."""
        while stop is None or start < stop:
            size = BLOCK if stop is None else min(BLOCK, stop - start)
            block = None
            async with self._connected(path, folder) as client:
                self._same(client, folder, path)
                async for found in client.fetch(str(message.uid), f"BODY.PEEK[{section}]<{start}.{size}>"):
                    if (content := _content(found, f"BODY[{section}]")) is not None:
                        block = content
            if block is None:
                raise fail(errno.ESTALE, path)  # it was removed while it was read
            if block:
                yield block
            if len(block) < size:
                return
            start += len(block)

    def _same(self, client: Imap, folder: bytes, path: Path) -> None:
        """UIDs mean something within one UIDVALIDITY only."""
        index = self._indexes.get(folder)
        if client.selected is None or index is None or client.selected.validity != index.selected.validity:
            self._indexes.pop(folder, None)
            raise fail(errno.ESTALE, path)

    async def _whole(self, path: Path, folder: bytes, message: _Message, section: str) -> bytes:
        return b"".join([block async for block in self._section(path, folder, message, section)])

    async def _json(self, path: Path, segments: tuple[str, ...], folder: bytes, message: _Message) -> bytes:
        bodies = [part for part in message.parts if part.is_body]
        if any(part.type == "text/plain" for part in bodies):
            bodies = [part for part in bodies if part.type == "text/plain"]
        # One request where the text is not unusually long.
        together = [part.section for part in bodies] if sum(part.size for part in bodies) <= BLOCK else []
        header, flags, raws = await self._header(path, folder, message, together)
        texts = []
        for part in bodies:
            raw = raws[part.section] if together else await self._whole(path, folder, message, part.section)
            texts.append((part, mail_message.as_text(part, raw)))
        about: dict[str, object] = {
            "uid": message.uid, "uidvalidity": self._indexes[folder].selected.validity, "folder": "/".join(segments),
            "flags": flags, "size": message.size, "received": message.received.isoformat(),
        }  # fmt: skip
        return mail_message.as_json(about, header, texts, message.files)

    async def _header(
        self, path: Path, folder: bytes, message: _Message, sections: Sequence[str] = ()
    ) -> tuple[bytes, list[str], dict[str, bytes]]:
        """The header of a message and its flags, along with some of its parts."""
        items = " ".join(["FLAGS BODY.PEEK[HEADER]", *(f"BODY.PEEK[{section}]" for section in sections)])
        answer: dict[str, Any] = {}
        async with self._connected(path, folder) as client:
            self._same(client, folder, path)
            async for found in client.fetch(str(message.uid), items):
                if "BODY[HEADER]" in found:  # else it tells that flags have changed meanwhile
                    answer = found
        if not answer:
            raise fail(errno.ESTALE, path)
        flags = sorted(flag.decode() for flag in answer.get("FLAGS") or () if flag.lower() != b"\\recent")
        parts = {section: _content(answer, f"BODY[{section}]") or b"" for section in sections}
        return answer["BODY[HEADER]"] or b"", flags, parts

    # --------------------------------------------------------------------------------------------- searching

    async def search(self, path: Path, text: str, *, fold: bool = False) -> AsyncIterator[Path]:
        """Messages in which the server finds `text`. What no server looks into, as a PDF, is always named.

        Capitals never matter to it. A text that the server may see in another way than our files write it is refused:
        then all files are read.
        """
        segments, folder, day, message, _ = await self._place(path)
        if message is not None or not self.config.search or not _can_search(text):
            raise fail(errno.ENOTSUP, path)
        for below, (raw, holds) in (await self._tree(path)).items():
            if below[: len(segments)] != segments or not holds or (day and raw != folder):
                continue
            if text.lower() in "/".join(below).lower():
                raise fail(errno.ENOTSUP, path)
            top = Path("/" + "/".join(below))
            index = await self._index(path, raw)
            uids = [uid for uid, its in index.days.items() if not day or its == day]
            found = await self._hits(path, raw, text, uids if day else None)
            for one in await self._messages(path, raw, uids):
                place = top / one.date
                if one.uid in found:
                    yield place / f"{one.stem}.eml"
                    yield place / f"{one.stem}.json"
                for name, part in one.files.items():
                    if one.uid in found or not part.is_text:
                        yield place / one.stem / name

    async def _hits(self, path: Path, folder: bytes, wanted: str, uids: list[int] | None) -> set[int]:
        async with self._connected(path, folder) as client:
            if "X-GM-EXT-1" in client.capabilities:
                raise fail(errno.ENOTSUP, path)  # it finds words, not parts of words
            within = [] if uids is None else [b"UID", uid_set(uids).encode()]
            charset = [] if wanted.isascii() else [b"CHARSET", b"UTF-8"]
            return set(await client.search(*charset, *within, b"TEXT", text(wanted)))

    # ----------------------------------------------------------------------------------------------- sending

    async def post(self, letter: Letter) -> str:
        config = self.config
        place = letter.answers or Path("/")
        if config.smtp_host is None:
            raise fail(errno.EOPNOTSUPP, place, "this mount was not configured to send (smtp_host)")
        thread: tuple[str, ...] = ()
        if letter.answers is not None:
            _, folder, _, answered, file = await self._place(letter.answers)
            if answered is None or file not in (".eml", ".json"):
                raise fail(errno.EINVAL, letter.answers, "not a message")
            thread = mail_sending.thread((await self._header(letter.answers, folder, answered))[0])
        message = mail_sending.composed(letter, config.sender or config.username, thread)
        server = mail_sending.Server(
            config.smtp_host, config.smtp_port, config.smtp_tls, config.ca_file,
            config.username if config.smtp_login else None, config.password_env, config.token_env,
        )  # fmt: skip
        await asyncio.to_thread(mail_sending.sent, server, message, place)
        if config.sent_folder is not None:
            async with self._connected(place) as client:
                await client.append(config.sent_folder.encode(), message.as_bytes().replace(b"\n", b"\r\n"))
        return str(message["Message-ID"])

    def forget(self) -> None:
        """Refresh the list of mailboxes."""
        self._folders = ({}, 0.0)
        for index in self._indexes.values():
            index.until = 0.0

    async def close(self) -> None:
        for loop, clients in tuple(self._idle.items()):
            for client in clients:
                if loop is asyncio.get_running_loop():
                    await client.logout()
            del self._idle[loop]
            self._room.pop(loop, None)


def _segment(name: str) -> str:
    """A part of a mailbox's name as a directory; one that looks like a day does not."""
    plain = as_name(name)
    return f"%{ord(plain[0]):02X}{plain[1:]}" if _DATE.fullmatch(plain) else plain


def _received(found: dict[str, Any]) -> datetime:
    return datetime.strptime(found["INTERNALDATE"].decode().strip(), "%d-%b-%Y %H:%M:%S %z")


def _message(found: dict[str, Any]) -> _Message:
    envelope, uid = found.get("ENVELOPE"), int(found["UID"])
    subject = mail_message.heading(envelope[1]) if isinstance(envelope, list) and len(envelope) > 1 else ""
    parts = mail_message.parts(found.get("BODYSTRUCTURE"))
    return _Message(uid, mail_message.stem(subject, uid), int(found["RFC822.SIZE"]), _received(found), parts)


def _content(found: dict[str, Any], item: str) -> bytes | None:
    """The bytes of an item, whichever offset the server names with it; None where the answer is about others."""
    for name, value in found.items():
        if name == item or name.startswith(item + "<"):
            return value or b""
    return None


def _can_search(text: str) -> bool:
    """Whether a server finds this text wherever one of our files holds it."""
    letters = sum(character.isalpha() for character in text)
    if letters < 3 or not _SEARCHED.fullmatch(text):
        return False
    folded = text.lower()
    return not any(folded in word for word in (*mail_message.KEYS, *SYNTAX))
