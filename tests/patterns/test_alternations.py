"""Patterns of very many alternatives are searched for in parts, which find what the whole would."""

from __future__ import annotations

import asyncio
import random
import re
import time
from functools import partial

import pytest
from tests.support.loop_holds import longest_hold, too_long

from ramet.concurrency.offload import offload
from ramet.core.limits import Budget
from ramet.patterns import AWK, PERL, POSIX_BASIC, POSIX_EXTENDED, Lines, compile
from ramet.patterns.multi import UnionEngine

_RNG = random.Random(5)
WORDS = ["".join(_RNG.choices("abcdefghij", k=_RNG.randrange(2, 8))) for _ in range(6000)]
TEXTS = ["".join(_RNG.choices("abcdefghij ", k=40)) for _ in range(60)]
CHOICE = "|".join(WORDS)
LONGEST = "|".join(sorted(WORDS, key=len, reverse=True))


@pytest.mark.parametrize(
    ("pattern", "same"),
    [
        (CHOICE, LONGEST),
        (f"({CHOICE})", f"({LONGEST})"),
        (f"c({CHOICE})d", None),
        (f"(a)(b|{CHOICE})( )", None),
        ("|".join(f"{word}.*{word[0]}" for word in WORDS), None),
        (CHOICE + "|(x)(y)", f"{LONGEST}|(x)(y)"),
        (f"^({CHOICE})$", f"^({LONGEST})$"),
    ],
)
def test_what_is_found_in_parts_is_what_is_found(pattern: str, same: str | None) -> None:
    made = compile(pattern.encode(), AWK)
    assert isinstance(made.engine(b""), UnionEngine)
    for text in (*TEXTS, *WORDS[:5]):
        spans = made.spans(text.encode())
        if same is not None:
            found = re.search(same, text)
            assert spans == (None if found is None else list(found.regs))
        else:
            # Whatever the longest match is, it is one, and begins where the first one does.
            found = re.search(pattern, text)
            assert (spans is None) == (found is None)
            if spans is not None and found is not None:
                assert spans[0][0] == found.start() and spans[0][1] >= found.end()
                assert re.fullmatch(pattern, text[slice(*spans[0])])


def test_the_first_alternative_is_found_where_order_matters() -> None:
    made = compile("|".join(f"{word}.?" for word in WORDS).encode(), PERL)
    assert isinstance(made.engine(b""), UnionEngine)
    for text in TEXTS:
        found = re.search("|".join(f"{word}.?" for word in WORDS), text)
        assert made.search(text.encode()) == (None if found is None else found.span())


@pytest.mark.parametrize("lines", list(Lines))
def test_a_pattern_in_another_syntax_finds_the_same(lines: Lines) -> None:
    basic = compile(CHOICE.replace("|", "\\|").encode(), POSIX_BASIC, lines=lines)
    extended = compile(CHOICE.encode(), POSIX_EXTENDED, lines=lines)
    wide = compile(f"{CHOICE}|\u00e9+".encode(), POSIX_EXTENDED, lines=lines)
    for text in TEXTS:
        data = text.encode()
        assert basic.search(data) == extended.search(data) == wide.search(data)
    assert wide.search("xyz\u00e9\u00e9".encode()) == (3, 7)


def test_a_long_pattern_is_made_while_others_run() -> None:
    pattern = "|".join("".join(_RNG.choices("abcdefghijklmnopqrstuvw", k=9)) for _ in range(20_000))
    number = iter(range(100))

    def make(budget: Budget) -> object:
        return offload(budget, partial(compile, f"{pattern}|{next(number)}".encode(), AWK))

    # The time of all threads: none may keep the interpreter to itself.
    assert not too_long(lambda: longest_hold(make(Budget()), time.process_time), 0.03)  # type: ignore[arg-type]


def test_who_no_longer_waits_for_a_pattern_waits_no_longer() -> None:
    pattern = "|".join("".join(_RNG.choices("abcdefghijklmnopqrstuvw", k=9)) for _ in range(20_000))

    async def main() -> float:
        task = asyncio.ensure_future(offload(Budget(), partial(compile, pattern.encode(), POSIX_EXTENDED)))
        await asyncio.sleep(0.001)
        start = time.process_time()
        task.cancel()
        await asyncio.wait((task,))
        return time.process_time() - start

    assert not too_long(main, 0.05)
