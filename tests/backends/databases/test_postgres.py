"""PostgresResource shows a real PostgreSQL as a tree, and asks it as little as it can."""

from __future__ import annotations

import asyncio
import csv
import errno
import io
import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("asyncpg")

from tests.support.servers import postgres, postgres_programs

if postgres_programs() is None:
    pytest.skip("PostgreSQL is not installed", allow_module_level=True)

import asyncpg

from ramet import Workspace
from ramet.backends.databases.postgres import PostgresConfig, PostgresResource, key_name
from ramet.backends.redacted_urls import without_password
from ramet.core import ops
from ramet.core.errors import Unavailable
from ramet.core.paths import ROOT, parse
from ramet.layers.stack import Policy, build
from ramet.testing import READING, Check, run_check

P = parse
STRANGE = 'odd/"name" 100% ünï'
SETUP = """
create role reader login;
create schema shop;
create table shop.people (id int primary key, name text not null, born date, extra json, note numeric default 0);
insert into shop.people values
  (1, 'Ada', '1815-12-10', '{"a":
 1}', 1.50), (2, 'Grace "Amazing"', null, null, 'NaN'), (3, 'x,y/z', '2000-01-01', '[1, 2]', 10);
comment on table shop.people is 'who';
create table shop.pairs (kind text, number bigint, "r" text, primary key (kind, number));
insert into shop.pairs values ('a/b', 1, 'first'), ('', 2, 'empty'), ('%,', -3, 'escaped'), ('.', 4, 'dot');
insert into shop.pairs values (repeat('long', 100), 5, 'too long for a name');
create table shop.keyless (a int);
insert into shop.keyless select generate_series(1, 5);
create view shop.grown as select name from shop.people where born < '1900-01-01';
create table shop.{strange} ("a ""b"" c" int primary key);
insert into shop.{strange} values (7);
create schema {strange};
create table shop.secret (password text);
insert into shop.secret values ('s3cr3t');
grant usage on schema shop to reader;
grant select on all tables in schema shop to reader;
revoke select on shop.secret from reader;
create table shop.big (id int primary key, filler text);
insert into shop.big select i, repeat('x', 100) from generate_series(1, 200000) i;
grant select on shop.big to reader;
"""


@pytest.fixture(scope="module")
def owner() -> Iterator[str]:
    with postgres() as address:

        async def fill() -> None:
            connection = await asyncpg.connect(address)
            quoted = '"' + STRANGE.replace('"', '""') + '"'
            await connection.execute(SETUP.replace("{strange}", quoted))
            await connection.close()

        asyncio.run(fill())
        yield address


@pytest.fixture
def reader(owner: str) -> str:
    return owner.replace("ramet@", "reader@")


def run(act: Callable[[PostgresResource], Awaitable[None]], dsn: str, **options: Any) -> None:
    async def both() -> None:
        tree = PostgresResource(PostgresConfig(dsn=dsn, **options))
        try:
            await act(tree)
        finally:
            await tree.close()

    asyncio.run(both())


@pytest.mark.parametrize("check", READING, ids=lambda check: check.name)
@pytest.mark.parametrize("mounted", [False, True])
def test_contract(check: Check, mounted: bool, owner: str) -> None:
    async def fill() -> None:
        connection = await asyncpg.connect(owner)
        await connection.execute(
            "create schema if not exists tiny; create table if not exists tiny.t (k text primary key, v int);"
            "insert into tiny.t values ('a/b', 1), ('', 2), ('é', 3), ('new\nline', 4) on conflict do nothing;"
            'create table if not exists tiny."we/ird""%" (n int); insert into tiny."we/ird""%" values (1);'
            "grant usage on schema tiny to reader; grant select on all tables in schema tiny to reader"
        )
        await connection.close()

    asyncio.run(fill())

    def make() -> Any:
        tree = PostgresResource(PostgresConfig(dsn=owner.replace("ramet@", "reader@"), schemas=("tiny",)))
        return build(tree, Policy()) if mounted else tree

    run_check(check, make)


def test_the_tree(reader: str) -> None:
    async def act(tree: PostgresResource) -> None:
        assert {name async for name, _ in tree.scan(P("/"))} >= {"public", "shop"}
        tables = {name async for name, _ in tree.scan(P("/shop"))}
        assert tables == {"people", "pairs", "keyless", "grown", "secret", "big", 'odd%2F"name" 100%25 ünï'}
        names = {name async for name, _ in tree.scan(P("/shop/pairs/rows"))}
        long = key_name(["long" * 100, "5"])
        assert names == {"a%2Fb,1.json", "%,2.json", "%25%2C,-3.json", "%2E,4.json", long} and long.startswith("%sha")
        for name in names:
            row = json.loads(await ops.read_bytes(tree, P("/shop/pairs/rows") / name))
            assert key_name([row["kind"], str(row["number"])]) == name
        assert [name async for name, _ in tree.scan(P("/shop/keyless"))] == ["schema.json", "rows.jsonl", "rows.csv"]
        odd = P("/shop") / 'odd%2F"name" 100%25 ünï' / "rows" / "7.json"
        assert json.loads(await ops.read_bytes(tree, odd)) == {'a "b" c': 7}
        for wrong in ("01.json", "1", "x.json", "1,2.json", "9.json", "%20.json"):
            with pytest.raises(FileNotFoundError):
                await tree.stat(P("/shop/people/rows") / wrong)

    run(act, reader)


def test_contents_are_lines_and_csv(reader: str) -> None:
    async def act(tree: PostgresResource) -> None:
        lines = (await ops.read_bytes(tree, P("/shop/people/rows.jsonl"))).decode().splitlines()
        rows = [json.loads(line) for line in lines]
        assert [row["name"] for row in rows] == ["Ada", 'Grace "Amazing"', "x,y/z"]
        assert rows[0] == {"id": 1, "name": "Ada", "born": "1815-12-10", "extra": {"a": 1}, "note": 1.50}
        table = list(csv.reader(io.StringIO((await ops.read_bytes(tree, P("/shop/people/rows.csv"))).decode())))
        assert table[0] == ["id", "name", "born", "extra", "note"] and table[2][:3] == ["2", 'Grace "Amazing"', ""]
        schema = json.loads(await ops.read_bytes(tree, P("/shop/people/schema.json")))
        assert schema["primary_key"] == ["id"] and schema["comment"] == "who"
        assert schema["columns"][4] == {"name": "note", "type": "numeric", "nullable": True, "default": "0"}
        assert await ops.read_bytes(tree, P("/shop/grown/rows.jsonl")) == b'{"name":"Ada"}\n'

    run(act, reader)


def test_commands_over_it(reader: str) -> None:
    async def act() -> None:
        ws = Workspace({"/db": PostgresResource(dsn=reader)})
        for script, expected in {
            "head -n 2 /db/shop/big/rows.jsonl | jq .id": "1\n2\n",
            "head -n 2 /db/shop/big/rows.csv | cut -d, -f1": "id\n1\n",
            "wc -l < /db/shop/big/rows.jsonl": "200000\n",
            "wc -l < /db/shop/big/rows.csv": "200001\n",
            "tail -n 1 /db/shop/big/rows.jsonl | jq .id": "200000\n",
            "query /db 'select id, name from shop.people where id = $1 or name = $2 order by id' 2 Ada": (
                '{"id":1,"name":"Ada"}\n{"id":2,"name":"Grace \\"Amazing\\""}\n'
            ),
            "query /db 'select count(*) from shop.people where id = any($1)' '[1, 3]'": '{"count":2}\n',
            "query -n 1 /db 'select id from shop.big; '": '{"id":1}\n',
            "echo 'select 1 as one -- why not' | query -f - /db": '{"one":1}\n',
            "query /db 'show default_transaction_read_only'": '{"default_transaction_read_only": "on"}\n',
            "cat /db/shop/people/rows/1.json | jq -r .name": "Ada\n",
            "tar c -C /db/shop people | tar xO people/rows.csv | cmp - /db/shop/people/rows.csv && echo same": "same\n",
            "cp -r /db/shop/people /tmp/c && diff -r /db/shop/people /tmp/c && rm -r /tmp/c && echo ok": "ok\n",
            "cd /tmp; zip -qr z.zip /db/shop/people; unzip -p z.zip db/shop/people/rows/1.json | jq .id": "1\n",
        }.items():
            result = await ws.execute(script)
            assert (result.text, result.stderr) == (expected, b""), script
        for script, status, words in (
            ("query /db 'select * from nowhere'", 1, 'relation "nowhere" does not exist'),
            ("query /db 'select 1; drop table shop.people'", 1, "cannot insert multiple commands"),
            ("query /db 'select $1::int' x", 1, "invalid input syntax"),
            ("query /db 'select 1' 2", 1, "takes 0 values, 1 were given"),
            ("query -w /db 'delete from shop.people'", 1, "not configured to be writable"),
            ("query /tmp 'select 1'", 1, "not on a mount that answers queries"),
            ("cat /db/shop/secret/rows.jsonl", 1, "permission denied for table secret"),
            ("echo > /db/shop/people/rows/1.json", 1, "Read-only file system"),
        ):
            result = await ws.execute(script)
            assert result.exit_code == status and words in result.stderr.decode(), (script, result.stderr)
        await ws.close()

    asyncio.run(act())


def test_a_recursive_grep_is_answered_by_the_server(reader: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def act() -> None:
        tree = PostgresResource(PostgresConfig(dsn=reader, schemas=("shop",)))
        ws = Workspace({"/db": tree})
        read: list[str] = []
        plain = tree._row

        async def counted(path: Any, table: Any, row: str) -> bytes:
            read.append(row)
            return await plain(path, table, row)

        monkeypatch.setattr(tree, "_row", counted)
        result = await ws.execute("cd /db/shop; grep -rl --include='*.json' 'Amazing' people pairs")
        assert result.text == "people/rows/2.json\n" and read == ["2.json"]
        result = await ws.execute("cd /db/shop; grep -r '\"id\":199999,' big --include='199999.json' -c")
        assert "rows/199999.json:1" in result.text
        read.clear()
        for script in ("grep -rli --include='*.json' amazING people pairs", "rg -il amazing people pairs -g '*.json'"):
            assert (await ws.execute(f"cd /db/shop; {script}")).text == "people/rows/2.json\n", script
        assert (await ws.execute("cd /db/shop; rg -l Amazing people/rows pairs/rows")).text == "people/rows/2.json\n"
        assert set(read) <= {"2.json"}
        assert (await ws.execute("cd /db/shop; rg --files-without-match Amazing people/rows | wc -l")).text == "2\n"
        assert (await ws.execute("cd /db/shop; rg -v -l Amazing people/rows | wc -l")).text == "2\n"
        assert (await ws.execute("grep -rc Ada /db/shop/people/rows | sort")).text.count(":0\n") == 2
        assert (await ws.execute("grep -rL Ada /db/shop/people/rows | wc -l")).text.strip() == "2"
        await ws.close()

    asyncio.run(act())


def test_a_reader_that_stops_ends_the_query(reader: str, owner: str) -> None:
    async def act(tree: PostgresResource) -> None:
        for name in ("rows.jsonl", "rows.csv"):
            source: Any = tree.read(P("/shop/big") / name)
            first = await anext(source)
            assert len(first) < 300_000
            await source.aclose()
        watcher = await asyncpg.connect(owner)
        busy = "select count(*) from pg_stat_activity where application_name = 'ramet' and state <> 'idle'"
        for _ in range(20_000):
            if not await watcher.fetchval(busy):
                break
            await asyncio.sleep(0.005)
        else:
            pytest.fail("the server still works for a reader that left")
        await watcher.close()

    run(act, reader)


def test_what_is_given_back_after_a_close_is_closed_as_well(reader: str) -> None:
    async def act(tree: PostgresResource) -> None:
        async with tree._connected(ROOT) as connection:
            await tree.close()
        assert connection.is_closed()
        assert [name async for name, _ in tree.scan(ROOT)], "whoever comes later is served"

    run(act, reader)


def test_a_read_is_one_snapshot(reader: str, owner: str) -> None:
    async def act(tree: PostgresResource) -> None:
        changer = await asyncpg.connect(owner)
        await changer.execute("create table shop.moving as select i as id from generate_series(1, 50000) i")
        await changer.execute("grant select on shop.moving to reader")
        for name, extra in (("rows.jsonl", 0), ("rows.csv", 1)):
            source: Any = tree.read(P("/shop/moving") / name)
            count = (await anext(source)).count(b"\n")
            await changer.execute("insert into shop.moving select i from generate_series(1, 1000) i")
            async for block in source:
                count += block.count(b"\n")
            assert count == 50_000 + extra + (0 if name == "rows.jsonl" else 1000)
        await changer.execute("drop table shop.moving")
        await changer.close()

    run(act, reader)


def test_a_connection_that_breaks_in_the_middle_is_an_error_and_no_retry(reader: str, owner: str) -> None:
    async def act() -> None:
        tree = build(PostgresResource(dsn=reader), Policy())
        source: Any = tree.read(P("/shop/big/rows.jsonl"))
        await anext(source)
        killer = await asyncpg.connect(owner)
        await killer.execute("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'ramet'")
        with pytest.raises(OSError, match="the rows ended early") as raised:
            async for _ in source:
                pass
        assert raised.value.errno == errno.EIO and not isinstance(raised.value, Unavailable)
        assert (await ops.read_bytes(tree, P("/shop/people/rows/1.json"))).startswith(b'{"id":1')
        await killer.close()
        await tree.close()

    asyncio.run(act())


def test_writing_takes_the_configuration_the_mount_and_the_role(owner: str, reader: str) -> None:
    async def act() -> None:
        ws = Workspace({
            "/w": PostgresResource(PostgresConfig(dsn=owner, writable=True)),
            "/m": (PostgresResource(PostgresConfig(dsn=owner, writable=True)), "read"),
            "/r": PostgresResource(PostgresConfig(dsn=reader, writable=True)),
        })  # fmt: skip
        await ws.execute("query -w /w 'create table public.t (a int)'")
        made = await ws.execute("query -w /w 'insert into t select generate_series(1, $1) returning a' 3")
        assert made.text == '{"a": 1}\n{"a": 2}\n{"a": 3}\n', made.stderr
        insert = "'insert into t values (9)'"
        for script, words in (
            (f"query -w /m {insert}", "Read-only file system"),
            (f"query -w /r {insert}", "permission denied for table t"),
            (f"query /w {insert}", "what changes something takes -w"),
            ("query /w 'insert into t values (9) returning a'", "cannot execute INSERT in a read-only transaction"),
            ("query /w \"copy (select 1) to program 'false'\"", "what changes something takes -w"),
            ("query /w 'do $$begin delete from t; end$$'", "what changes something takes -w"),
            ("query /w 'with x as (insert into t values (9) returning a) select * from x'", "read-only transaction"),
            ("query /w 'set transaction read write'", "what changes something takes -w"),
        ):
            result = await ws.execute(script)
            assert result.exit_code == 1 and words in result.stderr.decode(), (script, result.stderr)
        assert (await ws.execute("query /w 'select count(*) from t'")).text == '{"count":3}\n'
        seen = "wc -l < /w/public/t/rows.jsonl; ls /w/public"
        assert (await ws.execute(seen)).text == "3\nt\n"
        await ws.execute("query -w /w 'delete from t where a = 1'; query -w /w 'create table u (b int)'")
        assert (await ws.execute(seen)).text == "2\nt\nu\n"
        await ws.close()

    asyncio.run(act())


def test_a_role_that_could_write_is_reported(owner: str) -> None:
    async def act(tree: PostgresResource) -> None:
        with pytest.warns(RuntimeWarning, match="is a superuser"):
            await tree.stat(P("/shop"))
        await tree.stat(P("/shop"))

    run(act, owner)


def test_policies_see_queries(reader: str) -> None:
    async def act() -> None:
        for policy, refused in (
            ({"deny": [{"path": "/db/**"}]}, True),
            ({"deny": [{"command": "query"}]}, True),
            ({"hide": [{"path": "/db/shop/people/**"}]}, True),
            ({"deny": [{"path": "**/secret"}]}, True),
            ({"ask": [{"path": "/db/shop/*/rows.csv", "access": "read"}]}, True),
            ({"default": "deny", "allow": [{"command": "*"}, {"path": "/db"}, {"path": "/db/shop/**"}]}, True),
            ({"default": "deny", "allow": [{"command": "*"}, {"path": "/db/**"}]}, False),
            ({"deny": [{"path": "/etc/**"}, {"path": "/db/**", "access": "write"}]}, False),
            ({"deny": [{"path": "/db/**", "session": "another"}]}, False),
        ):
            ws = Workspace({"/db": PostgresResource(dsn=reader)}, policy=policy)
            result = await ws.execute("query /db 'select 1 as one'")
            assert ("Permission denied" in result.stderr.decode(), result.text == "") == (refused, refused), policy
            await ws.close()

    asyncio.run(act())


def test_a_snapshot_has_the_address_without_the_password(reader: str, tmp_path: Path) -> None:
    async def act() -> None:
        secret = reader.replace("reader@", "reader:hunter2@")
        ws = Workspace({"/db": PostgresResource(dsn=secret)})
        assert "hunter2" not in repr(ws.mounts()) + repr(PostgresConfig(dsn=secret))
        assert (await ws.execute("cat /db/shop/grown/rows.jsonl")).text == '{"name":"Ada"}\n'
        ws.snapshot(tmp_path / "snap.tar")
        assert b"hunter2" not in (tmp_path / "snap.tar").read_bytes()
        with pytest.raises(ValueError, match="must include overrides for: \\['/db'\\]"):
            Workspace.load(tmp_path / "snap.tar")
        again = Workspace.load(tmp_path / "snap.tar", resources={"/db": PostgresResource(dsn=reader)})
        assert (await again.execute("cat /db/shop/grown/rows.jsonl")).text == '{"name":"Ada"}\n'
        assert PostgresResource(dsn=secret).describe().redacted_fields == ("dsn",)
        await ws.close()
        await again.close()

    asyncio.run(act())


@pytest.mark.parametrize(
    ("dsn", "shown"),
    [
        ("postgresql://u:p%40ss@h:5/d", "postgresql://u:<REDACTED>@h:5/d"),
        ("postgresql://u@h/d?password=pw&sslmode=require", "postgresql://u@h/d?password=<REDACTED>&sslmode=require"),
        ("host=h password='a b' user=u", "host=h password=<REDACTED> user=u"),
        ("postgresql://u@h/d", "postgresql://u@h/d"),
        ("mongodb://u:p/s?s@w@h1:1,h2/d?tls=true", "mongodb://u:<REDACTED>@h1:1,h2/d?tls=true"),
    ],
)
def test_addresses_are_shown_without_passwords(dsn: str, shown: str) -> None:
    assert without_password(dsn) == shown


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    async def act(tree: PostgresResource) -> None:
        with pytest.raises(Unavailable) as raised:
            await tree.stat(P("/public"))
        assert "hunter2" not in str(raised.value)

    run(act, f"postgresql://u:hunter2@/d?host={tmp_path}")
