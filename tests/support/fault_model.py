"""What files may hold after operations of which some failed: nothing else may ever be read or listed.

`RAMET_FAULTS` is the number of rounds in tests of unreliable servers, 50 unless told.
"""

from __future__ import annotations

import hashlib
import os
import random
from collections.abc import AsyncIterator

from ramet.core import ops
from ramet.core.errors import Unavailable
from ramet.core.paths import Path, parse
from ramet.core.resource import Resource
from ramet.layers.retry import Patience

P = parse
ROUNDS = int(os.environ.get("RAMET_FAULTS", "50"))
HASTY = Patience(attempts=4, first=0.005, longest=0.02)
SIZES = (0, 1, 1000, 70_000, 300_000, 1_200_000)


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

    async def round(self, fs: Resource, chance: random.Random, number: int) -> None:
        """One operation, whichever."""
        path = P(f"/d/f{chance.randrange(6)}")
        match chance.randrange(8):
            case 0 | 1 | 2:
                data = content(number, chance.choice(SIZES))
                await self.write(fs, path, data, streamed=bool(chance.randrange(2)))
            case 3:
                await self.remove(fs, path)
            case 4:
                await self.list(fs)
            case _:
                await self.read(fs, path)

    async def verify(self, fs: Resource) -> None:
        """Without an unreliable network in between, everything must be what the model says."""
        for path in tuple(self.may):
            await self.read(fs, path)
        await self.list(fs)
