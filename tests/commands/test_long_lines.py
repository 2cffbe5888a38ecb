"""A line of megabytes gives what a short one gives: the same scripts over lines that differ in nothing but length."""

from __future__ import annotations

import asyncio

import pytest
from tests.commands.test_streaming import call, make

from ramet.core.streams import BytesReader

SCALE = 40_000
LONG = b"<abcdefgh ij  klmnop,qrs\ttuvwxyz>"
"""What stands for the long part of a line in the short text."""
TEXT = b"first line\n\n\nsome words " + LONG + b" end\r\nlast but one\nlast but one\n" + LONG


def long(data: bytes) -> bytes:
    return data.replace(LONG, b"<" + LONG[1:-1] * SCALE + b">")


EXPECTED: dict[tuple[str, ...], bytes] = {
    ("cat", "-n"): b"     1\tfirst line\n     2\t\n     3\t\n     4\tsome words L end\r\n     5\tlast but one\n"
    b"     6\tlast but one\n     7\tL",
    ("cat", "-nE"): b"     1\tfirst line$\n     2\t$\n     3\t$\n     4\tsome words L end^M$\n     5\tlast but one$\n"
    b"     6\tlast but one$\n     7\tL",
    ("cat", "-sb"): b"     1\tfirst line\n\n     2\tsome words L end\r\n     3\tlast but one\n"
    b"     4\tlast but one\n     5\tL",
    ("cat", "-s"): b"first line\n\nsome words L end\r\nlast but one\nlast but one\nL",
    ("nl",): b"     1\tfirst line\n       \n       \n     2\tsome words L end\r\n     3\tlast but one\n"
    b"     4\tlast but one\n     5\tL\n",
    ("head", "-n", "-1"): b"first line\n\n\nsome words L end\r\nlast but one\nlast but one\n",
    ("head", "-n", "-3"): b"first line\n\n\nsome words L end\r\n",
    ("head", "-n", "-4"): b"first line\n\n\n",
    ("head", "-n", "-0"): b"first line\n\n\nsome words L end\r\nlast but one\nlast but one\nL",
    ("tail", "-n", "1"): b"L",
    ("tail", "-n", "4"): b"some words L end\r\nlast but one\nlast but one\nL",
    ("tail", "-n", "50"): b"first line\n\n\nsome words L end\r\nlast but one\nlast but one\nL",
    ("sort",): b"\n\nL\nfirst line\nlast but one\nlast but one\nsome words L end\r\n",
    ("sort", "-u"): b"\nL\nfirst line\nlast but one\nsome words L end\r\n",
    ("uniq", "-c"): b"      1 first line\n      2 \n      1 some words L end\r\n      2 last but one\n      1 L\n",
    ("uniq", "-D"): b"\n\nlast but one\nlast but one\n",
    ("uniq", "-f1"): b"first line\n\nsome words L end\r\nlast but one\nL\n",
    ("cut", "-c", "1-2"): b"fi\n\n\nso\nla\nla\n<a\n",
    ("paste", "-s"): b"first line\t\t\tsome words L end\r\tlast but one\tlast but one\tL\n",
    ("paste", "-sd", "12"): b"first line121some words L end\r2last but one1last but one2L\n",
    ("paste",): b"first line\n\n\nsome words L end\r\nlast but one\nlast but one\nL\n",
    ("paste", "-", "-"): b"first line\t\n\tsome words L end\r\nlast but one\tlast but one\nL\t\n",
    ("sed", "s/words/W/;s/e/E/g"): b"first linE\n\n\nsomE W {E} End\r\nlast but onE\nlast but onE\n{E}",
    ("sed", "-n", "$p;/words/{h;G;s/^/> /p}"): b"> some words L end\r\nsome words L end\r\nL",
    ("sed", "y/xyz/123/;N;P;D"): b"first line\n\n\nsome words L end\r\nlast but one\nlast but one\nL".replace(
        b"L", b"{3}"
    ),
    ("sed", "-E", "s/([a-z]+) but/\\1:/;s/end/&&/"): b"first line\n\n\nsome words L endend\r\nlast: one\nlast: one\nL",
    ("awk", "1"): b"first line\n\n\nsome words L end\r\nlast but one\nlast but one\nL\n",
    ("awk", "/words/ { $1 = $1; print $1, $NF } /but/ { n++ } END { print n, NR }"): b"some end\r\n2 7\n",
    (
        "awk",
        "-v",
        "RS=",
        '{ print NR ": " $0 }',
    ): b"1: first line\n2: some words L end\r\nlast but one\nlast but one\nL\n",
    ("awk", '{ n = gsub(/q/, "Q") } n { print substr($0, 1, 5) }'): b"some \n<abcd\n",
}


@pytest.mark.parametrize("size", [5, 4096, 1 << 24])
@pytest.mark.parametrize("argv", list(EXPECTED), ids=" ".join)
def test_a_long_line_is_a_line(argv: tuple[str, ...], size: int) -> None:
    data = long(TEXT) if size > 5 else TEXT
    blocks = [data[at : at + size] for at in range(0, len(data), size)]

    async def act() -> tuple[int, bytes, bytes]:
        return await call(await make({}), list(argv), BytesReader(*blocks))

    status, out, errors = asyncio.run(act())
    shown = long(LONG) if size > 5 else LONG
    wanted = EXPECTED[argv].replace(b"L", shown)
    wanted = wanted.replace(b"{E}", shown.replace(b"e", b"E")).replace(
        b"{3}", shown.translate(bytes.maketrans(b"xyz", b"123"))
    )
    assert (status, errors) == (0, b"")
    assert out == wanted
