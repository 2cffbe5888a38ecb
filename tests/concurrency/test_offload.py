"""Work aside that nobody waits for any more ends itself, however long the one thing is that it works on."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from ramet.concurrency.offload import Abandoned, _worker
from ramet.patterns import AWK, compile
from ramet.shell.expand.arith.parser import parse_arith

WORK: dict[str, Callable[[], object]] = {
    "an octal number": lambda: parse_arith("0" * 10_000),
    "a number": lambda: parse_arith("1" * 10_000),
    "a number in a base": lambda: parse_arith("3#" + "1" * 10_000),
    "a pattern": lambda: compile(b"|".join(b"ab%d" % number for number in range(5_000)), AWK),
}


@pytest.mark.parametrize("name", WORK)
def test_abandoned_work_ends(name: str) -> None:
    _worker.stop = threading.Event()
    _worker.stop.set()
    try:
        with pytest.raises(Abandoned):
            WORK[name]()
    finally:
        _worker.stop = None
