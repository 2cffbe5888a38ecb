"""factor: print the prime factors of numbers, by trial division and Pollard rho."""

from __future__ import annotations

import functools
import random
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass

from ramet.commands.framework.command import Command, flag, quote, typographic
from ramet.commands.framework.inputs import PART
from ramet.commands.framework.stdin_errors import StdinError
from ramet.core.paths import decode
from ramet.core.proc import Proc
from ramet.core.streams import line_blocks


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
"""Numbers for which trial division is faster than Pollard rho."""


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
    """Return the prime factors in order, by trial division."""
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
"""After this prime, test whether the rest is prime."""


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
"""Bits of a number whose modular power is fast enough to run inline."""


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
    """Test a large number for primality, yielding between steps of a power."""
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
    """Return the odd part of a number and its power of two."""
    twos = (n & -n).bit_length() - 1
    return n >> twos, twos


def _is_witness(x: int, r: int, n: int) -> bool:
    """Return whether a base passes the Miller-Rabin test."""
    if x in (1, n - 1):
        return True
    for _ in range(r - 1):
        x = x * x % n
        if x == n - 1:
            return True
    return False


async def _rho(proc: Proc, n: int) -> int:
    """Find a factor of a composite number by Brent's variant of Pollard's rho."""
    import math

    root = math.isqrt(n)
    if root * root == n:
        return root
    # Steps per slice: fewer for large numbers.
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


COMMANDS = [
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
]
