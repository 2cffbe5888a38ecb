"""What an awk program puts together a line at a time is lengthened where it lies, not copied line by line."""

from __future__ import annotations

import asyncio
import tracemalloc

import pytest
from tests.support.shell_runner import run_script

LENGTH, LINES = 2000, 1000
FILE = (b"x" * (LENGTH - 1) + b"\n") * LINES
PROGRAMS = [
    '{ s = s $0 "," } END { print length(s) }',
    '{ s = s "," $1 } END { print length(s) }',
    '{ out = out sep $0; sep = "," } END { print length(out) + 1 }',
    '{ a[1] = a[1] $0 " " } END { print length(a[1]) }',
    '{ s = (s ? s "," : "") $1 } END { print length(s) + 1 }',
    'BEGIN { while ((getline line) > 0) s = s line "\\n"; print length(s) }',
    'function f(x) { return x "," } { s = s f($1) } END { print length(s) }',
    'function all(   i, s) { for (i = 0; i < NR; i++) s = s $0 ","; return s } END { print length(all()) }',
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_text_that_grows_is_never_there_twice(program: str) -> None:
    # Copying has the old text and the new one at the same time; what grows where it lies is there once.
    asyncio.run(run_script(f"awk '{program}' < f", {"f": FILE}))
    tracemalloc.start()
    try:
        out, _, _ = asyncio.run(run_script(f"awk '{program}' < f", {"f": FILE}))
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert out == b"%d\n" % len(FILE)
    assert most < 1.8 * len(FILE)
