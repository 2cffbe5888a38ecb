"""Errors that are the servers' own: out of memory, starting, shutting down, too many clients, no space. Each is told as
what it is, or as `Unavailable` where it may pass.
"""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path as LocalPath
from typing import Any

import pytest
from tests.support.servers import postgres, postgres_programs, redis_server

from ramet.core import ops
from ramet.core.errors import RametError, Unavailable
from ramet.core.paths import Path, parse
from ramet.core.resource import Resource
from ramet.layers.retry import Retry

P = parse


@asynccontextmanager
async def scripted(answer: Callable[[bytes], bytes | None], greeting: bytes = b"") -> AsyncIterator[int]:
    """A server that answers each piece that it gets; None hangs up. Gives its port."""

    open_now: dict[Any, asyncio.StreamWriter] = {}

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_now[asyncio.current_task()] = writer
        with suppress(ConnectionError):
            writer.write(greeting)
            while piece := await reader.read(65536):
                said = answer(piece)
                if said is None:
                    break
                writer.write(said)
        writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for writer in open_now.values():
            writer.transport.abort()
        if open_now:
            await asyncio.wait(open_now)


async def failure(act: Any) -> OSError:
    with pytest.raises(OSError) as raised:
        await act
    return raised.value


# --------------------------------------------------------------------------------------------------------- Redis


@pytest.fixture(scope="module")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if shutil.which("redis-server") is None:
        pytest.skip("redis-server is not installed")
    with redis_server(tmp_path_factory.mktemp("redis")) as running:
        yield running


def test_a_redis_without_memory_or_that_may_not_be_written(redis_url: str) -> None:
    from redis.asyncio import Redis

    from ramet.backends.databases.redis import RedisResource

    async def act() -> None:
        name = uuid.uuid4().hex
        fs = RedisResource(redis_url, prefix=name)
        boss: Any = Redis.from_url(redis_url)
        await fs.write(P("/f"), b"old")
        used = int((await boss.info("memory"))["used_memory"])
        await boss.config_set("maxmemory", used + 300_000)
        for data in (bytes(5_000_000), ops.one_block(bytes(5_000_000))):
            error = await failure(fs.write(P("/f"), data))
            assert error.errno == errno.ENOSPC and not isinstance(error, Unavailable)
        await boss.config_set("maxmemory", 0)
        assert await ops.read_bytes(fs, P("/f")) == b"old"
        assert [key async for key in boss.scan_iter(match=f"{{{name}}}:w:*")] == [], "nothing half sent stays"

        await boss.execute_command("REPLICAOF", "127.0.0.1", "1")
        assert (await failure(fs.write(P("/f"), b"new"))).errno == errno.EROFS
        assert await ops.read_bytes(fs, P("/f")) == b"old"
        await boss.config_set("replica-serve-stale-data", "no")
        assert isinstance(await failure(fs.stat(P("/f"))), Unavailable)
        await boss.config_set("replica-serve-stale-data", "yes")
        await boss.execute_command("REPLICAOF", "NO", "ONE")
        await fs.write(P("/f"), b"new")
        assert await ops.read_bytes(fs, P("/f")) == b"new"
        await fs.close()
        await boss.aclose()

    asyncio.run(act())


@pytest.mark.parametrize(
    ("said", "number", "passes"),
    [
        (b"-LOADING Redis is loading the dataset in memory\r\n", errno.EIO, True),
        (b"-CLUSTERDOWN The cluster is down\r\n", errno.EIO, True),
        (b"-TRYAGAIN Multiple keys request during rehashing of slot\r\n", errno.EIO, True),
        (b"-NOAUTH Authentication required.\r\n", errno.EACCES, False),
        (b"-NOPERM this user has no permissions\r\n", errno.EACCES, False),
        (b"-MISCONF Redis is configured to save RDB snapshots\r\n", errno.EIO, False),
        (b"+what\r\n", errno.EIO, True),
        (b"*0\r\n", errno.EIO, True),
        (b"\x00\x01\x02\r\n", errno.EIO, True),
    ],
)
def test_what_a_redis_says(said: bytes, number: int, passes: bool) -> None:
    from ramet.backends.databases.redis import RedisResource

    async def act() -> None:
        def answer(piece: bytes) -> bytes:
            own = sum(map(piece.count, (b"SETINFO", b"HELLO", b"AUTH\r\n")))
            return b"+OK\r\n" * own if own else said

        async with scripted(answer) as port:
            fs = RedisResource(f"redis://:hunter2@127.0.0.1:{port}?protocol=2", timeout=30)
            error = await failure(fs.stat(P("/f")))
            assert (error.errno, isinstance(error, Unavailable)) == (number, passes), error
            assert "hunter2" not in str(error)
            await fs.close()

    asyncio.run(act())


# ---------------------------------------------------------------------------------------------------- PostgreSQL


def test_a_postgres_that_is_full_or_shut_down() -> None:
    if postgres_programs() is None:
        pytest.skip("PostgreSQL is not installed")
    import asyncpg

    from ramet.backends.databases.postgres import PostgresConfig, PostgresResource

    async def act(address: str) -> None:
        boss = await asyncpg.connect(address)
        await boss.execute("create table t (id int primary key); insert into t values (1); create role reader login")
        await boss.execute("grant select on t to reader")
        fs = PostgresResource(PostgresConfig(dsn=address.replace("ramet@", "reader@"), ttl=0.0))
        assert await ops.read_bytes(fs, P("/public/t/rows.jsonl")) == b'{"id":1}\n'

        ended = "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'reader'"
        await boss.execute(ended)  # 57P01, on a connection that is kept for the next question
        for _ in range(3):  # whether that was heard of before the next question is a matter of moments
            try:
                assert await ops.read_bytes(fs, P("/public/t/rows.jsonl")) == b'{"id":1}\n'
            except Unavailable:
                continue
        await fs.close()

        await boss.execute("alter role reader connection limit 0")  # 53300
        error = await failure(ops.read_bytes(fs, P("/public/t/rows.jsonl")))
        assert isinstance(error, Unavailable) and "too many connections" in str(error)
        await boss.execute("alter role reader connection limit -1")
        assert await ops.read_bytes(fs, P("/public/t/rows.jsonl")) == b'{"id":1}\n'

        await boss.execute("revoke select on t from reader")
        assert (await failure(ops.read_bytes(fs, P("/public/t/rows.jsonl")))).errno in (errno.EACCES, errno.ENOENT)
        await fs.close()
        await boss.close()

    with postgres() as address:
        asyncio.run(act(address))


# ----------------------------------------------------------------------------------------------------------- SFTP


@pytest.mark.parametrize(
    ("code", "number", "passes"),
    [
        (3, errno.EACCES, False),
        (4, errno.EIO, False),
        (6, errno.EIO, True),
        (7, errno.EIO, True),
        (8, errno.ENOTSUP, False),
    ],
)
def test_what_an_sftp_server_says(code: int, number: int, passes: bool, tmp_path: LocalPath) -> None:
    asyncssh: Any = pytest.importorskip("asyncssh")

    from ramet.backends.remote.ssh import SSHConfig, SSHResource

    class Failing(asyncssh.SFTPServer):  # type: ignore[misc]
        def write(self, file: Any, offset: int, data: bytes) -> int:
            raise asyncssh.SFTPError(code, "it says so")

    async def act() -> None:
        class Anybody(asyncssh.SSHServer):  # type: ignore[misc]
            def begin_auth(self, username: str) -> bool:
                return False

        key = asyncssh.generate_private_key("ssh-ed25519")
        server = await asyncssh.listen(
            "127.0.0.1", 0, server_factory=Anybody, server_host_keys=[key],
            sftp_factory=lambda channel: Failing(channel, chroot=str(tmp_path).encode()),
        )  # fmt: skip
        here: dict[str, Any] = {"host": "127.0.0.1", "username": "me", "verify_host": False, "root": "/"}
        fs = SSHResource(SSHConfig(port=server.get_port(), **here))
        (tmp_path / "f").write_bytes(b"old")
        error = await failure(fs.write(P("/f"), b"new"))
        assert (error.errno, isinstance(error, Unavailable)) == (number, passes), error
        assert await ops.read_bytes(fs, P("/f")) == b"old"
        assert [name for name, _ in [entry async for entry in fs.scan(P("/"))]] == ["f"]
        await fs.close()
        again = SSHResource(fs.config)
        again._litter = fs._litter
        await again.stat(P("/f"))
        assert os.listdir(tmp_path) == ["f"], "what was on its way is taken away"
        await again.close()
        server.close()
        await server.wait_closed()

    asyncio.run(act())


# ----------------------------------------------------------------------------------------------------------- IMAP

GREETING = b"* OK ready\r\n"


def imap(**answers: bytes) -> Callable[[bytes], bytes | None]:
    """Answers to commands, by their first word; `{tag}` stands for the tag."""

    def answer(piece: bytes) -> bytes | None:
        said = b""
        for line in piece.splitlines():
            tag, _, rest = line.partition(b" ")
            word = rest.split(b" ")[0].decode().upper()
            known = answers.get(word, b"{tag} OK done\r\n")
            if known == b"hang up":
                return None
            said += known.replace(b"{tag}", tag)
        return said

    return answer


@pytest.mark.parametrize(
    ("greeting", "answers", "number", "passes", "why"),
    [
        (b"* BYE too many of you\r\n", {}, errno.EIO, True, "too many of you"),
        (b"220 smtp.example ESMTP\r\n", {}, errno.EIO, True, "no IMAP server"),
        (b"", {}, errno.EIO, True, "could not be reached"),
        (
            GREETING,
            {"LOGIN": b"{tag} NO [AUTHENTICATIONFAILED] no\r\n"},
            errno.EACCES,
            False,
            "refuses these credentials",
        ),
        (
            GREETING,
            {"LOGIN": b"{tag} NO [UNAVAILABLE] the directory is down\r\n"},
            errno.EIO,
            True,
            "directory is down",
        ),
        (GREETING, {"LOGIN": b"{tag} NO [LIMIT] too many connections\r\n"}, errno.EIO, True, "too many connections"),
        (GREETING, {"LOGIN": b"* BYE shutting down\r\n"}, errno.EIO, True, "closed the connection"),
        (GREETING, {"LIST": b"* BYE shutting down\r\n"}, errno.EIO, True, "closed the connection"),
        (GREETING, {"LIST": b"hang up"}, errno.EIO, True, "could not be reached"),
        (GREETING, {"LIST": b"* LIST (\\HasNoChildren"}, errno.EIO, True, "no answer within"),
        (GREETING, {"LIST": b'* LIST () "/" {100}\r\nshort'}, errno.EIO, True, "no answer within"),
        (GREETING, {"LIST": b'* LIST x (a) ("/")\r\n{tag} OK\r\n'}, errno.EIO, True, "cannot be understood"),
        (GREETING, {"LIST": b"{tag}\r\n"}, errno.EIO, True, "cannot be understood"),
        (GREETING, {"LIST": b"{tag} maybe\r\n"}, errno.EIO, True, "cannot be understood"),
        (GREETING, {"LIST": b"\xff\xfe nonsense )) ((\r\n"}, errno.EIO, True, "cannot be understood"),
    ],
)
def test_what_an_imap_server_says(
    greeting: bytes,
    answers: dict[str, bytes],
    number: int,
    passes: bool,
    why: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from ramet.backends.remote.mail import MailConfig, MailResource

    monkeypatch.setenv("A_PASSWORD", "hunter2")

    async def act() -> None:
        async with scripted(imap(**answers), greeting) as port:
            who = {"host": "127.0.0.1", "username": "me", "password_env": "A_PASSWORD", "tls": "off"}
            timeout = 30.0 if greeting and why != "no answer within" else 0.3
            fs = MailResource(MailConfig(port=port, timeout=timeout, **who))  # type: ignore[arg-type]
            error = await failure(first(fs, P("/")))
            assert (error.errno, isinstance(error, Unavailable)) == (number, passes), error
            assert why in str(error) and "hunter2" not in str(error)
            assert not any(fs._idle.values()), "the connection is let go"
            await fs.close()

    asyncio.run(act())


async def first(fs: Resource, path: Path) -> Any:
    return [entry async for entry in fs.scan(path)]


# -------------------------------------------------------------------------------------- what a user may get wrong


def _s3(**changes: Any) -> Resource:
    from ramet.backends.objects.s3 import S3Config, S3Resource

    given = {
        "endpoint": "http://127.0.0.1:1",
        "bucket": "b",
        "aws_access_key_id": "k",
        "aws_secret_access_key": "hunter2",
    }
    return S3Resource(S3Config.of("minio", **{**given, **changes}))


def _redis(url: str) -> Resource:
    from ramet.backends.databases.redis import RedisResource

    return RedisResource(url)


def _ssh(**changes: Any) -> Resource:
    from ramet.backends.remote.ssh import SSHConfig, SSHResource

    return SSHResource(SSHConfig(**{"host": "127.0.0.1", "port": 1, "username": "me", "verify_host": False, **changes}))


def _postgres(dsn: str, **changes: Any) -> Resource:
    from ramet.backends.databases.postgres import PostgresConfig, PostgresResource

    return PostgresResource(PostgresConfig(dsn=dsn, **changes))


def _mongo(url: str, **changes: Any) -> Resource:
    from ramet.backends.databases.mongo import MongoConfig, MongoResource

    return MongoResource(MongoConfig(url=url, timeout=PATIENCE, **changes))


def _mail(**changes: Any) -> Resource:
    from ramet.backends.remote.mail import MailConfig, MailResource

    return MailResource(MailConfig(**{"host": "127.0.0.1", "port": 1, "username": "me", **changes}))


def _http(**changes: Any) -> Resource:
    from ramet.backends.remote.http import HTTPConfig, HTTPResource

    return HTTPResource(HTTPConfig(**{"base": "http://127.0.0.1:1/", "private": True, **changes}))


NOWHERE = "nohost.invalid"
PATIENCE = 0.3
"""Seconds until a server of MongoDB is given up, if the machine leaves time for a try."""
MISTAKES: dict[str, tuple[Callable[[], Resource], str]] = {
    "s3: port": (lambda: _s3(), "at 127.0.0.1:1: the connection is refused"),
    "s3: host": (lambda: _s3(endpoint=f"http://{NOWHERE}"), "the host was not found"),
    "s3: no scheme": (lambda: _s3(endpoint="127.0.0.1:9000"), "begins with https://"),
    "redis: host": (lambda: _redis(f"redis://:hunter2@{NOWHERE}"), "the host was not found; check its name"),
    "redis: scheme": (lambda: _redis("http://:hunter2@h"), "not the address of a Redis"),
    "redis: port": (lambda: _redis("redis://:hunter2@h:port"), "not the address of a Redis"),
    "ssh: port": (lambda: _ssh(), "the connection is refused"),
    "ssh: host": (lambda: _ssh(host=NOWHERE), "the host was not found"),
    "ssh: key": (lambda: _ssh(client_keys=("/nowhere/id",)), "No such file or directory: '/nowhere/id'"),
    "ssh: variable": (lambda: _ssh(password_env="NOT_SET"), "NOT_SET is not set"),
    "postgres: host": (lambda: _postgres(f"postgresql://u:hunter2@{NOWHERE}/d"), "the host was not found"),
    "postgres: port": (lambda: _postgres("postgresql://u:hunter2@127.0.0.1:1/d"), "the connection is refused"),
    "postgres: a word": (lambda: _postgres("postgresql://u:hunter2@h:port/d"), "not the address of a PostgreSQL"),
    "postgres: scheme": (lambda: _postgres("mysql://u:hunter2@h/d"), "scheme is expected"),
    "postgres: variable": (lambda: _postgres("postgresql://h/d", password_env="NOT_SET"), "NOT_SET is not set"),
    "mongo: host": (lambda: _mongo(f"mongodb://u:hunter2@{NOWHERE}"), f"{NOWHERE} could not be reached: the host was"),
    "mongo: port": (lambda: _mongo("mongodb://u:hunter2@127.0.0.1:1"), "127.0.0.1:1 could not be reached: the conn"),
    "mongo: scheme": (lambda: _mongo("http://u:hunter2@h"), "must begin with 'mongodb://'"),
    "mongo: not encoded": (lambda: _mongo("mongodb://u:hunt@hunter2@h"), "has to be percent-encoded"),
    "mongo: no password": (lambda: _mongo("mongodb://h", username="u"), "A password is required"),
    "mail: port": (lambda: _mail(), "the connection is refused"),
    "mail: host": (lambda: _mail(host=NOWHERE), "the host was not found"),
    "mail: certificates": (lambda: _mail(ca_file="/nowhere.pem"), "the certificates of /nowhere.pem cannot be used"),
    "mail: variable": (lambda: _mail(password_env="NOT_SET"), "NOT_SET is not set"),
    "redis: refused": (lambda: _redis("redis://:hunter2@127.0.0.1:1"), "127.0.0.1:1 could not be reached: the conn"),
    "http: port": (lambda: _http(), "127.0.0.1:1 could not be reached: the connection is refused; check the port"),
    "http: host": (lambda: _http(base=f"http://{NOWHERE}/"), "was not found"),
    "http: variable": (lambda: _http(token_env="NOT_SET"), "NOT_SET is not set"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_a_user_got_wrong_is_reported(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make, why = MISTAKES[mistake]

    async def act() -> str:
        try:
            fs = make()
        except RametError as error:
            return str(error)
        try:
            return str(await failure(first(fs, P("/"))))
        finally:
            await fs.close()

    said = asyncio.run(act())
    if why not in said:
        monkeypatch.setitem(globals(), "PATIENCE", 20)
        said = asyncio.run(act())
    assert why in said and "hunter2" not in said


@pytest.mark.parametrize("mistake", [one for one in MISTAKES if one.endswith((": host", ": port", ": refused"))])
def test_a_refused_connection_is_reported_at_once(mistake: str) -> None:
    """One failed request and a little patience, not all of it: what never answered is rather wrong than ill."""

    async def act() -> list[float]:
        naps: list[float] = []

        async def sleep(seconds: float) -> None:
            naps.append(seconds)

        try:
            fs = MISTAKES[mistake][0]()
        except RametError:
            return naps
        try:
            await failure(first(Retry(fs, sleep=sleep, clock=lambda: sum(naps)), P("/")))
        finally:
            await fs.close()
        return naps

    assert sum(asyncio.run(act())) <= 0.5


def test_a_server_without_tls_is_reported() -> None:
    async def act() -> None:
        async with scripted(lambda _: b"220 ready\r\n", b"220 ready\r\n") as port:
            for fs in (_mail(port=port), _http(base=f"https://127.0.0.1:{port}/")):
                assert "it does not speak TLS" in str(await failure(first(fs, P("/"))))
                await fs.close()

    asyncio.run(act())
