"""bc with numbers of any size: the digits of Python's integers, and a limit that is an error."""

from __future__ import annotations

import asyncio
import random
import sys

import pytest

from ramet import IOResult, Workspace
from ramet.commands.math.bc.numbers import BcNumber, based_text, decimal_digits


@pytest.mark.parametrize("bits", [1, 63, 4096, 4097, 10_000, 70_001])
def test_the_digits_of_large_numbers(bits: int) -> None:
    sys.set_int_max_str_digits(max(sys.get_int_max_str_digits(), 100_000))
    for value in (1 << bits, (1 << bits) - 1, random.Random(bits).getrandbits(bits), 10 ** (bits // 4)):
        assert decimal_digits(value) == str(value)
        assert based_text(BcNumber(value), 16) == f"{value:X}" and based_text(BcNumber(-value), 2) == f"{-value:b}"


def run(*scripts: str, timeout: float = 60) -> list[IOResult]:
    async def act() -> list[IOResult]:
        async with Workspace() as ws:
            return [await ws.execute(script, timeout=timeout) for script in scripts]

    return asyncio.run(act())


@pytest.mark.parametrize("script", ["echo '9^9999999' | bc", "echo '9^-9999999' | bc"])
def test_a_number_that_is_too_large_is_an_error(script: str) -> None:
    refused, after = run(script, "echo '2^200' | bc")
    assert refused.exit_code == 1 and "limit reached: digits of a number (200000)" in refused.error_text
    assert after.text == f"{2**200}\n"


def test_a_long_series_ends_with_its_time() -> None:
    assert run("echo 'scale=60000; e(1)' | bc -l", timeout=0.2)[0].exit_code == 124
