"""Redis, SSH, PostgreSQL, MongoDB, mail and HTTP behind an unreliable network: what is read is whole, what was said to
be written is there, what fails says so, and no connection stays.

A small number of rounds runs with the tests; `RAMET_FAULTS=1000` runs as many as it says.
"""

from __future__ import annotations

import asyncio
import errno
import random
import shutil
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path as LocalPath
from typing import NamedTuple, TypeVar
from urllib.parse import urlsplit

import pytest
from tests.support.fault_model import HASTY, ROUNDS, Model, content
from tests.support.proxy import Faults
from tests.support.servers import dovecot, nginx, postgres, postgres_programs, redis_server, ssh_server

from ramet.core import ops
from ramet.core.errors import Unavailable
from ramet.core.paths import parse
from ramet.core.resource import Resource
from ramet.layers.stack import Policy, build

P = parse
T = TypeVar("T")
pytestmark = pytest.mark.filterwarnings("ignore:the role of:RuntimeWarning")
SOON = 0.8
"""Seconds after which a silent server is given up here."""
NOISE = random.Random(3).randbytes(300)


class Service(NamedTuple):
    """A server that runs, and how it is mounted when it is reached by a port."""

    target: int | str
    make: Callable[[int, str], Resource]
    writable: bool = False
    lies: Mapping[str, bytes] = {}
    expected: Mapping[str, bytes] = {}
    """What there is to read."""
    trees: Mapping[str, frozenset[str]] = {}
    """What there is to list."""
    slow: int = 1
    """By how much fewer rounds are enough, where a client takes its time after each failure."""

    @property
    def rounds(self) -> int:
        return ROUNDS // self.slow


Start = Callable[[ExitStack, Callable[[str], LocalPath]], Service]


def start_redis(stack: ExitStack, folder: Callable[[str], LocalPath]) -> Service:
    from ramet.backends.databases.redis import RedisResource

    url = stack.enter_context(redis_server(folder("redis")))
    return Service(
        url.removeprefix("unix://"),
        lambda port, name: RedisResource(f"redis://127.0.0.1:{port}", prefix=name, timeout=SOON),
        writable=True,
        lies={
            "loading": b"-LOADING Redis is loading the dataset in memory\r\n" * 4,
            "half": b"*2\r\n:0\r\n$1000\r\nshort",
            "noise": NOISE,
        },
    )


def start_ssh(stack: ExitStack, folder: Callable[[str], LocalPath]) -> Service:
    from ramet.backends.remote.ssh import SSHConfig, SSHResource

    server = stack.enter_context(ssh_server(folder("ssh")))
    root = folder("files")

    def make(port: int, name: str) -> Resource:
        (root / name).mkdir(exist_ok=True)
        return SSHResource(
            SSHConfig(host="127.0.0.1", port=port, username=server.username, client_keys=(server.key,),
                      verify_host=False, root=str(root / name), timeout=2.0)
        )  # fmt: skip

    lies = {"half": b"SSH-2.0-OpenSSH_9.2\r\n" + NOISE[:40], "noise": NOISE, "full": b"Exceeded MaxStartups\r\n"}
    return Service(server.port, make, writable=True, lies=lies, slow=2)


def start_postgres(stack: ExitStack, folder: Callable[[str], LocalPath]) -> Service:
    from ramet.backends.databases.postgres import PostgresConfig, PostgresResource

    address = stack.enter_context(postgres())
    rows = [f'{{"id":{n},"word":"{"w" * (n % 40)}"}}' for n in range(3000)]

    async def fill() -> None:
        import asyncpg

        connection = await asyncpg.connect(address)
        await connection.execute("create table t (id int primary key, word text)")
        await connection.execute("insert into t select n, repeat('w', n % 40) from generate_series(0, 2999) n")
        await connection.close()

    asyncio.run(fill())
    lies = {
        "full": b"E\0\0\0\x38SFATAL\0VFATAL\0C53300\0Mtoo many clients already\0\0".replace(b"\x38", b"\x34"),
        "half": b"R\0\0\0\x08\0\0\0\0E\0\0\x10\0S",
        "noise": NOISE,
    }
    return Service(
        address.partition("host=")[2] + "/.s.PGSQL.5432",
        lambda port, _: PostgresResource(
            PostgresConfig(dsn=f"postgresql://ramet@127.0.0.1:{port}/postgres?sslmode=disable", timeout=SOON,
                           statement_seconds=0.6, ttl=0.0)
        ),
        lies=lies,
        expected={
            "/public/t/rows.jsonl": "".join(f"{row}\n" for row in rows).encode(),
            "/public/t/rows.csv": ("id,word\n" + "".join(f"{n},{'w' * (n % 40)}\n" for n in range(3000))).encode()
            .replace(b",\n", b',""\n'),
            "/public/t/rows/77.json": f"{rows[77]}\n".encode(),
        },
        trees={
            "/public/t": frozenset({"schema.json", "rows.jsonl", "rows.csv", "rows"}),
            "/public/t/rows": frozenset(f"{n}.json" for n in range(3000)),
        },
    )  # fmt: skip


def start_mongo(stack: ExitStack, folder: Callable[[str], LocalPath]) -> Service:
    from tests.support.mongo_wire import mongo_wire

    from ramet.backends.databases.mongo import MongoConfig, MongoResource

    url, wire = stack.enter_context(mongo_wire())
    wire.data["shop"]["things"].insert_many([{"_id": n, "word": "w" * 100} for n in range(2500)])
    lines = [f'{{"_id": {n}, "word": "{"w" * 100}"}}\n' for n in range(2500)]
    return Service(
        urlsplit(url).port or 0,
        lambda port, _: MongoResource(
            MongoConfig(url=f"mongodb://127.0.0.1:{port}/?heartbeatFrequencyMS=500&directConnection=true",
                        timeout=SOON, seconds=0.6, ttl=0.0)
        ),
        lies={"half": b"\xff\0\0\0\x01\0\0\0\x01\0\0\0\xdd\x07\0\0\0\0", "noise": NOISE},
        expected={
            "/shop/things/documents.jsonl": "".join(lines).encode(),
            "/shop/things/documents/77.json": lines[77].encode(),
        },
        trees={
            "/shop": frozenset({"database.json", "things"}),
            "/shop/things/documents": frozenset(f"{n}.json" for n in range(2500)),
        },
        slow=5,
    )  # fmt: skip


def start_mail(stack: ExitStack, folder: Callable[[str], LocalPath]) -> Service:
    import imaplib
    import ssl

    from ramet.backends.remote.mail import MailConfig, MailResource

    server = stack.enter_context(dovecot())
    stack.enter_context(pytest.MonkeyPatch.context()).setenv("FAULTY_MAIL_PASSWORD", server.password)
    bodies = [f"Subject: letter {n}\r\n\r\n{content(n, 30_000).hex()}\r\n".encode() for n in range(5)]
    context = ssl.create_default_context(cafile=server.certificate)
    with imaplib.IMAP4_SSL("127.0.0.1", server.imap_port, ssl_context=context) as client:
        client.login(server.username, server.password)
        for body in bodies:
            client.append("INBOX", "", '"02-Jan-2026 12:00:00 +0000"', body)
    config = {"host": "127.0.0.1", "username": server.username, "password_env": "FAULTY_MAIL_PASSWORD"}
    return Service(
        server.imap_port,
        lambda port, _: MailResource(
            MailConfig(port=port, ca_file=server.certificate, timeout=SOON * 2, ttl=0.0, **config)  # type: ignore[arg-type]
        ),
        lies={"bye": b"* BYE not now\r\n", "noise": NOISE},
        expected={f"/INBOX/2026-01-02/letter_{n}__{n + 1}.eml": body for n, body in enumerate(bodies)},
        trees={
            "/INBOX/2026-01-02": frozenset(
                f"letter_{n}__{n + 1}{kind}" for n in range(5) for kind in (".eml", ".json")
            ),
        },
    )


def start_http(stack: ExitStack, folder: Callable[[str], LocalPath]) -> Service:
    from ramet.backends.remote.http import HTTPConfig, HTTPResource

    files = folder("web")
    (files / "d").mkdir()
    expected = {f"/d/f{size}": content(size, size) for size in (0, 1000, 300_000, 2_000_000)}
    for name, data in expected.items():
        (files / name[1:]).write_bytes(data)
    (files / "d").chmod(0o755)
    files.chmod(0o755)
    url = stack.enter_context(nginx(folder("nginx"), files))
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n"
    return Service(
        urlsplit(url).port or 0,
        lambda port, _: HTTPResource(HTTPConfig(base=f"http://127.0.0.1:{port}/", private=True, timeout=SOON, ttl=0.0)),
        lies={
            "500": b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n",
            "503": b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n",
            "429": b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n",
            "half": head + b"\r\nshort",
            "half a head": head,
            "noise": NOISE,
        },
        expected=expected,
        trees={"/d": frozenset(name[3:] for name in expected)},
    )


STARTS: dict[str, Start] = {
    "redis": start_redis, "ssh": start_ssh, "postgres": start_postgres, "mongo": start_mongo, "mail": start_mail,
    "http": start_http,
}  # fmt: skip
NEEDED: dict[str, Callable[[], object]] = {
    "redis": lambda: shutil.which("redis-server"),
    "ssh": lambda: shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/usr/bin"),
    "postgres": postgres_programs,
    "mongo": lambda: True,
    "mail": lambda: shutil.which("dovecot", path="/usr/sbin:/usr/local/sbin:/usr/bin"),
    "http": lambda: shutil.which("nginx", path="/usr/sbin:/usr/local/sbin:/usr/bin"),
}


@pytest.fixture(scope="module", params=STARTS)
def service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    if not NEEDED[request.param]():
        pytest.skip(f"the server for {request.param} is not installed")
    with ExitStack() as stack:
        yield STARTS[request.param](stack, tmp_path_factory.mktemp)


def mounted(service: Service, port: int, name: str) -> Resource:
    return build(service.make(port, name), Policy(patience=HASTY))


async def look(service: Service, fs: Resource, chance: random.Random) -> bool:
    """Read or list something: it is as it should be, or an error. Whether there was an answer."""
    try:
        if chance.randrange(4):
            name = chance.choice(sorted(service.expected))
            data = await ops.read_bytes(fs, P(name))
            assert data == service.expected[name], f"{name}: {len(data)} bytes that it does not have"
        else:
            name = chance.choice(sorted(service.trees))
            names = [entry[0] for entry in await ops.entries(fs, P(name))]
            assert sorted(names) == sorted(service.trees[name]), name
    except OSError as error:
        # What cannot be gone on with ends in an error that nobody tries again: rows of another moment, another version.
        final = error.errno == errno.ESTALE or (error.errno == errno.EIO and "ended early" in str(error))
        assert isinstance(error, Unavailable) or final, error
        return False
    return True


async def surely(act: Callable[[], Awaitable[T]]) -> T:
    """What is not in trouble works; only a machine that stands still takes longer than a server is given here."""
    for _ in range(20):
        with suppress(Unavailable):
            return await act()
    return await act()


async def settled(proxy: Faults) -> int:
    """The connections that are left when what was let go of had time to go."""
    for _ in range(10_000):
        if not proxy.connections():
            return 0
        await asyncio.sleep(0.01)
    return proxy.connections()


@pytest.mark.timeout(300 + ROUNDS)
def test_rounds_with_every_kind_of_trouble(service: Service) -> None:
    async def act() -> tuple[dict[str, int], int, int]:
        chance, model, name = random.Random(7), Model(), uuid.uuid4().hex
        most = good = 0
        async with Faults(service.target, seed=11, lies=service.lies, silence=True, trouble=0.0) as proxy:
            fs = mounted(service, proxy.port, name)
            if service.writable:
                await surely(lambda: ops.make_dirs(fs, P("/d")))
            proxy.trouble = 0.5
            for number in range(service.rounds):
                if number % 10 == 0:  # as of a process that starts
                    await fs.close()
                    fs = mounted(service, proxy.port, name)
                if number % 2:
                    proxy.hang_up()
                if service.writable:
                    await model.round(fs, chance, number)
                else:
                    good += await look(service, fs, chance)
                most = max(most, proxy.connections())
            proxy.trouble = 0.0
            proxy.hang_up()
            if service.writable:
                await model.verify(fs)
            else:
                tries = 0
                while not await look(service, fs, chance):
                    tries += 1
                    assert tries < 20  # a machine that is busy may need another one
            await fs.close()
            assert await settled(proxy) == 0, "a connection stays"
            return dict(proxy.met), most, good

    met, most, good = asyncio.run(act())
    assert sum(met.values()) >= service.rounds // 2 and len(met) >= 5, met
    assert most <= 12 and (service.writable or good > service.rounds // 8), (most, good)


def test_a_server_that_is_killed_while_it_is_read_and_comes_back(service: Service) -> None:
    async def act() -> None:
        name = uuid.uuid4().hex
        async with Faults(service.target, seed=1, trouble=0, lies={}) as proxy:
            fs = mounted(service, proxy.port, name)
            path, whole = P("/f"), content(1, 5_000_000)
            if service.writable:
                await surely(lambda: fs.write(path, whole))
            else:
                path = P(max(service.expected, key=lambda one: len(service.expected[one])))
                whole = service.expected[path]
            got = b""
            try:
                async for block in fs.read(path):
                    if not got:
                        await proxy.down()
                        asyncio.get_running_loop().call_later(0.01, lambda: asyncio.ensure_future(proxy.up()))
                    got += block
                assert got == whole
            except OSError as error:
                assert error.errno == errno.EIO and whole.startswith(got)
            await proxy.is_up.wait()
            assert await surely(lambda: ops.read_bytes(fs, path)) == whole
            await proxy.down()
            with pytest.raises(Unavailable):
                await fs.stat(path)
            await fs.close()

    asyncio.run(act())


def test_a_server_that_is_killed_while_it_is_written_to(service: Service) -> None:
    if not service.writable:
        pytest.skip("it cannot be written")

    async def act() -> None:
        async with Faults(service.target, seed=1, trouble=0, lies={}) as proxy:
            fs = mounted(service, proxy.port, uuid.uuid4().hex)
            data = content(2, 3_000_000)
            await surely(lambda: fs.write(P("/f"), data))

            async def interrupted() -> AsyncIterator[bytes]:
                for number in range(40):
                    if number == 30:
                        await proxy.down()
                    yield bytes(65_536)

            with pytest.raises(Unavailable):
                await fs.write(P("/f"), interrupted())
            await proxy.up()
            found = await surely(lambda: ops.read_bytes(fs, P("/f")))
            assert found == data, "a write that failed leaves the old content"
            await surely(lambda: fs.write(P("/f"), b"new"))
            assert [name for name, _ in await surely(lambda: ops.entries(fs, P("/")))] == ["f"]
            assert await surely(lambda: ops.read_bytes(fs, P("/f"))) == b"new"
            await fs.close()
            assert await settled(proxy) == 0

    asyncio.run(act())


def test_a_reader_who_leaves_takes_the_connection_along(service: Service) -> None:
    async def act() -> None:
        async with Faults(service.target, seed=1, trouble=0, lies={}) as proxy:
            fs = mounted(service, proxy.port, uuid.uuid4().hex)
            path = P(next(iter(service.expected), "/f"))
            if service.writable:
                await surely(lambda: fs.write(path, content(3, 3_000_000)))
            most = 0
            for _ in range(12):
                with suppress(Unavailable):
                    async for _ in fs.read(path):
                        break
                task = asyncio.ensure_future(ops.read_bytes(fs, path))
                await asyncio.sleep(0.002)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                most = max(most, proxy.connections())
            assert most <= 12
            await fs.close()
            assert await settled(proxy) == 0

    asyncio.run(act())
