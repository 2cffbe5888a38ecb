"""Very long texts that are put together a part at a time are what they would be at once."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
from tests.support.loop_holds import held_by, too_long

from ramet import Workspace
from ramet.concurrency.sizes import LARGE
from ramet.core.limits import Budget
from ramet.core.paths import decode
from ramet.shell.expand.long_text import Parts, Span, decoded, grown, put_together


@pytest.mark.parametrize("shift", range(5))
def test_characters_that_lie_across_blocks(shift: int) -> None:
    data = b"a" * shift + "\u20ac\U0001f600".encode() * (LARGE // 4) + b"\xff\xe2\x82"
    assert decoded(data) == decode(data)
    assert decoded(bytearray(data)) == decode(data)


def test_short_bytes() -> None:
    assert decoded(b"\xe2\x82\xac\xff") == "\u20ac\udcff"


def test_parts_and_spans() -> None:
    text = "0123456789" * 300_000
    host = SimpleNamespace(budget=Budget())
    assert asyncio.run(put_together(host, Parts(("x", text, "", "y")))) == f"x{text}y"
    assert asyncio.run(put_together(host, Span(text, 3, 2_999_990))) == text[3:2_999_990]
    assert asyncio.run(put_together(host, Span(text, 5, 5))) == ""
    assert grown(["a", "\u20ac", "\U0001f600", ""]) == "a\u20ac\U0001f600"


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("y=$s$s; echo ${#y} ${y:0:2}${y: -2}", "36000000 1aaz"),
        ("y=x$s; y+=z$s; echo ${#y} ${y:0:3} ${y:18000000:3}", "36000002 x1a zz1"),
        ("y=${s:1}; echo ${#y} ${y:0:1} ${y: -1}; y=${s:5:-5}; echo ${#y}", "17999999 a z 17999990"),
        ("y=${s:0:17999999}; echo ${#y}; y=${s: -2:9}; echo $y; y=${s:99999999}; echo ${#y}", "17999999 az 0"),
        ("y=${s:3: -99999999}; echo $?", ""),
        ("y=${s#1}; echo ${#y} ${y:0:1}; y=${s%z}; echo ${#y} ${y: -1}", "17999999 a 17999999 a"),
        ("y=${s##*a}; echo $y; y=${s%%a*}; echo $y; y=${s##*}; echo [$y]; y=${s%?}; echo ${#y}", "z 1 [] 17999999"),
        ("p=1a; y=${s#$p}; echo ${#y}; y=${s#[0-9]}; echo ${#y}; y=${s#no}; echo ${#y}", "17999998 17999999 18000000"),
        ('declare -u y; y=$s$s; echo ${#y} ${y:0:2}', "36000000 1A"),
        ("y=$s$(echo x); echo ${#y} ${y: -2}", "18000001 zx"),
        ("wc -c <<< $s$s; wc -c <<X\n$s$s\nX", "36000001 36000001"),
        ("read y <<< $s; echo ${#y} ${y:0:2}; printf -v y '%s-' $s $s; echo ${#y} ${y: -2}", "18000000 1a 36000002 z-"),
        ("y=${s^^}; echo ${#y} ${y:0:2}; y=${s@Q}; echo ${#y} ${y:0:3}", "18000000 1A 18000002 '1a"),
        ("y=${s//a/[&]}; echo ${#y} ${y:0:4}; y=${s/a/b}; echo ${#y} ${y:0:3}", "53999996 1[a] 18000000 1ba"),
        ("y=(0 $s [5]=$s); echo ${#y[1]} ${!y[@]}; declare -p y | wc -c", "18000000 0 1 5 36000037"),
        ("readonly y; y=$s$s; echo no", ""),
    ],
)  # fmt: skip
def test_long_texts_in_a_script(script: str, expected: str) -> None:
    async def main() -> str:
        ws = Workspace()
        await ws.execute("s=1$(head -c 17999998 /dev/zero | tr '\\0' a)z")
        return " ".join((await ws.execute(script)).text.split())

    assert asyncio.run(main()) == expected


@pytest.mark.parametrize(
    "script",
    [
        "y=$s$s",
        "y=x$s",
        "y=${s:1}",
        "y=${s#a}",
        "y=$s$(:)",
        "read y < /tmp/s",
        "cat <<X\n$s.\nX",
        "printf -v y %s $s",
        "y=${s^^}",
    ],
)
def test_a_very_long_text_holds_up_nobody(script: str) -> None:
    before = "head -c 80000000 /dev/zero | tr '\\0' a > /tmp/s; s=$(cat /tmp/s)"
    assert not too_long(lambda: held_by(f"{{ {script}\n}} > /dev/null", before), 0.04)  # the mark is 20 ms
