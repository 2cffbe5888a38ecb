"""The lines of a command as one entry."""

from __future__ import annotations

import pytest

from ramet.shell.history.lines import joined, places, separate


@pytest.mark.parametrize(
    ("command", "entry"),
    [
        ("if a\nthen b\nfi", "if a; then b; fi"),
        ("f()\n{\n  a\n}", "f() {   a; }"),
        ("a &&\nb |\nc", "a && b | c"),
        ("a \\\n b", "a  b"),
        ("echo 'a\nb'\\\nc", "echo 'a\nb'c"),
        ("for i\nin 1\ndo # x\n a\n\ndone", "for i in 1; do # x\n a;  done"),
        ("case x in\na)\n b ;;\nesac", "case x in a)  b ;; esac"),
        ("x=(1\n# no\n2)", "x=(1\n2)"),
        ("cat <<E\nb\nE", "cat <<E\nb\nE\n"),
        ("{ cat <<-E\n\tE\na\n}", "{ cat <<-E\n\tE\n a; }"),
        ("cat <<E\nE\\\nE\nE", "cat <<E\nEE\nE\n"),
        ('echo "$(a\nb)" `c\nd`', 'echo "$(a\nb)" `c\nd`'),
    ],
)
def test_entries(command: str, entry: str) -> None:
    assert joined(places(command), literal=False) == entry


def test_literal_and_separate() -> None:
    lines = places("if a\n# c\nthen b\nfi")
    assert joined(lines, literal=True) == "if a\n# c\nthen b\nfi"
    assert separate(lines) == ["if a", "then b", "fi"]
