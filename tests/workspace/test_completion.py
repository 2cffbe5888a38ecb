"""Completion of command lines: what is offered where, and how it is quoted."""

from __future__ import annotations

import asyncio

import pytest

from ramet import Workspace

FILES = r"""mkdir -p /src/deep '/a b' /empty; cd /src; touch main.py 'two words' "it's" 'a"b' .hidden deep/x
ln -s /src/deep /src/dirlink; ln -s nowhere /src/broken; PLACE=/src; PLAN=1; local_fn() { :; }; alias mine=ls"""


@pytest.mark.parametrize(
    ("line", "start", "words"),
    [
        ("cat ma", 4, ["main.py "]),
        ("cat /src/de", 4, ["/src/deep/"]),
        ("cat tw", 4, ["two\\ words "]),
        ("cat two\\ w", 4, ["two\\ words "]),
        ('cat "tw', 5, ['two words" ']),
        ("cat 'it", 5, ["it'\\''s' "]),
        ('cat "a', 5, ['a\\"b" ']),
        ("cat .h", 4, [".hidden "]),
        ("cat < ma", 6, ["main.py "]),
        ("ls > ma", 5, ["main.py "]),
        ("cd d", 3, ["deep/", "dirlink/"]),
        ("ls d", 3, ["deep/", "dirlink/"]),
        ("cat bro", 4, ["broken "]),
        ("cd m", 3, []),
        ("echo $PLA", 5, ["$PLACE", "$PLAN"]),
        ("echo ${PLAC", 5, ["${PLACE}"]),
        ('echo "x$PLAC', 7, ["$PLACE"]),
        ("echo '$PLAC", 6, []),
        ("local_", 0, ["local_fn "]),
        ("ls | local_", 5, ["local_fn "]),
        ("if local_", 3, ["local_fn "]),
        ("X=1 local_", 4, ["local_fn "]),
        ("mine; min", 6, ["mine "]),
        ("sort --reve", 5, ["--reverse "]),
        ("cat ../a", 4, ["../a\\ b/"]),
        ("cat /nowhere/x", 4, []),
        ("cat main.py/x", 4, []),
    ],
)
def test_what_is_offered(line: str, start: int, words: list[str]) -> None:
    async def act() -> None:
        async with Workspace() as ws:
            assert (await ws.execute(FILES)).exit_code == 0
            assert await ws.complete(line) == (start, words)

    asyncio.run(act())


def test_a_command_position_offers_commands_and_then_files() -> None:
    async def act() -> None:
        async with Workspace() as ws:
            await ws.execute("cd /; touch sorted")
            _, words = await ws.complete("sor")
            assert words == ["sort ", "sorted "]
            assert "ls " in (await ws.complete(""))[1]

    asyncio.run(act())


def test_a_huge_folder_is_cut() -> None:
    async def act() -> None:
        async with Workspace() as ws:
            await ws.execute("mkdir /many; cd /many; touch $(seq 1500)")
            assert len((await ws.complete("cat "))[1]) == 1000

    asyncio.run(act())


def test_what_was_offered_is_one_word_to_the_shell() -> None:
    async def act() -> None:
        async with Workspace() as ws:
            name = "a $b`c\\d\"e'f!{g}~h"
            await ws.execute('mkdir /odd; touch "/odd/$NAME"', env={"NAME": name})
            for opening in ("", '"', "'"):
                start, (word,) = await ws.complete(f"printf %s {opening}/odd/a")
                line = f"printf %s {opening}"[:start] + word
                assert (await ws.execute(line)).text == f"/odd/{name}", line

    asyncio.run(act())
