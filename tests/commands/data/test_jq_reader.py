"""jq's quick way through many lines gives what its careful way gives."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ramet import Workspace
from ramet.commands.data.jq import values
from ramet.commands.data.jq.io import members
from ramet.commands.data.jq.io.reader import JsonReader, copied_lines, whole_lines

NUMBERS = st.one_of(
    st.from_regex(r"-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,20})?([eE][-+]?[0-9]{1,3})?", fullmatch=True),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.integers().map(str),
)
TEXTS = st.text().map(lambda text: json.dumps(text, ensure_ascii=False))
ITEMS = st.recursive(
    st.one_of(NUMBERS, TEXTS, st.sampled_from(["null", "true", "-0", '"\\u007f"', '"\x7f"', '"1e5"'])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(lambda items: f"[{','.join(items)}]"),
        st.dictionaries(TEXTS, inner, max_size=4).map(
            lambda fields: "{" + ", ".join(f"{key}: {item}" for key, item in fields.items()) + "}"
        ),
    ),
    max_leaves=8,
)


def careful(text: str) -> list[str]:
    reader = JsonReader()
    reader.feed(text.encode("utf-8", "surrogatepass"), True)
    return [values.dumps(value) for value in reader.take(True)]


@given(st.lists(ITEMS, max_size=4).map("\n".join))
@example("[1e-05,7.818287634542287e-05,1e16,1e22]")
@example("[1.0,1.50,0.1,-0,-0.0]")
@example("1.000")
@example(f"[{'1' * 400}]")
@example("0.13436424411240122\n0.134364244112401221")
def test_quick_and_careful_agree(text: str) -> None:
    block = text.encode("utf-8", "surrogatepass")
    quick, copied = whole_lines(block), copied_lines(block)
    expected = careful(text)
    if quick is not None:
        assert [values.dumps(value) for value in quick] == expected
    if copied is not None:
        assert copied.decode().split("\n")[:-1] == expected


@given(st.lists(ITEMS, min_size=1, max_size=4), st.sampled_from(["\n", " "]))
@example(['{"a": [1.50, {"b": [[], {}, "x"]}, [1, 2, 3, 4, 5, 6, 7, 8]], "c": {"d": 1e-05, "e": "\x7f"}}'], "\n")
def test_large_texts_are_read_and_written_as_small_ones(texts: list[str], separator: str) -> None:
    text = separator.join(texts)
    data = text.encode("utf-8", "surrogatepass")
    with patch.multiple(members, SMALL=8, BATCH=3):
        try:
            batches, end = members.decode(data, True)
        except members.Odd:
            return
        assert end == len(data.rstrip())
        found = [value for batch, _ in batches for value in batch]
        assert [values.dumps(value) for value in found] == careful(text)
        for value in found:
            for sort in (False, True):
                for ascii_only in (False, True):
                    compact = members.encode(value, None, sort=sort, ascii_only=ascii_only)
                    assert compact == values.dumps(value, sort=sort, ascii_only=ascii_only)
                    wide = members.encode(value, "  ", sort=sort, ascii_only=ascii_only)
                    assert wide == values.pretty(value, "  ", sort=sort, ascii_only=ascii_only)


LARGE = [{"id": i, "name": "x" * (i % 7), "tags": ["a", {"b": [i]}]} for i in range(12_000)]


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("value", [LARGE, {"n": 1, "items": LARGE, "z": [2]}])
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


def spelled_out(value: values.Json) -> str:
    if isinstance(value, list):
        return "[" + ",".join(map(spelled_out, value)) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{values.quoted(key)}:{spelled_out(item)}" for key, item in value.items()) + "}"
    return values.dumps(value)


def spread(value: values.Json, margin: str = "\n") -> str:
    inner = margin + "  "
    if isinstance(value, list) and value:
        return "[" + inner + ("," + inner).join(spread(item, inner) for item in value) + margin + "]"
    if isinstance(value, dict) and value:
        fields = [f"{values.quoted(key)}: {spread(item, inner)}" for key, item in value.items()]
        return "{" + inner + ("," + inner).join(fields) + margin + "}"
    return spelled_out(value)


COMPUTED = st.recursive(
    st.one_of(st.none(), st.booleans(), st.floats(), st.floats().map(values.number), st.integers(), st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(), inner, max_size=4)),
    max_leaves=8,
)


@given(COMPUTED)
@example(
    [float("inf"), float("nan"), 1e-5, 1e16, 1e17, 3.0, -0.0, 0.05, 10**30, "\x7f\x1f", values.Literal(1.5, "1.50")]
)
@example([float("-inf")])
@example({"a": [0.00001, 123456789.125], "b": {}, "c": [[]]})
def test_texts_are_those_of_the_parts(value: values.Json) -> None:
    assert values.dumps(value) == spelled_out(value)
    assert values.pretty(value, "  ") == spread(value)
