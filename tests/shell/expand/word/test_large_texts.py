"""Texts of a megabyte expand as short ones do."""

from __future__ import annotations

import asyncio

import pytest

from ramet import Workspace


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("y=$s$s; echo ${#y} ${y:0:2}${y: -2}", "2000000 1aaz"),
        ("y=x$s; y+=z$s; echo ${#y} ${y:0:3} ${y:1000000:3}", "2000002 x1a zz1"),
        ("y=${s:1}; echo ${#y} ${y:0:1} ${y: -1}; y=${s:5:-5}; echo ${#y}", "999999 a z 999990"),
        ("y=${s:0:999999}; echo ${#y}; y=${s: -2:9}; echo $y; y=${s:99999999}; echo ${#y}", "999999 az 0"),
        ("y=${s:3: -99999999}; echo $?", ""),
        ("y=${s#1}; echo ${#y} ${y:0:1}; y=${s%z}; echo ${#y} ${y: -1}", "999999 a 999999 a"),
        ("y=${s##*a}; echo $y; y=${s%%a*}; echo $y; y=${s##*}; echo [$y]; y=${s%?}; echo ${#y}", "z 1 [] 999999"),
        ("p=1a; y=${s#$p}; echo ${#y}; y=${s#[0-9]}; echo ${#y}; y=${s#no}; echo ${#y}", "999998 999999 1000000"),
        ('declare -u y; y=$s$s; echo ${#y} ${y:0:2}', "2000000 1A"),
        ("y=$s$(echo x); echo ${#y} ${y: -2}", "1000001 zx"),
        ("wc -c <<< $s$s; wc -c <<X\n$s$s\nX", "2000001 2000001"),
        ("read y <<< $s; echo ${#y} ${y:0:2}; printf -v y '%s-' $s $s; echo ${#y} ${y: -2}", "1000000 1a 2000002 z-"),
        ("y=${s^^}; echo ${#y} ${y:0:2}; y=${s@Q}; echo ${#y} ${y:0:3}", "1000000 1A 1000002 '1a"),
        ("y=${s//a/[&]}; echo ${#y} ${y:0:4}; y=${s/a/b}; echo ${#y} ${y:0:3}", "2999996 1[a] 1000000 1ba"),
        ("y=(0 $s [5]=$s); echo ${#y[1]} ${!y[@]}; declare -p y | wc -c", "1000000 0 1 5 2000037"),
        ("readonly y; y=$s$s; echo no", ""),
    ],
)  # fmt: skip
def test_large_texts_in_a_script(script: str, expected: str) -> None:
    async def main() -> str:
        ws = Workspace()
        await ws.execute("s=1$(head -c 999998 /dev/zero | tr '\\0' a)z")
        return " ".join((await ws.execute(script)).text.split())

    assert asyncio.run(main()) == expected
