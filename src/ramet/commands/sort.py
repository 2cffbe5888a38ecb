"""sort: keys are computed once per line, lines sort as latin-1 text (byte order at C speed), big inputs spill to runs.

Collation is by bytes, as in the C and C.UTF-8 locales.
"""

from __future__ import annotations

import hashlib
import heapq
import re
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from operator import eq
from typing import IO, Any

from ramet.commands.declare import Command, UsageError, choose, flag, mixed, optional, quote, several, shown, value
from ramet.commands.inputs import slurp
from ramet.core.errors import reason
from ramet.core.paths import decode, encode
from ramet.core.proc import Proc
from ramet.core.streams import line_blocks


@dataclass(frozen=True, slots=True)
class SortOptions:
    blanks: bool = flag("-b", "--ignore-leading-blanks", help="ignore leading blanks")
    dictionary: bool = flag("-d", "--dictionary-order", help="consider only blanks and alphanumeric characters")
    fold: bool = flag("-f", "--ignore-case", help="fold lower case to upper case characters")
    general: bool = flag("-g", "--general-numeric-sort", help="compare according to general numerical value")
    printing: bool = flag("-i", "--ignore-nonprinting", help="consider only printable characters")
    month: bool = flag("-M", "--month-sort", help="compare (unknown) < 'JAN' < ... < 'DEC'")
    human: bool = flag("-h", "--human-numeric-sort", help="compare human readable numbers (e.g., 2K 1G)")
    numeric: bool = flag("-n", "--numeric-sort", help="compare according to string numerical value")
    random: bool = flag("-R", "--random-sort", help="shuffle, but group identical keys")
    random_source: str | None = value("--random-source", metavar="FILE", help="get random bytes from FILE")
    reverse: bool = flag("-r", "--reverse", help="reverse the result of comparisons")
    word: str | None = value(
        "--sort",
        metavar="WORD",
        choices=("general-numeric", "human-numeric", "month", "numeric", "random", "version"),
        help="sort according to WORD",
    )
    version: bool = flag("-V", "--version-sort", help="natural sort of (version) numbers within text")
    check: str = mixed(
        choose({"-c": "diagnose", "-C": "quiet"}, help="check for sorted input; do not sort"),
        optional(
            "--check",
            metavar="WHEN",
            const="diagnose",
            choices=("diagnose-first", "quiet", "silent"),
            help="check for sorted input",
        ),
        default="",
    )
    files0: str | None = value(
        "--files0-from", metavar="F", help="read input from the files specified by NUL-terminated names in file F"
    )
    keys: tuple[str, ...] = several(
        "-k", "--key", metavar="KEYDEF", help="sort via a key; KEYDEF gives location and type"
    )
    merge: bool = flag("-m", "--merge", help="merge already sorted files; do not sort")
    output: str | None = value("-o", "--output", metavar="FILE", help="write result to FILE instead of standard output")
    stable: bool = flag("-s", "--stable", help="stabilize sort by disabling last-resort comparison")
    separator: str | None = value(
        "-t", "--field-separator", metavar="SEP", help="use SEP instead of non-blank to blank transition"
    )
    unique: bool = flag("-u", "--unique", help="output only the first of an equal run")
    zero: bool = flag("-z", "--zero-terminated", help="line delimiter is NUL, not newline")


_LETTERS = {
    "b": "blanks",
    "d": "dictionary",
    "f": "fold",
    "g": "general",
    "h": "human",
    "i": "printing",
    "M": "month",
    "n": "numeric",
    "R": "random",
    "r": "reverse",
    "V": "version",
}
_WORDS = {"general-numeric": "g", "human-numeric": "h", "month": "M", "numeric": "n", "random": "R", "version": "V"}


@dataclass(frozen=True, slots=True)
class Key:
    """One `-k`: where it begins and ends, and how it compares. Positions are 1-based; 0 means the field's end."""

    first_field: int
    first_char: int
    last_field: int | None
    last_char: int
    ordering: frozenset[str]
    skip_start: bool
    skip_end: bool


Line = str
KeyOf = Callable[[Line], Any]


def parse_key(text: str, defaults: frozenset[str]) -> Key:
    found = re.fullmatch(r"(\d*)(?:\.(\d*))?([A-Za-z]*)(?:,(\d*)(?:\.(\d*))?([A-Za-z]*))?(.*)", text, re.S)
    assert found is not None
    f1, c1, o1, f2, c2, o2, junk = found.groups()
    if not f1:
        raise UsageError(f"invalid number at field start: invalid count at start of {quote(text)}", hint=False)
    if int(f1) == 0:
        raise UsageError(f"field number is zero: invalid field specification {quote(text)}", hint=False)
    if c1 is not None and not c1:
        raise UsageError(
            f"invalid number after '.': invalid count at start of {quote(text[len(f1) + 1 :])}", hint=False
        )
    if c1 is not None and int(c1) == 0:
        raise UsageError(f"character offset is zero: invalid field specification {quote(text)}", hint=False)
    if f2 is not None and not f2:
        raise UsageError(
            f"invalid number after ',': invalid count at start of {quote(text.partition(',')[2])}", hint=False
        )
    if f2 is not None and int(f2) == 0:
        raise UsageError(f"field number is zero: invalid field specification {quote(text)}", hint=False)
    letters = set(o1) | set(o2 or "")
    if junk or letters - set(_LETTERS):
        raise UsageError(f"stray character in field spec: invalid field specification {quote(text)}", hint=False)
    own = bool(letters)
    ordering = frozenset(letters - {"b"}) if own else defaults - {"b"}
    skip_start = "b" in o1 if own else "b" in defaults
    skip_end = "b" in (o2 or "") if own else "b" in defaults
    return Key(int(f1), int(c1 or 1), None if f2 is None else int(f2), int(c2 or 0), ordering, skip_start, skip_end)


def check_orderings(ordering: frozenset[str] | set[str]) -> None:
    exclusive = [c for c in "ghMnRV" if c in ordering]
    if len(exclusive) > 1 or (exclusive and exclusive != ["R"] and ordering & {"d", "i"}):
        raise UsageError(f"options '-{''.join(c for c in 'dfghiMnRV' if c in ordering)}' are incompatible", hint=False)


# ------------------------------------------------------------------------------------------- finding key regions

_BLANKS = " \t"


def region(key: Key, separator: str | None) -> Callable[[Line], Line]:
    """A function from a line to the text that the key covers."""
    first, char = key.first_field - 1, key.first_char - 1
    if separator is None:
        return _blank_region(key)
    sep = separator
    if char == 0 and not key.skip_start and key.last_char == 0:
        if key.last_field is None:
            return (lambda line: line) if first == 0 else lambda line: _tail(line, sep, first)
        last = key.last_field
        if last == key.first_field:
            if first == 0:
                return lambda line: line.partition(sep)[0]

            def one(line: Line) -> Line:
                parts = line.split(sep, first + 1)
                return parts[first] if len(parts) > first else ""

            return one
        return lambda line: sep.join(line.split(sep, last)[first:last])

    def general(line: Line) -> Line:
        parts = line.split(sep)
        starts = [0]
        for part in parts:
            starts.append(starts[-1] + len(part) + 1)
        begin = min(starts[first], len(line)) if first < len(parts) else len(line)
        if key.skip_start:
            begin = _skip(line, begin)
        begin = min(begin + char, len(line))
        return line[begin : max(begin, _end(line, key, starts, len(parts)))]

    return general


def _end(line: Line, key: Key, starts: list[int], count: int) -> int:
    if key.last_field is None:
        return len(line)
    if key.last_field > count:
        return len(line)
    if key.last_char == 0:
        return min(starts[key.last_field] - 1, len(line))
    at = starts[key.last_field - 1]
    if key.skip_end:
        at = _skip(line, at)
    return min(at + key.last_char, len(line))


def _tail(line: Line, sep: str, first: int) -> Line:
    parts = line.split(sep, first)
    return parts[first] if len(parts) > first else ""


def _skip(line: Line, at: int) -> int:
    while (at < len(line) and line[at] in _BLANKS) or (at < len(line) and line[at] == "\n"):
        at += 1
    return at


_FIELD = re.compile(r"[ \t\n]*[^ \t\n]*")


def _fields(count: int) -> re.Pattern[str]:
    """So many blank-separated fields, with the blanks before each."""
    return re.compile(rf"(?:[ \t\n]*[^ \t\n]*){{{count}}}")


def _blank_region(key: Key) -> Callable[[Line], Line]:
    """Fields separated by the empty string between a non-blank and a blank: a field owns its leading blanks."""
    first, char = key.first_field - 1, key.first_char - 1
    skip_fields = _fields(first)
    simple = char == 0 and not key.skip_start
    if simple and key.last_field is None:
        if first == 0:
            return lambda line: line
        return lambda line: line[skip_fields.match(line).end() :]  # type: ignore[union-attr]
    if simple and key.last_char == 0 and key.last_field is not None:
        if key.last_field < key.first_field:
            return lambda line: ""
        count = key.last_field - first
        span = re.compile(f"{_fields(first).pattern}({_fields(count).pattern})")
        return lambda line: span.match(line)[1]  # type: ignore[index]
    to_last = _fields(key.last_field or 0)
    before_last = _fields(max(0, (key.last_field or 1) - 1))

    def general(line: Line) -> Line:
        begin = skip_fields.match(line).end()  # type: ignore[union-attr]
        if key.skip_start:
            begin = _skip(line, begin)
        begin = min(begin + char, len(line))
        if key.last_field is None:
            return line[begin:]
        if key.last_char == 0:
            end = to_last.match(line).end()  # type: ignore[union-attr]
        else:
            end = before_last.match(line).end()  # type: ignore[union-attr]
            if key.skip_end:
                end = _skip(line, end)
            end = min(end + key.last_char, len(line))
        return line[begin : max(begin, end)]

    return general


# --------------------------------------------------------------------------------------------- comparing regions

_NUMERIC = re.compile(r"[ \t\n]*(-?)(\d*)(?:\.(\d*))?")
_SMALL = re.compile(r"[ \t\n]*(-?\d{1,15}(?:\.\d{1,6})?|-?\.\d{1,6})(?![\d.])")


def numeric_key(text: str) -> Any:
    """The value of a leading decimal number; exact, so that long numbers never compare equal by rounding."""
    found = _NUMERIC.match(text)
    if found is None:
        return 0
    sign, whole, fraction = found.groups()
    if not whole and not fraction:
        return 0
    if not fraction:
        return int(sign + whole)
    fraction = fraction.rstrip("0")
    if not fraction:
        return int(sign + (whole or "0"))
    if len(whole) + len(fraction) <= 15:
        return float(f"{sign}{whole or '0'}.{fraction}")
    from fractions import Fraction

    return Fraction(f"{sign}{whole or '0'}.{fraction}")


_GENERAL = re.compile(
    r"\s*[-+]?(?:inf(?:inity)?|nan|0[xX][0-9a-fA-F.]+(?:[pP][-+]?\d+)?|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)", re.I
)


def general_key(text: str) -> tuple[int, float]:
    """Conversion failures sort first, then NaNs, then numbers."""
    found = _GENERAL.match(text)
    if found is None:
        return (0, 0.0)
    word = found[0].strip()
    number = float.fromhex(word) if "x" in word.lower() else float(word)
    return (1, 0.0) if number != number else (2, number)


_HUMAN = re.compile(r"[ \t\n]*(-?)(\d*)(?:\.(\d*))?([KkMGTPEZYRQ]?)")
_ORDER = {c: i for i, c in enumerate("KMGTPEZYRQ", 1)} | {"k": 1}


def human_key(text: str) -> tuple[int, Any]:
    found = _HUMAN.match(text)
    assert found is not None
    number = numeric_key(found[0])
    order = _ORDER.get(found[4], 0) if number else 0
    return (-order if found[1] and number else order, number)


_MONTHS = {m: i for i, m in enumerate(re.findall("...", "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC"), 1)}


def month_key(text: str) -> int:
    return _MONTHS.get(text.lstrip(" \t\n")[:3].upper(), 0)


_SUFFIX = re.compile(r"(?:\.[A-Za-z~][A-Za-z0-9~]*)*\Z")
_RUNS = re.compile(r"(\D*)(\d*)")
_VERSION_ORDER = {chr(c): (c + 256 if not chr(c).isalpha() or c > 127 else c) for c in range(256)} | {"~": -1}


def version_key(text: str) -> tuple[Any, ...]:
    """GNU's version order: special names first, then the text without its suffix, then all of it."""
    if not text:
        return (0,)
    if text == ".":
        return (1,)
    if text == "..":
        return (2,)
    hidden = text.startswith(".")
    found = _SUFFIX.search(text, 1 if hidden else 0)
    assert found is not None
    prefix = text[: found.start()] if found.start() > 0 else text
    return (3 if hidden else 4, _version_runs(prefix), _version_runs(text))


def _version_runs(text: str) -> tuple[Any, ...]:
    out: list[Any] = []
    for letters, digits in _RUNS.findall(text):
        if not letters and not digits:
            break
        # The end of a non-digit part sorts as 0: after `~`, before letters, before everything else.
        out.append((*(_VERSION_ORDER.get(c, ord(c) + 256) for c in letters), 0))
        out.append(int(digits or 0))
    return tuple(out)


def _random_key(salt: bytes) -> Callable[[str], bytes]:
    return lambda text: hashlib.md5(salt + text.encode("latin-1")).digest()


_NOT_DICTIONARY = {c: None for c in range(256) if not (chr(c).isalnum() and c < 128) and chr(c) not in _BLANKS}
_NOT_PRINTING = {c: None for c in range(256) if not 32 <= c < 127}
_UPPER = {c: c - 32 for c in range(97, 123)}


def comparer(ordering: frozenset[str], salt: bytes) -> Callable[[str], Any] | None:
    """From a region to something that compares as the ordering says; None when the text itself does."""
    if "n" in ordering:
        return numeric_key
    if "g" in ordering:
        return general_key
    if "h" in ordering:
        return human_key
    if "M" in ordering:
        return month_key
    table: dict[int, int | None] = {}
    if "f" in ordering:
        table |= _UPPER
    if "d" in ordering:
        table |= _NOT_DICTIONARY
    if "i" in ordering:
        table |= _NOT_PRINTING
    final = version_key if "V" in ordering else _random_key(salt) if "R" in ordering else None
    if not table:
        return final
    if set(table) == set(_UPPER) and final is None:
        return lambda text: text.upper() if text.isascii() else text.translate(table)
    if final is None:
        return lambda text: text.translate(table)
    return lambda text: final(text.translate(table))


class _Reversed:
    """Compares the other way round; for a reversed key beside ordinary ones."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: _Reversed) -> bool:
        return bool(other.value < self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Reversed) and bool(self.value == other.value)

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True)
class Order:
    """How lines compare: `key` (None: the line itself), `reverse` of the whole, `last_resort` by bytes."""

    key: KeyOf | None
    reverse: bool
    last_resort: bool
    last_reverse: bool
    number: Callable[[list[Line]], list[str]] | None = None
    """Where the one key is a number: the words that hold it, for all lines at once."""

    def sort(self, lines: list[Line], simple: bool = False) -> None:
        """In place; `simple` says that the text is ASCII without odd spaces."""
        if self.key is None:
            lines.sort(reverse=self.reverse)
            return
        if simple and self.number is not None and (numbers := _plain_numbers(lines, self.number)) is not None:
            self._sort_numbers(lines, numbers)
            return
        if self.last_resort:
            lines.sort(reverse=self.last_reverse)
            # A reversed stable sort keeps equal elements in their order, which is what the first pass made.
        lines.sort(key=self.key, reverse=self.reverse)

    def _sort_numbers(self, lines: list[Line], numbers: list[int]) -> None:
        """By number; only lines with equal numbers are compared any further."""
        following = iter(numbers).__next__
        lines.sort(key=lambda _: following(), reverse=self.reverse)
        if not self.last_resort or len(set(numbers)) == len(numbers):
            return
        numbers.sort(reverse=self.reverse)
        same = bytes(map(eq, numbers, islice(numbers, 1, None)))
        at = same.find(1)
        while at >= 0:
            end = same.find(0, at)
            stop = len(lines) if end < 0 else end + 1
            lines[at:stop] = sorted(lines[at:stop], reverse=self.last_reverse)
            at = same.find(1, stop)

    def merge_key(self) -> Callable[[Line], Any]:
        """One key that orders as both passes of `sort` do."""
        key = self.key
        if key is None:
            return _Reversed if self.reverse else lambda line: line
        wrap: Callable[[Any], Any] = _Reversed if self.reverse else lambda x: x
        if not self.last_resort:
            return lambda line: wrap(key(line))
        tail: Callable[[Any], Any] = _Reversed if self.last_reverse else lambda x: x
        return lambda line: (wrap(key(line)), tail(line))


def _plain_numbers(lines: list[Line], words: Callable[[list[Line]], list[str]]) -> list[int] | None:
    """The numbers of all lines when every one is a plain integer; None when some need the exact way."""
    try:
        found = words(lines)
        joined = "".join(found)
        if not (joined.isdigit() or joined.replace("-", "").isdigit()) or not joined.isascii():
            return None
        return list(map(int, found))
    except (ValueError, IndexError):
        return None


def _blank_words(field: int) -> Callable[[list[Line]], list[str]]:
    index = field - 1

    return lambda lines: [line.split(None, field)[index] for line in lines]


_ODD_SPACES = (b"\r", b"\v", b"\f", b"\x1c", b"\x1d", b"\x1e", b"\x1f")
"""What str.split takes for space and a blank is not; with these in the data the exact way is taken."""


def _number_words(
    key: Key | None, separator: str | None, ordering: frozenset[str]
) -> Callable[[list[Line]], list[str]] | None:
    """How to find the number of a single numeric key in many lines at once."""
    if "n" not in ordering or ordering - {"n", "r", "b"}:
        return None
    if key is None:
        return _blank_words(1)
    if key.first_char != 1 or key.last_char != 0 or (key.last_field is not None and key.last_field < key.first_field):
        return None
    if separator is None:
        return _blank_words(key.first_field)
    find = region(key, separator)
    return lambda lines: [find(line) for line in lines]


def make_order(o: SortOptions, separator: str | None, salt: bytes) -> Order:
    letters = {letter for letter, name in _LETTERS.items() if getattr(o, name)}
    if o.word:
        letters.add(_WORDS[o.word])
    defaults = frozenset(letters)
    keys = [parse_key(text, defaults) for text in o.keys]
    for ordering in [key.ordering for key in keys] or [defaults]:
        check_orderings(ordering)
    if not keys:
        plain = not (defaults - {"r"})
        if plain:
            return Order(None, o.reverse, False, False)
        compare = comparer(defaults, salt)
        if words := _number_words(None, separator, defaults):
            return Order(compare, o.reverse, not o.stable and not o.unique, o.reverse, words)
        if "b" in defaults and compare is None:
            return Order(lambda line: line.lstrip(" \t\n"), o.reverse, not o.stable and not o.unique, o.reverse)
        if "b" in defaults and compare is not None:
            inner = compare
            compare = lambda line: inner(line.lstrip(" \t\n"))  # noqa: E731
        return Order(compare, o.reverse, not o.stable and not o.unique, o.reverse)
    parts: list[tuple[KeyOf, bool]] = [(_extractor(key, separator, salt), "r" in key.ordering) for key in keys]
    last_resort = not o.stable and not o.unique
    if all(r == parts[0][1] for _, r in parts):
        functions = [f for f, _ in parts]
        if len(functions) == 1:
            return Order(
                functions[0], parts[0][1], last_resort, o.reverse, _number_words(keys[0], separator, keys[0].ordering)
            )
        if len(functions) == 2:
            a, b = functions
            return Order(lambda line: (a(line), b(line)), parts[0][1], last_resort, o.reverse)
        return Order(lambda line: tuple([f(line) for f in functions]), parts[0][1], last_resort, o.reverse)

    def mixed_key(line: Line) -> Any:
        return tuple([_Reversed(f(line)) if r else f(line) for f, r in parts])

    return Order(mixed_key, False, last_resort, o.reverse)


def _extractor(key: Key, separator: str | None, salt: bytes) -> KeyOf:
    find, compare = region(key, separator), comparer(key.ordering, salt)
    if compare is None:
        return find
    if compare is numeric_key and separator is None and key.first_char == 1 and key.last_char == 0:
        return _fast_numeric(key, find)
    inner = compare
    return lambda line: inner(find(line))


def _fast_numeric(key: Key, find: Callable[[Line], Line]) -> KeyOf:
    """`-n -k2`: one match per line for ordinary numbers, the exact way for the rest."""
    number = re.compile(rf"(?:[ \t\n]*[^ \t\n]+){{{key.first_field - 1}}}[ \t\n]*(-?\d{{1,15}})(?![\d.])")
    match = number.match

    def extract(line: Line) -> Any:
        found = match(line)
        return int(found[1]) if found is not None else numeric_key(find(line))

    return extract


# ------------------------------------------------------------------------------------------------------- running


async def sort(proc: Proc, o: SortOptions, operands: list[str]) -> int:
    names = operands or ["-"]
    if o.files0 is not None:
        if operands:
            raise UsageError(f"extra operand {quote(operands[0])}\nfile operands cannot be combined with --files0-from")
        try:
            names = [decode(n) for n in (await slurp(proc, o.files0)).split(b"\0") if n]
        except OSError as error:
            proc.complain(f"open failed: {shown(o.files0)}: {reason(error)}")
            return 2
        if not names:
            raise UsageError(f"no input from {quote(o.files0)}", hint=False)
    separator = None
    if o.separator is not None:
        raw = encode(o.separator)
        if not raw:
            raise UsageError("empty tab", hint=False)
        if o.separator == "\\0":
            raw = b"\0"
        if len(raw) > 1:
            raise UsageError(f"multi-character tab {quote(o.separator)}", hint=False)
        separator = raw.decode("latin-1")
    salt = b""
    if o.random or o.word == "random" or any("R" in k for k in o.keys):
        import os

        salt = (await slurp(proc, o.random_source))[:16] if o.random_source else os.urandom(16)
    order = make_order(o, separator, salt)
    end = b"\0" if o.zero else b"\n"
    if o.check:
        if len(names) > 1:
            raise UsageError(
                f"extra operand {quote(names[1])} not allowed with -{'C' if o.check in ('quiet', 'silent') else 'c'}",
                hint=False,
            )
        return await _check(proc, o, order, names[0], end)
    for word in names:
        if word != "-" and not await _readable(proc, word):
            return 2
    if o.merge:
        lines_in = [_line_source(proc, word, end) for word in names]
        return await _write_out(proc, o, end, _merge(lines_in, order), order)
    return await _sort_all(proc, o, order, names, end)


async def _readable(proc: Proc, word: str) -> bool:
    try:
        if proc.descriptor(word) is None:
            stat = await proc.fs.stat(proc.path(word), follow=True)
            if stat.is_dir:
                proc.complain(f"read failed: {shown(word)}: Is a directory")
                return False
    except OSError as error:
        proc.complain(f"cannot read: {shown(word)}: {reason(error)}")
        return False
    return True


async def _line_source(proc: Proc, word: str, end: bytes) -> AsyncIterator[list[Line]]:
    reader = await proc.open(word)
    try:
        async for block in line_blocks(reader, end):
            lines = block.decode("latin-1").split(end.decode())
            if not lines[-1]:
                lines.pop()
            yield lines
    finally:
        await proc.close(reader)


async def _sort_all(proc: Proc, o: SortOptions, order: Order, names: list[str], end: bytes) -> int:
    held: list[bytes] = []
    size = 0
    runs: list[IO[bytes]] = []
    delim = end.decode()
    try:
        for word in names:
            try:
                reader = await proc.open(word)
            except OSError as error:
                proc.complain(f"cannot read: {shown(word)}: {reason(error)}")
                return 2
            last = end
            while block := await reader.read():
                held.append(block)
                last = block[-1:]
                size += len(block)
                # A line costs about twice its bytes while it is being sorted.
                if size * 2 > proc.budget.limits.sort_memory and end in block:
                    whole, rest = _cut_at_line(held, end)
                    runs.append(_spill(_sorted(whole, order, delim, o.unique), delim))
                    held, size = rest, sum(map(len, rest))
                await proc.budget.breathe()
            if last != end:
                held.append(end)
            await proc.close(reader)
        lines = _sorted(held, order, delim, o.unique)
        held = []
        if not runs:
            return await _write_list(proc, o, end, lines)
        sources: list[Iterable[Line]] = [*(_run_lines(run, delim) for run in runs), lines]
        if order.key is None:
            merged = heapq.merge(*sources, reverse=order.reverse)
        else:
            merged = heapq.merge(*sources, key=order.merge_key())
        return await _write_out(proc, o, end, _batched(merged), order)
    finally:
        for run in runs:
            run.close()


def _cut_at_line(held: list[bytes], end: bytes) -> tuple[list[bytes], list[bytes]]:
    """Blocks up to the last line end, and what begins the next line; the last block holds a line end."""
    cut = held[-1].rfind(end) + 1
    return [*held[:-1], held[-1][:cut]], [held[-1][cut:]]


def _sorted(held: list[bytes], order: Order, delim: str, unique: bool) -> list[Line]:
    data = b"".join(held)
    ascii_only = data.isascii()
    simple = ascii_only and order.number is not None and not any(space in data for space in _ODD_SPACES)
    lines = data.decode("ascii" if ascii_only else "latin-1").split(delim)
    del data
    lines.pop()
    if unique and order.key is None:
        # Equal lines are the same line: sorting the distinct ones is the same and less.
        return sorted(set(lines), reverse=order.reverse)
    order.sort(lines, simple)
    return _distinct(lines, order.key) if unique else lines


def _distinct(lines: list[Line], key: KeyOf | None) -> list[Line]:
    out: list[Line] = []
    last: Any = object()
    for line in lines:
        this = line if key is None else key(line)
        if this != last:
            out.append(line)
            last = this
    return out


def _spill(lines: list[Line], delim: str) -> IO[bytes]:
    """A sorted run in an anonymous temporary file of the interpreter, not of the workspace's tree."""
    run = tempfile.TemporaryFile()
    for at in range(0, len(lines), 50_000):
        run.write((delim.join(lines[at : at + 50_000]) + delim).encode("latin-1"))
    run.seek(0)
    return run


def _run_lines(run: IO[bytes], delim: str) -> Iterator[Line]:
    rest = ""
    while block := run.read(1 << 20):
        pieces = (rest + block.decode("latin-1")).split(delim)
        rest = pieces.pop()
        yield from pieces


async def _batched(lines: Iterable[Line]) -> AsyncIterator[list[Line]]:
    batch: list[Line] = []
    for line in lines:
        batch.append(line)
        if len(batch) >= 10_000:
            yield batch
            batch = []
    if batch:
        yield batch


async def _merge(sources: list[AsyncIterator[list[Line]]], order: Order) -> AsyncIterator[list[Line]]:
    key = order.merge_key()
    heap: list[tuple[Any, int, Line]] = []
    batches: list[list[Line]] = [[] for _ in sources]
    spots = [0] * len(sources)

    async def advance(i: int) -> None:
        if spots[i] >= len(batches[i]):
            batches[i] = await anext(sources[i], [])
            spots[i] = 0
            if not batches[i]:
                return
        line = batches[i][spots[i]]
        spots[i] += 1
        heapq.heappush(heap, (key(line), i, line))

    for i in range(len(sources)):
        await advance(i)
    out: list[Line] = []
    while heap:
        _, i, line = heapq.heappop(heap)
        out.append(line)
        await advance(i)
        if len(out) >= 4096:
            yield out
            out = []
    if out:
        yield out


async def _write_list(proc: Proc, o: SortOptions, end: bytes, lines: list[Line]) -> int:
    out = proc.stdout
    if o.output is not None:
        try:
            out = await proc.create(o.output)
        except OSError as error:
            proc.complain(f"open failed: {shown(o.output)}: {reason(error)}")
            return 2
    delim = end.decode()
    for at in range(0, len(lines), 20_000):
        out.write((delim.join(lines[at : at + 20_000]) + delim).encode("latin-1"))
        if out.full:
            await out.drain()
        await proc.budget.breathe()
    await proc.close(out)
    return 0


async def _write_out(proc: Proc, o: SortOptions, end: bytes, batches: AsyncIterator[list[Line]], order: Order) -> int:
    key = order.key
    last: Any = object()
    if o.output is not None:
        # The output may be one of the inputs: collect first, as sort -o promises.
        everything = [line async for batch in batches for line in batch]
        return await _write_list(proc, o, end, _distinct(everything, key) if o.unique else everything)
    delim = end.decode()
    async for batch in batches:
        if o.unique:
            kept: list[Line] = []
            for line in batch:
                this = line if key is None else key(line)
                if this != last:
                    kept.append(line)
                    last = this
            batch = kept
        if batch:
            await proc.emit((delim.join(batch) + delim).encode("latin-1"))
        await proc.budget.breathe()
    return 0


async def _check(proc: Proc, o: SortOptions, order: Order, word: str, end: bytes) -> int:
    if word != "-" and not await _readable(proc, word):
        return 2
    key = order.merge_key() if not o.unique else (order.key or (lambda line: line))
    number = 0
    before: Any = None
    async for lines in _line_source(proc, word, end):
        for line in lines:
            number += 1
            this = key(line)
            wrong = number > 1 and (this < before or (o.unique and this == before))
            if o.unique and order.reverse and number > 1:
                wrong = this > before or this == before
            if wrong:
                if o.check in ("diagnose", "diagnose-first"):
                    proc.complain(f"{shown(word)}:{number}: disorder: {decode(line.encode('latin-1'))}")
                return 1
            before = this
        await proc.budget.breathe()
    return 0


def _old_sort(words: list[str]) -> list[str]:
    """`sort +1 -2`: the historical keys."""
    out: list[str] = []
    i = 0
    while i < len(words):
        found = re.fullmatch(r"\+(\d+)(?:\.(\d+))?([bdfgiMnRrV]*)", words[i])
        if found is None or "--" in out:
            out.append(words[i])
            i += 1
            continue
        start = f"{int(found[1]) + 1}" + (f".{int(found[2]) + 1}" if found[2] else "") + found[3]
        stop = re.fullmatch(r"-(\d+)(?:\.(\d+))?([bdfgiMnRrV]*)", words[i + 1]) if i + 1 < len(words) else None
        if stop is None:
            out += ["-k", start]
            i += 1
            continue
        end = f"{int(stop[1]) + (1 if stop[2] and int(stop[2]) else 0)}" + (f".{stop[2]}" if stop[2] else "") + stop[3]
        out += ["-k", f"{start},{end}"]
        i += 2
    return out


COMMANDS = [
    Command(
        "sort",
        sort,
        SortOptions,
        summary="Write sorted concatenation of all FILE(s) to standard output.",
        bad_usage=2,
        rewrite=_old_sort,
        ignored=("-S= --buffer-size=", "-T= --temporary-directory=", "--parallel=", "--batch-size=", "-y="),
        refused={
            "--debug": "key annotation needs a terminal",
            "--compress-program=": "runs of a sort stay inside the sort",
        },
        examples=[
            ("sort -k2,2n -t, FILE", "by the second comma-separated field, as a number"),
            ("sort -u FILE", "distinct lines"),
        ],
    ),
]
