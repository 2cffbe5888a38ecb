"""Parse unified, context, normal and ed diffs into hunks; a malformed patch is an error."""

from __future__ import annotations

import re

from ramet.commands.patch.hunks import FilePatch, Hunk, keep_lines
from ramet.commands.patch.job import PatchOptions
from ramet.core.paths import decode

_UNIFIED = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(.*)")
_NORMAL = re.compile(rb"(\d+)(?:,(\d+))?([acd])(\d+)(?:,(\d+))?\s*$")
ED_COMMAND = re.compile(rb"(\d+)(?:,(\d+))?([acd])\s*$")


class BadPatch(Exception):
    pass


def _name(raw: bytes) -> tuple[str | None, bool]:
    """Parse a header line: file name, and whether its time is the epoch (an absent file)."""
    text = decode(raw.rstrip(b"\r\n"))
    if text.startswith('"'):
        end = text.find('"', 1)
        name, rest = text[1:end], text[end + 1 :]
    else:
        name, _, rest = text.partition("\t")
        if not rest and " " in name:
            found = re.match(r"(\S+)\s+(\w{3} \w{3}|\d{4}-\d\d-\d\d)", name)
            if found:
                rest, name = name[len(found[1]) :], found[1]
    name = name.strip()
    epoch = bool(re.search(r"1970-01-01 0\d:00:00|1969-12-31|Thu Jan +1 0\d:00:00 1970", rest))
    return (None if name == "/dev/null" else name), epoch or name == "/dev/null"


def parse_patch(data: bytes, o: PatchOptions) -> list[FilePatch]:
    lines = keep_lines(data)
    out: list[FilePatch] = []
    current: FilePatch | None = None
    i = 0
    while i < len(lines):
        line = lines[i]
        if line.startswith(b"diff --git "):
            current, i = _git_header(lines, i)
            out.append(current)
            continue
        if line.startswith(b"Index: "):
            current = FilePatch(index_name=decode(line[7:].strip()))
            out.append(current)
            i += 1
            continue
        if line.startswith(b"--- ") and i + 1 < len(lines) and lines[i + 1].startswith(b"+++ "):
            if current is None or current.hunks or current.old_name is not None:
                current = FilePatch()
                out.append(current)
            current.old_name, current.old_stamp_epoch = _name(line[4:])
            current.new_name, current.new_stamp_epoch = _name(lines[i + 1][4:])
            current.headers = (line[4:].rstrip(b"\n"), lines[i + 1][4:].rstrip(b"\n"))
            i += 2
            while i < len(lines) and (found := _UNIFIED.match(lines[i])):
                hunk, i = _unified_hunk(lines, i, found)
                current.hunks.append(hunk)
            continue
        if (
            line.startswith(b"*** ")
            and i + 2 < len(lines)
            and lines[i + 1].startswith(b"--- ")
            and lines[i + 2].startswith(b"***************")
        ):
            if current is None or current.hunks or current.old_name is not None:
                current = FilePatch()
                out.append(current)
            current.kind = "context"
            current.old_name, current.old_stamp_epoch = _name(line[4:])
            current.new_name, current.new_stamp_epoch = _name(lines[i + 1][4:])
            current.headers = (line[4:].rstrip(b"\n"), lines[i + 1][4:].rstrip(b"\n"))
            i += 2
            while i < len(lines) and lines[i].startswith(b"***************"):
                hunk, i = _context_hunk(lines, i)
                current.hunks.append(hunk)
            continue
        found = _NORMAL.match(line)
        if found is not None and not o.ed and _looks_normal(lines, i, found):
            if current is None or current.hunks:
                current = FilePatch(kind="normal")
                out.append(current)
            current.kind = "normal"
            while i < len(lines) and (found := _NORMAL.match(lines[i])):
                hunk, i = _normal_hunk(lines, i, found)
                current.hunks.append(hunk)
            continue
        if ED_COMMAND.match(line) and (o.ed or not out):
            current = FilePatch(kind="ed", ed_script=lines[i:])
            out.append(current)
            break
        i += 1
    return [p for p in out if p.hunks or p.git or p.kind == "ed"]


def _git_header(lines: list[bytes], i: int) -> tuple[FilePatch, int]:
    patch = FilePatch(git=True)
    found = re.match(rb"diff --git (\S+) (\S+)", lines[i])
    if found is not None:
        patch.old_name, patch.new_name = decode(found[1]), decode(found[2])
    i += 1
    while i < len(lines):
        line = lines[i].rstrip(b"\n")
        if line.startswith(b"new file mode "):
            patch.new_file, patch.mode = True, int(line[14:], 8) & 0o7777
        elif line.startswith(b"deleted file mode "):
            patch.deleted = True
        elif line.startswith(b"new mode "):
            patch.mode = int(line[9:], 8) & 0o7777
        elif line.startswith(b"rename from "):
            patch.rename_from = decode(line[12:])
        elif line.startswith(b"rename to "):
            patch.rename_to = decode(line[10:])
        elif line.startswith(b"copy to "):
            patch.rename_to = decode(line[8:])
        elif not re.match(rb"(old mode|similarity|dissimilarity|index|copy from) ", line):
            break
        i += 1
    if i + 1 < len(lines) and lines[i].startswith(b"--- ") and lines[i + 1].startswith(b"+++ "):
        patch.old_name, _ = _name(lines[i][4:])
        patch.new_name, _ = _name(lines[i + 1][4:])
        i += 2
        while i < len(lines) and (found := _UNIFIED.match(lines[i])):
            hunk, i = _unified_hunk(lines, i, found)
            patch.hunks.append(hunk)
    return patch, i


def _looks_normal(lines: list[bytes], i: int, found: re.Match[bytes]) -> bool:
    mark = b"> " if found[3] == b"a" else b"< "
    return i + 1 < len(lines) and lines[i + 1].startswith(mark)


_NO_NEWLINE = b"\\ No newline"


def _unified_hunk(lines: list[bytes], i: int, found: re.Match[bytes]) -> tuple[Hunk, int]:
    old_left, new_left = int(found[2] or 1), int(found[4] or 1)
    hunk = Hunk(int(found[1]), int(found[3]), [], found[5].strip())
    if found[2] == b"0":
        hunk.start += 1
    if found[4] == b"0":
        hunk.new_start += 1
    i += 1
    while old_left > 0 or new_left > 0:
        if i >= len(lines):
            raise BadPatch("unexpected end of file in patch")
        mark, text = decode(lines[i][:1]), lines[i][1:]
        if lines[i] in (b"\n", b"\r\n"):
            mark, text = " ", lines[i]
        if mark == "\\":
            _strip_newline(hunk)
            i += 1
            continue
        if mark not in " -+\t":
            raise BadPatch(f"malformed patch at line {i + 1}: {decode(lines[i])}".rstrip("\n") + "\n")
        if mark == "\t":
            mark, text = " ", lines[i]
        hunk.lines.append((mark, text))
        old_left -= mark != "+"
        new_left -= mark != "-"
        i += 1
    if i < len(lines) and lines[i].startswith(_NO_NEWLINE):
        _strip_newline(hunk)
        i += 1
    return hunk, i


def _strip_newline(hunk: Hunk) -> None:
    if hunk.lines:
        mark, text = hunk.lines[-1]
        hunk.lines[-1] = (mark, text.removesuffix(b"\n"))


def _context_hunk(lines: list[bytes], i: int) -> tuple[Hunk, int]:
    i += 1
    found = re.match(rb"\*\*\* (\d+)(?:,(\d+))? \*\*\*\*", lines[i]) if i < len(lines) else None
    if found is None:
        raise BadPatch(f"malformed patch at line {i + 1}: {decode(lines[i])}")
    start = int(found[1])
    i += 1
    old, i = _context_part(lines, i, b"--- ")
    found = re.match(rb"--- (\d+)(?:,(\d+))? ----", lines[i]) if i < len(lines) else None
    if found is None:
        raise BadPatch(f"malformed patch at line {i + 1}")
    new_start = int(found[1])
    i += 1
    new, i = _context_part(lines, i, b"***")
    if not old:
        old = [(m, t) for m, t in new if m == " "]
    if not new:
        new = [(m, t) for m, t in old if m == " "]
    merged: list[tuple[str, bytes]] = []
    a = b = 0
    while a < len(old) or b < len(new):
        while a < len(old) and old[a][0] != " ":
            merged.append(("-", old[a][1]))
            a += 1
        while b < len(new) and new[b][0] != " ":
            merged.append(("+", new[b][1]))
            b += 1
        if a < len(old) and b < len(new):
            merged.append(old[a])
            a += 1
            b += 1
        elif a < len(old) or b < len(new):
            merged.append(old[a] if a < len(old) else new[b])
            a += 1
            b += 1
    hunk = Hunk(start, new_start, merged)
    if not hunk.old():
        hunk.start += 1
    return hunk, i


def _context_part(lines: list[bytes], i: int, stop: bytes) -> tuple[list[tuple[str, bytes]], int]:
    out: list[tuple[str, bytes]] = []
    while (
        i < len(lines) and not lines[i].startswith(stop) and lines[i][:2] in (b"  ", b"- ", b"+ ", b"! ", b"\\ ")
    ) or (i < len(lines) and lines[i] == b"\n"):
        line = lines[i]
        if line.startswith(_NO_NEWLINE):
            if out:
                out[-1] = (out[-1][0], out[-1][1].removesuffix(b"\n"))
        else:
            mark = decode(line[:1]) if line != b"\n" else " "
            out.append((mark, line[2:] if line != b"\n" else line))
        i += 1
    return out, i


def _normal_hunk(lines: list[bytes], i: int, found: re.Match[bytes]) -> tuple[Hunk, int]:
    kind = found[3]
    start, new_start = int(found[1]), int(found[4])
    if kind == b"a":
        start += 1
    if kind == b"d":
        new_start += 1
    hunk = Hunk(start, new_start, [])
    i += 1
    while i < len(lines) and lines[i][:2] in (b"< ", b"> ", b"--", b"\\ "):
        line = lines[i]
        if line.startswith(b"---"):
            i += 1
            continue
        if line.startswith(_NO_NEWLINE):
            _strip_newline(hunk)
        else:
            hunk.lines.append(("-" if line[:1] == b"<" else "+", line[2:]))
        i += 1
    return hunk, i
