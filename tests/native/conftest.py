"""Boxes for the tests of native programs; skipped, with the reason, where the machine cannot build one."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest

from ramet.native.ingredients import ingredients
from ramet.native.options import Native, NativeLimits
from ramet.native.runtime import Runtime

TEST_LIMITS = NativeLimits(memory_bytes=512 << 20, processes=128, file_bytes=256 << 20)


@cache
def missing() -> str:
    return "; ".join(f"{one.name}: {one.detail}" for one in ingredients() if one.required and not one.ok)


@pytest.fixture
def runtime() -> Iterator[Runtime]:
    if missing():
        pytest.skip(f"no native programs here: {missing()}")
    made = Runtime(Native(TEST_LIMITS))
    try:
        yield made
    finally:
        made.close()
