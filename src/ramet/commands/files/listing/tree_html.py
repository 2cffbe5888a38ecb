"""HTML pages of tree, and the notes of .info files."""

from __future__ import annotations

from html import escape
from urllib.parse import quote

from ramet.core.paths import encode
from ramet.text.glob import fnmatch

Notes = list[tuple[list[str], list[str]]]
"""Patterns of names, and the lines that are said about those that match."""


def notes_of(text: str) -> Notes:
    """Return an .info file: patterns, one in a line, and behind them the lines of a note, which begin with a tab."""
    found: Notes = []
    for line in text.split("\n"):
        if line.startswith("\t"):
            if found:
                found[-1][1].append(line[1:])
        elif line.strip() and not line.startswith("#"):
            if not found or found[-1][1]:
                found.append(([], []))
            found[-1][0].append(line.strip())
    return found


def note_on(notes: Notes, name: str) -> list[str]:
    return next((lines for patterns, lines in notes if any(fnmatch(name, p) for p in patterns)), [])


def bracketed(lines: list[str], *, utf: bool) -> list[str]:
    """Return a note with a brace of as many lines before it."""
    if len(lines) == 1:
        return [f" {{ {lines[0]}"]
    top, middle, bottom = ("⎧", "⎨", "⎩") if utf else ("/", "|", "\\")
    last = len(lines) - 1
    return [f" {top if at == 0 else bottom if at == last else middle} {line}" for at, line in enumerate(lines)]


def intro(title: str) -> str:
    shown = escape(title, quote=False)
    return (
        '<!DOCTYPE html>\n<html>\n<head>\n <meta charset="utf-8">\n'
        f" <title>{shown}</title>\n"
        " <style>\n"
        "  body { font-family: monospace; }\n"
        "  a { text-decoration: none; }\n"
        "  a:hover { text-decoration: underline; }\n"
        "  .DIR { color: blue; }\n"
        "  .EXEC { color: green; }\n"
        "  .FIFO, .SOCK, .CHAR { color: purple; }\n"
        " </style>\n</head>\n<body>\n"
        f"\t<h1>{shown}</h1><p>\n"
    )


OUTRO = "</body>\n</html>\n"


def anchor(name: str, address: str | None, kind: str = "") -> str:
    """Return a name that leads somewhere, unless links are not wanted."""
    shown = escape(name, quote=False)
    classed = f' class="{kind}"' if kind else ""
    leads = f' href="{address}"' if address is not None else ""
    return f"<a{classed}{leads}>{shown}</a>"


def address(base: str, path: str, *, directory: bool) -> str:
    """Return where a name below the base is found; the characters of paths stay as they are."""
    tail = quote(encode(path), safe="/-_.~!*'();:@&=+$,").replace("&", "&amp;")
    joined = base.rstrip("/") + ("/" + tail if tail else "")
    return joined + "/" if directory else joined
