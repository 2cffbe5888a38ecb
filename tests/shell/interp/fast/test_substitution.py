"""Substitutions that need no copy of the shell, and those that do."""

from __future__ import annotations

import asyncio

import pytest
from tests.support.shell_runner import run_script

from ramet.shell.interp.state.shell_state import ShellState

HEAD = "x=abc n=3; a=(1 2); set -- one two; f() { :; }; "


def forks(monkeypatch: pytest.MonkeyPatch, text: str) -> int:
    """How many copies of the shell are made for the words of a command."""
    made = 0
    fork = ShellState.fork

    def counted(self: ShellState, borrow: bool = False) -> ShellState:
        nonlocal made
        made += 1
        return fork(self, borrow)

    monkeypatch.setattr(ShellState, "fork", counted)
    _, _, status = asyncio.run(run_script(f"{HEAD}: {text}"))
    assert status == 0
    return made


@pytest.mark.parametrize(
    "text",
    [
        "$(echo $x)",
        '"$(echo "$x" ${x%c} ${#x})"',
        "$(printf '%03d' $n)",
        "$(echo $1 $# $?)",
        "$(pwd)",
        "$(echo $((n * 2 + 0x1f)) $(($n / 2)))",
        "${x/$(echo a)/$(printf z)}",
    ],
)
def test_what_changes_nothing_makes_no_copy(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    assert forks(monkeypatch, text) == 0


@pytest.mark.parametrize(
    "text",
    [
        "$(echo ${y:=1})",
        "$(echo $((n++)))",
        "$(echo $((n += 1)))",
        "$(echo $((x + 1)))",
        "$(echo $((a[0])))",
        "$(echo $((${n}--$n)))",
        "$(echo $((x$n + 1)))",
        "$(echo $BASHPID)",
        "$(echo ${a[n++]})",
        "$(echo $RANDOM)",
        "$(echo a > /dev/null)",
        "$(echo a; echo b)",
        "$(printf -v y %s 1)",
        "$(printf '%n' y)",
        "$(echo *)",
        "$(echo ${!x})",
        "$(f $x)",
        "$(cd /)",
    ],
)
def test_what_could_change_something_makes_one(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    assert forks(monkeypatch, text) == 1
