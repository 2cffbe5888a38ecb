"""Object stores behind an unreliable network: what is read is whole, what was said to be written is there.

A small number of rounds runs with the tests; `RAMET_FAULTS=1000` runs as many as it says.
"""

from __future__ import annotations

import asyncio
import errno
import gc
import hashlib
import os
import random
import uuid
from collections.abc import AsyncIterator, Iterator
from urllib.parse import urlsplit

import pytest
from tests.proxy import Faults
from tests.servers import S3Server, seaweed

from ramet.backends.s3 import S3Config, S3Resource
from ramet.core import ops
from ramet.core.errors import Unavailable
from ramet.core.paths import Path, parse
from ramet.core.resource import Resource
from ramet.layers.retry import Patience
from ramet.layers.stack import Policy, build

ROUNDS = int(os.environ.get("RAMET_FAULTS", "50"))
P = parse
HASTY = Patience(attempts=4, first=0.005, longest=0.02)
SIZES = (0, 1, 1000, 70_000, 300_000, 1_200_000)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with seaweed(tmp_path_factory.mktemp("seaweed")) as running:
        yield running


def mounted(server: S3Server, port: int, prefix: str) -> Resource:
    config = S3Config.of("minio", endpoint=f"http://127.0.0.1:{port}", bucket=server.bucket, prefix=prefix,
                         aws_access_key_id=server.key, aws_secret_access_key=server.secret)  # fmt: skip
    return build(S3Resource(config), Policy(patience=HASTY))


def content(seed: int, size: int) -> bytes:
    """Bytes that tell where they belong: a piece of another content, or of another place, is noticed."""
    line = hashlib.sha256(str(seed).encode()).digest()
    return b"".join(hashlib.sha256(line + n.to_bytes(4, "big")).digest() for n in range(size // 32 + 1))[:size]


async def pieces(data: bytes) -> AsyncIterator[bytes]:
    for at in range(0, len(data), 65_536):
        yield data[at : at + 65_536]


class Model:
    """What each file may hold: one content when all went well, several after a failure that told nothing."""

    def __init__(self) -> None:
        self.may: dict[Path, set[bytes | None]] = {}

    def of(self, path: Path) -> set[bytes | None]:
        return self.may.setdefault(path, {None})

    async def write(self, fs: Resource, path: Path, data: bytes, *, streamed: bool) -> None:
        try:
            await fs.write(path, pieces(data) if streamed else data)
            self.may[path] = {data}
        except Unavailable:
            self.of(path).add(data)

    async def remove(self, fs: Resource, path: Path) -> None:
        try:
            await fs.remove(path)
            assert self.of(path) != {None}
            self.may[path] = {None}
        except FileNotFoundError:
            assert None in self.of(path), f"{path} is lost"
            self.may[path] = {None}
        except Unavailable:
            self.of(path).add(None)

    async def read(self, fs: Resource, path: Path) -> None:
        try:
            found: bytes | None = await ops.read_bytes(fs, path)
        except FileNotFoundError:
            found = None
        except Unavailable:
            return
        assert found in self.of(path), f"{path} holds what nobody wrote ({len(found or b'')} bytes)"

    async def list(self, fs: Resource) -> None:
        try:
            names = {entry[0] for entry in await ops.entries(fs, P("/d"))}
        except Unavailable:
            return
        for path, may in self.may.items():
            assert path.name in names or None in may, f"{path} is not listed"
            assert path.name not in names or may != {None}, f"{path} is listed and was removed"


def test_nothing_is_torn_lost_or_listed_wrongly(server: S3Server) -> None:
    async def act() -> dict[str, int]:
        chance, model, prefix = random.Random(7), Model(), uuid.uuid4().hex
        target = urlsplit(server.endpoint).port or 0
        await mounted(server, target, prefix).mkdir(P("/d"))
        async with Faults(target, seed=11) as proxy:
            for number in range(ROUNDS):
                if number % 10 == 0:  # as of a process that starts
                    fs = mounted(server, proxy.port, prefix)
                proxy.hang_up()
                path = P(f"/d/f{chance.randrange(6)}")
                match chance.randrange(8):
                    case 0 | 1 | 2:
                        data = content(number, chance.choice(SIZES))
                        await model.write(fs, path, data, streamed=bool(chance.randrange(2)))
                    case 3:
                        await model.remove(fs, path)
                    case 4:
                        await model.list(fs)
                    case _:
                        await model.read(fs, path)
            met = dict(proxy.met)
        # Without the network in between, everything must be what the model says.
        plain = mounted(server, target, prefix)
        for path in tuple(model.may):
            await model.read(plain, path)
        await model.list(plain)
        return met

    met = asyncio.run(act())
    assert sum(met.values()) >= ROUNDS and len(met) == 7, met


def test_a_server_that_goes_away_in_the_middle(server: S3Server) -> None:
    async def act() -> None:
        prefix, target = uuid.uuid4().hex, urlsplit(server.endpoint).port or 0
        data = content(1, 5_000_000)
        async with Faults(target, seed=1, trouble=0) as proxy:
            fs = mounted(server, proxy.port, prefix)
            await fs.write(P("/f"), data)

            got = b""
            async for block in fs.read(P("/f")):
                if not got:
                    await proxy.down()
                    back = asyncio.get_running_loop().call_later(0.02, lambda: asyncio.ensure_future(proxy.up()))
                got += block
            assert got == data and back.when()

            async def interrupted() -> AsyncIterator[bytes]:
                for number in range(200):  # more than one part
                    if number == 170:
                        await proxy.down()
                    yield bytes(65_536)

            with pytest.raises(Unavailable):
                await fs.write(P("/f"), interrupted())
            await proxy.up()
            assert await ops.read_bytes(fs, P("/f")) == data, "a write that failed leaves the old content"

            async for _ in fs.read(P("/f")):
                await proxy.down()
                break
            with pytest.raises(Unavailable):
                await fs.stat(P("/f"))

    asyncio.run(act())


def test_a_file_that_changes_while_it_is_read_is_never_a_mixture(server: S3Server) -> None:
    async def act() -> None:
        prefix, target = uuid.uuid4().hex, urlsplit(server.endpoint).port or 0
        old, new = content(1, 4_000_000), content(2, 4_000_000)
        async with Faults(target, seed=1, trouble=0) as proxy:
            fs, other = mounted(server, proxy.port, prefix), mounted(server, target, prefix)
            await fs.write(P("/f"), old)
            got = b""
            with pytest.raises(OSError) as refusal:
                async for block in fs.read(P("/f")):
                    if not got:
                        await other.write(P("/f"), new)
                    got += block
            assert refusal.value.errno == errno.ESTALE and old.startswith(got)

    asyncio.run(act())


def test_connections_do_not_leak(server: S3Server) -> None:
    async def act() -> int:
        prefix, target = uuid.uuid4().hex, urlsplit(server.endpoint).port or 0
        async with Faults(target, seed=5) as proxy:
            fs = mounted(server, proxy.port, prefix)
            most = 0
            for number in range(max(40, ROUNDS // 5)):
                try:
                    await fs.write(P("/f"), content(number, 300_000))
                    async for _ in fs.read(P("/f")):
                        break  # a reader that stops early gives its connection back
                except (Unavailable, FileNotFoundError):
                    pass
                most = max(most, proxy.connections())
            del fs
            gc.collect()
            return most

    assert asyncio.run(act()) <= 16
