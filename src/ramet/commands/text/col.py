"""col, colrm and ul: texts for printers made plain; uuidgen and mcookie: names that nobody else has."""

from __future__ import annotations

import hashlib
import re
import secrets
import uuid
from dataclasses import dataclass
from functools import partial

from ramet.commands.framework.command import (
    Command,
    NoOptions,
    UsageError,
    choose,
    flag,
    ordered,
    quote,
    several,
    value,
)
from ramet.commands.framework.inputs import LONG, Inputs, char_width, slurp
from ramet.concurrency import bigbytes as longbytes
from ramet.concurrency import bigtext as growth
from ramet.concurrency.offload import checkpoint, offload_large
from ramet.core.paths import decode, encode
from ramet.core.proc import Proc

# ------------------------------------------------------------------------------------------------------------ col


@dataclass(frozen=True, slots=True)
class ColOptions:
    no_backspaces: bool = flag("-b", "--no-backspaces", help="do not output backspaces: the last character counts")
    tabs: bool = choose(
        {"-h --tabs": True, "-x --spaces": False},
        default=True,
        help="convert runs of spaces to tabs, or tabs to spaces",
    )
    order: tuple[tuple[str, object], ...] = ordered()
    fine: bool = flag("-f", "--fine", help="permit forward half line feeds")
    passing: bool = flag("-p", "--pass", help="pass unknown control sequences")
    lines: str = value("-l", "--lines", metavar="NUMBER", default="128", help="accepted: all lines are kept")


async def col(proc: Proc, o: ColOptions, operands: list[str]) -> int:
    if operands:
        raise UsageError("bad usage")
    if len({given for name, given in o.order if name == "tabs"}) > 1:
        raise UsageError("mutually exclusive arguments: --tabs --spaces", hint=False)
    raw = await proc.stdin.read_all()
    data = await offload_large(proc.budget, len(raw), partial(growth.decoded, raw))
    if not data:
        return 0
    if "\v" not in data and "\x1b" not in data:
        await _by_line(proc, o, data)
        return 0
    rows: dict[int, dict[int, list[str]]] = {}
    row = column = 0
    chars = iter(data)
    for place, char in enumerate(chars):
        if char == "\n":
            row, column = row + 2, 0
        elif char == "\r":
            column = 0
        elif char == "\b":
            column = max(0, column - 1)
        elif char == "\t":
            column = (column // 8 + 1) * 8
        elif char == " ":
            column += 1
        elif char == "\v":
            row -= 2
        elif char == "\x1b":
            row += {"7": -2, "8": -1, "9": 1}.get(next(chars, ""), 0)
        elif char.isprintable() or "\ud800" <= char <= "\udfff" or o.passing:
            rows.setdefault(row, {}).setdefault(column, []).append(char)
            column += 1
        if not place & 0xFFF:
            await proc.budget.yield_turn()
    end = row if not data.endswith("\n") else row - 2
    out: list[str] = []
    for number in range(min([*rows, 0]), max([*rows, end]) + 1):
        if number in rows or not number % 2:
            if number % 2 and not o.fine:
                # Half lines without a place of their own go below.
                rows.setdefault(number + 1, {}).update(rows.pop(number))
                continue
            out.append(_line(rows.pop(number, {}), o) + "\n")
        if len(out) > 127:
            await proc.emit("".join(out).encode("utf-8", "surrogateescape"))
            out.clear()
            await proc.budget.yield_turn()
    await proc.emit("".join(out).encode("utf-8", "surrogateescape"))
    return 0


async def _by_line(proc: Proc, o: ColOptions, data: str) -> None:
    """Where nothing moves up or down each line is for itself."""
    at, end = 0, len(data)
    while at < end:
        stop = data.find("\n", min(at + _PART, end)) + 1 or end
        await proc.emit(await offload_large(proc.budget, stop - at, partial(_made, data, at, stop, o)))
        at = stop
        await proc.budget.yield_turn()


def _made(data: str, at: int, stop: int, o: ColOptions) -> bytes:
    """What some lines become."""
    lines = data[at : stop - (data[stop - 1] == "\n")].split("\n")
    if stop - at <= LONG:
        return encode("".join([_straight(line, o) + "\n" for line in lines]))
    return b"".join([part for line in lines for part in (encode(_straight(line, o)), b"\n")])


_PART = 16 * 1024
"""Characters whose lines are worked on at a time."""
_GAP = re.compile("  +")


def _straight(line: str, o: ColOptions) -> str:
    """A line; one in which every character has a place of its own needs only its blanks changed."""
    wide = line.expandtabs(8) if "\t" in line else line
    if not _is_printable(wide):
        return _line(_cells(line, o), o)
    wide = wide.rstrip(" ")
    if not o.tabs or "  " not in wide:
        return wide
    out: list[str] = []
    last = 0
    for found in _GAP.finditer(wide):
        begin, end = found.span()
        stop = end // 8 * 8
        # One blank before a stop stays one, and so does what is behind the last stop.
        tabs = stop // 8 - begin // 8 if stop > begin else 0
        out += (wide[last:begin], "\t" * tabs, " " * (end - stop if tabs else end - begin))
        last = end
    return "".join(out) + wide[last:]


def _is_printable(text: str) -> bool:
    return all(map(str.isprintable, longbytes.pieces(text)))


def _cells(line: str, o: ColOptions) -> dict[int, list[str]]:
    cells: dict[int, list[str]] = {}
    column = 0
    for place, char in enumerate(line):
        if not place & 0xFFFF:
            checkpoint()
        if char == "\r":
            column = 0
        elif char == "\b":
            column = max(0, column - 1)
        elif char == "\t":
            column = (column // 8 + 1) * 8
        elif char == " ":
            column += 1
        elif char.isprintable() or "\ud800" <= char <= "\udfff" or o.passing:
            cells.setdefault(column, []).append(char)
            column += 1
    return cells


def _line(cells: dict[int, list[str]], o: ColOptions) -> str:
    text, at = "", 0
    for column in sorted(cells):
        if o.tabs:
            while at < column and (at // 8 + 1) * 8 <= column and column - at > 1:
                text, at = text + "\t", (at // 8 + 1) * 8
        text += " " * (column - at)
        text += cells[column][-1] if o.no_backspaces else "\b".join(cells[column])
        at = column + 1
    return text


# -------------------------------------------------------------------------------------------------------- uuidgen

_NAMESPACES = {
    "@dns": uuid.NAMESPACE_DNS,
    "@url": uuid.NAMESPACE_URL,
    "@oid": uuid.NAMESPACE_OID,
    "@x500": uuid.NAMESPACE_X500,
}


@dataclass(frozen=True, slots=True)
class UuidgenOptions:
    kind: str = choose(
        {"-r --random": "random", "-t --time": "time", "-m --md5": "md5", "-s --sha1": "sha1"},
        default="random",
        help="how it is made",
    )
    namespace: str | None = value("-n", "--namespace", metavar="NS", help="@dns, @url, @oid, @x500 or a UUID")
    name: str | None = value("-N", "--name", metavar="NAME", help="what a UUID is made from with -m or -s")
    hexadecimal: bool = flag("-x", "--hex", help="the name is hexadecimal")


async def uuidgen(proc: Proc, o: UuidgenOptions, operands: list[str]) -> int:
    if operands:
        raise UsageError("bad usage")
    if o.kind in ("md5", "sha1"):
        if o.namespace is None or o.name is None:
            raise UsageError("--namespace and --name are required for this kind")
        try:
            space = _NAMESPACES.get(o.namespace) or uuid.UUID(o.namespace)
            name = bytes.fromhex(o.name) if o.hexadecimal else encode(o.name)
        except ValueError:
            raise UsageError(f"invalid namespace or name: {o.namespace!r} {o.name!r}", hint=False) from None
        digest = hashlib.new(o.kind, space.bytes + name, usedforsecurity=False).digest()
        made = uuid.UUID(bytes=digest[:16], version=3 if o.kind == "md5" else 5)
    elif o.kind == "time":
        # The node is random: a real one would tell about the machine.
        ticks = int(proc.now() * 10_000_000) + 0x01B21DD213814000
        low, middle, high = ticks & 0xFFFFFFFF, ticks >> 32 & 0xFFFF, ticks >> 48 & 0x0FFF
        node = secrets.randbits(48) | 1 << 40
        fields = (low, middle, high, secrets.randbits(6), secrets.randbits(8), node)
        made = uuid.UUID(fields=fields, version=1)
    else:
        made = uuid.uuid4()
    await proc.emit(f"{made}\n".encode())
    return 0


@dataclass(frozen=True, slots=True)
class McookieOptions:
    seeds: tuple[str, ...] = several("-f", "--file", metavar="FILE", help="use FILE as a source of randomness, too")
    most: str | None = value("-m", "--max-size", metavar="NUM", help="accepted: files are read to their end")
    verbose: bool = flag("-v", "--verbose", help="explain what is being done")


async def mcookie(proc: Proc, o: McookieOptions, operands: list[str]) -> int:
    digest = hashlib.blake2b(secrets.token_bytes(32), digest_size=16)
    for word in o.seeds:
        data = await slurp(proc, word)
        digest.update(data)
        if o.verbose:
            proc.complain(f"Got {len(data)} bytes from {word}")
    if o.verbose:
        proc.complain("Got 32 bytes from random source")
    await proc.emit(f"{digest.hexdigest()}\n".encode())
    return 0


# ---------------------------------------------------------------------------------------------------------- colrm


async def colrm(proc: Proc, o: NoOptions, operands: list[str]) -> int:
    if len(operands) > 2:
        operands = operands[:2]
    numbers = []
    for place, word in zip(("first", "second"), operands, strict=False):
        if not word.isdigit():
            raise UsageError(f"{place} argument: {quote(word)}", hint=False)
        numbers.append(int(word))
    first, last = (*numbers, 0, 0)[:2]
    inputs = Inputs(proc, [])
    async for block in inputs.joined_lines():
        await proc.emit(await offload_large(proc.budget, len(block), partial(_all_without, block, first, last)))
        await proc.budget.yield_turn()
    return 0


def _all_without(block: bytes, first: int, last: int) -> bytes:
    lines = [_without(line, first, last) if line else line for line in decode(block).split("\n")]
    return encode("\n".join(lines)) if len(block) <= LONG else b"\n".join(list(map(growth.encoded, lines)))


def _without(line: str, first: int, last: int) -> str:
    """A line without the columns from `first` to `last`, or to its end where that is 0."""
    if not first:
        return line
    if len(line) <= LONG and line.isascii() and line.isprintable() and (not last or last >= first):
        return line[: first - 1] + (line[last:] if last else "")
    out: list[str] = []
    column = 0
    for place, char in enumerate(line):
        before, column = column, _next_column(char, column)
        if not place & 0xFFFF:
            checkpoint()
        if column < first:
            out.append(char)
            continue
        out.append(" " * (first - before - 1))
        rest = place + 1 if last else len(line)
        while rest < len(line) and column < last:
            column = _next_column(line[rest], column)
            rest += 1
            if not rest & 0xFFFF:
                checkpoint()
        if rest < len(line):
            out += [" " * (column - last), line[rest:]]
        break
    return "".join(out) if len(line) <= LONG else "".join(("".join(out[:-1]), *out[-1:]))


def _next_column(char: str, column: int) -> int:
    if char == "\t":
        return (column + 8) & ~7
    return max(0, column - 1) if char == "\b" else column + char_width(char)


# ------------------------------------------------------------------------------------------------------------- ul


@dataclass(frozen=True, slots=True)
class UlOptions:
    terminal: str | None = value("-t", "-T", "--terminal", metavar="TERM", help="instead of the environment's")
    indicated: bool = flag("-i", "--indicated", help="underlining is shown by a line of its own")


_STARTS = {"_": "\x1b[4m", "!": "\x1b[1m"}
_ENDS = {"_": "\x1b[24m", "!": "\x1b(B\x1b[m"}


async def ul(proc: Proc, o: UlOptions, operands: list[str]) -> int:
    terminal = proc.env.get("TERM", "") if o.terminal is None else o.terminal
    coloured = any(name in terminal for name in ("xterm", "screen", "tmux", "linux", "ansi", "rxvt", "vt1", "vt2"))
    inputs = Inputs(proc, operands, form="cannot open {}: {}", name=str)
    last = b"\n"
    async for block in inputs.joined_lines():
        await proc.emit(
            await offload_large(proc.budget, len(block), partial(_underlined, block, o.indicated, coloured))
        )
        await proc.budget.yield_turn()
        last = block[-1:]
    if last != b"\n":
        await proc.emit(b"\n")
    return inputs.status


def _underlined(block: bytes, indicated: bool, coloured: bool) -> bytes:
    if b"\b" not in block:
        return block
    lines = decode(block).split("\n")
    for place, line in enumerate(lines):
        if "\b" not in line:
            continue
        cells = _struck(line)
        plain = "".join(char for char, _ in cells)
        if indicated:
            below = "".join(mark or " " for _, mark in cells).rstrip()
            lines[place] = f"{plain}\n{below}" if below else plain
        elif coloured:
            lines[place] = _lit(cells)
        else:
            lines[place] = plain
    return encode("\n".join(lines)) if len(block) <= LONG else b"\n".join(list(map(growth.encoded, lines)))


def _struck(line: str) -> list[tuple[str, str]]:
    """Characters with `_` where they are underlined, and `!` where they were struck twice."""
    cells: list[tuple[str, str]] = []
    column = 0
    for place, char in enumerate(line):
        if not place & 0xFFFF:
            checkpoint()
        if char == "\b":
            column = max(0, column - 1)
            continue
        if column < len(cells) and cells[column][0] != " ":
            before, mark = cells[column]
            if char == "_" or before == "_":
                cells[column] = (before if char == "_" else char, "_" if char != before else "!")
            else:
                cells[column] = (char, "!" if char == before else mark)
        elif column < len(cells):
            cells[column] = (char, "")
        else:
            cells.append((char, ""))
        column += 1
    return cells


def _lit(cells: list[tuple[str, str]]) -> str:
    out: list[str] = []
    mode = ""
    for char, mark in cells:
        if mark != mode:
            out += [_ENDS.get(mode, ""), _STARTS.get(mark, "")]
            mode = mark
        out.append(char)
    return "".join([*out, _ENDS.get(mode, "")])


COMMANDS = [
    Command(
        "colrm",
        colrm,
        summary="Remove columns from the lines of standard input.",
        usage="[FIRST [LAST]]",
        examples=[("colrm 10 20 < file", "without the columns 10 to 20")],
    ),
    Command("ul", ul, UlOptions, summary="Do underlining.", usage="[OPTION]... [FILE]..."),
    Command("mcookie", mcookie, McookieOptions, summary="Generate magic cookies.", usage="[OPTION]..."),
    Command(
        "col",
        col,
        ColOptions,
        summary="Filter reverse line feeds and backspaces from text.",
        usage="[OPTION]...",
        examples=[("man ls | col -b", "a page as plain text")],
    ),
    Command("uuidgen", uuidgen, UuidgenOptions, summary="Create a new UUID.", usage="[OPTION]..."),
]
