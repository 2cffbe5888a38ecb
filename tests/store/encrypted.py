"""What the tests of encrypted stores share."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ramet import Store
from ramet.core.errors import RametError
from ramet.store.crypto.encrypted_objects import EncryptedObjects

KEY, OTHER = bytes(range(32)), bytes(range(32, 64))


def run(store: Store, name: str, *scripts: str, **options: Any) -> None:
    async def act() -> None:
        async with store.open(name, **options) as ws:
            for script in scripts:
                await ws.execute(script)
                await ws.commit(script)

    asyncio.run(act())


def text(store: Store, name: str, script: str) -> str:
    async def act() -> str:
        async with store.open(name, readonly=True) as ws:
            return (await ws.execute(script)).text

    return asyncio.run(act())


def refused(code: str, *args: Any, **options: Any) -> RametError:
    with pytest.raises(RametError) as caught:
        Store(*args, **options)
    assert caught.value.code == code and caught.value.remediation
    return caught.value


def everything(folder: Path) -> Iterator[tuple[str, bytes]]:
    for top, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(top, name)
            yield path, Path(path).read_bytes()


def objects_of(store: Store) -> EncryptedObjects:
    found = store.repository.objects
    assert isinstance(found, EncryptedObjects)
    return found
