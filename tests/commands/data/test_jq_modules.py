"""Modules of jq: where imports look, what they bring, and what `modulemeta` says of them."""

from __future__ import annotations

import asyncio

import pytest
from tests.support.shell_runner import run_script

_FILES = {
    "m/a.jq": b'module {"version":1.7}; import "b" as b; import "d" as $d {search:"./sub"}; include "c";'
    b" def f: b::g + 1; def h(x;y): x; def data: $d::d;",
    "m/b.jq": b"def g: 41;",
    "m/c.jq": b"def cc: 3;",
    "m/sub/d.json": b'{"k":1}',
    "m/sub/q.jq": b"def q: 9;",
    "z/z.jq": b"def zz: 5;",
}
_ROWS = [
    ("-L m 'import \"a\" as a; a::f, a::data'", b'42\n[{"k":1}]\n', 0),
    (
        "-L m '\"a\" | modulemeta'",
        b'{"version":1.7,"deps":[{"as":"b","is_data":false,"relpath":"b"},'
        b'{"search":"./sub","as":"d","is_data":true,"relpath":"d"},{"is_data":false,"relpath":"c"}],'
        b'"defs":["f/0","h/2","data/0"]}\n',
        0,
    ),
    ("-L m '\"b\" | modulemeta'", b'{"deps":[],"defs":["g/0"]}\n', 0),
    ("-L m '\"nosuch\" | modulemeta'", b"", 5),
    ("-L m '1 | try modulemeta catch .'", b'"modulemeta input module name must be a string"\n', 0),
    ('-L m \'import "q" as q {search:"./sub"}; q::q\'', b"", 3),
    ('-L m \'import "q" as q {search:["x","./m/sub"]}; q::q\'', b"9\n", 0),
    ("-L m 'import \"sub/q\" as q; q::q'", b"9\n", 0),
    ("'import \"./m/b\" as b; b::g'", b"41\n", 0),
    ("'import \"z\" as z; z::zz'", b"5\n", 0),
    ("-L m 'include \"a\"; f'", b"42\n", 0),
    ("-L m 'include \"a\"; cc'", b"", 3),
    ("-L m 'import \"b\" as b; g'", b"", 3),
    ('-L m \'import "b" as b; import "c" as b; b::g, b::cc\'', b"41\n3\n", 0),
    ("get_search_list", b'["~/.jq","$ORIGIN/../lib/jq","$ORIGIN/../lib"]\n', 0),
]


@pytest.mark.parametrize(("words", "out", "status"), _ROWS)
def test_modules(words: str, out: bytes, status: int) -> None:
    got, _, ended = asyncio.run(asyncio.wait_for(run_script(f"jq -nc {words}", _FILES), 120))
    assert (got, ended) == (out, status)
