"""Results and records say what was served from the cache, per execution, also when executions run side by side."""

from __future__ import annotations

import asyncio
from pathlib import Path as LocalPath

from tests.layers.test_disk_cache import Bucket

from ramet import RAMResource, Workspace
from ramet.core.paths import parse
from ramet.workspace.workspace import Settings


def test_hits_are_counted_for_the_call_that_had_them() -> None:
    async def act() -> None:
        ram = RAMResource()
        for name in ("a", "b"):
            await ram.write(parse(f"/{name}"), b"text\n")
        ws = Workspace({"/s3": Bucket(ram)})
        ws.create_session("other")
        assert (await ws.execute("cat /s3/a")).cache_hits == 0
        first, second = await asyncio.gather(ws.execute("cat /s3/a /s3/a"), ws.execute("cat /s3/b", session_id="other"))
        assert (first.cache_hits, second.cache_hits) == (2, 0)
        assert sum(record.cache_hits for record in ws.history) == 2
        jq = await ws.execute("cat /.sessions/default/commands.jsonl | jq -s 'map(.cache_hits) | add'")
        assert jq.text == "2\n"

    asyncio.run(act())


def test_workspaces_share_a_cache_directory(tmp_path: LocalPath) -> None:
    async def act() -> None:
        ram = RAMResource()
        await ram.write(parse("/a"), b"text\n")
        settings = Settings(cache_dir=str(tmp_path / "cache"))
        bucket = Bucket(ram)
        assert (await Workspace({"/s3": Bucket(ram)}, settings=settings).execute("cat /s3/a")).text == "text\n"
        result = await Workspace({"/data": bucket}, settings=settings).execute("cat /data/a")
        assert (result.text, result.cache_hits, bucket.reads) == ("text\n", 1, 0)

    asyncio.run(act())
