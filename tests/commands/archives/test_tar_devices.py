"""tar stores a device as a member without data, with its numbers."""

from __future__ import annotations

import asyncio
import io
import tarfile

from ramet import Workspace


def test_a_device_has_numbers_and_no_data() -> None:
    async def act() -> tuple[bytes, str]:
        async with Workspace() as ws:
            made = await ws.execute("tar cf - /dev/zero /dev/null", timeout=20)
            listed = await ws.execute("tar tvf -", stdin=made.stdout)
            return made.stdout, listed.text

    data, listed = asyncio.run(act())
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        members = [(m.name, m.ischr(), m.size, m.devmajor, m.devminor) for m in archive]
    assert members == [("dev/zero", True, 0, 1, 5), ("dev/null", True, 0, 1, 3)]
    assert listed.startswith("crw-rw-rw- user/user       1,5 ")
