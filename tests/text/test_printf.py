"""C's printf conversions of one value."""

from __future__ import annotations

from decimal import Decimal

import pytest

from ramet.text import printf


@pytest.mark.parametrize(
    ("value", "kind", "flags", "width", "precision", "text"),
    [
        (42, "d", "", 0, None, "42"),
        (-42, "d", "0", 6, None, "-00042"),
        (42, "d", "+", 6, None, "   +42"),
        (42, "d", "-", 6, None, "42    "),
        (42, "d", "0", 6, 3, "   042"),
        (0, "d", "+", 0, 0, "+"),
        (8, "o", "#", 0, None, "010"),
        (8, "o", "#", 0, 3, "010"),
        (8, "o", "#", 0, 4, "0010"),
        (0, "o", "#", 0, 0, "0"),
        (255, "x", "#0", 8, None, "0x0000ff"),
        (255, "X", "#", 8, 4, "  0X00FF"),
        (0, "x", "#", 0, None, "0"),
        ((1 << 64) - 1, "u", "+", 0, None, "18446744073709551615"),
    ],
)
def test_integers(value: int, kind: str, flags: str, width: int, precision: int | None, text: str) -> None:
    assert printf.integer(value, kind, flags, width, precision) == text


@pytest.mark.parametrize(
    ("value", "kind", "flags", "width", "precision", "text"),
    [
        ("3.14159", "f", "", 8, 2, "    3.14"),
        ("-3.14159", "f", "0", 8, 2, "-0003.14"),
        ("2.5", "f", "", 0, 0, "2"),
        ("2.5", "f", "#", 0, 0, "2."),
        ("12345.678", "e", "", 0, 3, "1.235e+04"),
        ("0.0001", "g", "", 0, None, "0.0001"),
        ("0.00001", "G", "", 0, None, "1E-05"),
        ("12.5", "a", "0", 12, None, "0x0000c.8p+0"),
        ("1", "a", "", 0, 2, "0x8.00p-3"),
        ("inf", "f", "0", 6, None, "   inf"),
        ("-nan", "F", "", 0, None, "-NAN"),
    ],
)
def test_reals(value: str, kind: str, flags: str, width: int, precision: int | None, text: str) -> None:
    assert printf.real(Decimal(value), kind, flags, width, precision) == text
