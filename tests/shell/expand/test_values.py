"""Indexed arrays against a plain dict, whatever is put into them and taken out, in any order."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ramet.shell.expand.values import Indexed

_INDEX = st.one_of(st.integers(0, 12), st.integers(0, 400), st.sampled_from([70, 10_000, 1 << 62]))
_STEP = st.one_of(
    st.tuples(st.just("set"), _INDEX),
    st.tuples(st.just("unset"), _INDEX),
    st.tuples(st.just("unset last"), st.just(0)),
    st.tuples(st.just("extend"), st.integers(0, 90)),
    st.tuples(st.just("copy"), st.just(0)),
)


def _same(array: Indexed, model: dict[int, str]) -> None:
    ordered = sorted(model.items())
    top = ordered[-1][0] + 1 if ordered else 0
    assert list(array.pairs()) == ordered
    assert (array.keys(), array.values()) == ([key for key, _ in ordered], [value for _, value in ordered])
    assert (len(array), array.top) == (len(model), top)
    assert array.whole == (array.values() if len(model) == top else None)
    for start, stop in ((0, 3), (2, 80), (5, top), (top, top + 9)):
        assert array.between(start, stop) == [value for key, value in ordered if start <= key < stop]
    assert [array.get(index) for index in range(90)] == [model.get(index) for index in range(90)]


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 5), st.lists(_STEP, max_size=25))
def test_an_array_is_what_a_dict_would_be(size: int, steps: list[tuple[str, int]]) -> None:
    array = Indexed([f"v{number}" for number in range(size)])
    model = {number: f"v{number}" for number in range(size)}
    for place, (what, number) in enumerate(steps):
        top = max(model, default=-1) + 1
        if what == "set":
            array.set(number, f"{place}")
            model[number] = f"{place}"
        elif what == "extend":
            array.extend([f"{place}.{one}" for one in range(number)])
            model |= {top + one: f"{place}.{one}" for one in range(number)}
        elif what == "copy":
            kept, array = array, array.copy(None)
            kept.set(3, "elsewhere")
        else:
            index = top - 1 if what == "unset last" else number
            if index >= 0:
                array.unset(index)
                model.pop(index, None)
        _same(array, model)


def test_a_hole_in_a_large_array_costs_nothing_and_many_at_its_end_go_at_once() -> None:
    array = Indexed(["x"] * 300_000)
    for index in range(1, 299_999):
        array.unset(index)
    assert array.keys() == [0, 299_999]
    array.unset(299_999)
    assert (array.top, array.whole) == (1, ["x"])
