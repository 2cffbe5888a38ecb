"""Kernel state is JSON with sorted keys, whatever names it has."""

from __future__ import annotations

import json

import pytest

from ramet.store.commit.kernel_state import encode_json


@pytest.mark.parametrize(
    "value", [{"b": [1, 2.5, None], "a": "ü\u2028"}, {"name": "\udcff"}, {"fds": {3: "x", 10: "y"}}]
)
def test_state_is_read_as_it_was(value: dict[str, object]) -> None:
    data = encode_json(value)
    assert json.loads(data) == json.loads(json.dumps(value)) and b" " not in data
    assert data == encode_json(dict(reversed(value.items())))
