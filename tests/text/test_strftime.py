"""strftime of gnulib and of the C library, on dates and on fields that are no date."""

from __future__ import annotations

from datetime import datetime

import pytest

from ramet.text.strftime import Fields, format_fields, strftime, zone

WHEN = datetime(2024, 2, 29, 13, 5, 9, tzinfo=zone("Asia/Kolkata"))


@pytest.mark.parametrize(
    ("form", "gnulib", "c_library"),
    [
        ("%F %T %z %Z %s", "2024-02-29 13:05:09 +0530 IST 1709192109", "2024-02-29 13:05:09 +0530 IST 1709192109"),
        ("%a %^b %e %j %U %V %G %u", "Thu FEB 29 060 08 09 2024 4", "Thu FEB 29 060 08 09 2024 4"),
        ("%-d|%_5m|%010Y|%^a|%#p", "29|    2|0000002024|THU|pm", "29|    2|0000002024|THU|pm"),
        ("%3N %q %:z", "000 1 +05:30", "%3N %q %:z"),
        ("%5Q|%5 |%", "%5Q|%5 |%", "  %5Q|  %5 |%"),
        ("%Ed", "%Ed", "%Ed"),
    ],
)
def test_directives(form: str, gnulib: str, c_library: str) -> None:
    assert strftime(form, WHEN) == gnulib
    assert strftime(form, WHEN, c_library=True) == c_library


def test_the_c_library_does_not_pad_years() -> None:
    early = datetime(99, 1, 2, tzinfo=zone("UTC"))
    assert strftime("%Y %F", early) == "0099 0099-01-02"
    assert strftime("%Y %F", early, c_library=True) == "99 99-01-02"


def test_fields_need_not_be_a_date() -> None:
    fields = Fields(year=-5, month=12, day=40, weekday=9)
    assert format_fields("%Y %b %A %d", fields, c_library=True) == "-5 ? ? 40"
