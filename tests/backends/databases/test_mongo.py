"""MongoResource shows MongoDB as a tree, over the wire protocol; the server is `tests.support.mongo_wire`."""

from __future__ import annotations

import asyncio
import errno
import gc
import json
import warnings
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

pytest.importorskip("pymongo")
pytest.importorskip("mongomock")

from bson import Decimal128, Int64, ObjectId
from tests.support.mongo_wire import Wire, mongo_wire

from ramet import Workspace
from ramet.backends.databases.mongo import MongoConfig, MongoResource
from ramet.backends.databases.mongo_names import file_name, value_of
from ramet.core import ops
from ramet.core.errors import Unavailable
from ramet.core.paths import parse
from ramet.layers.stack import Policy, build
from ramet.testing import READING, Check, run_check

P = parse
OID = ObjectId("64b7f0c0c0c0c0c0c0c0c0c0")
PEOPLE: list[dict[str, Any]] = [
    {"_id": OID, "name": "Ada", "born": datetime(1815, 12, 10, tzinfo=UTC), "tags": ["a", {"b": 1}], "n": Int64(5)},
    {"_id": ObjectId("64b7f0c0c0c0c0c0c0c0c0c1"), "name": 'Grace "Amazing"', "price": Decimal128("1.50"), "born": None},
]
ODD: list[Any] = [
    "plain",
    "a/b",
    "",
    ".",
    "..",
    "5",
    "64b7f0c0c0c0c0c0c0c0c0c0",
    '{"$gt": 1}',
    "true",
    "é\n%",
    "l" * 400,
]


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[str, Wire]]:
    with mongo_wire() as (url, wire):
        shop = wire.data["shop"]
        shop["people"].insert_many([dict(person) for person in PEOPLE])
        shop["odd"].insert_many([{"_id": value, "is": str(value)[:20]} for value in ODD])
        shop["a/b %.c"].insert_one({"_id": 7, "deep": {"er": True}})
        shop["database.json"].insert_one({"_id": 1})
        shop["forbidden"].insert_one({"_id": 1})
        wire.data["other"]["big"].insert_many([{"_id": i, "filler": "x" * 100} for i in range(5000)])
        yield url, wire


def run(act: Callable[[MongoResource], Awaitable[None]], url: str, **options: Any) -> None:
    async def both() -> None:
        tree = MongoResource(MongoConfig(url=url, **options))
        try:
            await act(tree)
        finally:
            await tree.close()

    asyncio.run(both())


@pytest.mark.parametrize("check", READING, ids=lambda check: check.name)
@pytest.mark.parametrize("mounted", [False, True])
def test_contract(check: Check, mounted: bool, server: tuple[str, Wire]) -> None:
    url, wire = server
    if not wire.data["tiny"]["c"].count_documents({}):
        wire.data["tiny"]["c"].insert_many([{"_id": value, "v": 1} for value in ["x", "a/b", "", "é"]])

    def make() -> Any:
        tree = MongoResource(MongoConfig(url=url, databases=("tiny",)))
        return build(tree, Policy()) if mounted else tree

    run_check(check, make)


def test_the_tree(server: tuple[str, Wire]) -> None:
    async def act(tree: MongoResource) -> None:
        assert {name async for name, _ in tree.scan(P("/"))} >= {"shop", "other"}
        found = {name async for name, _ in tree.scan(P("/shop"))}
        assert found == {"database.json", "%64atabase.json", "people", "odd", "a%2Fb %25.c", "forbidden"}
        names = {name async for name, _ in tree.scan(P("/shop/odd/documents"))}
        assert names == {file_name(value) for value in ODD} and len(names) == len(ODD)
        for value in ODD:
            data = json.loads(await ops.read_bytes(tree, P("/shop/odd/documents") / file_name(value)))
            assert data["_id"] == value
        for wrong in ("5.json", "nobody.json", "plain", "%22.json", "{.json", '{"$gt": ""}.json'):
            with pytest.raises(FileNotFoundError):
                await tree.stat(P("/shop/odd/documents") / wrong)

    run(act, server[0])


@pytest.mark.parametrize(
    "value",
    [
        OID, 5, -3, Int64(2**60), 1.5, "5", "1.5", "-x", True, None, "null", str(OID), UUID(int=7),
        datetime(2026, 1, 2, tzinfo=UTC), {"a": 1, "b": [1, {"$x": 2}]}, Decimal128("1.0"), b"bytes", "ü/..",
    ],
    ids=repr,
)  # fmt: skip
def test_names_give_the_value_back(value: Any) -> None:
    name = file_name(value)
    found = value_of(name)
    assert found is not None and found[0] == value and type(found[0]) in (type(value), int), name
    assert "/" not in name


def test_contents(server: tuple[str, Wire]) -> None:
    async def act(tree: MongoResource) -> None:
        lines = (await ops.read_bytes(tree, P("/shop/people/documents.jsonl"))).splitlines()
        first = json.loads(lines[0])
        assert first == {
            "_id": {"$oid": str(OID)}, "name": "Ada", "born": {"$date": {"$numberLong": "-4861728000000"}},
            "tags": ["a", {"b": 1}], "n": 5,
        }  # fmt: skip
        one = await ops.read_bytes(tree, P(f"/shop/people/documents/{OID}.json"))
        assert one == lines[0] + b"\n"
        schema = json.loads(await ops.read_bytes(tree, P("/shop/people/schema.json")))
        assert schema["sampled_documents"] == 2 and "_id_" in schema["indexes"]
        assert schema["fields"]["born"] == {"date": 1, "null": 1} and schema["fields"]["tags[].b"] == {"int": 1}
        database = json.loads(await ops.read_bytes(tree, P("/shop/database.json")))
        assert {"name": "people", "type": "collection", "estimated_documents": 2} in database["collections"]

    run(act, server[0])


def test_commands_over_it(server: tuple[str, Wire]) -> None:
    async def act() -> None:
        ws = Workspace({"/m": MongoResource(url=server[0])})
        for script, expected in {
            "head -n 2 /m/other/big/documents.jsonl | jq ._id": "0\n1\n",
            "wc -l < /m/other/big/documents.jsonl": "5000\n",
            "tail -n 1 /m/other/big/documents.jsonl | jq ._id": "4999\n",
            "ls /m/other/big/documents | wc -l": "5000\n",
            "jq -r .name /m/shop/people/documents/*0.json": "Ada\n",
            'query /m/other/big \'{"_id": {"$lt": 3}}\' | jq ._id': "0\n1\n2\n",
            'query -n 2 /m/other/big \'{"_id": {"$gte": 100}}\' | jq ._id': "100\n101\n",
            'query /m/other/big \'[{"$match": {"_id": {"$lt": 9}}}, {"$count": "n"}]\'': '{"n": 9}\n',
            'query -n 1 /m/other/big \'[{"$sort": {"_id": -1}}]\' | jq ._id': "4999\n",
            f'query /m/shop/people \'{{"_id": {{"$oid": "{OID}"}}}}\' | jq -r .name': "Ada\n",
        }.items():
            result = await ws.execute(script)
            assert (result.text, result.stderr) == (expected, b""), script
        for script, words in (
            ("query /m/shop '{}'", "asked of a collection"),
            ("query /m/shop/people 'nonsense'", "not extended JSON"),
            ("query /m/shop/people 5", "a query is a filter"),
            ('query /m/shop/people \'[{"$out": "x"}]\'', "this pipeline writes"),
            ('query -w /m/shop/people \'[{"$out": "x"}]\'', "not configured to be writable"),
            ("query /m/shop/people '{}' 1", "takes no values"),
            ("cat /m/shop/forbidden/documents.jsonl", "Permission denied: not authorized"),
            ("rm /m/shop/people/documents/*0.json", "Read-only file system"),
        ):
            result = await ws.execute(script)
            assert result.exit_code == 1 and words in result.stderr.decode(), (script, result.stderr)
        await ws.close()

    asyncio.run(act())


def test_a_pipeline_writes_where_all_agree(server: tuple[str, Wire]) -> None:
    async def act() -> None:
        tree = MongoResource(MongoConfig(url=server[0], writable=True, ttl=0))
        ws = Workspace({"/w": tree, "/r": (MongoResource(MongoConfig(url=server[0], writable=True)), "read")})
        pipeline = '[{"$match": {"name": "Ada"}}, {"$out": "copied"}]'
        refused = await ws.execute(f"query -w /r/shop/people '{pipeline}'")
        assert refused.exit_code == 1 and "Read-only file system" in refused.stderr.decode()
        result = await ws.execute(f"query -w /w/shop/people '{pipeline}'; jq -r .name /w/shop/copied/documents.jsonl")
        assert result.text.endswith("Ada\n"), result.stderr
        server[1].data["shop"].drop_collection("copied")
        await ws.close()

    asyncio.run(act())


def test_a_reader_that_stops_closes_the_cursor(server: tuple[str, Wire]) -> None:
    async def act(tree: MongoResource) -> None:
        wire = server[1]
        await tree.stat(P("/other/big/documents.jsonl"))
        before, opened = wire.sent, wire.open_cursors
        source: Any = tree.read(P("/other/big/documents.jsonl"))
        assert (await anext(source)).count(b"\n") == 16
        await source.aclose()
        assert wire.sent - before <= 101 and wire.open_cursors == opened

    run(act, server[0])


def test_a_recursive_grep_is_one_cursor_a_collection(server: tuple[str, Wire]) -> None:
    async def act() -> None:
        wire = server[1]
        ws = Workspace({"/m": MongoResource(MongoConfig(url=server[0], databases=("shop", "other")))})
        before = dict(wire.asked)
        result = await ws.execute("grep -rl '\"_id\": 4321,' /m/other/big/documents")
        assert result.text == "/m/other/big/documents/4321.json\n"
        assert wire.asked["find"] - before.get("find", 0) < 10
        for options, pattern in (("-i", "AMAZING"), ("-i", "masK"), ("-w", "Ada"), ("-E", "A(d|m)a"), ("-P", "Ada")):
            fast = (await ws.execute(f"grep -rl {options} '{pattern}' /m/shop/people | sort")).text
            slow = (
                await ws.execute(f"find /m/shop/people -type f -exec grep -l {options} '{pattern}' {{}} + | sort")
            ).text
            assert fast == slow, pattern
        for pattern in ("Amazing", '"er": true', "é"):
            fast = (await ws.execute(f"grep -rl '{pattern}' /m/shop/people /m/shop/odd /m/shop/a* | sort")).text
            slow = (await ws.execute(f"find /m/shop/[poa]* -type f -exec grep -l '{pattern}' {{}} + | sort")).text
            assert fast == slow, pattern
        await ws.close()

    asyncio.run(act())


def test_a_cursor_that_breaks_is_an_error_and_no_retry(server: tuple[str, Wire]) -> None:
    async def act() -> None:
        tree = build(MongoResource(url=server[0]), Policy())
        server[1].break_after = 1
        with pytest.raises(OSError, match="the documents ended early") as raised:
            await ops.read_bytes(tree, P("/other/big/documents.jsonl"))
        server[1].break_after = None
        assert raised.value.errno == errno.EIO and not isinstance(raised.value, Unavailable)
        assert (await ops.read_bytes(tree, P("/other/big/documents.jsonl"))).count(b"\n") == 5000
        await tree.close()

    asyncio.run(act())


def test_a_snapshot_has_the_address_without_the_password(server: tuple[str, Wire], tmp_path: Path) -> None:
    async def act() -> None:
        secret = MongoResource(url="mongodb://u:hunter2@127.0.0.1:1/")
        assert secret.describe().redacted_fields == ("url",) and secret.describe().needs_override
        ws = Workspace({"/m": MongoResource(url=server[0]), "/s": secret})
        assert "hunter2" not in repr(ws.mounts()) + repr(secret.config)
        await ws.execute("cat /m/shop/people/documents.jsonl")
        ws.snapshot(tmp_path / "snap.tar")
        assert b"hunter2" not in (tmp_path / "snap.tar").read_bytes()
        with pytest.raises(ValueError, match="must include overrides for: \\['/m', '/s'\\]"):
            Workspace.load(tmp_path / "snap.tar")
        given = {"/m": MongoResource(url=server[0]), "/s": MongoResource(url=server[0])}
        again = Workspace.load(tmp_path / "snap.tar", resources=given)
        look = "cat /m/shop/people/documents.jsonl"
        assert (await again.execute(look)).text == (await ws.execute(look)).text
        await ws.close()
        await again.close()

    asyncio.run(act())


def test_a_server_that_is_not_there() -> None:
    async def act(tree: MongoResource) -> None:
        with pytest.raises(Unavailable) as raised:
            await tree.stat(P("/shop"))
        assert "hunter2" not in str(raised.value)

    run(act, "mongodb://u:hunter2@127.0.0.1:1/?serverSelectionTimeoutMS=200")
    with warnings.catch_warnings():  # the driver leaves the socket of a refused connection to the collector
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def test_a_password_is_proven_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RIGHT", "hunter2 with spaces: and @")
    monkeypatch.setenv("WRONG", "hunter3")

    async def act(url: str, address: str, denied: str = "", **options: Any) -> None:
        fs = MongoResource(MongoConfig(url=address.replace("HOST", url.removeprefix("mongodb://")), **options))
        try:
            if denied:
                with pytest.raises(PermissionError, match=denied) as refusal:
                    [entry async for entry in fs.scan(P("/shop"))]
                assert "hunter" not in str(refusal.value) + repr(fs) + repr(fs.config) + str(fs.describe())
            else:
                assert "people" in [name async for name, _ in fs.scan(P("/shop"))]
        finally:
            await fs.close()

    with mongo_wire() as (url, wire):
        wire.users["ada"] = "hunter2 with spaces: and @"
        wire.data["shop"]["people"].insert_one({"_id": 1})
        quoted = "hunter2%20with%20spaces%3A%20and%20%40"
        asyncio.run(act(url, f"mongodb://ada:{quoted}@HOST"))
        asyncio.run(act(url, "mongodb://HOST", username="ada", password_env="RIGHT"))
        asyncio.run(act(url, "mongodb://ada@HOST", password_env="RIGHT"))
        asyncio.run(act(url, "mongodb://HOST", "refuses these credentials", username="ada", password_env="WRONG"))
        asyncio.run(act(url, "mongodb://ada:hunter3@HOST", "refuses these credentials"))
        asyncio.run(act(url, "mongodb://HOST", "refuses these credentials", username="bob", password_env="RIGHT"))
        asyncio.run(act(url, "mongodb://HOST", "NOT_SET is not set", username="ada", password_env="NOT_SET"))
        asyncio.run(act(url, "mongodb://HOST", "requires authentication"))
        assert wire.asked["saslStart"] >= 5
