"""A server that speaks MongoDB's wire protocol over collections in memory, for machines that have no `mongod`.

The protocol (OP_MSG, and OP_QUERY for the greeting) is ours; what filters, sorts and pipelines mean is mongomock's.
It knows the commands that the tests need and refuses all others as a server does. Where it has users, it lets nobody in
who has not proven a password by SCRAM-SHA-256.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import itertools
import secrets
import socketserver
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import bson
import mongomock

OP_REPLY, OP_QUERY, OP_MSG = 1, 2004, 2013


class Refused(Exception):
    def __init__(self, code: int, text: str) -> None:
        self.code = code
        super().__init__(text)


class Wire:
    """Answers commands; `asked` counts them by name, `break_after` cuts a connection behind that many getMores.

    `users` are names with their passwords.
    """

    def __init__(self) -> None:
        self.users: dict[str, str] = {}
        self.data: Any = mongomock.MongoClient()
        self.asked: dict[str, int] = {}
        self.sent = 0
        self.break_after: int | None = None
        self._cursors: dict[int, tuple[str, Iterator[Any]]] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def answer(self, command: dict[str, Any], login: Login) -> dict[str, Any]:
        name = next(iter(command))
        with self._lock:
            self.asked[name] = self.asked.get(name, 0) + 1
            if name in ("saslStart", "saslContinue"):
                return login.step(self.users, command)
            if self.users and not login.done and name.lower() not in ("hello", "ismaster", "ping", "endsessions"):
                return {"ok": 0.0, "code": 13, "codeName": "Unauthorized", "errmsg": f"{name} requires authentication"}
            act: Callable[[dict[str, Any]], dict[str, Any]] | None = getattr(self, f"do_{name.lower()}", None)
            if act is None:
                return {"ok": 0.0, "code": 59, "codeName": "CommandNotFound", "errmsg": f"no such command: '{name}'"}
            try:
                return {**act(command), "ok": 1.0}
            except Refused as error:
                return {"ok": 0.0, "code": error.code, "errmsg": str(error)}
            except mongomock.OperationFailure as error:
                return {"ok": 0.0, "code": error.code or 2, "errmsg": str(error)}

    def do_hello(self, command: dict[str, Any]) -> dict[str, Any]:
        return {
            "isWritablePrimary": True, "ismaster": True, "maxBsonObjectSize": 16 << 20,
            "maxMessageSizeBytes": 48_000_000, "maxWriteBatchSize": 100_000, "minWireVersion": 0, "maxWireVersion": 21,
            "readOnly": False, **({"saslSupportedMechs": ["SCRAM-SHA-256"]} if "saslSupportedMechs" in command else {}),
        }  # fmt: skip

    do_ismaster = do_hello

    def do_ping(self, command: dict[str, Any]) -> dict[str, Any]:
        return {}

    do_endsessions = do_ping

    def do_listdatabases(self, command: dict[str, Any]) -> dict[str, Any]:
        return {"databases": [{"name": name} for name in [*self.data.list_database_names(), "admin"]]}

    def do_listcollections(self, command: dict[str, Any]) -> dict[str, Any]:
        database = self.data[command["$db"]]
        found = [
            {"name": name, "type": "collection", "options": {}, "info": {"readOnly": False}}
            for name in database.list_collection_names()
        ]
        return self._first(command, f"{command['$db']}.$cmd.listCollections", iter(found))

    def do_listindexes(self, command: dict[str, Any]) -> dict[str, Any]:
        found = [{"v": 2, "key": {"_id": 1}, "name": "_id_"}]
        return self._first(command, f"{command['$db']}.{command['listIndexes']}", iter(found))

    def do_count(self, command: dict[str, Any]) -> dict[str, Any]:
        return {"n": self.data[command["$db"]][command["count"]].count_documents(command.get("query", {}))}

    def do_find(self, command: dict[str, Any]) -> dict[str, Any]:
        collection = self.data[command["$db"]][command["find"]]
        if command["find"] == "forbidden":
            raise Refused(13, "not authorized on db to execute command")
        cursor = collection.find(command.get("filter", {}), command.get("projection") or None)
        if "sort" in command:
            cursor = cursor.sort(list(command["sort"].items()))
        if command.get("limit"):
            cursor = cursor.limit(abs(command["limit"]))
        return self._first(command, f"{command['$db']}.{command['find']}", iter(cursor))

    def do_aggregate(self, command: dict[str, Any]) -> dict[str, Any]:
        collection = self.data[command["$db"]][command["aggregate"]]
        return self._first(
            command.get("cursor", {}),
            f"{command['$db']}.{command['aggregate']}",
            iter(collection.aggregate(command["pipeline"])),
        )

    def _first(self, command: dict[str, Any], namespace: str, rows: Iterator[Any]) -> dict[str, Any]:
        number = next(self._numbers)
        self._cursors[number] = (namespace, rows)
        return self._batch(number, command.get("batchSize", 101), "firstBatch", bool(command.get("singleBatch")))

    def do_getmore(self, command: dict[str, Any]) -> dict[str, Any]:
        if command["getMore"] not in self._cursors:
            raise Refused(43, f"cursor id {command['getMore']} not found")
        if self.break_after is not None:
            self.break_after -= 1
            if self.break_after < 0:
                raise ConnectionError
        return self._batch(command["getMore"], command.get("batchSize", 1000), "nextBatch", False)

    def _batch(self, number: int, size: int, key: str, single: bool) -> dict[str, Any]:
        namespace, rows = self._cursors[number]
        batch = list(itertools.islice(rows, size))
        self.sent += len(batch)
        if single or len(batch) < size:
            del self._cursors[number]
            number = 0
        return {"cursor": {"id": bson.Int64(number), "ns": namespace, key: batch}}

    def do_killcursors(self, command: dict[str, Any]) -> dict[str, Any]:
        gone = [number for number in command["cursors"] if self._cursors.pop(number, None)]
        return {"cursorsKilled": gone, "cursorsNotFound": [], "cursorsAlive": [], "cursorsUnknown": []}

    @property
    def open_cursors(self) -> int:
        return len(self._cursors)


class Login:
    """How far somebody on one connection has come with proving a password (RFC 5802, RFC 7677)."""

    def __init__(self) -> None:
        self.done = False
        self._said: list[bytes] = []
        self._salted = b""

    def step(self, users: dict[str, str], command: dict[str, Any]) -> dict[str, Any]:
        refusal = {"ok": 0.0, "code": 18, "codeName": "AuthenticationFailed", "errmsg": "Authentication failed."}
        words = dict(part.split(b"=", 1) for part in bytes(command["payload"]).split(b",") if b"=" in part)
        if "saslStart" in command:
            user = words[b"n"].decode()
            if command["mechanism"] != "SCRAM-SHA-256" or user not in users:
                return refusal
            salt = secrets.token_bytes(16)
            self._salted = hashlib.pbkdf2_hmac("sha256", users[user].encode(), salt, 4096)
            answer = b"r=%s%s,s=%s,i=4096" % (words[b"r"], secrets.token_hex(12).encode(), base64.b64encode(salt))
            self._said = [bytes(command["payload"]).removeprefix(b"n,,"), answer]
        else:
            if b"p" not in words:
                return {"conversationId": 1, "done": True, "payload": b"", "ok": 1.0}
            message = b",".join([*self._said, bytes(command["payload"]).rpartition(b",p=")[0]])
            client, server = (hmac.digest(self._salted, key, "sha256") for key in (b"Client Key", b"Server Key"))
            signature = hmac.digest(hashlib.sha256(client).digest(), message, "sha256")
            proof = bytes(a ^ b for a, b in zip(client, signature, strict=True))
            if not hmac.compare_digest(base64.b64decode(words[b"p"]), proof):
                return refusal
            answer = b"v=" + base64.b64encode(hmac.digest(server, message, "sha256"))
            self.done = True
        return {"conversationId": 1, "done": self.done, "payload": answer, "ok": 1.0}


OPTIONS = bson.CodecOptions(uuid_representation=4, tz_aware=True)  # type: ignore[var-annotated]


class _Connection(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        wire: Wire = self.server.wire  # type: ignore[attr-defined]
        login = Login()
        while header := self.rfile.read(16):
            size, number, _, code = struct.unpack("<iiii", header)
            body = self.rfile.read(size - 16)
            try:
                self.wfile.write(_reply(wire, login, number, code, body))
            except (ConnectionError, ValueError):
                return

    def finish(self) -> None:
        try:
            super().finish()
        except OSError:
            pass  # the client left first


def _reply(wire: Wire, login: Login, number: int, code: int, body: bytes) -> bytes:
    if code == OP_QUERY:
        end = body.index(b"\0", 4)
        command = bson.decode(_one(body, end + 9), OPTIONS)
        reply = struct.pack("<iqii", 8, 0, 0, 1) + bson.encode(wire.answer(command, login), codec_options=OPTIONS)
        return struct.pack("<iiii", 16 + len(reply), 0, number, OP_REPLY) + reply
    flags = struct.unpack_from("<I", body)[0]
    if code != OP_MSG or flags & 1 or body[4] != 0:
        raise ValueError("not a message that this server understands")
    command = bson.decode(_one(body, 5), OPTIONS)
    reply = struct.pack("<IB", 0, 0) + bson.encode(wire.answer(command, login), codec_options=OPTIONS)
    return struct.pack("<iiii", 16 + len(reply), 0, number, OP_MSG) + reply


def _one(body: bytes, at: int) -> bytes:
    return body[at : at + struct.unpack_from("<i", body, at)[0]]


@contextmanager
def mongo_wire() -> Iterator[tuple[str, Wire]]:
    """Its address and itself, listening on loopback."""

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = True
        daemon_threads = True
        wire = Wire()

    with Server(("127.0.0.1", 0), _Connection) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield f"mongodb://127.0.0.1:{server.server_address[1]}", server.wire
        finally:
            server.shutdown()
            thread.join()
