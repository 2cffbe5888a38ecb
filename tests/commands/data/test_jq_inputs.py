"""What jq makes of its inputs: sequences that are cut short, streams that break off, and the lines that errors name."""

from __future__ import annotations

import asyncio

import pytest
from tests.support.shell_runner import run_script

_ROWS = [
    ("a program is not needed", "echo '{\"a\":5}' | jq -c", b'{"a":5}\n', b"", 0),
    ("nothing at all is no input", "jq < /dev/null", b"", b"", 0),
    ("null without a program", "jq -n", b"null\n", b"", 0),
    (
        "a text that is cut short is passed over",
        "printf '\\x1e{\"a\":1}\\n\\x1e[1,\\x1e2\\n' | jq --seq -c .a?",
        b"\x1e1\n",
        b"jq: ignoring parse error: Truncated value at line 2, column 5\n",
        0,
    ),
    (
        "a number may have been longer",
        "printf '\\x1e1\\x1e\"abc\\x1etrue\\n' | jq --seq -c .",
        b"\x1etrue\n",
        b"jq: ignoring parse error: Potentially truncated top-level numeric value at line 1, column 3\n"
        b"jq: ignoring parse error: Truncated value at line 1, column 8\n",
        0,
    ),
    (
        "what comes before the first separator is no text",
        'printf \'1\\0362 3\\n[0,1\\036[4,5]true"ab"{"c":4\\036{}{"d":5,"e":6"\\036false\\n\' | jq -cs --seq .',
        b'\x1e[2,3,[4,5],true,"ab",{},false]\n',
        b"jq: ignoring parse error: Truncated value at line 2, column 5\n"
        b"jq: ignoring parse error: Truncated value at line 2, column 25\n"
        b"jq: ignoring parse error: Truncated value at line 2, column 41\n",
        0,
    ),
    (
        "there is no separator",
        "printf '\"foo' | jq -c --seq .",
        b"",
        b"jq: ignoring parse error: Unfinished abandoned text at EOF at line 1, column 4\n",
        0,
    ),
    (
        "a text that goes wrong is left at the next separator",
        "printf '\\0361 x 2\\0363\\n' | jq -c --seq .",
        b"\x1e1\n\x1e3\n",
        b"jq: ignoring parse error: Invalid numeric literal at line 1, column 5 (need RS to resync)\n",
        0,
    ),
    (
        "events come before the error",
        "printf '[1,{\"a\":2' | jq -c --stream .",
        b"[[0],1]\n",
        b"jq: parse error: Unfinished JSON term at EOF at line 1, column 9\n",
        5,
    ),
    (
        "the error is an input",
        'printf \'[1,[],{"a":{},"b":[2]},[3\' | jq -c --stream-errors .',
        b'[[0],1]\n[[1],[]]\n[[2,"a"],{}]\n[[2,"b",0],2]\n[[2,"b",0]]\n[[2,"b"]]\n'
        b'["Unfinished JSON term at EOF at line 1, column 25",[3,0]]\n',
        b"",
        0,
    ),
    (
        "errors name the line of the input",
        'printf \'1\\n"a"\\n\\n3\\n"b"\' | jq .+1',
        b"2\n4\n",
        b'jq: error (at <stdin>:2): string ("a") and number (1) cannot be added\n'
        b'jq: error (at <stdin>:4): string ("b") and number (1) cannot be added\n',
        5,
    ),
    (
        "values over several lines",
        'printf \'{"a":\\n1}\\n"a" "b"\\n\\n[]\' | jq -c "[input_line_number]"',
        b"[2]\n[3]\n[3]\n[4]\n",
        b"",
        0,
    ),
    (
        "each file counts its own lines",
        "printf '1 2\\n3' > f; printf '4\\n\"5\"' > g; jq '[input_line_number,input_filename]' -c f g; "
        "jq -n '[inputs|[input_line_number,input_filename]]' -c f g",
        b'[1,"f"]\n[1,"f"]\n[1,"g"]\n[1,"g"]\n[[1,"f"],[1,"f"],[1,"g"],[1,"g"]]\n',
        b"",
        0,
    ),
    (
        "a program in a thread names the line, too",
        "printf '1\\n\"a\"\\n' | jq 'def f: if . == 0 then 0 else (. - 1 | f) end; f'",
        b"0\n",
        b'jq: error (at <stdin>:2): string ("a") and number (1) cannot be subtracted\n',
        5,
    ),
    (
        "a variable's file that is not there",
        "jq -n --slurpfile s nosuch .",
        b"",
        b"jq: Bad JSON in --slurpfile s nosuch: Could not open nosuch: No such file or directory\n",
        2,
    ),
]


@pytest.mark.parametrize(("script", "out", "err", "status"), [row[1:] for row in _ROWS], ids=[row[0] for row in _ROWS])
def test_inputs(script: str, out: bytes, err: bytes, status: int) -> None:
    assert asyncio.run(asyncio.wait_for(run_script(script), 120)) == (out, err, status)
