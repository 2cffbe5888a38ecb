"""`TrelloResource`: the boards of Trello as files.

/boards/<name>__<id>/{board.json,cards.jsonl}
/boards/<name>__<id>/lists/<name>__<id>/<card>__<id>/{card.md,card.json,comments.jsonl,attachments/}
"""

from __future__ import annotations

import asyncio
import errno
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, ClassVar, Final

from ramet.backends.services import front_matter
from ramet.backends.services.auth import ServiceToken, TokenAuth
from ramet.backends.services.config import ServiceConfig
from ramet.backends.services.contents import among, fixed, json_lines, json_text, letter_text, pretty_json
from ramet.backends.services.front_matter import BODY, Value
from ramet.backends.services.multipart import form_with_files
from ramet.backends.services.names import key_last, split_name, time_ns, title_name
from ramet.backends.services.nodes import Asked, Collection, Inbox, Item, Place, Rendered
from ramet.backends.services.pages import first_of
from ramet.backends.services.requests import raw_request, request_of
from ramet.backends.services.rest import Answer, Params, Rest, patiently, token_refused
from ramet.backends.services.tree import Service
from ramet.concurrency.loop_local import LoopLocal
from ramet.core.errors import fail
from ramet.core.paths import ROOT, Path, encode
from ramet.core.resource import Letter
from ramet.core.stat import Kind, Stat
from ramet.core.streams import closing

PAGE: Final = 1000
"""Entries that Trello gives at once."""
LONGEST: Final = 16384
"""Characters of a description or a comment."""
EDITABLE: Final = ("name", "list", "labels", "members", "due", "dueComplete", "closed")
ID: Final = "[0-9a-f]{24}|[A-Za-z0-9]{8}"
README: Final = """\
# Trello

    boards/<name>__<id>/                       the open boards
        cards.jsonl  board.json                all open cards, one a line; what Trello says of the board
        lists/<name>__<id>/<card>__<id>/       the open lists from left to right, and their cards
            card.md         name, list, labels, members, due, ...; then the description
            comments.jsonl  attachments/  card.json

The id alone is enough: `cat boards/*/lists/*/aBcD1234/card.md`.

- Find: `jq -r 'select(.list=="Doing").name' boards/Work__*/cards.jsonl`
- Edit: `sed -i 's/^due: .*/due: 2026-05-03/' .../card.md`. Only what differs is sent. Names are Trello's; a wrong
  one is refused with a list of what there is.
- Move: `mv lists/Doing__*/Fix__aBcD1234 lists/Done__*/`. `rmdir lists/Done__*/Fix__aBcD1234` archives the card.
  In a branch, edit `list` and `closed` of card.md instead.
- Comment: `post .../Fix__aBcD1234 -m 'Done.'`, with a file: `-a graph.png`. New card: `post lists/Doing__* -t Title`
- Search: `query . 'label:bug crash'`. The API, one answer at a time:
  `query . 'GET /members/me'`, `query -w . 'PUT /cards/...' '{...}'`
"""


@dataclass(frozen=True, kw_only=True, repr=False)
class TrelloConfig(ServiceConfig):
    """The boards of a member of Trello."""

    kind: ClassVar[str] = "trello"
    secrets: ClassVar[tuple[str, ...]] = ("api_key", "api_token")

    api_key: str | None = None
    """The key of the Power-Up or application."""
    api_key_env: str | None = None
    """The environment variable that holds the key."""
    api_token: str | None = None
    """The token that a member gave to it."""
    api_token_env: str | None = None
    """The environment variable that holds the token."""
    base_url: str = "https://api.trello.com/1"
    """The address of the API."""
    workspace_id: str | None = None
    """The workspace whose boards are shown, by id or name; all when not given."""
    board_ids: tuple[str, ...] = ()
    """Boards that are shown, by id or short link; all when not given."""
    requests_per_second: float | None = 10.0
    """Requests that are sent per second at most; Trello allows 100 in ten seconds."""
    allow: tuple[str, ...] = ()
    """Hosts that attachments may come from, in addition to Trello's."""


class TrelloResource(Service):
    """`TrelloResource(TrelloConfig(api_key="...", api_token="..."))`."""

    config: TrelloConfig

    def __init__(self, config: TrelloConfig) -> None:
        signed = ("*.amazonaws.com", "*.trello.services", *config.allow)
        self._rest = Rest.of(
            config, TokenAuth(self._token, "OAuth"), home=("trello.com",), signed=signed, judge=_judge, explain=_explain
        )
        self._loaded: dict[str, tuple[Any, float]] = {}
        self._loading = LoopLocal(asyncio.Lock)
        board, card = "/boards/*", "/boards/*/lists/*/*"
        super().__init__(config, (
            Rendered("/README.md", fixed(README)),
            Collection("/boards", self._boards, self._board, key_last(ID)),
            Asked(f"{board}/board.json", self._board_json),
            Asked(f"{board}/cards.jsonl", lambda place: json_lines(self._flat(place))),
            Collection(f"{board}/lists", self._lists, partial(among, self._lists), key_last(ID)),
            Collection(f"{board}/lists/*", self._cards, self._card, key_last(ID), self._archive, move=self._move),
            Rendered(f"{card}/card.md", _card_text, self._edit, self._fresh),
            Rendered(f"{card}/card.json", pretty_json),
            Asked(f"{card}/comments.jsonl", lambda place: json_lines(self._comments(place))),
            Collection(f"{card}/attachments", self._files, partial(among, self._files), key_last(ID, any_end=True)),
            Asked(f"{card}/attachments/*", self._download),
            Inbox(f"{board}/lists/*", self._new_card),
            Inbox(card, self._comment),
        ))  # fmt: skip

    def _token(self) -> ServiceToken | None:
        key, token = self.config.secret("api_key"), self.config.secret("api_token")
        if key is None or token is None:
            return None
        return ServiceToken(f'oauth_consumer_key="{key}", oauth_token="{token}"', secrets=(key, token))

    # ----------------------------------------------------------------------------------------------- boards

    async def _boards(self, place: Place) -> AsyncIterator[Item]:
        owner = f"/organizations/{self.config.workspace_id}" if self.config.workspace_id else "/members/me"
        params: Params = {"filter": "open", "fields": "all"}
        for board in (await self._rest.get(f"{owner}/boards", path=place.path, params=params)).json():
            if self._shows(board):
                yield self._as_board(board)

    def _shows(self, board: Any) -> bool:
        wanted = self.config.board_ids
        return not wanted or board["id"] in wanted or board.get("shortLink") in wanted

    async def _board(self, place: Place, key: str) -> Item:
        board = await self._whole(key, place.path)
        if not self._shows(board):
            raise fail(errno.ENOENT, place.path)
        return self._as_board(board)

    def _as_board(self, board: Any) -> Item:
        stat = Stat(Kind.DIR, None, time_ns(board.get("dateLastActivity")), None, self.config.ttl)
        return Item(board["id"], f"{title_name(board['name'])}__{board['id']}", board, stat)

    async def _whole(self, id: str, path: Path) -> Any:
        """A board with its lists, labels, members and open cards: one request, and one per further 1,000 cards."""
        async with self._loading.get():
            known, until = self._loaded.get(id, (None, 0.0))
            if until > time.monotonic():
                return known
            params: Params = {
                "cards": "visible", "lists": "open", "labels": "all", "labels_limit": PAGE, "members": "all",
                "card_fields": "all", "card_attachments": "true", "fields": "all",
            }  # fmt: skip
            board = (await self._rest.get(f"/boards/{id}", path=path, params=params)).json()
            cards = {card["id"]: card for card in board["cards"]}
            page = board["cards"]
            while len(page) >= PAGE:
                more: Params = {
                    "filter": "visible", "limit": PAGE, "before": min(cards), "fields": "all", "attachments": "true",
                }  # fmt: skip
                page = (await self._rest.get(f"/boards/{board['id']}/cards", path=path, params=more)).json()
                page = [card for card in page if card["id"] not in cards]
                cards.update((card["id"], card) for card in page)
            board["cards"] = list(cards.values())
            self._loaded[id] = self._loaded[board["id"]] = board, time.monotonic() + self.config.ttl
            return board

    async def _about(self, place: Place) -> Any:
        return await self._whole(place.items[0].key, place.path)

    async def _board_json(self, place: Place) -> AsyncIterator[bytes]:
        board = await self._about(place)
        yield json_text({name: value for name, value in board.items() if name != "cards"})

    async def _lists(self, place: Place) -> AsyncIterator[Item]:
        for one in (await self._about(place))["lists"]:
            stat = Stat(Kind.DIR, ttl=self.config.ttl)
            yield Item(one["id"], f"{title_name(one['name'])}__{one['id']}", one, stat)

    # ------------------------------------------------------------------------------------------------ cards

    async def _cards(self, place: Place) -> AsyncIterator[Item]:
        board = await self._about(place)
        for card in board["cards"]:
            if card["idList"] == place.items[1].key:
                yield self._as_card(card, board)

    async def _card(self, place: Place, key: str) -> Item:
        board = await self._about(place)
        card = next((card for card in board["cards"] if key in (card["shortLink"], card["id"])), None)
        if card is None or card["idList"] != place.items[1].key:
            raise fail(errno.ENOENT, place.path)
        return self._as_card(card, board)

    def _as_card(self, card: Any, board: Any) -> Item:
        """A card with the names of what it refers to."""
        key = card["shortLink"]
        stat = Stat(Kind.DIR, None, time_ns(card["dateLastActivity"]), None, self.config.ttl)
        members = {one["id"]: one["username"] for one in board["members"]}
        lists = {one["id"]: one["name"] for one in board["lists"]}
        shown = {
            **card, "listName": lists.get(card["idList"]), "labelNames": [_label(one) for one in card["labels"]],
            "memberNames": [members.get(one, one) for one in card["idMembers"]],
        }  # fmt: skip
        return Item(key, f"{title_name(card['name'])}__{key}", shown, stat)

    async def _flat(self, place: Place) -> AsyncIterator[Any]:
        board = await self._about(place)
        lists = {one["id"]: one for one in board["lists"]}
        for card in board["cards"]:
            inside, item = lists.get(card["idList"]), self._as_card(card, board)
            if inside is not None:
                at = f"{self._as_board(board).name}/lists/{title_name(inside['name'])}__{inside['id']}/{item.name}"
                yield {**_fields(item.data), "desc": card["desc"], "path": f"boards/{at}/card.md"}

    async def _comments(self, place: Place) -> AsyncIterator[Any]:
        before = None
        while True:
            params: Params = {"filter": "commentCard", "limit": PAGE, "before": before}
            page = (await self._rest.get(f"/cards/{place.data['id']}/actions", path=place.path, params=params)).json()
            for one in page:
                who = (one.get("memberCreator") or {}).get("username")
                yield {"id": one["id"], "date": one["date"], "user": who, "text": one["data"]["text"], "raw": one}
            if len(page) < PAGE:
                return
            before = page[-1]["id"]

    # ------------------------------------------------------------------------------------------ attachments

    async def _files(self, place: Place) -> AsyncIterator[Item]:
        for file in place.items[2].data.get("attachments") or ():
            size = file.get("bytes") if file.get("isUpload") else len(encode(file["url"])) + 1
            name = file["name"] if file.get("isUpload") else f"{file['name']}.url"
            stat = Stat(Kind.FILE, size, time_ns(file.get("date")), None, self.config.ttl)
            yield Item(file["id"], split_name(name, file["id"]), file, stat)

    async def _download(self, place: Place) -> AsyncIterator[bytes]:
        if not place.data.get("isUpload"):  # a link, which leads anywhere
            yield encode(f"{place.data['url']}\n")
            return
        async with closing(self._rest.download(place.data["url"], path=place.path)) as blocks:
            async for block in blocks:
                yield block

    # ---------------------------------------------------------------------------------------------- changes

    async def _fresh(self, place: Place) -> Place:
        self._loaded.clear()
        board = await self._about(place)
        card = next((card for card in board["cards"] if card["shortLink"] == place.items[2].key), None)
        if card is None:
            raise fail(errno.ESTALE, place.path, "Stale file handle: the card was archived or moved to another board")
        return place._replace(items=(*place.items[:2], self._as_card(card, board)))

    async def _edit(self, place: Place, old: bytes, new: bytes) -> None:
        given = {}
        for name, value in front_matter.edited(place.path, old, new, EDITABLE).items():
            field, sent = _sent(name, value, await self._about(place), place.path)
            given[field] = sent
        if given:
            await self._update(place, given)

    async def _update(self, place: Place, given: dict[str, Any]) -> None:
        address = f"/cards/{place.items[2].data['id']}"
        await self._rest.send("PUT", address, path=place.path, json_body=given, repeatable=True)

    async def _archive(self, place: Place) -> None:
        await self._update(place, {"closed": "true"})

    async def _move(self, place: Place, into: Place, name: str) -> None:
        stem, _, key = name.rpartition("__")
        if key != place.items[2].key:
            raise fail(errno.EINVAL, into.path, f"Invalid argument: the name must end in __{place.items[2].key}")
        given = {}
        if into.items[0].key != place.items[0].key:
            given["idBoard"] = into.items[0].key
        if into.items[1].key != place.items[1].key:
            given["idList"] = into.items[1].key
        if stem != title_name(place.items[2].data["name"]):
            given["name"] = stem
        if given:
            await self._update(place, given)

    # ---------------------------------------------------------------------------------------------- posting

    async def _new_card(self, place: Place, letter: Letter) -> str:
        text = letter_text(letter, place.path, "a new card", titled=True)
        given = {"idList": place.items[1].key, "name": letter.subject, "desc": _bounded("desc", text, place.path)}
        return str((await self._rest.send("POST", "/cards", path=place.path, json_body=given)).json()["url"])

    async def _comment(self, place: Place, letter: Letter) -> str:
        said = letter_text(letter._replace(attachments=()), place.path, "a comment")
        text = _bounded("a comment", said.rstrip("\n"), place.path)
        card = place.items[2].data
        for name, content in letter.attachments:
            body, headers = form_with_files({"name": name}, [("file", name, content)])
            address = f"/cards/{card['id']}/attachments"
            await self._rest.send("POST", address, path=place.path, content=body, headers=headers)
        if text:
            address = f"/cards/{card['id']}/actions/comments"
            await self._rest.send("POST", address, path=place.path, json_body={"text": text})
        elif not letter.attachments:
            raise fail(errno.EINVAL, place.path, "Invalid argument: the comment is empty")
        return str(card.get("shortUrl") or card["shortLink"])

    # --------------------------------------------------------------------------------------------- querying

    async def query(
        self, path: Path, text: str, values: Sequence[str] = (), *, limit: int | None = None, write: bool = False
    ) -> AsyncIterator[bytes]:
        """A request such as `GET /members/me`, or words for Trello's search of cards."""
        request = request_of(text)
        if request is not None:
            found = raw_request(self._rest, self.config, path, request, values, limit=limit, write=write)
        elif values:
            raise fail(errno.EINVAL, path, "a search takes no values; quote it as one word")
        else:
            found = json_lines(first_of(self._hits(text, path), limit))
        async with closing(found) as lines:
            async for block in lines:
                yield block
        if request is not None and request[0] != "GET":
            self.forget(path)

    async def _hits(self, text: str, path: Path) -> AsyncIterator[Any]:
        page = 0
        while True:
            params: Params = {
                "query": text, "modelTypes": "cards", "cards_limit": 100, "cards_page": page, "card_board": "true",
                "card_list": "true",
            }  # fmt: skip
            found = (await patiently(partial(self._rest.get, "/search", path=path, params=params))).json()["cards"]
            for card in found:
                if card.get("closed") or not self._shows(card["board"]):
                    continue  # it has no file
                names = (f"{title_name(card[one]['name'])}__{card[one]['id']}" for one in ("board", "list"))
                at = "/lists/".join(names)
                yield {"path": f"boards/{at}/{title_name(card['name'])}__{card['shortLink']}/card.md", **card}
            if len(found) < 100:
                return
            page += 1

    def forget(self, path: Path = ROOT) -> None:
        super().forget(path)
        self._loaded.clear()

    async def close(self) -> None:
        await super().close()
        await self._rest.close()


# ----------------------------------------------------------------------------------------------------- rendering


def _label(label: Any) -> str:
    return str(label["name"] or label["color"] or label["id"])


def _fields(card: Any) -> dict[str, Value]:
    return {
        "name": card["name"], "list": card["listName"], "labels": card["labelNames"], "members": card["memberNames"],
        "due": card["due"], "dueComplete": card["dueComplete"], "closed": card["closed"],
        "shortLink": card["shortLink"], "dateLastActivity": card["dateLastActivity"], "url": card["shortUrl"],
    }  # fmt: skip


def _card_text(place: Place) -> bytes:
    return encode(front_matter.render(_fields(place.data), place.data["desc"]))


def _bounded(name: str, text: str, path: Path) -> str:
    if len(text) > LONGEST:
        raise fail(errno.EFBIG, path, f"File too large: {name} has at most {LONGEST} characters; nothing was changed")
    return text


def _sent(name: str, value: Value, board: Any, path: Path) -> tuple[str, Any]:
    """A field of the front matter as Trello takes it."""
    match name:
        case "labels":
            return "idLabels", ",".join(_ids(name, value, ((_label(one), one["id"]) for one in board["labels"]), path))
        case "members":
            return "idMembers", ",".join(_ids(name, value, ((m["username"], m["id"]) for m in board["members"]), path))
        case "list":
            return "idList", _ids(name, [str(value or "")], ((one["name"], one["id"]) for one in board["lists"]), path)[
                0
            ]
        case "closed" | "dueComplete":
            if not isinstance(value, bool):
                raise fail(errno.EINVAL, path, f"Invalid argument: {name} is true or false")
            return name, str(value).lower() if name == "closed" else value
        case "due":
            try:
                due = None if value is None else datetime.fromisoformat(str(value))
                return name, due and (due if due.tzinfo else due.replace(tzinfo=UTC)).isoformat()
            except ValueError:
                words = "Invalid argument: due is a day or time such as 2026-05-03T12:00:00Z"
                raise fail(errno.EINVAL, path, words) from None
        case "name" if value is None or not str(value).strip():
            raise fail(errno.EINVAL, path, "Invalid argument: the name is empty")
    text = "" if value is None else str(value)
    return ("desc", _bounded("desc", text, path)) if name == BODY else (name, text)


def _ids(kind: str, names: Value, choices: Iterable[tuple[str, str]], path: Path) -> list[str]:
    if not isinstance(names, list) and names is not None:
        raise fail(errno.EINVAL, path, f"Invalid argument: {kind} is a list, as in [one, two]")
    there: dict[str, list[str]] = {}
    for name, id in choices:
        there.setdefault(name.casefold(), []).append(id)
    found = []
    for name in names or ():
        ids = there.get(name.casefold(), [])
        if len(ids) != 1:
            words = f"there are {len(ids)} of {kind} {name}; change it in Trello"
            if not ids:
                words = f"no {kind} {name}; there are: {', '.join(sorted(there)) or 'none'}"
            raise fail(errno.EINVAL, path, f"Invalid argument: {words}")
        found += ids
    return found


def _judge(answer: Answer) -> OSError | None:
    """Trello explains refusals as plain text."""
    said = " ".join(answer.body[:400].decode("utf-8", "replace").split()) if answer.status >= 400 else ""
    if answer.status == 401 and ("invalid" in said or "expired" in said):
        return token_refused(answer.path, f"Trello refuses the key or the token: {said}")
    if answer.status == 401:
        return fail(errno.EACCES, answer.path, f"Permission denied: Trello says {said or 'unauthorized'}")
    if answer.status == 400 and "invalid id" in said:
        return fail(errno.ENOENT, answer.path)
    if answer.status == 400:
        return fail(errno.EINVAL, answer.path, f"Invalid argument: Trello says {_explain(said)}")
    return None


def _explain(said: Any) -> str:
    return str(said.get("message", "")) if isinstance(said, dict) else str(said)[:200]
