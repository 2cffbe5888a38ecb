"""Numbers and order: seq, yes, factor, tsort."""

from __future__ import annotations

import functools
import random
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from itertools import islice

from ramet.commands.framework.command import Command, UsageError, called, flag, quote, typographic, value
from ramet.commands.framework.inputs import PART, Inputs
from ramet.commands.framework.stdin_errors import StdinError
from ramet.concurrency.sizes import BATCH
from ramet.core.paths import decode, encode
from ramet.core.proc import Proc
from ramet.core.streams import line_blocks

# ---------------------------------------------------------------------------------------------------------- seq


@dataclass(frozen=True, slots=True)
class SeqOptions:
    format: str | None = value("-f", "--format", metavar="FORMAT", help="use printf style floating-point FORMAT")
    separator: str = value("-s", "--separator", metavar="STRING", default="\n", help="use STRING to separate numbers")
    equal: bool = flag("-w", "--equal-width", help="equalize width by padding with leading zeroes")


def _seq_words(words: list[str]) -> list[str]:
    """A negative number is an operand, not an option."""
    out: list[str] = []
    for i, word in enumerate(words):
        if word == "--":
            return [*out, *words[i:]]
        if re.match(r"-[.\d]", word) and (not out or out[-1] not in ("-s", "-f", "--separator", "--format")):
            return [*out, "--", *words[i:]]
        out.append(word)
        if not word.startswith("-") and not (len(out) > 1 and out[-2] in ("-s", "-f", "--separator", "--format")):
            return [*out[:-1], "--", *words[i:]]
    return out


def _seq_number(text: str) -> Decimal:
    body = text.strip()
    try:
        if re.fullmatch(r"[+-]?0[xX][0-9a-fA-F.]+(?:[pP][+-]?\d+)?", body):
            return Decimal(float.fromhex(body))
        if "_" in body or re.fullmatch(r"[+-]?s?nan\d*", body, re.I):
            if "nan" in body.lower():
                raise UsageError(f"invalid 'not-a-number' argument: {quote(text)}")
            raise InvalidOperation
        return Decimal(body)
    except InvalidOperation:
        raise UsageError(f"invalid floating point argument: {quote(text)}") from None


def _places(text: str) -> int:
    body = text.strip().lower()
    mantissa, _, power = body.partition("e")
    places = len(mantissa.partition(".")[2])
    return max(0, places - int(power or 0)) if "0x" not in body else 0


def _width(text: str, places: int) -> int:
    """The columns of an end as it was written, zeros in front included, with so many decimal places."""
    body = text.strip().removeprefix("+")
    if not re.fullmatch(r"-?\d*\.?\d*", body):
        return len(f"{_seq_number(text):.{places}f}")
    whole = body.partition(".")[0]
    return len(whole) + (0 if whole.lstrip("-") else 1) + (1 + places if places else 0)


async def seq(proc: Proc, o: SeqOptions, operands: list[str]) -> int:
    if not operands:
        raise UsageError("missing operand")
    if len(operands) > 3:
        raise UsageError(f"extra operand {quote(operands[3])}")
    texts = (
        ["1", "1", operands[0]]
        if len(operands) == 1
        else [operands[0], "1", operands[1]]
        if len(operands) == 2
        else operands
    )
    if o.format is not None:
        _seq_format(o.format)
    first, step, last = (_seq_number(text) for text in texts)
    if step == 0:
        raise UsageError(f"invalid Zero increment value: {quote(texts[1])}")
    if o.format is not None and o.equal:
        raise UsageError("format string may not be specified when printing equal width strings")
    separator, end = encode(o.separator), b"\n"
    if o.format is not None:
        show: Callable[[Decimal], str] = _seq_format(o.format)
    else:
        places = max(_places(texts[0]), _places(texts[1]))
        finite = first.is_finite() and step.is_finite() and last.is_finite()
        whole = finite and first == first.to_integral() and step == step.to_integral()
        # A negative zero keeps its sign, which an integer would lose.
        if places == 0 and whole and (first or not first.is_signed()):
            return await _integers(proc, int(first), int(step), last, o.equal, separator, texts)
        width = max(_width(texts[0], places), _width(texts[2], places)) if o.equal else 0
        show = lambda number: f"{number:.{places}f}".zfill(width)  # noqa: E731

    out: list[str] = []
    number, index = first, 0
    started = False
    while (number <= last) if step > 0 else (number >= last):
        out.append(show(number))
        index += 1
        number = first + step * index
        if len(out) >= 4096:
            await proc.emit((separator if started else b"") + separator.join(map(encode, out)))
            started = True
            out.clear()
            await proc.budget.yield_turn()
    if out:
        await proc.emit((separator if started else b"") + separator.join(map(encode, out)))
        started = True
    if started:
        await proc.emit(end)
    return 0


async def _integers(
    proc: Proc, first: int, step: int, last: Decimal, equal: bool, separator: bytes, texts: list[str]
) -> int:
    stop = int(last.to_integral(rounding="ROUND_FLOOR" if step > 0 else "ROUND_CEILING"))
    numbers = range(first, stop + (1 if step > 0 else -1), step)
    if not numbers:
        return 0
    width = 0
    if equal:
        width = max(_width(texts[0], 0), _width(texts[2], 0), len(str(numbers[-1])))
    at = 0
    while at < len(numbers):
        part = numbers[at : at + _THOUSAND - numbers[at] % _THOUSAND]
        if step == 1 and first >= 0 and len(part) == _THOUSAND:
            data = _thousand(part[0] // _THOUSAND, width, separator)
        else:
            data = "\n".join([str(n).zfill(width) for n in part] if width else map(str, part)).encode()
            if separator != b"\n":
                data = data.replace(b"\n", separator)
        await proc.emit(separator + data if at else data)
        at += len(part)
        await proc.budget.yield_turn()
    await proc.emit(b"\n")
    return 0


_THOUSAND = 1000
_DIGITS = "\n".join([f"{n:03d}" for n in range(_THOUSAND)]).encode()


def _thousand(thousands: int, width: int, separator: bytes) -> bytes:
    """A thousand numbers in a row, which differ in their last digits only."""
    lead = str(thousands).zfill(width - 3).encode() if width > 3 or thousands else b""
    if not lead:
        return b"\n".join([b"%d" % n for n in range(_THOUSAND)]).replace(b"\n", separator)
    return lead + _DIGITS.replace(b"\n", separator + lead)


def _seq_format(text: str) -> Callable[[Decimal], str]:
    from ramet.commands.text.printf import format_float

    specs = re.findall(r"%(?:%|[-+ #0']*\d*(?:\.\d*)?[a-zA-Z]?)", text)
    real = [s for s in specs if s != "%%"]
    if not real:
        raise UsageError(f"format {quote(text)} has no % directive", hint=False)
    if len(real) > 1:
        raise UsageError(f"format {quote(text)} has too many % directives", hint=False)
    found = re.fullmatch(r"%([-+ #0']*)(\d*)(?:\.(\d*))?([aefgAEFG])", real[0])
    if re.fullmatch(r"%[-+ #0']*\d*(?:\.\d*)?", real[0]):
        raise UsageError(f"format {quote(text)} ends in %", hint=False)
    if found is None:
        raise UsageError(f"format {quote(text)} has unknown %{real[0][-1:]} directive", hint=False)
    flags, width, precision, conv = found.groups()
    before, _, after = text.partition(real[0])

    def show(number: Decimal) -> str:
        body = format_float(number, conv, flags, int(width or 0), None if precision is None else int(precision or 0))
        return before.replace("%%", "%") + body + after.replace("%%", "%")

    return show


# ---------------------------------------------------------------------------------------------------------- yes


async def yes(proc: Proc, o: object, operands: list[str]) -> int:
    line = encode(" ".join(operands) if operands else "y") + b"\n"
    block = line * max(1, 16384 // len(line))
    while True:
        await proc.emit(block)
        await proc.budget.yield_turn()


# ------------------------------------------------------------------------------------------------------- factor


@dataclass(frozen=True, slots=True)
class FactorOptions:
    exponents: bool = flag("-h", "--exponents", help="print repeated factors in form p^e unless e is 1")


async def factor(proc: Proc, o: FactorOptions, operands: list[str]) -> int:
    status = 0
    async for words in _operands(proc, operands):
        out: list[str] = []
        for word in words:
            digits = word if word.isdecimal() and word.isascii() else _digits(word)
            if digits is None or len(digits) > _MOST_DIGITS:
                await proc.emit("".join(out).encode())
                out.clear()
                problem = "is not a valid positive integer" if digits is None else "is too large"
                proc.complain(typographic(proc, f"{quote(word)} {problem}"))
                status = 1
                continue
            number = int(digits)
            factors = _small_factors(number) if number < _SMALL else sorted(await _factors(proc, number))
            if o.exponents:
                counts = {p: factors.count(p) for p in factors}
                parts = [f"{p}^{power}" if power > 1 else str(p) for p, power in counts.items()]
                out.append(" ".join([f"{number}:", *parts]) + "\n")
            else:
                out.append(" ".join([f"{number}:", *map(str, factors)]) + "\n")
            if proc.budget.check():
                await proc.emit("".join(out).encode())
                out.clear()
                await proc.budget.yield_turn()
        await proc.emit("".join(out).encode())
    return status


_MOST_DIGITS = 50_000
"""Digits of a number on which one multiplication takes milliseconds at most."""


def _digits(word: str) -> str | None:
    found = re.fullmatch(r"\s*\+?(\d+)\s*", word)
    return None if found is None else found[1]


async def _operands(proc: Proc, words: list[str]) -> AsyncIterator[list[str]]:
    if words:
        yield words
        return
    async for block in line_blocks(proc.stdin, size=PART):
        yield list(map(decode, block.split()))


_SMALL = 1 << 32
"""Below this, trying the primes below 65536 is quicker than looking for factors."""


@functools.lru_cache(maxsize=1)
def _primes() -> list[int]:
    """The primes below 65536."""
    sieve = bytearray(b"\1") * 65536
    sieve[:2] = b"\0\0"
    for n in range(2, 256):
        if sieve[n]:
            sieve[n * n :: n] = bytes(len(range(n * n, 65536, n)))
    return [n for n, prime in enumerate(sieve) if prime]


def _small_factors(number: int) -> list[int]:
    """The prime factors in order, by trying."""
    out: list[int] = []
    if number < 2:
        return out
    for prime in _primes():
        if prime * prime > number:
            break
        while not number % prime:
            out.append(prime)
            number //= prime
        if prime == _LAST_TRIED and number > _LAST_TRIED**2 and _is_prime(number):
            break
    if number > 1:
        out.append(number)
    return out


_LAST_TRIED = 211
"""Behind this prime it pays to ask whether what is left is a prime itself."""


async def _factors(proc: Proc, number: int) -> list[int]:
    out: list[int] = []
    if number < 2:
        return out
    for p in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37):
        while number % p == 0:
            out.append(p)
            number //= p
            if not len(out) & 63:
                await proc.budget.yield_turn()
    pending = [number] if number > 1 else []
    while pending:
        n = pending.pop()
        if n == 1:
            continue
        if _is_prime(n) if n.bit_length() <= _SWIFT else await _is_large_prime(proc, n):
            out.append(n)
            continue
        d = await _rho(proc, n)
        pending += [d, n // d]
    return out


_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41)
_SWIFT = 512
"""Bits of a number that is raised to a power in no time."""


def _is_prime(n: int) -> bool:
    if n < 2:
        return False
    for p in _PRIMES:
        if n % p == 0:
            return n == p
    d, r = _odd_part(n - 1)
    bases = _PRIMES if n < 3_317_044_064_679_887_385_961_981 else [random.randrange(2, n - 1) for _ in range(24)]
    return all(_is_witness(pow(a, d, n), r, n) for a in bases)


async def _is_large_prime(proc: Proc, n: int) -> bool:
    """The same, with chances for others to run between the steps of a power."""
    if any(n % p == 0 for p in _PRIMES):
        return False
    d, r = _odd_part(n - 1)
    for _ in range(24):
        base = power = random.randrange(2, n - 1)
        for bit in f"{d:b}"[1:]:
            power = power * power % n
            if bit == "1":
                power = power * base % n
            await proc.budget.yield_turn()
        if not _is_witness(power, r, n):
            return False
        await proc.budget.yield_turn()
    return True


def _odd_part(n: int) -> tuple[int, int]:
    """An odd number, and how often twice it makes this one."""
    twos = (n & -n).bit_length() - 1
    return n >> twos, twos


def _is_witness(x: int, r: int, n: int) -> bool:
    """Whether a power of a base speaks for a prime, by Miller and Rabin."""
    if x in (1, n - 1):
        return True
    for _ in range(r - 1):
        x = x * x % n
        if x == n - 1:
            return True
    return False


async def _rho(proc: Proc, n: int) -> int:
    """A factor of a composite number by Brent's variant of Pollard's rho."""
    import math

    root = math.isqrt(n)
    if root * root == n:
        return root
    # How many steps there are to a slice: of large numbers a few take as long.
    many = max(1, min(256, 256 * _SWIFT**2 // n.bit_length() ** 2))
    while True:
        y, c = random.randrange(1, n), random.randrange(1, n)
        g = r = q = 1
        while g == 1:
            x = y
            for k in range(0, r, many):
                for _ in range(min(many, r - k)):
                    y = (y * y + c) % n
                await proc.budget.yield_turn()
            k = 0
            while k < r and g == 1:
                ys = y
                for _ in range(min(many, r - k)):
                    y = (y * y + c) % n
                    q = q * abs(x - y) % n
                g = math.gcd(q, n)
                k += many
                await proc.budget.yield_turn()
            r *= 2
        if g == n:
            g = 1
            while g == 1:
                ys = (ys * ys + c) % n
                g = math.gcd(abs(x - ys), n)
                await proc.budget.yield_turn()
        if g != n:
            return g


# -------------------------------------------------------------------------------------------------------- tsort


async def tsort(proc: Proc, o: object, operands: list[str]) -> int:
    inputs = Inputs(proc, operands)
    words: list[bytes] = []
    async for block in inputs.joined_lines():
        words += block.split()
    if inputs.status:
        return inputs.status
    name = "-" if not operands else operands[0]
    if len(words) % 2:
        proc.complain(f"{called(name)}: input contains an odd number of tokens")
        return 1
    after: dict[bytes, list[bytes]] = {}
    before: dict[bytes, int] = {}
    for begin in range(0, len(words), 2 * BATCH):
        part = words[begin : begin + 2 * BATCH]
        for a, b in zip(part[::2], part[1::2], strict=True):
            after.setdefault(a, [])
            before.setdefault(a, 0)
            before.setdefault(b, 0)
            if a != b:
                after[a].append(b)
                before[b] += 1
        await proc.budget.yield_turn()
    out: list[bytes] = []
    ready: list[bytes] = []
    names = iter(before)
    while part := list(islice(names, 2 * BATCH)):
        ready += [node for node in part if not before[node]]
        await proc.budget.yield_turn()
    ready.sort()
    status = 0
    while True:
        begin = len(out)
        out += ready
        while begin < len(out):
            # What was made ready comes behind all that was ready before; the newest edge is looked at first.
            for follower in reversed(after.pop(out[begin], ())):
                before[follower] -= 1
                if before[follower] == 0:
                    out.append(follower)
            begin += 1
            if not begin & 1023:
                await proc.budget.yield_turn()
        if len(out) == len(before):
            break
        status = 1
        left = sorted(n for n, c in before.items() if c > 0)
        proc.complain(f"{called(name)}: input contains a loop:")
        for node in _break_loop(after, before, left):
            proc.complain(decode(node))
        ready = [n for n in left if before[n] == 0]
        await proc.budget.yield_turn()
    for begin in range(0, len(out), 2 * BATCH):
        await proc.emit(b"\n".join(out[begin : begin + 2 * BATCH]) + b"\n")
        await proc.budget.yield_turn()
    return status


def _break_loop(after: dict[bytes, list[bytes]], before: dict[bytes, int], names: list[bytes]) -> list[bytes]:
    """Walk against the edges from the first name until a name joins twice; the edge that closed the loop goes.

    The names are tried in their order, round after round, as GNU's walk through its tree does: which loop is told of,
    and from where, depends on it.
    """
    newest, towards = names[0], dict[bytes, bytes]()
    turn = 1
    while True:
        name = names[turn % len(names)]
        turn += 1
        if newest not in after.get(name, ()):
            continue
        if name not in towards:
            towards[name] = newest
            newest = name
            continue
        loop = [newest]
        while loop[-1] != name:
            loop.append(towards[loop[-1]])
        edges = after[name]
        del edges[len(edges) - 1 - edges[::-1].index(newest)]
        before[newest] -= 1
        return loop


COMMANDS = [
    Command(
        "seq",
        seq,
        SeqOptions,
        summary="Print numbers from FIRST to LAST, in steps of INCREMENT.",
        usage="[OPTION]... [FIRST [INCREMENT]] LAST",
        rewrite=_seq_words,
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
    Command(
        "yes",
        yes,
        summary="Repeatedly output a line with all specified STRING(s), or 'y'.",
        usage="[STRING]...",
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
    Command(
        "factor",
        factor,
        FactorOptions,
        summary="Print the prime factors of each specified integer NUMBER.",
        usage="[OPTION] [NUMBER]...",
        original="GNU coreutils 9.1",
        curly_quotes=True,
        stdin_error=StdinError("", status=0),
    ),
    Command(
        "tsort",
        tsort,
        summary="Write totally ordered list consistent with the partial ordering in FILE.",
        usage="[FILE]",
        max_operands=1,
        original="GNU coreutils 9.1",
        curly_quotes=True,
        stdin_error=StdinError("", "standard input: {}", status=0),
    ),
]
