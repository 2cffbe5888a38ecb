"""`TelegramResource`: what a Telegram bot was told, as files by day.

/{groups,channels,private}/<title>__<chat>/<yyyy-mm-dd>/{chat.md,chat.jsonl,files/}
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import re
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import IO, Any, ClassVar, Final

from ramet.backends.services.auth import PathToken, TokenSource
from ramet.backends.services.chat_days import Chats, day_of
from ramet.backends.services.config import ServiceConfig
from ramet.backends.services.contents import among, fixed, json_line, json_lines, pretty_json, spoken_text
from ramet.backends.services.multipart import form_with_files
from ramet.backends.services.names import key_last, split_name, title_name
from ramet.backends.services.nodes import Asked, Collection, Inbox, Item, Node, Place, Rendered
from ramet.backends.services.rest import Answer, Rest, patiently, rate_limited, token_refused
from ramet.backends.services.tree import Service
from ramet.concurrency.loop_local import LoopLocal
from ramet.core.errors import fail
from ramet.core.paths import ROOT, Path, encode
from ramet.core.resource import Letter
from ramet.core.stat import Kind, Stat
from ramet.core.streams import closing

INBOX_TTL: Final = 5.0
"""Seconds after which Telegram is asked for new messages."""
PAGE: Final = 100
LONGEST: Final = 4096
"""Characters of a message."""
LARGEST: Final = 20 << 20
"""Bytes of a file that a bot may download."""
MOST_KEPT: Final = 100_000
"""Messages that are kept; the oldest go first."""
FAMILIES: Final = {"groups": ("group", "supergroup"), "channels": ("channel",), "private": ("private",)}
ALLOWED: Final = ("message", "edited_message", "channel_post", "edited_channel_post")
"""Kinds of updates that are asked for."""
MEDIA: Final = ("document", "video", "audio", "voice", "video_note", "animation", "sticker")
CHAT: Final = r"-?\d{1,20}"
_CALL: Final = re.compile(r"[a-z]+[A-Z]\w*(?:\s+\w+=\S*)*")
README: Final = """\
# Telegram

    groups/<title>__<chat>/<yyyy-mm-dd>/    days with messages (UTC)
        chat.md        the messages with names: `09:14 ada: text`
        chat.jsonl     the messages as Telegram has them, one a line
        files/<name>__<message>.<ext>
    channels/ private/                      likewise

This is an inbox: Telegram gives a bot only what was said since it was asked last, and forgets it after a day. What was
read is kept as long as this mount{kept}, at most {most} messages. A bot in a group sees only what is for it, unless its
privacy mode is off.

- Read on: `cat groups/Ops__*/2026-05-0*/chat.md`, `grep -rh rollback groups --include=chat.md`
- Say something: `post groups/Ops__* -m 'Rolled back.'`, with a file: `-a graph.png`
- The API: `query . getMe`, `query . 'getChat chat_id=-1001'`, `query -w . 'deleteMessage chat_id=-1001 message_id=2'`
"""


@dataclass(frozen=True, kw_only=True, repr=False)
class TelegramConfig(ServiceConfig):
    """The inbox of a Telegram bot."""

    kind: ClassVar[str] = "telegram"
    secrets: ClassVar[tuple[str, ...]] = ("token",)

    token: str | None = None
    """The token of the bot, as BotFather gave it."""
    token_env: str | None = None
    """The environment variable that holds the token."""
    base_url: str = "https://api.telegram.org"
    """The address of the API."""
    keep: str | None = None
    """A file of this machine that messages are kept in; without it they last as long as the mount and its snapshots."""


class TelegramResource(Service):
    """`TelegramResource(TelegramConfig(token="123:..."))`. `token` is a function that returns the token."""

    config: TelegramConfig

    def __init__(self, config: TelegramConfig, *, token: TokenSource | None = None) -> None:
        self._auth = PathToken(token or (lambda: config.secret("token")))
        self._rest = Rest.of(config, self._auth, judge=_judge, explain=_explain)
        self._kept = KeptMessages(config.keep)
        self._asked = float("-inf")
        self._asking = LoopLocal(asyncio.Lock)
        nodes: list[Node] = [
            Rendered("/README.md", fixed(_readme(config))),
        ]
        for family, kinds in FAMILIES.items():
            chat, day = f"/{family}/*", f"/{family}/*/*"
            items = partial(self._chats, kinds)
            nodes += [
                Collection(f"/{family}", items, partial(among, items), key_last(CHAT)),
                Rendered(f"{chat}/chat.json", pretty_json),
                Collection(chat, self._days, partial(among, self._days), Chats.key),
                Asked(f"{day}/chat.jsonl", lambda place: json_lines(self._messages(place))),
                Asked(f"{day}/chat.md", self._markdown),
                Collection(f"{day}/files", self._files, partial(among, self._files), key_last(r"\d+", any_end=True)),
                Asked(f"{day}/files/*", self._download),
                Inbox(chat, self._say), Inbox(day, self._say),
            ]  # fmt: skip
        super().__init__(config, nodes)

    # ------------------------------------------------------------------------------------------------ asking

    async def _token(self, path: Path) -> str:
        token = await self._auth.value()
        if token is None or re.fullmatch(r"\d+:[\w-]+", token) is None:
            words = "Permission denied: the token is missing, or is not like 123:abc; ask BotFather"
            raise fail(errno.EACCES, path, words)
        return token

    async def _call(
        self,
        method: str,
        path: Path,
        given: Mapping[str, object] | None = None,
        *,
        reads: bool = False,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        address = f"/bot{await self._token(path)}/{method}"
        body = {} if given is None and content is None else given
        answer = await self._rest.send(
            "POST", address, path=path, json_body=body, content=content, headers=headers, reads=reads
        )
        return answer.json()["result"]

    async def _take(self, path: Path) -> None:
        """Take new messages. Telegram forgets them once a later one is asked for, so they are kept before that."""
        async with self._asking.get():
            if time.monotonic() - self._asked < INBOX_TTL:
                return
            while True:
                given = {"limit": PAGE, "timeout": 0, "allowed_updates": ALLOWED}
                if self._kept.offset is not None:
                    given["offset"] = self._kept.offset
                updates = await self._call("getUpdates", path, given, reads=True)
                if updates:
                    await self._keep(updates)
                if len(updates) < PAGE:
                    break
            self._asked = time.monotonic()

    async def _keep(self, updates: list[dict[str, Any]]) -> None:
        """Keep updates for good, then count them as taken."""
        await asyncio.to_thread(self._kept.write, updates)
        self._kept.learn(updates)

    # ------------------------------------------------------------------------------------------------- chats

    async def _chats(self, kinds: tuple[str, ...], place: Place) -> AsyncIterator[Item]:
        await self._take(place.path)
        for id, messages in self._kept.by_chat().items():
            chat = messages[-1]["chat"]
            if chat["type"] in kinds:
                stat = Stat(Kind.DIR, None, messages[-1]["date"] * 1_000_000_000, None, INBOX_TTL)
                yield Item(str(id), f"{title_name(_title(chat))}__{id}", chat, stat)

    async def _days(self, place: Place) -> AsyncIterator[Item]:
        await self._take(place.path)
        last = {day_of(one["date"]): one["date"] for one in self._kept.by_chat().get(int(place.items[0].key), ())}
        for day, at in last.items():
            yield Item(day, day, None, Stat(Kind.DIR, None, at * 1_000_000_000, None, INBOX_TTL))

    async def _messages(self, place: Place) -> AsyncIterator[Any]:
        for message in self._kept.by_chat().get(int(place.items[0].key), ()):
            if day_of(message["date"]) == place.items[1].key:
                yield message

    async def _markdown(self, place: Place) -> AsyncIterator[bytes]:
        async with closing(self._messages(place)) as messages:
            async for message in messages:
                yield encode(_line(message) + "\n")

    async def _files(self, place: Place) -> AsyncIterator[Item]:
        async with closing(self._messages(place)) as messages:
            async for message in messages:
                file = _file_of(message)
                if file is not None:
                    stat = Stat(
                        Kind.FILE, file.get("file_size"), message["date"] * 1_000_000_000, file["file_unique_id"]
                    )
                    yield Item(str(message["message_id"]), _file_name(message, file), file, stat)

    async def _download(self, place: Place) -> AsyncIterator[bytes]:
        if (place.data.get("file_size") or 0) > LARGEST:
            words = f"File too large: Telegram gives bots files of at most {LARGEST >> 20} MB"
            raise fail(errno.EFBIG, place.path, words)
        file = await self._call("getFile", place.path, {"file_id": place.data["file_id"]}, reads=True)
        address = f"/file/bot{await self._token(place.path)}/{file['file_path']}"
        async with closing(self._rest.stream(address, path=place.path)) as blocks:
            async for block in blocks:
                yield block

    # ----------------------------------------------------------------------------------------------- posting

    async def _say(self, place: Place, letter: Letter) -> str:
        text = spoken_text(letter, place.path, LONGEST)
        chat = place.items[0].key
        sent = []
        for name, content in letter.attachments:
            body, headers = form_with_files({"chat_id": chat}, [("document", name, content)])
            sent.append(await self._call("sendDocument", place.path, content=body, headers=headers))
        if text:
            sent.append(await self._call("sendMessage", place.path, {"chat_id": int(chat), "text": text}))
        await self._keep([{"sent": message} for message in sent])  # a bot is not told what it said itself
        return f"{chat} {sent[-1]['message_id']}"

    # ---------------------------------------------------------------------------------------------- querying

    async def query(
        self, path: Path, text: str, values: Sequence[str] = (), *, limit: int | None = None, write: bool = False
    ) -> AsyncIterator[bytes]:
        """A method with its arguments: `getChat chat_id=-1001`."""
        if values or _CALL.fullmatch(text.strip()) is None:
            raise fail(
                errno.EINVAL,
                path,
                "a query of Telegram is a method such as `getChat chat_id=-1001`; use grep to search",
            )
        method, *words = text.split()
        given = dict(word.split("=", 1) for word in words)
        reads = method.startswith("get") and method != "getUpdates"
        if method == "getUpdates":
            raise fail(errno.EINVAL, path, "getUpdates would lose messages; read the files instead")
        if not reads:
            if not write:
                raise fail(errno.EROFS, path, f"{method} may change something; that takes -w")
            self._check_writable(path)
        yield json_line(await patiently(partial(self._call, method, path, given, reads=reads)))

    # ---------------------------------------------------------------------------------------------- snapshots

    def dump(self) -> Iterator[tuple[bytes, bytes]]:
        """What was kept, for snapshots: Telegram does not give it again."""
        yield b"messages", b"".join(json_line(message) for message in self._kept.all())

    def restore(self, items: Iterable[tuple[bytes, bytes]]) -> None:
        for _, content in items:
            updates = [{"sent": json.loads(line)} for line in content.splitlines()]
            self._kept.write(updates)
            self._kept.learn(updates)

    def forget(self, path: Path = ROOT) -> None:
        super().forget(path)
        self._asked = float("-inf")

    async def close(self) -> None:
        await super().close()
        await self._rest.close()
        self._kept.close()


class KeptMessages:
    """Messages by chat, newest last; an edited one takes the place of the old. With a file, they survive."""

    def __init__(self, file: str | None) -> None:
        self._found: dict[tuple[int, int], dict[str, Any]] = {}
        self._chats: dict[int, list[dict[str, Any]]] | None = None
        self.offset: int | None = None
        self._file = None if file is None else _opened(file)
        if self._file is not None:
            self._load(self._file)

    def _load(self, file: IO[bytes]) -> None:
        """A last line without an end is a write that was cut off: Telegram gives it again."""
        whole = 0
        file.seek(0)
        for line in file:
            if line.endswith(b"\n"):
                whole += len(line)
                self.learn((json.loads(line),))
        file.truncate(whole)

    def write(self, updates: list[dict[str, Any]]) -> None:
        if self._file is not None:
            self._file.write(b"".join(map(json_line, updates)))
            self._file.flush()
            os.fsync(self._file.fileno())

    def learn(self, updates: Iterable[dict[str, Any]]) -> None:
        for update in updates:
            if "update_id" in update:
                self.offset = max(self.offset or 0, update["update_id"] + 1)
            message = next((update[kind] for kind in (*ALLOWED, "sent") if kind in update), None)
            if message is not None:
                self._found[message["chat"]["id"], message["message_id"]] = message
        while len(self._found) > MOST_KEPT:
            del self._found[next(iter(self._found))]
        self._chats = None

    def all(self) -> list[dict[str, Any]]:
        return list(self._found.values())

    def by_chat(self) -> Mapping[int, list[dict[str, Any]]]:
        if self._chats is None:
            self._chats = {}
            for message in sorted(self._found.values(), key=lambda one: (one["date"], one["message_id"])):
                self._chats.setdefault(message["chat"]["id"], []).append(message)
        return self._chats

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def _opened(file: str) -> IO[bytes]:
    """A file to append to that only its owner can read."""
    return os.fdopen(os.open(file, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600), "a+b")


# ----------------------------------------------------------------------------------------------------- rendering


def _readme(config: TelegramConfig) -> str:
    kept = "" if config.keep is None else " and beyond it, in a file"
    return README.format(kept=kept, most=MOST_KEPT)


def _title(chat: Any) -> str:
    return str(chat.get("title") or chat.get("username") or chat.get("first_name") or "unnamed")


def _name_of(message: Any) -> str:
    user = message.get("from") or message.get("sender_chat") or message["chat"]
    return str(user.get("username") or user.get("first_name") or user.get("title") or user.get("id"))


def _file_of(message: Any) -> Any:
    """The file of a message; of a photo, its largest size."""
    if message.get("photo"):
        return max(message["photo"], key=lambda size: size["width"] * size["height"])
    return next((message[kind] for kind in MEDIA if message.get(kind)), None)


def _file_name(message: Any, file: Any) -> str:
    kind = next((kind for kind in ("photo", *MEDIA) if message.get(kind)), "file")
    ends = {"photo": "photo.jpg", "voice": "voice.ogg", "video": "video.mp4", "video_note": "video.mp4"}
    return split_name(str(file.get("file_name") or ends.get(kind, kind)), str(message["message_id"]))


def _line(message: Any) -> str:
    """A message as text: time, name, words; further lines are indented."""
    clock = datetime.fromtimestamp(message["date"], UTC).strftime("%H:%M")
    text = str(message.get("text") or message.get("caption") or "").replace("\n", "\n    ")
    answered = message.get("reply_to_message")
    to = f" (to {_name_of(answered)})" if answered else ""
    file = _file_of(message)
    extra = f" [files/{_file_name(message, file)}]" if file else ""
    return f"{clock} {_name_of(message)}{to}: {text}{extra}"


def _explain(said: Any) -> str:
    return str(said.get("description", "")) if isinstance(said, dict) else ""


def _judge(answer: Answer) -> OSError | None:
    if answer.status < 400:
        return None
    try:
        said = answer.json()
    except OSError:
        return None
    words = _explain(said)[:200]
    match answer.status:
        case 401:
            return token_refused(answer.path, "Telegram refuses the token; ask BotFather for it")
        case 404:
            return fail(errno.ENOENT, answer.path, "No such file or directory: Telegram knows no such method or file")
        case 403:
            return fail(errno.EACCES, answer.path, f"Permission denied: Telegram says {words}")
        case 409:
            words = "Device or resource busy: another program reads this bot's messages, or a webhook is set"
            return fail(errno.EBUSY, answer.path, f"{words}; end it, or use `query -w . deleteWebhook`")
        case 429:
            wait = (said.get("parameters") or {}).get("retry_after", 0) if isinstance(said, dict) else 0
            return rate_limited(answer.path, "Telegram", float(wait))
        case 400 if "chat not found" in words:
            return fail(errno.ENOENT, answer.path, "No such file or directory: Telegram says chat not found")
        case 400 if "file is too big" in words:
            return fail(errno.EFBIG, answer.path, f"File too large: Telegram says {words}")
        case 400:
            return fail(errno.EINVAL, answer.path, f"Invalid argument: Telegram says {words}")
    return None
