"""diff3: three files compared; the common format, ed scripts and merged output."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from ramet.commands.diff.changes import changes
from ramet.commands.framework.command import Command, UsageError, choose, flag, ordered, quote, several
from ramet.commands.framework.inputs import LONG
from ramet.concurrency.offload import interrupt_check, offload
from ramet.core.errors import reason
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.core.streams import line_lists


@dataclass(frozen=True, slots=True)
class Diff3Options:
    merge: bool = flag("-m", "--merge", help="output actual merged file, according to -A if no other options are given")
    kind: str = choose(
        {
            "-A --show-all": "A",
            "-e --ed": "e",
            "-E --show-overlap": "E",
            "-3 --easy-only": "3",
            "-x --overlap-only": "x",
            "-X": "X",
        },
        default="",
        help={
            "-A --show-all": "output all changes, bracketing conflicts",
            "-e --ed": "output ed script incorporating changes from OLDFILE to YOURFILE into MYFILE",
            "-E --show-overlap": "like -e, but bracket conflicts",
            "-3 --easy-only": "like -e, but incorporate only nonoverlapping changes",
            "-x --overlap-only": "like -e, but incorporate only overlapping changes",
            "-X": "like -x",
        },
    )
    order: tuple[tuple[str, object], ...] = ordered()
    write: bool = flag("-i", help="append 'w' and 'q' commands to ed scripts")
    tabs: bool = flag("-T", "--initial-tab", help="make tabs line up by prepending a tab")
    strip_cr: bool = flag("--strip-trailing-cr", help="strip trailing carriage return on input")
    labels: tuple[str, ...] = several("-L", "--label", metavar="LABEL", help="use LABEL instead of file name")
    text: bool = flag("-a", "--text", help="treat all files as text")


@dataclass(frozen=True, slots=True)
class Block:
    """A region where the three files are not all the same: half-open line ranges in mine, older and yours."""

    mine: tuple[int, int]
    old: tuple[int, int]
    yours: tuple[int, int]


_MANY = 600
"""Lines of which comparing takes more than a moment."""


def blocks(
    mine: list[bytes], old: list[bytes], yours: list[bytes], check: Callable[[], object] | None = None
) -> list[Block]:
    """Regions changed in either file, overlapping ones joined; `check` is called now and then."""

    def looked() -> None:
        if check is not None:
            check()

    left = [(c.a, c.b, c.c, c.d) for c in changes(old, mine, check=looked)]
    right = [(c.a, c.b, c.c, c.d) for c in changes(old, yours, check=looked)]
    out: list[Block] = []
    i = j = 0
    shift_left = shift_right = 0
    while i < len(left) or j < len(right):
        starts = [x[k][0] for x, k in ((left, i), (right, j)) if k < len(x)]
        low = min(starts)
        high = low
        first_i, first_j = i, j
        grown = True
        while grown:
            grown = False
            while (
                i < len(left) and left[i][0] <= high and (left[i][0] < high or left[i][0] == low or left[i][0] == high)
            ):
                high = max(high, left[i][1])
                i += 1
                grown = True
            while (
                j < len(right)
                and right[j][0] <= high
                and (right[j][0] < high or right[j][0] == low or right[j][0] == high)
            ):
                high = max(high, right[j][1])
                j += 1
                grown = True
        begin_mine, begin_yours = low + shift_left, low + shift_right
        for a, b, c, d in left[first_i:i]:
            shift_left += (d - c) - (b - a)
        for a, b, c, d in right[first_j:j]:
            shift_right += (d - c) - (b - a)
        out.append(Block((begin_mine, high + shift_left), (low, high), (begin_yours, high + shift_right)))
    return out


async def diff3(proc: Proc, o: Diff3Options, operands: list[str]) -> int:
    if len(operands) != 3:
        raise UsageError(
            "missing operand after " + quote(operands[-1] if operands else "diff3")
            if len(operands) < 3
            else f"extra operand {quote(operands[3])}"
        )
    kinds = [given for name, given in o.order if name == "kind"]
    if len(set(kinds)) > 1:
        raise UsageError("incompatible options")
    texts: list[list[bytes]] = []
    for word in operands:
        try:
            texts.append(await _read(proc, word, o.strip_cr))
        except OSError as error:
            proc.complain(f"{word}: {reason(error)}")
            return 2
    mine, old, yours = texts
    check = interrupt_check(proc.budget)
    if len(mine) + len(old) + len(yours) > _MANY or any(len(line) > LONG for text in texts for line in text):
        # A comparison may take long, so it has a thread of its own.
        found = await offload(proc.budget, partial(blocks, mine, old, yours, check))
    else:
        found = blocks(mine, old, yours, check)
    if o.kind and not o.merge:
        return await _script(proc, o, operands, mine, old, yours, found)
    if o.merge:
        return await _merge(proc, o, operands, mine, old, yours, found)
    out: list[bytes] = []
    indent = b"\t" if o.tabs else b"  "
    unended = b"\n\\ No newline at end of file\n"
    for block in found:
        parts = [mine[slice(*block.mine)], old[slice(*block.old)], yours[slice(*block.yours)]]
        odd = 1 if parts[1] == parts[2] else 2 if parts[0] == parts[2] else 3 if parts[0] == parts[1] else 0
        out.append(f"===={odd or ''}\n".encode())
        spans = (block.mine, block.old, block.yours)
        # The two files that agree are shown side by side and once: with the later of them.
        quiet = {1: 2, 2: 1, 3: 1}.get(odd)
        for number in (1, 3, 2) if odd == 2 else (1, 2, 3):
            out.append(f"{number}:{_span(*spans[number - 1])}\n".encode())
            if number != quiet:
                out.extend(piece for line in parts[number - 1] for piece in (indent, line))
                if parts[number - 1] and not out[-1].endswith(b"\n"):
                    out.append(unended)
    await proc.emit(b"".join(out))
    return 0


async def _read(proc: Proc, word: str, strip_cr: bool) -> list[bytes]:
    """The lines of a file with their ends."""
    found: list[bytes] = []
    reader = await proc.open(word)
    try:
        async for some in line_lists(reader):
            if strip_cr:
                some = [line[:-2] + b"\n" if line.endswith(b"\r\n") else line for line in some]
            found += some
            await proc.budget.yield_turn()
    finally:
        await proc.close(reader)
    return found


def _span(start: int, end: int) -> str:
    if end == start:
        return f"{start}a"
    return f"{start + 1}c" if end - start == 1 else f"{start + 1},{end}c"


async def _merge(
    proc: Proc,
    o: Diff3Options,
    names: list[str],
    mine: list[bytes],
    old: list[bytes],
    yours: list[bytes],
    found: list[Block],
) -> int:
    labels = [encode(o.labels[i] if i < len(o.labels) else name) + b"\n" for i, name in enumerate(names)]
    out: list[bytes] = []
    at = 0
    conflict = False
    for block in found:
        out += mine[at : block.mine[0]]
        at = block.mine[1]
        a, b, c = mine[slice(*block.mine)], old[slice(*block.old)], yours[slice(*block.yours)]
        if a == c and b != c and o.kind in ("", "A"):
            conflict = True
            out += [b"<<<<<<< " + labels[1], *b, b"=======\n", *c, b">>>>>>> " + labels[2]]
        elif a == c or b == c:
            out += a
        elif a == b:
            out += a if o.kind in ("x", "X") else c
        elif o.kind == "3":
            out += a
        elif o.kind in ("e", "x", "X"):
            out += c
        else:
            conflict = True
            before = [] if o.kind == "E" else [b"||||||| " + labels[1], *b]
            out += [b"<<<<<<< " + labels[0], *a, *before, b"=======\n", *c, b">>>>>>> " + labels[2]]
    out += mine[at:]
    await proc.emit(b"".join(out))
    return 1 if conflict else 0


async def _script(
    proc: Proc,
    o: Diff3Options,
    names: list[str],
    mine: list[bytes],
    old: list[bytes],
    yours: list[bytes],
    found: list[Block],
) -> int:
    """Commands for ed, from the end to the beginning, so that line numbers hold."""
    labels = [encode(o.labels[i] if i < len(o.labels) else name) for i, name in enumerate(names)]
    out: list[bytes] = []
    conflict = False
    for block in reversed(found):
        a, b, c = mine[slice(*block.mine)], old[slice(*block.old)], yours[slice(*block.yours)]
        start, stop = block.mine
        if a == c and b != c and o.kind == "A":
            conflict = True
            out += _inserted(b"%da" % stop, [b">>>>>>> " + labels[2]], stop + 1)
            out += _inserted(b"%da" % start, [b"<<<<<<< " + labels[1], *_bare(b), b"======="], start + 1)
        if a == c or b == c:
            continue
        b, c = _bare(b), _bare(c)
        overlaps = _bare(a) != b
        if overlaps and o.kind in ("A", "E"):
            conflict = True
            before = [] if o.kind == "E" else [b"||||||| " + labels[1], *b]
            out += _inserted(b"%da" % stop, [*before, b"=======", *c, b">>>>>>> " + labels[2]], stop + 1)
            out += _inserted(b"%da" % start, [b"<<<<<<< " + labels[0]], start + 1)
        elif o.kind != "3" if overlaps else o.kind not in ("x", "X"):
            span = b"%d" % (start + 1) if stop - start == 1 else b"%d,%d" % (start + 1, stop)
            if not c:
                out.append(span + b"d")
            elif start == stop:
                out += _inserted(b"%da" % start, c, start + 1)
            else:
                out += _inserted(span + b"c", c, start + 1)
    if o.write:
        out += [b"w", b"q"]
    await proc.emit(b"".join([piece for line in out for piece in (line, b"\n")]))
    return 1 if conflict else 0


def _bare(lines: list[bytes]) -> list[bytes]:
    return [line.removesuffix(b"\n") for line in lines]


def _inserted(command: bytes, lines: list[bytes], first: int) -> list[bytes]:
    """A command with text; a period at the start of a line is doubled, and taken away again afterwards."""
    out = [command, *(b"." + line if line.startswith(b".") else line for line in lines), b"."]
    if any(line.startswith(b".") for line in lines):
        span = b"%d" % first if len(lines) == 1 else b"%d,%d" % (first, first + len(lines) - 1)
        out.append(span + b"s/^\\.//")
    return out


COMMANDS = [
    Command(
        "diff3",
        diff3,
        Diff3Options,
        summary="Compare three files line by line.",
        usage="[OPTION]... MYFILE OLDFILE YOURFILE",
        bad_usage=2,
        refused={"--diff-program=": "there is one way to compare"},
    ),
]
