"""Version order: the keys of many names are those of each, and they order as GNU's comparison does."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from ramet.commands.text.sort.compare import version_key, version_keys

IN_ORDER = [
    "", ".", "..", ".a1", ".a10", ".a10.b", "1~", "1", "1a", "1-", "9.tar.gz", "10.tar.gz", "A", "a~", "a", "a.b~",
    "a.b", "a0001", "a1.5", "a1.10", "a12345678901", "a99999999999", "ab", "a\t", "a-1", "a-2", "\xfe", "\xff",
]  # fmt: skip
PIECES = st.sampled_from(["a", "Z", "~", ".", "0", "00", "1", "12", "1234567890", "-", "\t", "\n", "tar", "é", "\xff"])


def test_names_order_as_versions() -> None:
    mixed = random.Random(1).sample(IN_ORDER, len(IN_ORDER))
    assert sorted(mixed, key=version_key) == IN_ORDER


@given(st.lists(st.lists(PIECES, max_size=6).map("".join), min_size=1, max_size=20))
def test_keys_of_many_are_the_keys_of_each(names: list[str]) -> None:
    assert version_keys(names) == [version_key(name) for name in names]
