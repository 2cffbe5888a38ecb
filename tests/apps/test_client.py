"""`ramet.connect`: the local API against a real server."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.apps.server_harness import Process

import ramet
from ramet import RametError
from ramet.apps.client import RemoteStore


def test_the_local_api_over_http(tmp_path: Path) -> None:
    server = Process(tmp_path)

    async def work(store: RemoteStore) -> None:
        async with store.open("p") as ws:
            done = await ws.execute("cat; echo $X >&2; printf '\\xff'", stdin=b"in\xfe", env={"X": "1"}, cwd="/tmp")
            assert (done.stdout, done.stderr, done.exit_code) == (b"in\xfe\xff", b"1\n", 0)
            execution = ws.execute("echo a; exit 3")
            assert [tuple(piece) async for piece in execution] == [(1, b"a\n")]
            assert execution.result is not None and execution.result.exit_code == 3
            assert (await ws.execute("sleep 9", timeout=0.05)).timed_out
            await ws.write("/d/\udcff", b"raw", parents=True)
            assert await ws.read("/d/\udcff") == b"raw"
            assert [entry["path"] for entry in await ws.scan("/d")] == ["/d/\udcff"]
            with pytest.raises(FileNotFoundError):
                await ws.read("/none")
            with pytest.raises(RametError, match="no session"):
                await ws.execute("true", "nobody")
            stopped = asyncio.ensure_future(ws.execute("sleep 0.4; touch /done"))
            await asyncio.sleep(0.1)
            stopped.cancel()
            await asyncio.gather(stopped, return_exceptions=True)
            await asyncio.sleep(0.6)
            assert (await ws.execute("test -e /done")).exit_code == 1
            await ws.commit("by hand")

    try:
        with ramet.connect(f"unix:{server.socket}") as store:
            store.create("p")
            asyncio.run(work(store))
            assert store.ls() == ["p"]
            handle = store["p"]
            assert handle.head is not None and len(handle.log()) > 1
            handle.tag("v1")
            handle.fork("v1", "q")
            assert handle.diff("v1", "q@head") == []
            assert b"".join(handle.show("/d/\udcff", "v1")) == b"raw"
            with pytest.raises(RametError) as refused:
                _ = store["nothing"]
            assert refused.value.code == "workspace_not_found"
    finally:
        server.process.kill()
        server.process.wait()
