"""Numbers of thousands of digits where a number is meant: an error of the command, never one of the interpreter."""

from __future__ import annotations

import asyncio

import pytest

from ramet import Workspace

SCRIPTS = [
    "s=N; echo ${!s}", "trap x N", "kill -N 1", "kill %N", "shift N", "(exit N)", "f() { return N; }; f", "ulimit -n N",
    "for i in 1; do break N; done", "printf %Nd 1", "printf %.Nd 1", "declare -i x=N", "read -n N x < /dev/null",
    "read -u N x", "history N", "wait N", "fg %N", "x=abc; echo ${x:N}", "echo {1..N}", "echo x N> f", "echo x >&N",
    "test -t N", "[ N -gt 1 ]", "[[ N -gt 1 ]]", "echo $(( N ))", "echo $(( N#1 ))", "a[N]=1", "echo ${N}", "pushd +N",
    "mapfile -n N x < /dev/null", "OPTIND=N getopts a x", "caller N", "LINENO=N; echo ok", "exit N", "head -n N f",
    "split -l N f", "cut -c N f", "fold -w N f", "seq N | head -1", "od -N N f", "truncate -s N f", "dd count=N < f",
    "sort -k N f", "uniq -f N f", "date -d @N", "find . -size N", "xargs -n N < f", "grep -m N x f", "sed -n Np f",
    "strings -n N f", "awk 'BEGIN { print N }' | head -c 10", "jq -n N", "expr N + 1", "numfmt N", "bc <<< N | wc -l",
]  # fmt: skip


@pytest.mark.parametrize("digits", [5_000, 60_000])
def test_a_number_that_is_too_long_is_no_defect(digits: int) -> None:
    async def act() -> list[str]:
        wrong: list[str] = []
        async with Workspace() as ws:
            for script in SCRIPTS:
                await ws.execute("echo 1 > f")
                result = await ws.execute(script.replace("N", "9" * digits), timeout=120)
                if result.exit_code in (70, 124) or "internal error" in result.error_text:
                    wrong.append(f"{script}: {result.error_text[-200:]}")
            assert (await ws.execute("echo fine")).text == "fine\n"
        return wrong

    assert asyncio.run(act()) == []
