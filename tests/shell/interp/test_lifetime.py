"""A shell that is over is gone at once: nothing of it waits for the collector."""

from __future__ import annotations

import asyncio
import gc

import pytest

from ramet import Workspace
from ramet.shell.interp.state.shell_state import ShellState


def _sessions() -> int:
    return sum(type(one) is ShellState for one in gc.get_objects())


@pytest.mark.parametrize(
    "script",
    [
        "(a[1]=2)",
        "(exit 3)",
        "x=$(echo $(echo a))",
        "echo a | cat",
        "(ls) | cat | (cat; :)",
        "f() { (:); }; f",
        "bash -c :",
        "env bash -c ':; (:)'",
        "cat <(:)",
        "(echo a) > /tmp/f",
    ],
)
def test_a_shell_that_is_over_is_gone(script: str) -> None:
    async def main() -> int:
        ws = Workspace()
        await ws.execute(f"a=(1 2); {script}")
        gc.collect()
        gc.disable()
        try:
            before = _sessions()
            for _ in range(5):
                await ws.execute(script)
            return _sessions() - before
        finally:
            gc.enable()
            await ws.close()

    assert asyncio.run(main()) == 0


@pytest.mark.parametrize(
    "script",
    [
        "x=@; echo $x | cat; y=$(echo ${x%a} | tr 1 2)",
        "f() { local a=$1; echo $a @; }; f 1; f 2",
        "for i in 1 2; do [[ $i == @ ]] && echo $i; done; case @ in 1) :;; esac",
        "while read -r l; do ((n += @)); done <<< a; eval 'echo @ $n'; a=(@ 2); echo ${a[@]:1} {1..3}",
        "cat <<E\n$x @\nE",
        "(exit 3) || { trap 'echo @' EXIT; }",
        "cat <(echo `echo @` $(echo @; echo b))",
    ],
)
def test_a_command_that_ran_once_leaves_nothing_to_look_through(script: str) -> None:
    """Or Python's collector would look through thousands of them while nobody else runs."""

    async def main() -> tuple[int, int]:
        ws = Workspace()
        for number in range(20):  # what is kept of words and assignments is there then
            await ws.execute(script.replace("@", str(number)))
        gc.collect()
        gc.disable()
        try:
            before = len(gc.get_objects())
            for number in range(100, 120):
                await ws.execute(script.replace("@", str(number)))
            left = len(gc.get_objects()) - before
            return left, gc.collect()
        finally:
            gc.enable()
            await ws.close()

    left, garbage = asyncio.run(main())
    assert garbage < 20, "less than an object for a command"
    assert left < 20 * _LEFT


_LEFT = 40
"""Objects that a command leaves: its record, and words and expressions, which are kept within bounds of their own."""
