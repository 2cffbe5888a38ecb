"""Repeated lines and translated bytes: uniq and tr, on whole blocks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import groupby, islice, pairwise
from operator import eq

from ramet.commands.framework.command import Command, UsageError, called, flag, mixed, optional, quote, value
from ramet.commands.framework.inputs import only_opens
from ramet.commands.framework.stdin_errors import StdinError
from ramet.concurrency.offload import offload_large
from ramet.core.errors import reason
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.core.streams import Writer, line_blocks

# --------------------------------------------------------------------------------------------------------- uniq


@dataclass(frozen=True, slots=True)
class UniqOptions:
    count: bool = flag("-c", "--count", help="prefix lines by the number of occurrences")
    repeated: bool = flag("-d", "--repeated", help="only print duplicate lines, one for each group")
    all_repeated: str = mixed(
        flag("-D", const="none", help="print all duplicate lines"),
        optional(
            "--all-repeated",
            metavar="METHOD",
            const="none",
            choices=("none", "prepend", "separate"),
            help="like -D, but allow separating groups",
        ),
        default="",
    )
    fields: str = value("-f", "--skip-fields", metavar="N", default="0", help="avoid comparing the first N fields")
    group: str = optional(
        "--group",
        metavar="METHOD",
        const="separate",
        default="",
        choices=("prepend", "append", "separate", "both"),
        help="show all items, separating groups",
    )
    ignore_case: bool = flag("-i", "--ignore-case", help="ignore differences in case when comparing")
    chars: str = value("-s", "--skip-chars", metavar="N", default="0", help="avoid comparing the first N characters")
    unique: bool = flag("-u", "--unique", help="only print unique lines")
    width: str | None = value("-w", "--check-chars", metavar="N", help="compare no more than N characters in lines")
    zero: bool = flag("-z", "--zero-terminated", help="line delimiter is NUL, not newline")


def _old_uniq(words: list[str]) -> list[str]:
    """`-N` skips fields and `+N` skips characters in old scripts."""
    out: list[str] = []
    for before, word in pairwise(["", *words]):
        if before in ("-f", "-s", "-w", "--skip-fields", "--skip-chars", "--check-chars"):
            out.append(word)
        elif found := re.fullmatch(r"-([a-eg-rt-vx-zD]*)(\d+)([a-zD]*)", word):
            # Among flags as well, where no option before them takes the digits.
            out += ["-f", found[2], *(f"-{flags}" for flags in (found[1], found[3]) if flags)]
        elif re.fullmatch(r"\+\d+", word):
            out += ["-s", word[1:]]
        else:
            out.append(word)
    return out


def _number(text: str, what: str) -> int:
    if not text.isdecimal():
        raise UsageError(f"{text}: invalid {what}", hint=False)
    return int(text)


async def uniq(proc: Proc, o: UniqOptions, operands: list[str]) -> int:
    fields = _number(o.fields, "number of fields to skip")
    chars = _number(o.chars, "number of bytes to skip")
    width = None if o.width is None else _number(o.width, "number of bytes to compare")
    if o.group and (o.count or o.repeated or o.all_repeated or o.unique):
        raise UsageError("--group is mutually exclusive with -c/-d/-D/-u")
    if o.all_repeated and o.count:
        raise UsageError("printing all duplicated lines and repeat counts is meaningless")
    end = b"\0" if o.zero else b"\n"
    opened = False
    try:
        reader = await proc.open(operands[0] if operands else "-")
        opened = True
        out = await proc.create(operands[1]) if len(operands) > 1 and operands[1] != "-" else proc.stdout
    except OSError as error:
        word = operands[1] if opened else operands[0] if operands else "-"
        unread = only_opens(error) and not opened
        proc.complain(f"error reading {quote(word)}" if unread else f"{called(word)}: {reason(error)}")
        return 1
    key = _key(fields, chars, width, o.ignore_case)
    groups = _Groups(o, end, out)
    held: list[bytes] = []
    held_key: bytes | None = None
    plain = key is None
    counting = not (o.group or o.all_repeated)
    count = 0

    def take(block: bytes) -> None:
        nonlocal held, held_key, count
        lines = block.split(end)
        if not lines[-1]:
            lines.pop()
        if counting and plain and lines and not any(map(eq, lines, islice(lines, 1, None))) and lines[0] != held_key:
            # No two neighbours are equal: each line is a group of its own.
            if held_key is not None:
                groups.add(held[0], count)
            groups.add_singles(lines[:-1])
            held, held_key, count = [lines[-1]], lines[-1], 1
            return
        for this, members in groupby(lines, key):
            if counting:
                same = list(members)
                first, n = same[0], len(same)
                if this == held_key:
                    count += n
                    continue
                if held_key is not None:
                    groups.add(held[0], count)
                held, held_key, count = [first], this, n
            elif this == held_key:
                held.extend(members)
            else:
                if held_key is not None:
                    groups.add_all(held)
                held, held_key = list(members), this

    async for block in line_blocks(reader, end):
        await offload_large(proc.budget, len(block), partial(take, block))
        await groups.flush()
    if held_key is not None:
        if counting:
            groups.add(held[0], count)
        else:
            groups.add_all(held)
    groups.finish()
    await groups.flush()
    await proc.close(reader)
    await proc.close(out)
    return 0


def _key(fields: int, chars: int, width: int | None, fold: bool) -> Callable[[bytes], bytes] | None:
    if not (fields or chars or width is not None or fold):
        return None
    skip = re.compile(rb"(?:[ \t]*[^ \t]+|[ \t]+){0,%d}" % min(fields, 1 << 31)) if fields else None

    def key(line: bytes) -> bytes:
        if skip is not None:
            found = skip.match(line)
            line = line[found.end() :] if found else b""
        if chars:
            line = line[chars:]
        if width is not None:
            line = line[:width]
        return line.upper() if fold else line

    return key


class _Groups:
    """Turns groups of equal lines into output."""

    def __init__(self, o: UniqOptions, end: bytes, out: Writer) -> None:
        self.o, self.end, self.out = o, end, out
        self.parts: list[bytes] = []
        self.any = False
        self.only_unique = o.unique
        self.only_repeated = o.repeated

    def add(self, line: bytes, count: int) -> None:
        if self.only_repeated and count == 1:
            return
        if self.only_unique and count > 1:
            return
        if self.o.count:
            line = b"%7d %s" % (count, line)
        self.parts.append(line)

    def add_singles(self, lines: list[bytes]) -> None:
        """Many groups of one line each."""
        if self.only_repeated or not lines:
            return
        if self.o.count:
            joined = (self.end + b"      1 ").join(lines)
            self.parts.append(b"      1 " + joined)
        else:
            self.parts.extend(lines)

    def add_all(self, lines: list[bytes]) -> None:
        if self.o.all_repeated:
            if len(lines) < 2:
                return
            if self.only_unique:  # Which is said of the first of equal lines alone.
                lines = lines[1:]
            if self.o.all_repeated == "prepend" or (self.o.all_repeated == "separate" and self.any):
                self.parts.append(b"")
        elif self.o.group in ("prepend", "both") or (self.o.group == "separate" and self.any):
            self.parts.append(b"")
        self.any = True
        self.parts.extend(lines)
        if self.o.group == "append":
            self.parts.append(b"")

    def finish(self) -> None:
        if self.o.group == "both" and self.any:
            self.parts.append(b"")

    async def flush(self) -> None:
        if self.parts:
            self.parts.append(b"")
            self.out.write(self.end.join(self.parts))
            self.parts.clear()
            if self.out.full:
                await self.out.drain()


# ----------------------------------------------------------------------------------------------------------- tr


@dataclass(frozen=True, slots=True)
class TrOptions:
    complement: bool = flag("-c", "-C", "--complement", help="use the complement of ARRAY1")
    delete: bool = flag("-d", "--delete", help="delete characters in ARRAY1, do not translate")
    squeeze: bool = flag(
        "-s", "--squeeze-repeats", help="replace each sequence of a repeated character of the last ARRAY with one"
    )
    truncate: bool = flag("-t", "--truncate-set1", help="first truncate ARRAY1 to the length of ARRAY2")


CLASSES: dict[str, bytes] = {
    "alnum": bytes(c for c in range(128) if chr(c).isalnum()),
    "alpha": bytes(c for c in range(128) if chr(c).isalpha()),
    "blank": b"\t ",
    "cntrl": bytes([*range(32), 127]),
    "digit": b"0123456789",
    "graph": bytes(range(33, 127)),
    "lower": bytes(range(97, 123)),
    "print": bytes(range(32, 127)),
    "punct": bytes(c for c in range(33, 127) if not chr(c).isalnum()),
    "space": b"\t\n\v\f\r ",
    "upper": bytes(range(65, 91)),
    "xdigit": b"0123456789ABCDEFabcdef",
}
_TR_ESCAPES = {ord(k): v for k, v in {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "\\": 92}.items()}


@dataclass(frozen=True, slots=True)
class _Item:
    """A part of a set: its bytes; a class keeps its name, an open repeat its byte."""

    data: bytes
    cls: str = ""
    fill: bool = False
    equivalence: bool = False


def _parse_set(proc: Proc, text: str) -> list[_Item]:
    raw = encode(text)
    units: list[tuple[int, bool]] = []  # value, escaped
    i = 0
    while i < len(raw):
        c = raw[i]
        if c != 92:
            units.append((c, False))
            i += 1
            continue
        digits = re.match(rb"[0-7]{1,3}", raw[i + 1 : i + 4])
        if digits:
            code = digits[0]
            if int(code, 8) > 255:
                proc.complain(
                    f"warning: the ambiguous octal escape \\{code.decode()} is being\n\tinterpreted as the "
                    f"2-byte sequence \\0{code[:2].decode()}, {code[2:].decode()}"
                )
                code = code[:2]
            units.append((int(code, 8), True))
            i += 1 + len(code)
        elif i + 1 >= len(raw):
            proc.complain("warning: an unescaped backslash at end of string is not portable")
            units.append((92, False))
            i += 1
        else:
            units.append((_TR_ESCAPES.get(raw[i + 1], raw[i + 1]), True))
            i += 2
    return list(_items(units))


def _items(units: list[tuple[int, bool]]) -> Iterable[_Item]:
    def plain(at: int, char: str) -> bool:
        return at < len(units) and units[at] == (ord(char), False)

    i = 0
    while i < len(units):
        if plain(i, "[") and i + 1 < len(units):
            if plain(i + 1, ":") or plain(i + 1, "="):
                kind = units[i + 1][0]
                j = i + 2
                while j < len(units) and not (units[j] == (kind, False) and plain(j + 1, "]")):
                    j += 1
                if j == i + 2 and j < len(units):
                    what = "character class name" if kind == ord(":") else "equivalence class character"
                    raise UsageError(f"missing {what} '[{chr(kind) * 2}]'", hint=False)
                if j < len(units):
                    name = bytes(u for u, _ in units[i + 2 : j])
                    if kind == ord(":"):
                        decoded = name.decode("latin-1")
                        if decoded not in CLASSES:
                            if not plain(i + 2, "*"):
                                raise UsageError(f"invalid character class {quote(decoded)}", hint=False)
                        else:
                            yield _Item(CLASSES[decoded], cls=decoded)
                            i = j + 2
                            continue
                    else:
                        if len(name) != 1:
                            raise UsageError(
                                f"{name.decode('latin-1')}: equivalence class operand must be a single character",
                                hint=False,
                            )
                        yield _Item(name, equivalence=True)
                        i = j + 2
                        continue
            if i + 2 < len(units) and plain(i + 2, "*"):
                j = i + 3
                while j < len(units) and not units[j][1] and chr(units[j][0]).isdigit():
                    j += 1
                close = next((k for k in range(j, len(units)) if plain(k, "]")), -1)
                if close > j:
                    wrong = bytes(u for u, _ in units[i + 3 : close]).decode("latin-1")
                    raise UsageError(f"invalid repeat count {quote(wrong)} in [c*n] construct", hint=False)
                if plain(j, "]"):
                    digits = bytes(u for u, _ in units[i + 3 : j]).decode()
                    count = int(digits, 8 if digits.startswith("0") else 10) if digits else 0
                    yield (
                        _Item(bytes([units[i + 1][0]]) * count, fill=False)
                        if count
                        else _Item(bytes([units[i + 1][0]]), fill=True)
                    )
                    i = j + 1
                    continue
        if i + 2 < len(units) and plain(i + 1, "-"):
            low, high = units[i][0], units[i + 2][0]
            if low > high:
                raise UsageError(
                    f"range-endpoints of '{_show(low)}-{_show(high)}' are in reverse collating sequence order",
                    hint=False,
                )
            yield _Item(bytes(range(low, high + 1)))
            i += 3
            continue
        yield _Item(bytes([units[i][0]]))
        i += 1


def _show(byte: int) -> str:
    return chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}"


def _expand(items: list[_Item], want: int) -> bytes:
    """The bytes of a set; one open repeat grows the set to `want`."""
    fixed = sum(len(item.data) for item in items if not item.fill)
    return b"".join(item.data * max(0, want - fixed) if item.fill else item.data for item in items)


async def tr(proc: Proc, o: TrOptions, operands: list[str]) -> int:
    _check_tr(o, operands)
    items1 = _parse_set(proc, operands[0])
    if any(item.fill for item in items1):
        raise UsageError("the [c*] repeat construct may not appear in string1", hint=False)
    items2 = _parse_set(proc, operands[1]) if len(operands) > 1 else []
    if sum(item.fill for item in items2) > 1:
        raise UsageError("only one [c*] repeat construct may appear in string2", hint=False)
    set1 = _expand(items1, 0)
    if o.complement:
        set1 = bytes(c for c in range(256) if c not in set1)
    translating = len(operands) > 1 and not o.delete
    delete = set1 if o.delete else b""
    table: bytes | None = None
    squeeze = b""
    if translating:
        if any(item.equivalence for item in items2):
            raise UsageError("[=c=] expressions may not appear in string2 when translating", hint=False)
        set2 = _translation(o, items1, items2, set1)
        mapping = bytearray(range(256))
        for source, target in zip(set1, set2, strict=False):
            mapping[source] = target
        table = bytes(mapping)
        squeeze = _expand(items2, len(set1)) if o.squeeze else b""
    elif o.squeeze:
        squeeze = _expand(items2, 256) if o.delete else set1
    change = _changer(table, delete, squeeze)
    while block := await proc.stdin.read():
        await proc.emit(change(block))
    return 0


def _check_tr(o: TrOptions, operands: list[str]) -> None:
    if not operands:
        raise UsageError("missing operand")
    if len(operands) == 1 and not o.delete and not o.squeeze:
        raise UsageError(f"missing operand after {quote(operands[0])}\nTwo strings must be given when translating.")
    if len(operands) == 1 and o.delete and o.squeeze:
        raise UsageError(
            f"missing operand after {quote(operands[0])}\nTwo strings must be given when both deleting and "
            "squeezing repeats."
        )
    if len(operands) == 2 and o.delete and not o.squeeze:
        raise UsageError(
            f"extra operand {quote(operands[1])}\nOnly one string may be given when deleting without squeezing repeats."
        )
    if len(operands) > 2:
        raise UsageError(f"extra operand {quote(operands[2])}")


def _translation(o: TrOptions, items1: list[_Item], items2: list[_Item], set1: bytes) -> bytes:
    lower_upper = {"lower", "upper"}
    for item in items2:
        if item.cls and item.cls not in lower_upper:
            raise UsageError(
                "when translating, the only character classes that may appear in\nstring2 are 'upper' and 'lower'",
                hint=False,
            )
    if any(item.cls for item in items2) and not o.complement:
        at1 = {sum(len(x.data) for x in items1[:i]) for i, item in enumerate(items1) if item.cls in lower_upper}
        for i, item in enumerate(items2):
            if item.cls and sum(len(x.data) for x in items2[:i]) not in at1:
                raise UsageError("misaligned [:upper:] and/or [:lower:] construct", hint=False)
    set2 = _expand(items2, len(set1))
    if not set2 and not o.truncate:
        raise UsageError("when not truncating set1, string2 must be non-empty", hint=False)
    if len(set2) < len(set1) and not o.truncate:
        if items2[-1].cls and (o.complement or not items1[-1].cls):
            raise UsageError(
                "when translating with string1 longer than string2,\nthe latter string must not end with a "
                "character class",
                hint=False,
            )
        set2 += set2[-1:] * (len(set1) - len(set2))
    if o.complement and any(item.cls for item in items1) and len(set(set2)) > 1:
        raise UsageError(
            "when translating with complemented character classes,\n"
            "string2 must map all characters in the domain to one",
            hint=False,
        )
    return set2


def _changer(table: bytes | None, delete: bytes, squeeze: bytes) -> Callable[[bytes], bytes]:
    if not squeeze:
        return lambda block: block.translate(table, delete)
    chars = b"".join(b"\\x%02x" % c for c in sorted(set(squeeze)))
    runs = re.compile(b"([" + chars + b"])\\1+", re.S)
    members = frozenset(squeeze)
    last = -1

    def change(block: bytes) -> bytes:
        nonlocal last
        block = block.translate(table, delete)
        if not block:
            return block
        if block[0] == last and last in members:
            # The run began in the block before.
            block = block.lstrip(bytes([last]))
            if not block:
                return block
        block = runs.sub(b"\\1", block)
        last = block[-1]
        return block

    return change


COMMANDS = [
    Command(
        "uniq",
        uniq,
        UniqOptions,
        summary="Filter adjacent matching lines from INPUT, writing to OUTPUT.",
        usage="[OPTION]... [INPUT [OUTPUT]]",
        max_operands=2,
        rewrite=_old_uniq,
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
    Command(
        "tr",
        tr,
        TrOptions,
        summary="Translate, squeeze, and/or delete characters from standard input.",
        usage="[OPTION]... STRING1 [STRING2]",
        examples=[("tr a-z A-Z", "to upper case"), ("tr -s ' '", "one space for many")],
        operands_first=True,
        original="GNU coreutils 9.1",
        curly_quotes=True,
        stdin_error=StdinError("read error: {}", fatal=True),
    ),
]
