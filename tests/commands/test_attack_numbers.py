"""Huge numbers in every option: an error or an answer, never much memory and never a held event loop."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.commands.test_attack_devices import shown
from tests.support.attack import FULL, harmful

from ramet.commands.framework.table import MODULES, Lazy

HUGE = (10**9, 10**18)
FORMS = ("{} a", "{} < a", "{} a b", "{} 5 < a")
SPECIAL = Path(__file__).with_name("attack_numbers.txt").read_text().splitlines()
"""Numbers in operands, formats, programs and variables."""
SMALL = (
    "date +%NUMBERY", "seq -f %NUMBERg 3", "nl -w NUMBER a", "stat --printf %NUMBERn a", "find . -printf %NUMBERp",
    "numfmt --padding=NUMBER 5", "numfmt --format=%.NUMBERf 5", "split -a NUMBER a", "split -a 10000000 a",
    "printf 'a\\tb\\n' | expand -t NUMBER", "printf 'a\\tb\\n' | expand -t 1,NUMBER", "dd bs=9G if=/dev/zero count=1",
    "dd cbs=NUMBER conv=block if=a", "printf %NUMBERd 5", "printf %.NUMBERf 5", "csplit -n NUMBER a 2",
    "awk 'BEGIN { printf \"%NUMBERd\", 5 }'", "diff -y -W NUMBER a d/c", "hexdump -e '1/1 \"%NUMBERd\"' a",
    "tar cf - --record-size=NUMBER a", "shred -n NUMBER a", "split -n NUMBER a", "bc -l <<< 'e(NUMBER)'",
    "jq -n '\"a\" * NUMBER | length'",
)  # fmt: skip
"""What fell once."""


def scripts() -> list[str]:
    """Every option of every command that takes a value, with each number, in each form."""
    made = []
    for name in sorted(MODULES):
        command = Lazy(name).load()
        words = [
            f"{option}={number}" if option.startswith("--") else f"{option}{number}"
            for spec in command.table.specs
            if spec.takes != "none"
            for option in spec.names[-1:]
            for number in HUGE
        ]
        words += [f"{number}" for number in HUGE]
        words += [f"-{number}" for number in HUGE]
        made += [form.format(f"{name} {word}") for word in words for form in FORMS]
    return made + [form.replace("NUMBER", str(number)) for form in SPECIAL for number in HUGE]


def test_the_numbers_that_fell() -> None:
    found = harmful([form.replace("NUMBER", str(number)) for form in SMALL for number in HUGE])
    assert not found, shown(found)


@pytest.mark.timeout(3600)
@pytest.mark.skipif(not FULL, reason="RAMET_SWEEP=full runs every option of every command")
def test_every_option() -> None:
    found = harmful(scripts())
    assert not found, shown(found)
