"""Escapes of ``$'...'``, bytes and characters."""

from __future__ import annotations

import pytest

from ramet.shell.syntax.ansi_c import ansi_decode
from ramet.text.escapes import code_point

CASES = {
    r"abc": "abc",
    r"\a\b\e\E\f\n\r\t\v\\\'\"\?": "\a\b\x1b\x1b\f\n\r\t\v\\'\"?",
    r"\x41\x4a\x4": "AJ\x04",
    r"\x{41}b": "Ab",
    r"\x{}": r"\x{}",
    r"\xg": r"\xg",
    r"\101\60\7z": "A0\x07z",
    r"\400": "",
    r"a\0b": "a",
    r"a\x00b": "a",
    r"\u41\u00e9\u20ac": "Aé€",
    r"\U1F600\U0041": "😀A",
    r"\ug": r"\ug",
    r"\cA\cz\c?\c[": "\x01\x1a\x7f\x1b",
    r"\c\\x": "\x1cx",
    r"\cé": r"\cé",
    r"\z\-": r"\z\-",
    r"\xff\377": "\udcff\udcff",
    r"\xc3\xa9": "é",
    r"\ud800": "\udced\udca0\udc80",
}


@pytest.mark.parametrize(("source", "value"), CASES.items())
def test_escapes(source: str, value: str) -> None:
    assert ansi_decode(source) == value


def test_code_points_beyond_unicode_are_written_as_bytes() -> None:
    assert code_point(0x110000).encode("utf-8", "surrogateescape") == b"\xf4\x90\x80\x80"
    assert code_point(0x7FFFFFFF).encode("utf-8", "surrogateescape") == b"\xfd\xbf\xbf\xbf\xbf\xbf"
    assert code_point(0x41) == "A" and code_point(0xE9) == "é"
