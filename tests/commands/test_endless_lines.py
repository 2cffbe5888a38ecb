"""A line that never ends takes no more memory than a string may have, and whoever waits for its end says so."""

from __future__ import annotations

import asyncio

import pytest

from ramet import Limits, Workspace

MIB = 1024 * 1024

SCRIPTS = [
    "uniq /dev/zero", "cut -d: -f1 /dev/zero", "rev /dev/zero", "paste /dev/zero /dev/zero", "comm /dev/zero /dev/zero",
    "sort /dev/zero", "sort -k2 < /dev/zero", "awk 1 /dev/zero",
    "awk 'BEGIN{RS=\"\"} 1' /dev/zero", "awk 'BEGIN{while ((getline x < \"/dev/zero\") > 0) n++}'", "sed p /dev/zero",
    "sed -n '$p' < /dev/zero", "jq . /dev/zero", "nl /dev/zero", "shuf /dev/zero",
    "join /dev/zero /dev/zero", "column -t /dev/zero", "tsort /dev/zero", "fmt /dev/zero",
    "grep -v x -f /dev/zero a", "xargs < /dev/zero -d: echo", "numfmt < /dev/zero", "diff /dev/zero a",
    "patch < /dev/zero", "sqlite3 :memory: < /dev/zero", "bash /dev/zero",
    ". /dev/zero", "bash < /dev/zero", "mapfile x < /dev/zero", "x=$(< /dev/zero)", "bc /dev/zero",
    "sed ':a;H;x;ba' a", "sed ':a;h;G;ba' a", "yes | sed ':a;N;ba'", "sed ':a;s/a/aa/g;ta' a",
    "parallel echo < /dev/zero", "csplit /dev/zero 5", "look a /dev/zero",
]  # fmt: skip


@pytest.mark.parametrize("script", SCRIPTS)
def test_what_waits_for_an_end_that_never_comes_is_reported(script: str) -> None:
    async def act() -> None:
        async with Workspace(limits=Limits(string_bytes=2 * MIB)) as ws:
            await ws.execute("echo a > a")
            result = await ws.execute(f"{{ {script}; }} > /dev/null", timeout=60)
            assert result.exit_code not in (0, 124, 70), result.error_text[-300:]
            assert (await ws.execute("echo fine")).text == "fine\n"

    asyncio.run(act())


@pytest.mark.parametrize(
    "script", ["seq 1000000000 | sort", "seq 1000000000 | sort -n", "tac /dev/zero", "yes | split -n 3 -"]
)
def test_the_spool_is_bounded_too(script: str) -> None:
    async def act() -> None:
        async with Workspace(limits=Limits(sort_memory=MIB, spill_bytes=3 * MIB)) as ws:
            result = await ws.execute(f"{script} > /dev/null", timeout=120)
            status = 2 if "sort" in script else 1  # as GNU ends when sorting fails
            assert result.exit_code == status and "limit reached: spill_bytes (3145728)" in result.error_text

    asyncio.run(act())


@pytest.mark.parametrize("script", ["uniq", "cut -d: -f1", "sort", "awk 1", "sed p", "jq .", "nl", "shuf", "bash"])
def test_a_waiting_caller_can_be_cancelled(script: str) -> None:
    async def act() -> None:
        async with Workspace() as ws:
            assert (await ws.execute(f"{script} /dev/zero > /dev/null", timeout=0.05)).exit_code == 124

    asyncio.run(act())
