"""strings: print printable sequences, also across block boundaries."""

from __future__ import annotations

import errno
import re
from dataclasses import dataclass

from ramet.commands.framework.command import Command, UsageError, flag, quote, value
from ramet.commands.framework.stdin_errors import StdinError
from ramet.core.errors import reason
from ramet.core.paths import encode
from ramet.core.proc import Proc


@dataclass(frozen=True, slots=True)
class StringsOptions:
    all: bool = flag("-a", "--all", help="scan the entire file, not just the data section (always)")
    data: bool = flag("-d", "--data", help="only scan the data sections in the file")
    file_name: bool = flag("-f", "--print-file-name", help="print the name of the file before each string")
    length: str = value(
        "-n",
        "--bytes",
        metavar="MIN-LEN",
        default="4",
        digits=True,
        help="locate and print any sequence of at least MIN-LEN characters",
    )
    radix: str | None = value(
        "-t", "--radix", metavar="RADIX", help="print the location of the string in base 8, 10 or 16 (o, d, x)"
    )
    octal: bool = flag("-o", help="an alias for --radix=o")
    whitespace: bool = flag("-w", "--include-all-whitespace", help="include all whitespace as valid string characters")
    encoding: str = value(
        "-e",
        "--encoding",
        metavar="ENCODING",
        default="s",
        help="select character size and endianness: s, S, b, l, B, L",
    )
    separator: str | None = value(
        "-s", "--output-separator", metavar="STRING", help="string used to separate strings in output"
    )


async def strings(proc: Proc, o: StringsOptions, operands: list[str]) -> int:
    if not o.length.isdecimal():
        raise UsageError(f"invalid integer argument {o.length}", hint=False)
    length = int(o.length)
    if not length:
        raise UsageError("invalid minimum string length 0", hint=False)
    radix = "o" if o.octal else o.radix
    if o.encoding not in _WIDTHS:
        raise UsageError(f"invalid argument {quote(o.encoding)}")
    if radix is not None and radix not in ("o", "d", "x"):
        raise UsageError("bad usage")
    status = 0
    for word in operands or ["-"]:
        name = encode(f"{'{standard input}' if word == '-' else word}: ") if o.file_name else b""
        finder = _Finder(o, length, radix, name)
        try:
            reader = await proc.open(word)
            try:
                while block := await reader.read():
                    await proc.emit(finder.feed(block))
                    await proc.budget.yield_turn()
            finally:
                await proc.close(reader)
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise
            proc.complain(
                f"{quote(word)}: No such file"
                if error.errno == errno.ENOENT
                else f"Warning: {quote(word)} is a directory"
                if error.errno == errno.EISDIR
                else f"{word}: {reason(error)}"
            )
            status = 1
            continue
        await proc.emit(finder.finish())
    return status


_WIDTHS = {"s": 1, "S": 1, "b": 2, "l": 2, "B": 4, "L": 4}


class _Finder:
    """The sequences of one input."""

    def __init__(self, o: StringsOptions, length: int, radix: str | None, name: bytes) -> None:
        chars = rb"[\t -~]" if not o.whitespace else rb"[\t-\r -~]"
        if o.encoding == "S":
            chars = chars[:-1] + rb"\x80-\xff]"
        self._width = _WIDTHS[o.encoding]
        zeros = b"\0" * (self._width - 1)
        unit = zeros + chars if o.encoding in "bB" else chars + zeros
        self._pattern = re.compile(b"(?:" + unit + b"){%d,}" % length)
        self._more = re.compile(b"(?:" + unit + b")*")
        self._hold = (length + 1) * self._width
        """More bytes than a sequence that is still too short can have."""
        self._end = b"\n" if o.separator is None else encode(o.separator)
        self._name = name
        self._place = None if radix is None else b"%7" + radix.encode() + b" "
        self._bare = self._width == 1 and self._place is None and not name
        """Whether only the sequences are printed."""
        self._rest = b""
        self._at = 0
        """Offset of the rest in the input."""
        self._open = False
        """Whether the last printed sequence may continue."""

    def feed(self, block: bytes) -> bytes:
        data = self._rest + block
        out: list[bytes] = []
        pos = 0
        if self._open:
            found = self._more.match(data)
            assert found is not None
            pos = found.end()
            out.append(self._text(found[0]))
            if len(data) - pos >= self._width:
                out.append(self._end)
                self._open = False
        if not self._open and self._bare and (texts := self._pattern.findall(data, pos)):
            # The last match is maximal, so no later match contains it.
            pos = data.rindex(texts[-1]) + len(texts[-1])
            self._open = pos == len(data)
            out.append(self._end.join(texts) + (b"" if self._open else self._end))
        elif not self._open:
            for found in self._pattern.finditer(data, pos):
                pos = found.end()
                place = b"" if self._place is None else self._place % (self._at + found.start())
                out += (self._name, place, self._text(found[0]))
                if len(data) - pos < self._width:
                    self._open = True
                else:
                    out.append(self._end)
        keep = pos if self._open else max(pos, len(data) - self._hold)
        self._rest, self._at = data[keep:], self._at + keep
        return b"".join(out)

    def finish(self) -> bytes:
        return self._end if self._open else b""

    def _text(self, data: bytes) -> bytes:
        return data if self._width == 1 else data.replace(b"\0", b"")


COMMANDS = [
    Command(
        "strings",
        strings,
        StringsOptions,
        summary="Print the sequences of printable characters in files.",
        ignored=("-T= --target=", "-U= --unicode="),
        version_letters="Vv",
        help_letters="h",
        stdin_error=StdinError("", status=0),
    ),
]
