"""Pathname expansion over a small tree: (pattern, options, names)."""

from __future__ import annotations

import asyncio

import pytest

from ramet.backends.local.ram import RAMResource
from ramet.core import ops
from ramet.core.limits import Budget
from ramet.core.paths import ROOT, parse
from ramet.shell.expand import glob as globbing
from ramet.shell.expand.errors import LineError
from ramet.shell.expand.word.fields import GlobWord
from ramet.vfs.vfs import VFS

FILES = ("a.c", "b.c", "B.h", ".hidden", "d/x.c", "d/e/y.c", "d/.z", "sp ace")
TABLE = [
    ("*", "", ["B.h", "a.c", "b.c", "d", "sp ace"]),
    ("*.c", "", ["a.c", "b.c"]),
    ("[ab].c", "", ["a.c", "b.c"]),
    ("[!a]*.c", "", ["b.c"]),
    ("*/", "", ["d/"]),
    ("*/*.c", "", ["d/x.c"]),
    ("d//x*", "", ["d//x.c"]),
    ("./*.c", "", ["./a.c", "./b.c"]),
    ("/*.c", "", ["/a.c", "/b.c"]),
    (".*", "globskipdots", [".hidden"]),
    ("*", "dotglob", [".hidden", "B.h", "a.c", "b.c", "d", "sp ace"]),
    ("b*", "nocaseglob", ["B.h", "b.c"]),
    ("**/*.c", "globstar", ["a.c", "b.c", "d/e/y.c", "d/x.c"]),
    ("d/**", "globstar", ["d/", "d/e", "d/e/y.c", "d/x.c"]),
    ("**/", "globstar", ["d/", "d/e/"]),
    ("@(a|b).c", "extglob", ["a.c", "b.c"]),
    ("!(*.c|d)", "extglob", ["B.h", "sp ace"]),
    ("no*", "", ["no*"]),
    ("no*", "nullglob", []),
    (r"\**", "", [r"\**"]),
]


async def expand(pattern: str, options: str, ignore: str | None = None) -> list[str]:
    fs = VFS({ROOT: RAMResource()})
    for name in FILES:
        path = parse("/" + name)
        await ops.make_dirs(fs, path.parent)
        await ops.write_bytes(fs, path, b"")
    return await globbing.expand(fs, ROOT, [GlobWord(pattern, pattern)], set(options.split()), ignore, Budget())


@pytest.mark.parametrize(("pattern", "options", "names"), TABLE)
def test_names(pattern: str, options: str, names: list[str]) -> None:
    assert asyncio.run(expand(pattern, options)) == names


def test_failglob_is_an_error() -> None:
    with pytest.raises(LineError, match="no match"):
        asyncio.run(expand("no*", "failglob"))


def test_globignore_hides_names_and_shows_dots() -> None:
    assert asyncio.run(expand("*", "", ignore="*.c:d")) == [".hidden", "B.h", "sp ace"]
