"""History expansion on its own: lines in, lines out."""

from __future__ import annotations

import pytest

from ramet.shell.history.expansion import Chars, ExpansionFailure, Memory, Past, expand, words_of

PAST = Past(["echo one two", "cat <in 2>&1 | sort -u && wc 'a b'", "ls /x/y.tar.gz"], 5)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("!!", "ls /x/y.tar.gz"),
        ("!5", "echo one two"),
        ("!-3:$", "two"),
        ("!?sort?:%", "sort"),
        ("!c:2-4", "in 2>&1 |"),
        ("!$:h", "/x"),
        ("!$:t:r:r", "y"),
        ("!e:gs/o/0/", "ech0 0ne tw0"),
        ("!e:Gs/o/0/", "ech0 0ne tw0"),
        ("!e:s/one/[&]/", "echo [one] two"),
        ("!cat:$:q", "''\\''a b'\\'''"),
        ("a b !#:1", "a b b"),
        ("^ls^rm^", "rm /x/y.tar.gz"),
        ("\"!!\" '!!' \\!!", "\"ls /x/y.tar.gz\" '!!' \\!!"),
    ],
)
def test_lines(line: str, text: str) -> None:
    found = expand(line, PAST, Memory())
    assert (found.text, found.changed) == (text, True)


@pytest.mark.parametrize("line", ["echo hi!", "! true", "!=", "[!a]", "${!x}", "$!", "# !!", "'!!'", 'x "!"', "a=!"])
def test_lines_that_stay(line: str) -> None:
    assert expand(line, PAST, Memory()) == (line, False, False)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("!zz", "!zz: event not found"),
        ("!99", "!99: event not found"),
        ("!!:9", ":9: bad word specifier"),
        ("!!:z", "z: unrecognized history modifier"),
        ("!!:s/q/r/", ":s/q/r/: substitution failed"),
        ("!!:&", ":&: no previous substitution"),
    ],
)
def test_failures(line: str, why: str) -> None:
    with pytest.raises(ExpansionFailure, match=f"^{why}$"):
        expand(line, PAST, Memory())


def test_other_characters() -> None:
    assert expand("@@ !!", PAST, Memory(), Chars("@", "%", "#")).text == "ls /x/y.tar.gz !!"


def test_words() -> None:
    line = "echo 2>&1 a;b 'c d'$(e f) >(g h) # i"
    assert [line[begin:end] for begin, end in words_of(line)] == [
        "echo", "2>&1", "a", ";", "b", "'c d'$(e f)", ">(g h)",
    ]  # fmt: skip
