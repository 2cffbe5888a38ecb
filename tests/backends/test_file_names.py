"""Names of things elsewhere become file names and come back, whatever they are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from ramet.backends.file_names import as_name, from_name
from ramet.backends.redacted_urls import without_password
from ramet.backends.remote import imap
from ramet.backends.remote.mail_message import as_json, attachments, heading, parts, stem
from ramet.core.paths import ROOT, parse

TEXT = some.text(some.characters(exclude_categories=["Cs"]), max_size=60)
TREES: some.SearchStrategy[object] = some.recursive(
    some.one_of(some.none(), some.binary(max_size=8)), lambda inner: some.lists(inner, max_size=6), max_leaves=30
)


@given(TEXT, some.sampled_from(["", ",", ",."]))
def test_a_text_comes_back_from_its_name(text: str, also: str) -> None:
    name = as_name(text, also)
    assert from_name(name, also) == text
    assert name and name not in (".", "..") and "/" not in name and not any(character in name for character in also)
    assert parse(ROOT / name) == ROOT / name or len(name.encode()) > 255


@given(TEXT)
def test_a_name_that_was_never_made_means_nothing(name: str) -> None:
    text = from_name(name)
    assert text is None or as_name(text) == name


@given(some.lists(TEXT, min_size=1, max_size=3), some.lists(TEXT, min_size=1, max_size=3))
def test_keys_of_several_parts_are_told_apart(one: list[str], other: list[str]) -> None:
    pytest.importorskip("asyncpg")
    from ramet.backends.databases.postgres import key_name

    assert (key_name(one) == key_name(other)) == (one == other)


INTEGERS = some.integers(-(2**63), 2**63 - 1)
"""Those that a document can hold."""


@given(some.one_of(TEXT, INTEGERS, some.floats(allow_nan=False), some.booleans(), some.none()))
def test_ids_of_documents_come_back(value: object) -> None:
    pytest.importorskip("pymongo")
    from ramet.backends.databases.mongo_names import LONG, file_name, value_of

    name = file_name(value)
    if not name.startswith(LONG):
        found = value_of(name)
        assert found is not None and found[0] == value and (type(found[0]) is type(value) or isinstance(value, int))


@given(some.binary(max_size=200))
def test_no_answer_of_a_server_is_more_than_an_error(line: bytes) -> None:
    try:
        imap.parsed([line])
    except imap.ImapLost:
        pass
    imap.folder_text(line)


@given(TREES, TEXT, some.binary(max_size=100))
def test_no_message_is_too_odd_to_be_shown(structure: object, subject: str, header: bytes) -> None:
    found = parts(structure)
    for name in attachments(found):
        assert name and "/" not in name and len(name.encode()) <= 255
    name = stem(heading(subject), 7)
    assert name.endswith("__7") and "/" not in name and len(name.encode()) <= 200
    as_json({}, header, [], {})


@given(TEXT.filter(lambda text: text.strip() != "" and "&" not in text))
def test_no_password_is_shown(password: str) -> None:
    marked = f"SECRET{password}SECRET"
    for address in (f"x://u:{marked}@h/d", f"x://h/d?password={marked}&a=b"):
        assert "SECRET" not in without_password(address)
