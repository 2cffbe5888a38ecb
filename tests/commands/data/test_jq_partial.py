"""Large JSON values that are read piece by piece are the values that they are as a whole."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramet import Workspace
from ramet.commands.data.jq.io import partial as growing
from ramet.commands.data.jq.io.partial import Growing, Unreadable

_TEXTS = st.text(st.sampled_from('ab,[]{}":\\ \n\u00e9'), max_size=6)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | _TEXTS,
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(_TEXTS, inner, max_size=6),
    max_leaves=60,
)
_LARGE = st.lists(_VALUES, min_size=4, max_size=12) | st.dictionaries(_TEXTS, _VALUES, min_size=4, max_size=12)


def grown(data: bytes, block: int) -> tuple[Any, bytes]:
    """What a value became that was fed in blocks, and what came behind it."""
    value = Growing()
    for at in range(0, len(data), block):
        if True in list(value.feed(data[at : at + block])):
            return value.value, value.left + data[at + block :]
    if not value.finish():
        raise Unreadable
    return value.value, value.left


@given(
    _LARGE, st.sampled_from([None, 1]), st.sampled_from(["", "\n", '\n[1]\n{"a": 2}\n']), st.integers(16, 90), st.data()
)
def test_a_value_grows_to_what_it_is(value: Any, indent: int | None, behind: str, piece: int, data: Any) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(growing, "_PIECE", piece)
        try:
            made, left = grown((text + behind).encode(), data.draw(st.integers(5, 200)))
        except Unreadable:
            return  # that is always allowed; the next test says when it must not be
    assert made == value
    assert json.dumps(made) == json.dumps(value)
    assert left.decode().strip() == behind.strip()


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("behind", ["", "\n", "\n[7]\n", "\n[7]\n{}\n" * 9])
@pytest.mark.parametrize(
    "value",
    [
        [{"id": i, "t": ["a,b", 'c"', "\\"], "o": {"x": [i]}} for i in range(200)],
        {"meta": {"n": 1}, "items": [{"id": i} for i in range(300)], "last": [1, 2]},
        {str(i): {"v": [i, i]} for i in range(300)},
        {"a": {"b": {"c": list(range(900))}}, "": [[]], "z": {}},
        [[[i, [i]] for i in range(50)] for _ in range(9)],
    ],
)
def test_ordinary_values_are_read_piece_by_piece(
    value: Any, indent: int | None, behind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growing, "_PIECE", 256)
    for block in (100, 256, 1000, 100_000):
        made, left = grown((json.dumps(value, indent=indent) + behind).encode(), block)
        assert json.dumps(made) == json.dumps(value)
        assert left.decode().split() == behind.split()


def test_a_key_that_comes_twice_has_the_last_value_at_the_first_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growing, "_PIECE", 64)
    text = '{"a": [1, 2], "b": 3, ' + '"c": 4, ' * 20 + '"a": [' + "5, " * 40 + '6], "b": 7}'
    try:
        made, _ = grown(text.encode(), 50)
    except Unreadable:
        return
    assert json.dumps(made) == json.dumps(json.loads(text))


@pytest.mark.parametrize(
    "text",
    [
        '["\\u0000\\u0000", ' + "1, " * 99 + "2]",
        "[1, 2" + ", 3" * 99 + "}",
        "[1, 2" + ", 3" * 99,
        '{"a": 1' + ', "b": 2' * 50 + "]",
        "[" * 80 + "1" + ", 2" * 50 + "]" * 80,
        "[1, 2" + ", 3" * 99 + "] [4]",
    ],
)
def test_what_is_no_such_value_is_left_to_others(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growing, "_PIECE", 64)
    with pytest.raises(Unreadable):
        grown(text.encode(), 50)


_ITEMS = [{"id": i, "name": "x" * (i % 7), "tags": ["a", {"b": [i]}]} for i in range(12_000)]


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("value", [_ITEMS, {"n": 1, "items": _ITEMS, "z": [2]}])
def test_jq_reads_large_values_among_others(value: Any, indent: int | None) -> None:
    large = json.dumps(value, indent=indent)
    small = '{"a": 1}'

    async def main() -> None:
        ws = Workspace()
        await ws.execute("cat > in", stdin=f"{small}\n{large}\n{small}\n{large}".encode())
        result = await ws.execute("jq -c . in; jq -c 'length, input_line_number' in")
        short = json.dumps(value, separators=(",", ":"))
        first, second = 1 + large.count("\n") + 1, 2 * large.count("\n") + 3
        expected = ['{"a":1}', short, '{"a":1}', short, "1", "1", f"{len(value)}", f"{first}", "1", f"{first + 1}"]
        assert result.stdout.decode().split("\n") == [*expected, f"{len(value)}", f"{second}", ""]
        assert result.stderr == b""
        result = await ws.execute("head -c 500000 in | jq -c length")
        assert result.exit_code == 5
        assert result.stdout == b"1\n"
        assert result.stderr.startswith(b"jq: parse error: Unfinished")

    asyncio.run(main())
