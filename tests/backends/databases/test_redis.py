"""RedisResource keeps the contract of a resource against a real Redis."""

from __future__ import annotations

import asyncio
import errno
import re
import shutil
import tarfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("redis")
if shutil.which("redis-server") is None:
    pytest.skip("redis-server is not installed", allow_module_level=True)

from tests.support.servers import redis_server

from ramet import Workspace
from ramet.backends.databases.redis import RedisResource
from ramet.core import ops
from ramet.core.errors import Unavailable
from ramet.core.paths import parse
from ramet.testing import CHECKS, Check, run_check

P = parse


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with redis_server(tmp_path_factory.mktemp("redis")) as running:
        yield running


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_contract(check: Check, url: str) -> None:
    run_check(check, lambda: RedisResource(url, prefix=uuid.uuid4().hex), pytest.skip)


def test_a_snapshot_carries_the_tree_and_load_takes_its_place(url: str, tmp_path: Path) -> None:
    async def act() -> None:
        ws = Workspace({"/r": RedisResource(url, prefix=uuid.uuid4().hex)})
        await ws.execute(
            "cd /r; mkdir -p d/e; echo text > d/f; ln d/f same; ln -s d/f link; chmod 700 d/e; seq 300000 > big"
        )
        ws.snapshot(tmp_path / "snap.tar")
        with pytest.raises(ValueError, match="must include overrides for: \\['/r'\\]"):
            Workspace.load(tmp_path / "snap.tar")
        with tarfile.open(tmp_path / "snap.tar") as tar:
            assert any(re.fullmatch(r"mounts/\d+/data/\d+\.bin", name) for name in tar.getnames())
        target = RedisResource(url, prefix=uuid.uuid4().hex)
        again = Workspace.load(tmp_path / "snap.tar", resources={"/r": target})
        look = "cd /r; find . -printf '%p %y %m %n %l\\n' | sort; md5sum big d/f"
        assert (await again.execute(look)).text == (await ws.execute(look)).text
        await ws.close()
        await again.close()

    asyncio.run(act())


def test_files_expire_when_asked_to(url: str) -> None:
    async def act() -> None:
        tree = RedisResource(url, prefix="soon", file_ttl=1)
        await tree.write(P("/f"), b"x")
        client, _ = tree._client()
        for key in await client.keys("{soon}:[ic]:[1-9]*"):
            assert await client.ttl(key) == 1
            await client.delete(key)  # what Redis does when the time has come
        assert [name async for name, _ in tree.scan(P("/"))] == []
        await tree.write(P("/f"), b"again")
        assert await ops.read_bytes(tree, P("/f")) == b"again"
        await tree.close()

    asyncio.run(act())


def test_a_reader_finishes_what_it_began(url: str) -> None:
    async def act() -> None:
        tree = RedisResource(url, prefix=uuid.uuid4().hex)
        old = b"a" * 3_000_000
        await tree.write(P("/f"), old)
        blocks = tree.read(P("/f"))
        first = await anext(blocks)
        await tree.write(P("/f"), b"b" * 3_000_000)
        assert first + b"".join([block async for block in blocks]) == old
        await tree.close()

    asyncio.run(act())


def test_secrets_are_not_shown_and_errors_are_ours() -> None:
    async def act() -> None:
        tree = RedisResource("redis://user:hunter2@127.0.0.1:1/0")
        assert "hunter2" not in repr(tree) + repr(tree.describe()) and tree.describe().redacted_fields == ("url",)
        with pytest.raises(Unavailable) as raised:
            await tree.stat(P("/f"))
        assert "hunter2" not in str(raised.value)
        await tree.close()

    asyncio.run(act())


def test_a_snapshot_without_the_server_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    resource = RedisResource(url="redis://:pass-word@127.0.0.1:1/0")
    with pytest.raises(OSError, match="could not be reached") as caught:
        Workspace({"/r": resource}).snapshot(tmp_path / "snap.tar")
    assert "pass-word" not in str(caught.value) and not list(tmp_path.iterdir())
    with pytest.raises(OSError, match="could not be reached"):
        resource.restore([])


def test_two_writers_and_a_condition(url: str) -> None:
    async def act() -> None:
        prefix = uuid.uuid4().hex
        one, two = RedisResource(url, prefix=prefix), RedisResource(url, prefix=prefix)
        seen = (await one.write(P("/f"), b"1")).version
        await two.write(P("/f"), b"2", if_version=seen)
        with pytest.raises(OSError) as raised:
            await one.write(P("/f"), b"3", if_version=seen)
        assert raised.value.errno == errno.ESTALE and await ops.read_bytes(one, P("/f")) == b"2"
        await one.close()
        await two.close()

    asyncio.run(act())
