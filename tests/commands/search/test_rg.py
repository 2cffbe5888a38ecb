"""rg: what it searches, what it leaves out, and how it prints."""

from __future__ import annotations

import asyncio
import json

import pytest
from tests.support.shell_runner import run_script

FILES = {
    "a.py": b"import os\nfoo = 1\nFoo = 2\n",
    "b.txt": b"foo bar\nbaz foo foo\n",
    "src/c.py": b"def foo():\n    return 1\n",
    ".hidden/d.py": b"foo hidden\n",
    "build/e.py": b"foo built\n",
    "bin.dat": b"foo\0bar\n",
    ".gitignore": b"build/\n*.log\n!keep.log\n",
    "x.log": b"foo log\n",
    "keep.log": b"foo kept\n",
    ".git/config": b"foo\n",
}
CASES = [
    ("rg foo", b"a.py:foo = 1\nb.txt:foo bar\nb.txt:baz foo foo\nkeep.log:foo kept\nsrc/c.py:def foo():\n", 0),
    ("rg -n foo a.py", b"2:foo = 1\n", 0),
    ("rg -n --color never -- foo a.py", b"2:foo = 1\n", 0),
    ("rg --color=never foo a.py", b"foo = 1\n", 0),
    ("rg -i foo a.py", b"foo = 1\nFoo = 2\n", 0),
    ("rg -S Foo a.py", b"Foo = 2\n", 0),
    ("rg -c foo b.txt", b"2\n", 0),
    ("rg --count-matches foo b.txt", b"3\n", 0),
    ("rg -l foo", b"a.py\nb.txt\nkeep.log\nsrc/c.py\n", 0),
    ("rg -l foo -t py", b"a.py\nsrc/c.py\n", 0),
    ("rg -l foo -T py", b"b.txt\nkeep.log\n", 0),
    ("rg -l foo -g '*.txt'", b"b.txt\n", 0),
    ("rg -l foo -g '!src/**' -t py", b"a.py\n", 0),
    ("rg -l foo --hidden -t py", b".hidden/d.py\na.py\nsrc/c.py\n", 0),
    ("rg -l foo --no-ignore", b"a.py\nb.txt\nbuild/e.py\nkeep.log\nsrc/c.py\nx.log\n", 0),
    ("rg -o 'fo+' b.txt", b"foo\nfoo\nfoo\n", 0),
    ("rg -r 'X' foo b.txt", b"X bar\nbaz X X\n", 0),
    ("rg -r '$1-$1' 'f(o)o' b.txt -o", b"o-o\no-o\no-o\n", 0),
    ("rg --vimgrep foo b.txt", b"b.txt:1:1:foo bar\nb.txt:2:5:baz foo foo\nb.txt:2:9:baz foo foo\n", 0),
    ("rg -w foo src", b"src/c.py:def foo():\n", 0),
    ("rg -F 'foo()'", b"src/c.py:def foo():\n", 0),
    ("rg -v foo a.py", b"import os\nFoo = 2\n", 0),
    ("rg -A1 import a.py", b"import os\nfoo = 1\n", 0),
    ("rg --files -t py", b"a.py\nsrc/c.py\n", 0),
    ("rg nosuch", b"", 1),
    ("rg -q foo", b"", 0),
    ("cat b.txt | rg baz", b"baz foo foo\n", 0),
    ("rg -P '(?<=foo )bar' b.txt", b"foo bar\n", 0),
    ("rg --files-without-match foo -t txt", b"", 1),
    ("rg 'a('", b"", 2),
    ("rg -t nosuch x", b"", 2),
    ("rg foo nosuch.txt", b"", 2),
    ("rg -U 'foo = 1\\nFoo' a.py", b"foo = 1\nFoo = 2\n", 0),
    ("rg -Un 'foo = 1\\nFoo' a.py", b"2:foo = 1\n3:Foo = 2\n", 0),
    ("rg -Uc 'o+.*\\n' b.txt", b"2\n", 0),
    ("rg -Uo 'foo bar\\nbaz' b.txt", b"foo bar\nbaz\n", 0),
    ("rg -Uon 'bar\\nbaz foo' b.txt", b"1:bar\n2:baz foo\n", 0),
    ("rg -U --multiline-dotall 'import.*Foo' a.py", b"import os\nfoo = 1\nFoo = 2\n", 0),
    ("rg -UA1 'import os\\n' a.py", b"import os\nfoo = 1\n", 0),
    ("rg -UnB1 'Foo = 2\\n' a.py", b"2-foo = 1\n3:Foo = 2\n", 0),
    ("rg -Uv 'os\\nfoo' a.py", b"Foo = 2\n", 0),
    ("rg -Ul 'foo\\(\\):\\n +return' --sort path", b"src/c.py\n", 0),
    ("rg -U '\\):\\n\\s+return' --sort path", b"src/c.py:def foo():\nsrc/c.py:    return 1\n", 0),
    ("rg -Uor '$1/$2' '(\\w+) = 1\\n(\\w+)' a.py", b"foo/Foo\n", 0),
    ("rg 'foo\\nbar' b.txt", b"", 2),
    ("rg --sort path -c foo", b"a.py:1\nb.txt:2\nkeep.log:1\nsrc/c.py:1\n", 0),
    ("rg --sortr path -l foo", b"src/c.py\nkeep.log\nb.txt\na.py\n", 0),
    ("rg -b foo b.txt", b"0:foo bar\n8:baz foo foo\n", 0),
    ("rg -bo foo b.txt", b"0:foo\n12:foo\n16:foo\n", 0),
    ("rg --passthru baz b.txt", b"foo bar\nbaz foo foo\n", 0),
    ("rg -M 8 foo b.txt", b"foo bar\n[Omitted long matching line]\n", 0),
    ("rg -M 8 --max-columns-preview foo b.txt", b"foo bar\nbaz foo  [... omitted end of long line]\n", 0),
    ("rg --include-zero -c os --sort path", b"a.py:1\nb.txt:0\nkeep.log:0\nsrc/c.py:0\n", 0),
    ("rg --type-add 'l:*.log' -tl foo", b"keep.log:foo kept\n", 0),
    ("rg -tall -l foo --sort path", b"a.py\nb.txt\nkeep.log\nsrc/c.py\n", 0),
    ("rg --glob-case-insensitive -l -g '*.PY' foo --sort path", b"a.py\nsrc/c.py\n", 0),
    ("rg --max-filesize 20 -l foo --sort path", b"b.txt\nkeep.log\n", 0),
    (
        "rg -uuu -l foo --sort path",
        b".git/config\n.hidden/d.py\na.py\nb.txt\nbin.dat\nbuild/e.py\nkeep.log\nsrc/c.py\nx.log\n",
        0,
    ),
    ("rg foo bin.dat", b'binary file matches (found "\\0" byte around offset 3)\n', 0),
    ("rg --color always -n bar b.txt", b"\x1b[0m\x1b[32m1\x1b[0m:foo \x1b[0m\x1b[1m\x1b[31mbar\x1b[0m\n", 0),
    ("rg -or '$n' '(?P<n>ba.)' b.txt", b"bar\nbaz\n", 0),
    ("rg -or '${n}x$0$$' '(?P<n>ba.)' b.txt", b"barxbar$\nbazxbaz$\n", 0),
    ("rg --crlf 'bar$' b.txt", b"foo bar\n", 0),
    ("rg -C0 foo b.txt", b"foo bar\nbaz foo foo\n", 0),
    ("rg -q --files", b"", 0),
    ("printf 'build/\\na.py\\n' > ig; rg --ignore-file ig -l foo --sort path", b"b.txt\nkeep.log\nsrc/c.py\n", 0),
    ("gzip -k b.txt; rg -z baz b.txt.gz", b"baz foo foo\n", 0),
    (
        "rg --stats foo b.txt | tail -7 | head -5",
        b"2 matched lines\n1 files contained matches\n1 files searched\n20 bytes printed\n20 bytes searched\n",
        0,
    ),
]


@pytest.mark.parametrize(("script", "out", "status"), CASES)
def test_output_and_status(script: str, out: bytes, status: int) -> None:
    found, err, code = asyncio.run(run_script(script, FILES))
    assert (found, code) == (out, status), err


def test_json_has_a_message_for_each_matching_line_and_a_summary() -> None:
    out, _, status = asyncio.run(run_script("printf 'one\\ntwo two\\n' > f; printf 'x\\n' > g; rg --json two"))
    messages = [json.loads(line) for line in out.splitlines()]
    assert [message["type"] for message in messages] == ["begin", "match", "end", "summary"]
    assert messages[1]["data"]["line_number"] == 2
    assert [(m["start"], m["end"]) for m in messages[1]["data"]["submatches"]] == [(0, 3), (4, 7)]
    assert messages[3]["data"]["stats"]["searches"] == 2
    assert status == 0
