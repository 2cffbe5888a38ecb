"""tr: translate, squeeze and delete bytes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ramet.commands.framework.command import Command, UsageError, flag, quote
from ramet.commands.framework.stdin_errors import StdinError
from ramet.core.paths import encode
from ramet.core.proc import Proc


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
