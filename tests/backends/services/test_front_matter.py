"""Front matter: exact round trips, and edits that send only what differs."""

from __future__ import annotations

import errno

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramet.backends.services.front_matter import edits, parse, render
from ramet.core.paths import ROOT
from ramet.testing import refused

TEXT = st.text(st.characters(codec="utf-8"), max_size=30)
VALUE = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**15), 10**15), TEXT.filter(bool), st.lists(TEXT, max_size=4)
)
BODY = st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=200)


@given(st.dictionaries(st.from_regex(r"[a-z_]{1,8}", fullmatch=True), VALUE, max_size=6), BODY)
def test_what_is_rendered_is_read_back(fields: dict[str, str | int | bool | list[str] | None], body: str) -> None:
    assert parse(render(fields, body), ROOT) == (fields, body.strip("\n"))


def test_lists_may_have_an_item_a_line() -> None:
    found, body = parse("---\nlabels:\n  - bug\n  - 'it''s'\n# a comment\nstate: open\n---\n\nText\n", ROOT)
    assert found == {"labels": ["bug", "it's"], "state": "open"} and body == "Text"


def test_only_what_differs_is_an_edit() -> None:
    old = render({"title": "One", "labels": ["a"], "id": 7}, "Text\r\nmore")
    assert edits(ROOT, old, old, ("title",)) == {}
    assert edits(ROOT, old, old.replace("One", "Two"), ("title",)) == {"title": "Two"}
    assert edits(ROOT, old, "---\nlabels: [a, b]\n---\nNew", ("labels",)) == {"labels": ["a", "b"], "body": "New"}
    assert edits(ROOT, old, "New", ()) == {"body": "New"}


@pytest.mark.parametrize(
    "text",
    ["---\nid: 8\n---\n", "---\nother: 1\n---\n", "---\ntitle", "---\ntitle: [a\n---\n", "---\na b\n---\n",
     "---\ntitle: 1\ntitle: 2\n---\n", '---\ntitle: "a\n---\n', "---\ntitle: 'a\n---\n", '---\nlabels: [a, "b]\n---\n'],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused(text: str) -> None:
    old = render({"title": "One", "labels": [], "id": 7}, "")
    with refused(errno.EINVAL):
        edits(ROOT, old, text, ("title", "labels"))
