"""Object stores behind an unreliable network: what is read is whole, what was said to be written is there.

A small number of rounds runs with the tests; `RAMET_FAULTS=1000` runs as many as it says.
"""

from __future__ import annotations

import asyncio
import errno
import gc
import random
import uuid
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import pytest
from tests.support.fault_model import HASTY, ROUNDS, Model, content
from tests.support.proxy import Faults
from tests.support.servers import S3Server

from ramet.backends.objects.s3 import S3Config, S3Resource
from ramet.core import ops
from ramet.core.errors import Unavailable
from ramet.core.paths import parse
from ramet.core.resource import Resource
from ramet.layers.retry import Patience
from ramet.layers.stack import Policy, build

P = parse


@pytest.fixture
def server(weed: S3Server) -> S3Server:
    return weed


def mounted(server: S3Server, port: int, prefix: str, patience: Patience = HASTY) -> Resource:
    config = S3Config.of("minio", endpoint=f"http://127.0.0.1:{port}", bucket=server.bucket, prefix=prefix,
                         aws_access_key_id=server.key, aws_secret_access_key=server.secret)  # fmt: skip
    return build(S3Resource(config), Policy(patience=patience))


@pytest.mark.timeout(300 + ROUNDS)
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
                await model.round(fs, chance, number)
            met = dict(proxy.met)
        await model.verify(mounted(server, target, prefix))
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
            patient = mounted(server, proxy.port, prefix, Patience(attempts=400, first=0.005, longest=0.02))
            async for block in patient.read(P("/f")):
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
