"""`mapfile` and `readarray`: read lines into an array."""

from __future__ import annotations

from functools import partial
from typing import Final

from ramet.concurrency.offload import offload_large
from ramet.concurrency.sizes import BATCH, SMALL
from ramet.core.paths import decode, encode
from ramet.core.streams import Reader
from ramet.shell.expand import quote
from ramet.shell.expand.arith.numerals import is_name, is_number
from ramet.shell.expand.errors import BadNumber, BadSubscript, Fatal, ShellError
from ramet.shell.expand.values import Assoc, Indexed
from ramet.shell.interp.builtins.usage import bad_option, options_of
from ramet.shell.interp.run.maybe_async import Result, drive
from ramet.shell.interp.state.shell_state import Builtin, ShellState
from ramet.shell.interp.state.variable_bytes import ENTRY, charge_of
from ramet.shell.interp.state.variables import TRANSFORM

_COUNTS: Final = {
    "n": "line count",
    "O": "array origin",
    "s": "line count",
    "u": "file descriptor specification",
    "c": "callback quantum",
}
"""Options whose values are numbers, and what these are."""


def mapfile(sh: ShellState, argv: list[str]) -> Result:
    letters, operands, wrong = options_of(argv, "t", "dnOsuCc")
    for letter, value in letters:
        if letter in _COUNTS and (not is_number(value) or (letter == "c" and not int(value))):
            return sh.error(f"{argv[0]}: {value}: invalid {_COUNTS[letter]}")
    if wrong is not None:
        return bad_option(sh, argv[0], *wrong)
    name = str(argv[operands]) if operands < len(argv) else "MAPFILE"
    if not name:
        return sh.error(f"{argv[0]}: empty array variable name", 2)
    if not is_name(name):
        return sh.error(f"{argv[0]}: `{name}': not a valid identifier")
    return drive(_mapfile(sh, str(argv[0]), name, dict(letters)))


async def _mapfile(sh: ShellState, command: str, name: str, options: dict[str, str]) -> int:
    strip = "t" in options
    delim = encode(options["d"][:1])[:1] or b"\0" if "d" in options else b"\n"
    source = int(options.get("u", "0"))
    if source not in sh.fds and "u" in options:
        return sh.error(f"{command}: {source}: invalid file descriptor: Bad file descriptor")
    reader = sh.reader(source)
    limit, skip = int(options.get("n", "0")), int(options.get("s", "0"))
    callback, quantum = options.get("C"), int(options.get("c", "5000")) or 5000
    target, _ = sh.variables.follow(name)
    if type(sh.vars.get(target)) is Assoc:
        return sh.error(f"{command}: {name}: not an indexed array")
    try:
        sh.variables.assignable(target)
        if "O" in options:
            array = sh.variables.indexed(target)
        else:
            sh.variables.set_list(target, ())
            array = sh.variables.indexed(target)
        origin = int(options.get("O", "0"))
        if not limit and not callback:
            return await _whole(sh, target, reader, delim, skip, strip, array, origin)
        count = 0
        while not limit or count < limit:
            line = reader.readline_now(delim)
            if line is None:
                line = await reader.readline(delim)
            if not line:
                break
            if skip:
                skip -= 1
                continue
            end = line.find(b"\0")
            if end < 0:
                end = len(line) - 1 if strip and line.endswith(delim) else len(line)
            text = decode(line[:end])
            if callback and (count + 1) % quantum == 0:
                command_line = f"{callback} {origin + count} {quote.single(text)}"
                sh.trace_level += 1
                try:
                    result = await sh.shell.run_text(sh, command_line, keep_line=True, line=max(sh.line, 1))
                finally:
                    sh.trace_level -= 1
                if result > 255:
                    return result
            sh.variables.charge(ENTRY + len(text))
            sh.variables.indexed(target).set(origin + count, sh.variables.transform(target, text))
            count += 1
            if not count % BATCH:
                await sh.budget.yield_turn()
    except OSError:
        return 0  # What cannot be read is at its end, as bash has it.
    except (BadSubscript, Fatal):
        raise
    except BadNumber as error:
        raise BadNumber(f"{command}: {error.message}") from None
    except ShellError as error:
        return sh.error(error.message)
    return 0


async def _whole(
    sh: ShellState, target: str, reader: Reader, delim: bytes, skip: int, strip: bool, array: Indexed, origin: int
) -> int:
    """All lines, many at a time."""
    index, size = origin - skip, 0
    keep = b"" if strip or delim == b"\0" else delim
    transform = sh.variables.transform if sh.variables.attrs.get(target, 0) & TRANSFORM else None
    parts: list[bytes] = []
    while True:
        block = await reader.read(SMALL)
        ended = not block
        size += len(block)
        if size > sh.budget.limits.string_bytes:
            raise sh.budget.exceeded("string_bytes")
        parts.append(block)
        if not ended and delim not in block:
            continue
        lines, last = await offload_large(sh.budget, sum(map(len, parts)), partial(_lines, parts, delim, keep, ended))
        parts = [last]
        if transform is not None:
            lines = [transform(target, line) for line in lines]
        sh.variables.charge(charge_of(lines))
        for line in lines:
            if index >= origin:
                array.set(index, line)
            index += 1
        if ended:
            return 0


def _lines(parts: list[bytes], delim: bytes, keep: bytes, ended: bool) -> tuple[list[str], bytes]:
    """The lines that some blocks make, and what is left of them. A NUL ends what a line has of use."""
    data = b"".join(parts)
    pieces = data.split(delim)
    last = pieces.pop()
    pieces = [piece + keep for piece in pieces] if keep else pieces
    if ended and last:
        pieces.append(last)
    if b"\0" in data and delim != b"\0":
        pieces = [piece.partition(b"\0")[0] for piece in pieces]
    return [decode(piece) for piece in pieces], last


TABLE: Final[dict[str, Builtin]] = {"mapfile": mapfile, "readarray": mapfile}
