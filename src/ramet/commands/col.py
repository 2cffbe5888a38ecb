"""col and uuidgen: texts for printers made plain, and names that nobody else has."""

from __future__ import annotations

import hashlib
import secrets
import uuid
from dataclasses import dataclass

from ramet.commands.declare import Command, UsageError, choose, flag, value
from ramet.core.paths import encode
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
    fine: bool = flag("-f", "--fine", help="permit forward half line feeds")
    passing: bool = flag("-p", "--pass", help="pass unknown control sequences")
    lines: str = value("-l", "--lines", metavar="NUMBER", default="128", help="accepted: all lines are kept")


async def col(proc: Proc, o: ColOptions, operands: list[str]) -> int:
    if operands:
        raise UsageError("bad usage")
    data = (await proc.stdin.read_all()).decode("utf-8", "surrogateescape")
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
            await proc.budget.breathe()
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
            await proc.budget.breathe()
    await proc.emit("".join(out).encode("utf-8", "surrogateescape"))
    return 0


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


COMMANDS = [
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
