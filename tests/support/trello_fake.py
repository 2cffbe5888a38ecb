"""Trello for the tests: boards in memory behind the routes that its mount uses."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from tests.support.descriptions import OpenAPI, description, problems
from tests.support.service_fake import Call, Fake, Reply

KEY, TOKEN = "0123456789abcdefhunter2", "ATTAhunter3hunter3"
YOUNGER = {"dueComplete"}
"""Fields of a card that the description does not know yet."""


class TrelloChecker:
    """The description has requests only: addresses, parameters, and the names of fields in bodies."""

    def __init__(self, document: dict[str, Any]) -> None:
        for operations in document["paths"].values():
            for one in operations.values():
                if isinstance(one, dict) and "parameters" in one:
                    one["parameters"] = [given for given in one["parameters"] if given["name"] not in ("key", "token")]
        for given in document["paths"]["/search"]["get"]["parameters"]:
            given["required"] = given["name"] == "query"  # it says so of idOrganizations too, which is wrong
        self.api = OpenAPI(document)

    def check(self, method: str, path: str, query: str, sent: bytes, kind: str, status: int, got: bytes | None) -> None:
        path = path.removeprefix("/1")
        if path.startswith("/files/"):
            return
        self.api.check(method, path, query, b"", "", status, None)
        operation = self.api.operation(method, path)
        if operation is None or kind != "application/json" or not sent:
            return
        schema = self.api.resolve(operation["requestBody"])["content"]["application/json"]["schema"]
        if unknown := set(json.loads(sent)) - set(self.api.resolve(schema)["properties"]) - YOUNGER:
            problems.append(f"{method} {path}: no fields {unknown}")


@cache
def checker() -> TrelloChecker | None:
    content = description("trello")
    return None if content is None else TrelloChecker(json.loads(content))


class TrelloFake(Fake):
    def __init__(self) -> None:
        super().__init__(checker())
        self.number = 0
        self.boards: dict[str, dict[str, Any]] = {}
        self.cards: dict[str, dict[str, Any]] = {}
        self.comments: dict[str, list[dict[str, Any]]] = {}
        self.uploads: list[bytes] = []
        for method, pattern, handler in (
            ("GET", "/1/members/me", lambda call: Reply(200, {"id": "m", "username": "ada"})),
            ("GET", "/1/members/me/boards", lambda call: Reply(200, list(self.boards.values()))),
            ("GET", "/1/organizations/{id}/boards", lambda call, id: Reply(200, list(self.boards.values())[:1])),
            ("GET", "/1/boards/{id}", self._board),
            ("GET", "/1/boards/{id}/cards", self._more_cards),
            ("PUT", "/1/cards/{id}", self._put),
            ("POST", "/1/cards", self._new),
            ("GET", "/1/cards/{id}/actions", self._actions),
            ("POST", "/1/cards/{id}/actions/comments", self._comment),
            ("POST", "/1/cards/{id}/attachments", self._attach),
            ("GET", "/1/search", self._search),
            ("GET", "/files/{id}", lambda call, id: Reply(302, None, {"Location": f"{self.signed}/signed/{id}"})),
            ("GET", "/signed/{id}", lambda call, id: Reply(200, b"content")),
        ):
            self.route(method, pattern, handler)

    def _handle(self, call: Call) -> Reply:
        given = call.headers.get("authorization")
        if call.host != "127.0.0.1":
            assert given is None, "a signed link gets no token"
        elif given != f'OAuth oauth_consumer_key="{KEY}", oauth_token="{TOKEN}"':
            return Reply(401, b"invalid token")
        return super()._handle(call)

    def unknown(self, call: Call) -> Reply:
        return Reply(404, b"The requested resource was not found.")

    def id(self) -> str:
        self.number += 1
        return f"64b0{self.number:020x}"

    def add_board(self, name: str, *lists: str) -> dict[str, Any]:
        id = self.id()
        made = {
            "id": id, "name": name, "desc": "", "closed": False, "shortLink": f"board{self.number:03}",
            "dateLastActivity": "2026-05-01T10:00:00.000Z",
            "lists": [{"id": self.id(), "name": one, "closed": False, "pos": at} for at, one in enumerate(lists)],
            "labels": [{"id": self.id(), "name": "bug", "color": "red"}, {"id": self.id(), "name": "", "color": "sky"}],
            "members": [{"id": self.id(), "username": "ada", "fullName": "Ada"}],
        }  # fmt: skip
        self.boards[id] = made
        return made

    def add_card(self, board: dict[str, Any], inside: int, name: str, desc: str = "", **given: Any) -> dict[str, Any]:
        id = self.id()
        card = {
            "id": id, "idBoard": board["id"], "idList": board["lists"][inside]["id"], "name": name, "desc": desc,
            "shortLink": f"card{self.number:04}", "shortUrl": f"https://trello.com/c/card{self.number:04}",
            "url": f"https://trello.com/c/card{self.number:04}/1-x", "labels": [], "idMembers": [], "due": None,
            "dueComplete": False, "closed": False, "dateLastActivity": "2026-05-02T10:00:00.000Z", "attachments": [],
            **given,
        }  # fmt: skip
        self.cards[id] = card
        return card

    def _found(self, id: str) -> dict[str, Any] | None:
        return next((one for one in self.boards.values() if id in (one["id"], one["shortLink"])), None)

    def _visible(self, board: dict[str, Any]) -> list[dict[str, Any]]:
        """Newest last, as ids count up."""
        return [card for card in self.cards.values() if card["idBoard"] == board["id"] and not card["closed"]]

    def _board(self, call: Call, id: str) -> Reply:
        board = self._found(id)
        return (
            Reply(400, b"invalid id") if board is None else Reply(200, {**board, "cards": self._visible(board)[-1000:]})
        )

    def _more_cards(self, call: Call, id: str) -> Reply:
        older = [card for card in self._visible(self.boards[id]) if card["id"] < call.query["before"]]
        return Reply(200, older[-int(call.query["limit"]) :])

    def _put(self, call: Call, id: str) -> Reply:
        card, board = self.cards[id], self.boards[self.cards[id]["idBoard"]]
        for name, value in call.json.items():
            match name:
                case "idLabels":
                    card["labels"] = [one for one in board["labels"] if one["id"] in value.split(",")]
                case "idMembers":
                    card["idMembers"] = value.split(",") if value else []
                case "closed":
                    card["closed"] = value == "true"
                case _:
                    card[name] = value
        return Reply(200, card)

    def _new(self, call: Call) -> Reply:
        given = call.json
        board = next(one for one in self.boards.values() for inside in one["lists"] if inside["id"] == given["idList"])
        at = [one["id"] for one in board["lists"]].index(given["idList"])
        return Reply(200, self.add_card(board, at, given["name"], given["desc"]))

    def _actions(self, call: Call, id: str) -> Reply:
        before = call.query.get("before", "~")
        found = [one for one in reversed(self.comments.get(id, [])) if one["id"] < before]
        return Reply(200, found[: int(call.query["limit"])])

    def say(self, card: dict[str, Any], text: str) -> dict[str, Any]:
        made = {
            "id": self.id(), "type": "commentCard", "date": "2026-05-02T10:00:00.000Z", "data": {"text": text},
            "memberCreator": {"id": "m", "username": "ada"},
        }  # fmt: skip
        self.comments.setdefault(card["id"], []).append(made)
        return made

    def _comment(self, call: Call, id: str) -> Reply:
        return Reply(200, self.say(self.cards[id], call.json["text"]))

    def _attach(self, call: Call, id: str) -> Reply:
        self.uploads.append(call.body)
        return Reply(200, {"id": self.id()})

    def _search(self, call: Call) -> Reply:
        found = [card for card in self.cards.values() if call.query["query"] in card["name"]]
        size, page = int(call.query["cards_limit"]), int(call.query["cards_page"])
        hits = [
            {
                **card, "board": self.boards[card["idBoard"]],
                "list": next(one for one in self.boards[card["idBoard"]]["lists"] if one["id"] == card["idList"]),
            }
            for card in found[page * size : (page + 1) * size]
        ]  # fmt: skip
        return Reply(200, {"cards": hits})
