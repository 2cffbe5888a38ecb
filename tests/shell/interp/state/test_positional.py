"""What `shift` leaves of many parameters is what is left of the list, however it is looked at."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ramet.shell.interp.state.positional import MANY, Parameters, Remaining, shifted

WORDS = [str(number) for number in range(MANY * 4)]


@given(st.lists(st.integers(0, MANY), max_size=6))
def test_it_is_the_rest_of_the_list(counts: list[int]) -> None:
    left: Parameters = WORDS
    expected = WORDS
    for count in counts:
        if count > len(expected):
            break
        left, expected = shifted(left, count), expected[count:]
    assert (list(left), len(left), bool(left)) == (expected, len(expected), bool(expected))
    assert [left[place] for place in range(len(left))] == expected
    assert left.copy() == expected


def test_one_is_taken_off_many_without_a_copy() -> None:
    left = shifted(shifted(WORDS, 1), 1)
    assert isinstance(left, Remaining)
    assert left[0] == "2"


def test_of_few_the_rest_is_a_list() -> None:
    assert type(shifted(WORDS[:MANY], 1)) is list
    assert type(shifted(shifted(WORDS, MANY), 3 * MANY - 1)) is list
