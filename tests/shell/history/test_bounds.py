"""History expansion is bounded, and its cost follows the text."""

from __future__ import annotations

import pytest

from ramet.shell.history.expansion import Memory, Past, TooLong, expand
from ramet.shell.history.lines import joined, places


def test_what_grows_too_long_is_refused() -> None:
    past = Past(["x" * 1000])
    with pytest.raises(TooLong):
        expand("!! " * 20, past, Memory(), most=10_000)
    with pytest.raises(TooLong):
        expand("!!:gs/x/yyyyyyyyyyyyyyyyyyyy/", past, Memory(), most=10_000)


def test_long_lines_are_no_trouble() -> None:
    line = ": " + "a [! b " * 50_000 + "!!:0"
    assert expand(line, Past(["echo x"]), Memory()).text.endswith("[! b echo")
    quoted = "x='" + "a!b\n" * 20_000 + "'"
    assert len(places(quoted)) == 20_001
    assert joined(places(quoted), literal=False) == quoted
