"""The format of the spec tables: scripts and what bash 5.2 does with them, as plain text that is good to read and to
edit.

    === a title
    echo one script of any length
    --- 0
    one script of any length
    --- stderr
    what bash wrote there
    --- reason why our shell differs on purpose

The line ``--- STATUS`` begins the expected stdout; ``no-newline`` after the status says that the output does not end
in one, ``escaped`` that it is
written with backslash escapes, byte by byte. The sections stderr and reason are optional. A row without ``---
STATUS`` has not been recorded yet.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

CASES = Path(__file__).parent / "cases"
_MARK = re.compile(r"--- (\d+)((?: no-newline| escaped)*)")


@dataclass(frozen=True)
class Row:
    """One case of a table."""

    title: str
    script: str
    status: int | None = None
    stdout: bytes = b""
    stderr: bytes = b""
    reason: str = ""


def load(path: Path) -> list[Row]:
    """The rows of a table."""
    rows = []
    for block in re.split(r"(?m)^=== ", path.read_bytes().decode("utf-8"))[1:]:
        title, _, rest = block.partition("\n")
        rows.append(_row(title, rest))
    return rows


def _row(title: str, rest: str) -> Row:
    row = Row(title, "")
    section, flags, lines = "script", "", list[str]()

    def close() -> None:
        nonlocal row
        text = "".join(lines)
        if section == "script":
            row = replace(row, script=text)
        elif section == "stdout":
            row = replace(row, stdout=_decode(text, flags))
        else:
            row = replace(row, stderr=_decode(text, flags))
        lines.clear()

    for line in rest.splitlines(keepends=True):
        if m := _MARK.fullmatch(line.rstrip("\n")):
            close()
            section, flags = "stdout", m[2]
            row = replace(row, status=int(m[1]))
        elif line.startswith("--- stderr"):
            close()
            section, flags = "stderr", line[10:]
        elif line.startswith("--- reason "):
            close()
            section = "script"
            return replace(row, reason=line[11:].strip(), script=row.script)
        else:
            lines.append(line)
    close()
    return row


def _decode(text: str, flags: str) -> bytes:
    if "escaped" in flags:
        return text.rstrip("\n").encode("ascii").decode("unicode_escape").encode("latin-1")
    if "no-newline" in flags:
        text = text[:-1]
    return text.encode("utf-8")


def _encode(data: bytes) -> tuple[str, str]:
    """The flags and the text of an output."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    risky = any(line.startswith(("--- ", "=== ")) for line in text.split("\n"))
    if risky or any((c < " " and c not in "\t\n") or c == "\x7f" for c in text):
        return " escaped", data.decode("latin-1").encode("unicode_escape").decode("ascii") + "\n"
    if text and not text.endswith("\n"):
        return " no-newline", text + "\n"
    return "", text


def dump(rows: list[Row]) -> str:
    """The text of a table."""
    out = []
    for row in rows:
        out.append(f"=== {row.title}\n{row.script}")
        if row.status is not None:
            flags, text = _encode(row.stdout)
            out.append(f"--- {row.status}{flags}\n{text}")
            if row.stderr:
                flags, text = _encode(row.stderr)
                out.append(f"--- stderr{flags}\n{text}")
        if row.reason:
            out.append(f"--- reason {row.reason}\n")
    return "".join(out)
