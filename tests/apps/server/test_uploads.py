"""Uploads on their way into a store: what is read is what was written, and the disk has nothing of a sealed one."""

from __future__ import annotations

import io
import random
import tempfile
from pathlib import Path
from typing import IO, Any

import pytest
from tests.apps.server.harness import run, serving

from ramet import Store
from ramet.apps.server import uploads as spooling
from ramet.apps.server.uploads import EncryptedFile, spool
from ramet.store.crypto.wrapping_keys import new_key_file


@pytest.mark.parametrize("sealed", [True, False])
def test_what_is_read_is_what_was_written(sealed: bool) -> None:
    made = random.Random(3)
    data = b"".join(made.randbytes(made.choice((1, 15, 16, 17, 4096, 300_000))) for _ in range(20))
    with spool(sealed) as file:
        at = 0
        while at < len(data):
            step = made.choice((1, 7, 16, 65536))
            file.write(data[at : at + step])
            at += step
        file.seek(0)
        assert file.read() == data
        for _ in range(200):
            start, size = made.randrange(len(data)), made.choice((1, 16, 17, 1000))
            assert file.seek(start) == start
            assert file.read(size) == data[start : start + size]
        assert file.seek(-5, io.SEEK_END) and file.read() == data[-5:] and file.read() == b""


def test_the_disk_has_nothing_of_it(tmp_path: Path) -> None:
    with open(tmp_path / "x", "w+b", buffering=0) as file, EncryptedFile(file) as raw:
        raw.write(b"secret words " * 1000)
        kept = (tmp_path / "x").read_bytes()
        assert len(kept) == 13_000 and b"secret" not in kept
        raw.seek(3)
        with pytest.raises(io.UnsupportedOperation):
            raw.write(b"again")


@pytest.mark.parametrize("kind", ["snapshot", "tar"])
def test_an_upload_to_an_encrypted_store_is_sealed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    new_key_file(str(tmp_path / "key"))
    files: list[bytes] = []

    class Seen:
        """A temporary file whose bytes are looked at before it is gone."""

        def __init__(self, **options: Any) -> None:
            self._inner: IO[bytes] = tempfile.TemporaryFile(**options)

        def __enter__(self) -> IO[bytes]:
            return self._inner

        def __exit__(self, *_: object) -> None:
            self._inner.seek(0)
            files.append(self._inner.read())
            self._inner.close()

    class Fake:
        TemporaryFile = Seen

    monkeypatch.setattr(spooling, "tempfile", Fake)

    async def test() -> None:
        async with serving(Store(str(tmp_path / "store"), key=f"file:{tmp_path / 'key'}")) as (http, _):
            await http.post("/v1/workspaces", json={"name": "p"})
            await http.post("/v1/workspaces/p/exec", json={"command": "echo very-secret-words > /f"})
            tar = (await http.get(f"/v1/workspaces/p/snapshot?kind={kind}")).content
            assert b"very-secret-words" in tar
            assert (await http.put("/v1/workspaces/q/snapshot", content=tar)).status_code == 201
            assert (await http.get("/v1/workspaces/q/file?path=/f")).text == "very-secret-words\n"
            assert [len(file) for file in files] == [len(tar)] and b"very-secret" not in files[0]

    run(test)
