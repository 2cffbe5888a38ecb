"""Backslash escapes of echo and printf, in the dialects of bash and GNU."""

from __future__ import annotations

import pytest

from ramet.text import escapes


@pytest.mark.parametrize(
    ("dialect", "source", "decoded"),
    [
        (escapes.ECHO, rb"a\tb\0101\101", b"a\tbA\\101"),
        (escapes.PERCENT_B, rb"\0101\101\E", b"AA\x1b"),
        (escapes.FORMAT, rb"\0101\?\'", b"\x081?'"),
        (escapes.GNU_ECHO, rb"\0101\101\E", b"AA\\E"),
        (escapes.GNU_FORMAT, rb"\0101\?\"", b'\x081\\?"'),
        (escapes.ECHO, rb"\x4\u00e9\U1F600", b"\x04\xc3\xa9\xf0\x9f\x98\x80"),
        (escapes.GNU_FORMAT, rb"\U7FFFFFFF", b"\xfd\xbf\xbf\xbf\xbf\xbf"),
        (escapes.ECHO, rb"\\n\q", rb"\n\q"),
    ],
)
def test_each_dialect_decodes_its_escapes(dialect: escapes.Dialect, source: bytes, decoded: bytes) -> None:
    assert escapes.decode(dialect, source) == (decoded, False)


@pytest.mark.parametrize("dialect", [escapes.ECHO, escapes.PERCENT_B, escapes.GNU_ECHO, escapes.GNU_FORMAT])
def test_backslash_c_ends_the_text(dialect: escapes.Dialect) -> None:
    assert escapes.decode(dialect, rb"a\cb") == (b"a", True)


def test_an_ascii_locale_keeps_escapes_of_other_characters() -> None:
    assert escapes.decode(escapes.ECHO, rb"\u41\ue9", ascii_only=True) == (b"A\\u00E9", False)
