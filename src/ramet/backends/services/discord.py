"""`DiscordResource`: the servers (guilds) that a Discord bot is in as files, by day.

/<guild>__<id>/channels/<name>__<id>/<yyyy-mm-dd>/{chat.md,chat.jsonl,files/}
/<guild>__<id>/threads/                    the same for open threads and posts of forums
/<guild>__<id>/members.jsonl
"""

from __future__ import annotations

import asyncio
import errno
import json
import re
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, ClassVar, Final

from ramet.backends.services.auth import TokenAuth, TokenSource
from ramet.backends.services.chat_days import Chats, day_of
from ramet.backends.services.config import ServiceConfig
from ramet.backends.services.contents import among, fixed, json_lines, pretty_json, spoken_text
from ramet.backends.services.multipart import form_with_files
from ramet.backends.services.names import key_last, split_name, title_name
from ramet.backends.services.nodes import Asked, Collection, Inbox, Item, Node, Place, Rendered
from ramet.backends.services.pages import any_entries, first_of
from ramet.backends.services.requests import raw_request, request_of
from ramet.backends.services.rest import Answer, Params, Rest, patiently, rate_limited
from ramet.backends.services.tree import Service
from ramet.core.errors import fail, unavailable
from ramet.core.paths import ROOT, Path, encode
from ramet.core.resource import Letter
from ramet.core.stat import Kind, Stat
from ramet.core.streams import closing

EPOCH: Final = 1_420_070_400_000
"""Milliseconds at which Discord's ids begin."""
PAGE: Final = 100
LONGEST: Final = 2000
"""Characters of a message."""
MOST_FILES: Final = 10
"""Files of a message."""
MOST_HITS: Final = 9975
"""The last offset of a search."""
TEXT_CHANNELS: Final = frozenset((0, 5))
"""Kinds of channels with messages: text and announcements."""
THREADS: Final = frozenset((10, 11, 12))
ID: Final = r"\d{5,20}"
README: Final = """\
# Discord

    <guild>__<id>/channels/<name>__<id>/<yyyy-mm-dd>/    days with messages, of the last {days} days (UTC)
        chat.md        the messages with names: `09:14 ada: text`
        chat.jsonl     the messages as Discord has them, one a line
        files/<name>__<id>.<ext>
    <guild>__<id>/threads/<name>__<id>/                  open threads and posts of forums, likewise
    <guild>__<id>/members.jsonl

The id alone is enough; days before the listed ones, and threads that are closed, can be named.

- Read on: `cat */channels/ops__*/2026-05-0*/chat.md`, `grep -rh rollback */channels/ops__* --include=chat.md`
- Say something: `post */channels/ops__* -m 'Rolled back.'`, with a file: `-a graph.png`. Names of people are notified,
  @everyone is not.
- Search: `query <guild>__<id> rollback`
- The API, one answer at a time: `query . 'GET /users/@me'`, `query -w . 'DELETE /channels/1/messages/2'`
"""
HIDDEN: Final = "(Discord hides the texts from this bot: turn on its message content intent in the developer portal)\n"


@dataclass(frozen=True, kw_only=True, repr=False)
class DiscordConfig(ServiceConfig):
    """The servers that a bot is in."""

    kind: ClassVar[str] = "discord"
    secrets: ClassVar[tuple[str, ...]] = ("token",)

    token: str | None = None
    """The token of the bot."""
    token_env: str | None = None
    """The environment variable that holds the token."""
    guild_ids: tuple[str, ...] = ()
    """Servers that are shown, by id; all that the bot is in when not given."""
    base_url: str = "https://discord.com/api/v10"
    """The address of the API."""
    days: int = 30
    """Days that are listed in a channel."""
    allow: tuple[str, ...] = ()
    """Hosts that files may come from, in addition to Discord's."""


class DiscordResource(Service):
    """`DiscordResource(DiscordConfig(token="..."))`. `token` is a function that returns the token."""

    config: DiscordConfig

    def __init__(self, config: DiscordConfig, *, token: TokenSource | None = None) -> None:
        self._rest = Rest.of(
            config,
            TokenAuth(token or (lambda: config.secret("token")), "Bot"),
            signed=("cdn.discordapp.com", "media.discordapp.net", *config.allow),
            headers={"User-Agent": "DiscordBot (ramet, 0.1)"},
            judge=_judge,
            explain=_explain,
        )
        self._quotas = Quotas()
        self._chats = Chats(self._history, config.days, depth=1, at=lambda message: time_of(message["id"]))
        nodes: list[Node] = [
            Rendered("/README.md", fixed(README.format(days=config.days))),
            Collection("/", self._guilds, self._guild, key_last(ID)),
            Asked("/*/members.jsonl", lambda place: json_lines(self._members(place))),
        ]
        for family, listed in (("channels", self._channels), ("threads", self._threads)):
            channel, day = f"/*/{family}/*", f"/*/{family}/*/*"
            nodes += [
                Collection(f"/*/{family}", listed, partial(self._channel, family), key_last(ID)),
                Rendered(f"{channel}/channel.json", pretty_json),
                Collection(channel, self._chats.days, self._chats.day, self._chats.key),
                Asked(f"{day}/chat.jsonl", lambda place: json_lines(self._chats.messages(place))),
                Asked(f"{day}/chat.md", self._markdown),
                Collection(f"{day}/files", self._files, partial(among, self._files), key_last(ID, any_end=True)),
                Asked(f"{day}/files/*", self._download),
                Inbox(channel, self._say), Inbox(day, self._say),
            ]  # fmt: skip
        super().__init__(config, nodes)

    # ---------------------------------------------------------------------------------------------- asking

    async def _get(self, address: str, path: Path, params: Params | None = None) -> Any:
        """A GET that waits for its turn: Discord counts requests by route, and blocks who goes on after a refusal."""
        route = re.sub(r"(?<=/messages/).*", "", address)
        await self._quotas.wait(route)
        answer = await self._rest.get(address, path=path, params=params)
        self._quotas.saw(route, answer.headers)
        return answer.json()

    async def _after(self, address: str, size: int, id_of: Any, path: Path) -> AsyncIterator[Any]:
        """All entries of a collection that is paged by the last id."""
        after = "0"
        while True:
            page = await self._get(address, path, {"limit": size, "after": after})
            for entry in page:
                yield entry
            if len(page) < size:
                return
            after = id_of(page[-1])

    # ---------------------------------------------------------------------------------- guilds and channels

    async def _guilds(self, place: Place) -> AsyncIterator[Item]:
        async with closing(self._after("/users/@me/guilds", 200, lambda one: one["id"], place.path)) as guilds:
            async for guild in guilds:
                if not self.config.guild_ids or guild["id"] in self.config.guild_ids:
                    yield self._as_item(guild)

    async def _guild(self, place: Place, key: str) -> Item:
        if self.config.guild_ids and key not in self.config.guild_ids:
            raise fail(errno.ENOENT, place.path)
        return self._as_item(await self._get(f"/guilds/{key}", place.path))

    def _as_item(self, one: Any) -> Item:
        stat = Stat(Kind.DIR, ttl=self.config.ttl)
        return Item(one["id"], f"{title_name(one.get('name') or 'unnamed')}__{one['id']}", one, stat)

    def _members(self, place: Place) -> AsyncIterator[Any]:
        address = f"/guilds/{place.items[0].key}/members"
        return self._after(address, 1000, lambda one: one["user"]["id"], place.path)

    async def _channels(self, place: Place) -> AsyncIterator[Item]:
        for channel in await self._get(f"/guilds/{place.items[0].key}/channels", place.path):
            if channel["type"] in TEXT_CHANNELS:
                yield self._as_item(channel)

    async def _threads(self, place: Place) -> AsyncIterator[Item]:
        for thread in (await self._get(f"/guilds/{place.items[0].key}/threads/active", place.path))["threads"]:
            yield self._as_item(thread)

    async def _channel(self, family: str, place: Place, key: str) -> Item:
        channel = await self._get(f"/channels/{key}", place.path)
        kinds = THREADS if family == "threads" else TEXT_CHANNELS
        if channel.get("guild_id") != place.items[0].key or channel["type"] not in kinds:
            raise fail(errno.ENOENT, place.path)
        return self._as_item(channel)

    # -------------------------------------------------------------------------------------------- messages

    async def _history(self, channel: str, oldest: float, latest: float) -> AsyncIterator[Any]:
        first, before = id_at(oldest), id_at(latest)
        while True:
            params: Params = {"limit": PAGE, "before": str(before)}
            page = await self._get(f"/channels/{channel}/messages", ROOT, params) or []
            for message in page:
                if int(message["id"]) < first:
                    return
                yield message
            if len(page) < PAGE:
                return
            if int(page[-1]["id"]) >= before:
                raise fail(errno.EIO, ROOT, "the service leads to the same page twice")
            before = int(page[-1]["id"])

    async def _markdown(self, place: Place) -> AsyncIterator[bytes]:
        told = False
        async with closing(self._chats.messages(place)) as messages:
            async for message in messages:
                if not told and is_hidden(message):
                    told = True
                    yield encode(HIDDEN)
                yield encode(_line(message) + "\n")

    async def _files(self, place: Place) -> AsyncIterator[Item]:
        async with closing(self._chats.messages(place)) as messages:
            async for message in messages:
                for file in message.get("attachments") or ():
                    said = round(time_of(message["id"]) * 1e9)
                    stat = Stat(Kind.FILE, file["size"], said, file["id"], None)
                    yield Item(file["id"], _file_name(file), {**file, "message": message["id"]}, stat)

    async def _download(self, place: Place) -> AsyncIterator[bytes]:
        """Links of files are signed and end: then the message is asked for again."""
        channel, file = place.items[1].key, place.data
        for attempt in (1, 2):
            begun = False
            try:
                async with closing(self._rest.download(file["url"], path=place.path)) as blocks:
                    async for block in blocks:
                        begun = True
                        yield block
                return
            except (FileNotFoundError, PermissionError):
                if begun or attempt == 2:
                    raise
            message = await self._get(f"/channels/{channel}/messages/{file['message']}", place.path)
            found = [one for one in message["attachments"] if one["id"] == file["id"]]
            if not found:
                raise fail(errno.ENOENT, place.path, "No such file or directory: the file was removed from its message")
            file = {**found[0], "message": file["message"]}

    # --------------------------------------------------------------------------------------------- posting

    async def _say(self, place: Place, letter: Letter) -> str:
        text = spoken_text(letter, place.path, LONGEST)
        if len(letter.attachments) > MOST_FILES:
            raise fail(errno.EINVAL, place.path, f"a message has at most {MOST_FILES} files; nothing was posted")
        channel = place.items[1].key
        address = f"/channels/{channel}/messages"
        body: dict[str, Any] = {"content": text, "allowed_mentions": {"parse": ["users"]}}
        await self._quotas.wait(f"POST {address}")
        if letter.attachments:
            body["attachments"] = [{"id": at, "filename": name} for at, (name, _) in enumerate(letter.attachments)]
            files = [(f"files[{at}]", name, content) for at, (name, content) in enumerate(letter.attachments)]
            content, headers = form_with_files({"payload_json": json.dumps(body)}, files)
            answer = await self._rest.send("POST", address, path=place.path, content=content, headers=headers)
        else:
            answer = await self._rest.send("POST", address, path=place.path, json_body=body)
        self._quotas.saw(f"POST {address}", answer.headers)
        self._chats.forget(channel)
        return f"{channel} {answer.json()['id']}"

    # -------------------------------------------------------------------------------------------- querying

    async def query(
        self, path: Path, text: str, values: Sequence[str] = (), *, limit: int | None = None, write: bool = False
    ) -> AsyncIterator[bytes]:
        """A request such as `GET /users/@me`, or words for Discord's search in a guild."""
        request = request_of(text)
        if request is not None:
            found = raw_request(
                self._rest, self.config, path, request, values, limit=limit, write=write, entries=any_entries
            )
        elif values:
            raise fail(errno.EINVAL, path, "a search takes no values; quote it as one word")
        else:
            found = json_lines(first_of(self._hits(text, path), limit))
        async with closing(found) as lines:
            async for block in lines:
                yield block
        if request is not None and request[0] != "GET":
            self.forget()

    async def _hits(self, text: str, path: Path) -> AsyncIterator[Any]:
        place = (await self._find(path)).place
        if not place.items:
            raise fail(errno.EINVAL, path, "Discord searches one server: query <guild>__<id> 'words'")
        guild, offset = place.items[0], 0
        address = f"/guilds/{guild.key}/messages/search"
        names = {one.key: one.name async for one in self._channels(place)}
        while True:
            params: Params = {"content": text, "limit": 25, "offset": offset}
            found = await patiently(partial(self._get, address, path, params))
            hits = [message for around in found["messages"] for message in around]
            for hit in hits:
                channel = hit["channel_id"]
                at = f"channels/{names[channel]}" if channel in names else f"threads/{channel}"
                yield {"path": f"{guild.name}/{at}/{day_of(time_of(hit['id']))}/chat.md", **hit}
            offset += 25
            if not hits or offset >= found["total_results"]:
                return
            if offset > MOST_HITS:
                raise fail(
                    errno.EFBIG, path, f"Discord shows no more than {MOST_HITS + 25} hits; search for more words"
                )

    def forget(self, path: Path = ROOT) -> None:
        super().forget(path)
        if path == ROOT:
            self._chats.forget()

    async def close(self) -> None:
        await super().close()
        await self._rest.close()


class Quotas:
    """What is left of each route's quota; a request that would exceed it waits."""

    MOST: Final = 256

    def __init__(self) -> None:
        self._until: dict[str, float] = {}

    async def wait(self, route: str) -> None:
        pause = self._until.get(route, 0.0) - time.monotonic()
        if pause > 0:
            await asyncio.sleep(min(pause, 60.0))

    def saw(self, route: str, headers: Mapping[str, str]) -> None:
        self._until.pop(route, None)
        if headers.get("x-ratelimit-remaining") == "0" and (pause := _seconds(headers.get("x-ratelimit-reset-after"))):
            self._until[route] = time.monotonic() + pause
            while len(self._until) > self.MOST:
                del self._until[next(iter(self._until))]


def _seconds(text: object) -> float:
    try:
        return max(0.0, float(str(text)))
    except ValueError:
        return 0.0


def time_of(id: str) -> float:
    """The time that an id of Discord holds."""
    return ((int(id) >> 22) + EPOCH) / 1000


def id_at(seconds: float) -> int:
    """The first id of a time."""
    return max(0, round(seconds * 1000) - EPOCH) << 22


# ----------------------------------------------------------------------------------------------------- rendering


def is_hidden(message: Any) -> bool:
    """Whether a message seems empty only because the bot may not read texts."""
    parts = ("content", "attachments", "embeds", "sticker_items", "components", "poll", "message_snapshots")
    return message.get("type") in (0, 19) and not any(message.get(part) for part in parts)


def _name_of(user: Any) -> str:
    return str(user.get("global_name") or user.get("username") or user.get("id") or "unknown")


def _file_name(file: Any) -> str:
    return split_name(str(file["filename"]), file["id"])


def _line(message: Any) -> str:
    """A message as text: time, name, words; further lines are indented."""
    clock = datetime.fromtimestamp(time_of(message["id"]), UTC).strftime("%H:%M")
    people = {user["id"]: _name_of(user) for user in message.get("mentions") or ()}
    text = re.sub(r"<@!?(\d+)>", lambda found: f"@{people.get(found[1], found[1])}", str(message.get("content") or ""))
    text = re.sub(r"<a?(:\w+:)\d+>", r"\1", re.sub(r"<#(\d+)>", r"#\1", text)).replace("\n", "\n    ")
    answered = message.get("referenced_message")
    to = f" (to {_name_of(answered['author'])})" if answered else ""
    extra = "".join(
        f" [{one.get('title') or one.get('description') or one.get('url')}]" for one in message.get("embeds") or ()
    )
    files = "".join(f" [files/{_file_name(file)}]" for file in message.get("attachments") or ())
    thread = f" (thread -> threads/{message['thread']['id']})" if message.get("thread") else ""
    return f"{clock} {_name_of(message['author'])}{to}: {text}{extra}{files}{thread}"


def _explain(said: Any) -> str:
    return str(said.get("message", "")) if isinstance(said, dict) else ""


def _judge(answer: Answer) -> OSError | None:
    if answer.status not in (202, 400, 403, 404, 429):
        return None
    try:
        said = answer.json()
    except OSError:
        return None
    if not isinstance(said, dict):
        return None
    code, words = said.get("code"), _explain(said)
    if answer.status == 429:
        return rate_limited(answer.path, "Discord", _seconds(said.get("retry_after")))
    if answer.status == 202:
        if "retry_after" not in said:
            return None
        error = unavailable(answer.path, "Discord is still making the index for searches")
        error.wait = _seconds(said["retry_after"]) or 1.0
        return error
    if code in (50001, 50013):
        words = "cannot see the channel or server" if code == 50001 else f"lacks a permission there: {words}"
        return fail(
            errno.EACCES, answer.path, f"Permission denied: the bot {words}; ask an administrator of the server"
        )
    if code == 50083:
        return fail(errno.EROFS, answer.path, "Read-only file system: the thread is archived")
    if code == 40005 or code == 50045:
        return fail(errno.EFBIG, answer.path, "File too large for this server; nothing was posted")
    if answer.status == 400:
        return fail(errno.EINVAL, answer.path, f"Invalid argument: Discord says {words[:200]}")
    return None
