"""RAM mounts have a quota by default, and `df` tells it."""

from __future__ import annotations

import asyncio
import errno

import pytest

from ramet import RAMResource, Workspace
from ramet.backends.local import ram as module
from ramet.core.limits import memory_share
from ramet.core.paths import parse


def test_the_default_is_a_share_of_the_memory() -> None:
    assert 0 < memory_share() <= 2 << 30
    assert RAMResource().usage() == (0, memory_share())
    assert RAMResource(quota=5).usage() == (0, 5)


def test_writing_beyond_the_default_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "memory_share", lambda: 1 << 20)

    async def act() -> None:
        async with Workspace() as ws:
            result = await ws.execute("head -c 2000000 /dev/zero > f; echo $?; truncate -s 1T g")
            assert result.text == "1\n" and "No space left on device" in result.error_text
            result = await ws.execute("rm f g; head -c 524288 /dev/zero > h; df -B1 --output=size,used,avail,pcent /")
            assert result.text.split()[-4:] == ["1048576", "524288", "524288", "50%"]
            result = await ws.execute("head -c 2000000 /dev/zero > /tmp/f")
            assert "No space left on device" in result.error_text

    asyncio.run(act())


def test_a_fork_keeps_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "memory_share", lambda: 100)

    async def act() -> None:
        with pytest.raises(OSError) as caught:
            await RAMResource().fork().write(parse("/f"), bytes(101))
        assert caught.value.errno == errno.ENOSPC

    asyncio.run(act())
