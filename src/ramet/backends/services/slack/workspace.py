"""`SlackResource`: the channels of a Slack workspace as files, by day.

/channels/<name>__<id>/<yyyy-mm-dd>/{chat.md,chat.jsonl,threads/,files/}
/groups/, /dms/                        the same for group and direct messages
/users.jsonl, /users/<name>__<id>.json
"""

from __future__ import annotations

import errno
import json
import re
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Final

from ramet.backends.services.auth import TokenSource
from ramet.backends.services.chat_days import Chats, day_of
from ramet.backends.services.config import ServiceConfig
from ramet.backends.services.contents import among, fixed, json_lines, pretty_json, spoken_text
from ramet.backends.services.names import key_last, title_name
from ramet.backends.services.nodes import Asked, Collection, Inbox, Item, Node, Place, Rendered
from ramet.backends.services.pages import first_of
from ramet.backends.services.rest import Params, patiently
from ramet.backends.services.slack.api import READING, SlackAPI
from ramet.backends.services.slack.texts import escaped, file_name, line_of, name_of, thread_name
from ramet.backends.services.tree import Service
from ramet.core.errors import fail
from ramet.core.paths import ROOT, Path, encode
from ramet.core.resource import Letter
from ramet.core.stat import Kind, Stat
from ramet.core.streams import closing

LONGEST: Final = 40_000
"""Characters of a message."""
NAMES_TTL: Final = 600.0
"""Seconds for which names of users are trusted."""
FAMILIES: Final = {"channels": "public_channel,private_channel", "groups": "mpim", "dms": "im"}
_CALL: Final = re.compile(r"[a-z]+(?:\.[A-Za-z]+)+(?:\s+\w+=\S*)*")
README: Final = """\
# Slack

    channels/<name>__<id>/<yyyy-mm-dd>/    days with messages, of the last {days} days (UTC)
        chat.md        the messages with names: `09:14 ada: text (3 replies -> threads/...)`
        chat.jsonl     the messages as Slack has them, one a line
        threads/<hh-mm-ss>__<ts>.md
        files/<name>__<id>.<ext>
    groups/ dms/       the same for group and direct messages
    users.jsonl users/<name>__<id>.json

The id alone is enough (`channels/C024/2026-05-03/chat.md`), and days before the listed ones can be named.

- Read on: `cat channels/ops__*/2026-05-0*/chat.md`, `grep -rh rollback channels/ops__* --include=chat.md`
- Say something: `post channels/ops__C024 -m 'Rolled back.'`, with a file: `-a graph.png`
- Answer in a thread: `post channels/ops__C024/2026-05-03/threads/09-14-02__* -m +1`
- Search (needs a user token in search_token): `query -n 20 . 'deploy failed in:#ops after:2026-05-01'`
- The API: `query . 'conversations.members channel=C024'`, `query -w . 'chat.delete channel=C024 ts=1.2'`
"""


@dataclass(frozen=True, kw_only=True, repr=False)
class SlackConfig(ServiceConfig):
    """A Slack workspace, as a bot or a user sees it."""

    kind: ClassVar[str] = "slack"
    secrets: ClassVar[tuple[str, ...]] = ("token", "search_token")

    token: str | None = None
    """A bot token (`xoxb-`) or user token (`xoxp-`)."""
    token_env: str | None = None
    """The environment variable that holds the token."""
    search_token: str | None = None
    """A user token with `search:read`, for `query`; Slack gives no search to bots."""
    search_token_env: str | None = None
    """The environment variable that holds it."""
    base_url: str = "https://slack.com/api"
    """The address of the API."""
    days: int = 90
    """Days that are listed in a channel."""
    allow: tuple[str, ...] = ()
    """Hosts that files may come from with the token, in addition to Slack's."""


class SlackResource(Service):
    """`SlackResource(SlackConfig(token="xoxb-..."))`. `token` is a function that returns the token."""

    config: SlackConfig

    def __init__(self, config: SlackConfig, *, token: TokenSource | None = None) -> None:
        self._api = SlackAPI(config, token or (lambda: config.secret("token")), config.allow)
        self._rest = self._api.rest
        self._search = SlackAPI(config, lambda: config.secret("search_token"), config.allow).rest
        self._chats = Chats(self._history, config.days)
        self._people: tuple[dict[str, Any], float] = ({}, 0.0)
        channel = key_last("[A-Z][A-Z0-9]{2,}")
        nodes: list[Node] = [
            Rendered("/README.md", fixed(README.format(days=config.days))),
            Asked("/users.jsonl", lambda place: json_lines(self._users(place.path))),
            Collection("/users", self._user_items, self._user_item, _user_key),
            Asked("/users/*", _as_json),
        ]
        for family, types in FAMILIES.items():
            day = f"/{family}/*/*"
            nodes += [
                Collection(f"/{family}", partial(self._channels, types), partial(self._channel, family), channel),
                Rendered(f"/{family}/*/channel.json", pretty_json),
                Collection(f"/{family}/*", self._chats.days, self._chats.day, self._chats.key),
                Asked(f"{day}/chat.jsonl", lambda place: json_lines(self._chats.messages(place))),
                Asked(f"{day}/chat.md", self._markdown),
                Collection(f"{day}/threads", self._threads, partial(among, self._threads), _thread_key),
                Asked(f"{day}/threads/*", self._thread),
                Collection(f"{day}/files", self._files, partial(among, self._files), _file_key),
                Asked(f"{day}/files/*", self._download),
                Inbox(f"/{family}/*", self._say), Inbox(day, self._say), Inbox(f"{day}/threads/*", self._say),
            ]  # fmt: skip
        super().__init__(config, nodes)

    # ------------------------------------------------------------------------------------------------- users

    def _users(self, path: Path) -> AsyncIterator[Any]:
        return self._api.paged("users.list", "members", path)

    async def _names(self, path: Path) -> dict[str, Any]:
        known, until = self._people
        if until < time.monotonic():
            known = {user["id"]: user async for user in self._users(path)}
            self._people = known, time.monotonic() + NAMES_TTL
        return known

    async def _user_items(self, place: Place) -> AsyncIterator[Item]:
        for user in (await self._names(place.path)).values():
            yield self._as_user(user)

    async def _user_item(self, place: Place, key: str) -> Item:
        user = (await self._names(place.path)).get(key)
        return self._as_user(user or (await self._api.ask("users.info", place.path, user=key))["user"])

    def _as_user(self, user: Any) -> Item:
        name = f"{title_name(name_of(user))}__{user['id']}.json"
        return Item(user["id"], name, user, Stat(Kind.FILE, None, None, None, self.config.ttl))

    # ---------------------------------------------------------------------------------------------- channels

    async def _channels(self, types: str, place: Place) -> AsyncIterator[Item]:
        people = await self._names(place.path) if types == "im" else {}
        found = self._api.paged("conversations.list", "channels", place.path, types=types, exclude_archived="true")
        async with closing(found) as channels:
            async for channel in channels:
                yield self._as_channel(channel, people)

    async def _channel(self, family: str, place: Place, key: str) -> Item:
        channel = (await self._api.ask("conversations.info", place.path, channel=key))["channel"]
        if family != ("dms" if channel.get("is_im") else "groups" if channel.get("is_mpim") else "channels"):
            raise fail(errno.ENOENT, place.path)
        return self._as_channel(channel, await self._names(place.path) if family == "dms" else {})

    def _as_channel(self, channel: Any, people: Mapping[str, Any]) -> Item:
        name = channel.get("name") or name_of(people.get(channel.get("user", ""), {"id": channel.get("user", "dm")}))
        stat = Stat(Kind.DIR, None, None, None, self.config.ttl)
        return Item(channel["id"], f"{title_name(name)}__{channel['id']}", channel, stat)

    def _history(self, channel: str, oldest: float, latest: float) -> AsyncIterator[Any]:
        return self._api.paged(
            "conversations.history", "messages", ROOT, channel=channel, oldest=f"{oldest:.6f}", latest=f"{latest:.6f}",
            inclusive="true",
        )  # fmt: skip

    # -------------------------------------------------------------------------------------------------- days

    async def _markdown(self, place: Place) -> AsyncIterator[bytes]:
        people = await self._names(place.path)
        async with closing(self._chats.messages(place)) as messages:
            async for message in messages:
                line = line_of(message, people)
                if message.get("reply_count"):
                    line += f" ({message['reply_count']} replies -> threads/{thread_name(message)})"
                yield encode(line + "\n")

    async def _threads(self, place: Place) -> AsyncIterator[Item]:
        async with closing(self._chats.messages(place)) as messages:
            async for message in messages:
                if message.get("reply_count") and message.get("thread_ts", message["ts"]) == message["ts"]:
                    last = float(message.get("latest_reply") or message["ts"])
                    stat = Stat(Kind.FILE, None, round(last * 1e9), None, place.items[1].stat.ttl)
                    yield Item(message["ts"], thread_name(message), message, stat)

    async def _thread(self, place: Place) -> AsyncIterator[bytes]:
        people = await self._names(place.path)
        channel, ts = place.items[0].key, place.items[2].key
        replies = self._api.paged("conversations.replies", "messages", place.path, channel=channel, ts=ts)
        seen: set[str] = set()
        async with closing(replies) as messages:
            async for message in messages:
                if message["ts"] not in seen:  # Slack repeats the first message on every page
                    seen.add(message["ts"])
                    yield encode(line_of(message, people) + "\n")

    async def _files(self, place: Place) -> AsyncIterator[Item]:
        async with closing(self._chats.messages(place)) as messages:
            async for message in messages:
                for file in message.get("files") or ():
                    if file.get("url_private") and file.get("mode") != "external":
                        stat = Stat(
                            Kind.FILE, file.get("size"), round(float(message["ts"]) * 1e9), None, self.config.ttl
                        )
                        yield Item(file["id"], file_name(file), file, stat)

    def _download(self, place: Place) -> AsyncIterator[bytes]:
        address = place.data.get("url_private_download") or place.data["url_private"]
        return self._rest.download(address, path=place.path)

    # ----------------------------------------------------------------------------------------------- posting

    async def _say(self, place: Place, letter: Letter) -> str:
        text = spoken_text(letter, place.path, LONGEST)
        channel = place.items[0].key
        thread = place.items[2].key if len(place.items) > 2 else None
        if letter.attachments:
            return await self._upload(place, channel, thread, text, letter)
        form: Params = {"channel": channel, "text": escaped(text), "thread_ts": thread}
        said = (await self._rest.send("POST", "/chat.postMessage", path=place.path, form=form)).json()
        self._chats.forget(channel)
        return f"{channel} {said['ts']}"

    async def _upload(self, place: Place, channel: str, thread: str | None, text: str, letter: Letter) -> str:
        """Files become visible with the last of three steps, which alone is not repeated."""
        files = []
        for name, content in letter.attachments:
            form: Params = {"filename": name, "length": len(content)}
            slot = (
                await self._rest.send(
                    "POST", "/files.getUploadURLExternal", path=place.path, form=form, repeatable=True
                )
            ).json()
            await self._rest.upload(slot["upload_url"], content, path=place.path)
            files.append({"id": slot["file_id"], "title": name})
        done: Params = {
            "files": json.dumps(files), "channel_id": channel, "thread_ts": thread,
            "initial_comment": escaped(text) or None,
        }  # fmt: skip
        await self._rest.send("POST", "/files.completeUploadExternal", path=place.path, form=done)
        self._chats.forget(channel)
        return f"{channel} {' '.join(file['id'] for file in files)}"

    # ---------------------------------------------------------------------------------------------- querying

    async def query(
        self, path: Path, text: str, values: Sequence[str] = (), *, limit: int | None = None, write: bool = False
    ) -> AsyncIterator[bytes]:
        """A method with its arguments (`users.info user=U1`), or words for Slack's search of messages."""
        if values:
            raise fail(errno.EINVAL, path, "a query of Slack takes no values; quote it as one word")
        if _CALL.fullmatch(text.strip()):
            yield await self._call(path, text, write)
            return
        if self.config.search_token is None and self.config.search_token_env is None:
            words = (
                "Permission denied: Slack gives no search to bots; set search_token to a user token with search:read"
            )
            raise fail(errno.EACCES, path, words)
        async with closing(json_lines(first_of(self._hits(text, path), limit))) as lines:
            async for block in lines:
                yield block

    async def _call(self, path: Path, text: str, write: bool) -> bytes:
        method, *words = text.split()
        form = dict(word.split("=", 1) for word in words)
        reads = method.rpartition(".")[2] in READING
        if not reads:
            if not write:
                raise fail(errno.EROFS, path, f"{method} may change the service; that takes -w")
            self._check_writable(path)
        send = partial(self._rest.send, "POST", f"/{method}", path=path, form=form, reads=reads)
        answer = await patiently(send)
        if not reads:
            self._chats.forget()
        return encode(json.dumps(answer.json(), ensure_ascii=False) + "\n")

    async def _hits(self, text: str, path: Path) -> AsyncIterator[Any]:
        page, pages = 1, 1
        while page <= pages:
            form: Params = {"query": text, "count": 100, "page": page, "sort": "timestamp"}
            send = partial(self._search.send, "POST", "/search.messages", path=path, form=form, reads=True)
            found = (await patiently(send)).json()["messages"]
            pages = int(found["paging"]["pages"])
            for hit in found["matches"]:
                channel = hit["channel"]
                family = "dms" if channel.get("is_im") else "groups" if channel.get("is_mpim") else "channels"
                place = f"{family}/{title_name(channel.get('name') or 'dm')}__{channel['id']}"
                yield {"path": f"{place}/{day_of(float(hit['ts']))}/chat.md", **hit}
            page += 1

    def forget(self, path: Path = ROOT) -> None:
        super().forget(path)
        if path == ROOT:
            self._chats.forget()
            self._people = {}, 0.0

    async def close(self) -> None:
        await super().close()
        await self._rest.close()
        await self._search.close()


# ------------------------------------------------------------------------------------------------------ rendering


async def _as_json(place: Place) -> AsyncIterator[bytes]:
    yield pretty_json(place)


def _user_key(name: str) -> str | None:
    found = re.fullmatch(r"(?:.*__)?([UW][A-Z0-9]{2,})(?:\.json)?", name, re.DOTALL)
    return found[1] if found is not None else None


def _thread_key(name: str) -> str | None:
    found = re.fullmatch(r"(?:.*__)?(\d+\.\d+)(?:\.md)?", name)
    return found[1] if found is not None else None


def _file_key(name: str) -> str | None:
    found = re.fullmatch(r"(?:.*__)?(F[A-Z0-9]{2,})(?:\.[^.]*)?", name, re.DOTALL)
    return found[1] if found is not None else None
