"""`Limits.variable_bytes` counts what a session holds, not what it has assigned."""

from __future__ import annotations

import asyncio

import pytest

from ramet import Limits, Workspace

HARMLESS = [
    pytest.param("for i in {1..99}; do x=$i$big; done; echo ok", id="replaced"),
    pytest.param("for i in {1..99}; do eval v$i=\\$big; done; echo ok", id="one text with many names"),
    pytest.param("for i in {1..99}; do eval v$i=$i$big; unset v$i; done; echo ok", id="unset"),
    pytest.param("f() { local a=1$1 b=2$1; }; for i in {1..99}; do f $big; done; echo ok", id="local"),
    pytest.param("for i in {1..99}; do (x=$i$big); done; echo ok", id="subshells that ended"),
    pytest.param("for i in {1..99}; do x=$(y=$i$big; echo $i); done; echo ok", id="substitutions"),
    pytest.param("for i in {1..20}; do bash -c 'x=1$0' $big; done; echo ok", id="child shells"),
    pytest.param("x=$big; for i in {1..20}; do sleep 60 & done; kill $(jobs -p); wait 2> e; echo ok", id="jobs"),
    pytest.param("a=($big); for i in {1..99}; do a[0]=$i$big; done; echo ok", id="elements"),
    pytest.param("for i in {1..99}; do a=($i$big); done; echo ok", id="arrays"),
    pytest.param("for i in {1..99}; do set -- $i$big; done; echo ok", id="parameters"),
    pytest.param("a=({1..2000}); for i in {1..9}; do (a[0]=x; :); done; echo ok", id="changed copies of an array"),
    pytest.param("for i in {1..99}; do x+=$i; done; echo ok", id="appended"),
    pytest.param("for x in {1..3000}; do :; done; echo ok", id="loop"),
]


@pytest.mark.parametrize("script", HARMLESS)
def test_what_is_gone_or_shared_does_not_count(script: str) -> None:
    async def act() -> None:
        async with Workspace(limits=Limits(variable_bytes=500_000)) as ws:
            result = await ws.execute(f"printf -v big %090000d 1; {script}")
            assert (result.text, result.error_text) == ("ok\n", "")

    asyncio.run(act())


def test_a_refused_value_leaves_the_old_one_and_unset_makes_room() -> None:
    async def act() -> None:
        async with Workspace(limits=Limits(variable_bytes=500_000)) as ws:
            await ws.execute("printf -v a %0400000d 1; x=old")
            result = await ws.execute("x=$a$a")
            assert result.exit_code == 1 and "limit reached: variable_bytes (500000)" in result.error_text
            assert (await ws.execute("echo $x; unset a; printf -v x %0400000d 1; echo ${#x}")).text == "old\n400000\n"

    asyncio.run(act())


def test_the_variables_of_a_copied_session_count_from_its_first_assignment() -> None:
    async def act() -> None:
        async with Workspace(limits=Limits(variable_bytes=500_000)) as ws:
            await ws.execute("printf -v a %0400000d 1")
            async with ws.copy() as twin:
                result = await twin.execute("printf -v b %0200000d 1")
                assert "limit reached: variable_bytes (500000)" in result.error_text

    asyncio.run(act())
