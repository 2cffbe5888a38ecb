"""Every limit is loud: what hits one fails with a status and a message that names it, and the session goes on."""

from __future__ import annotations

import asyncio
from dataclasses import fields
from typing import Any

import pytest

from ramet import Limits, Workspace

KIB = 1024
ROWS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "wall_time": ({"wall_time": 0.02}, ["sleep 9", "x=$(sleep 9)", "sleep 9 | cat; echo no"]),
    "output_bytes": (
        {"output_bytes": 100},
        [
            "seq 1000",
            "seq 1000; true",
            "seq 1000 || true",
            "(seq 1000); true",
            "seq 1000 | cat; true",
            "seq 1000 & wait; true",
            "echo $(seq 1000); true",
            "while :; do echo abc; done",
        ],
    ),
    "string_bytes": (
        {"string_bytes": 100 * KIB},
        [
            "printf -v x %0200000d 1",
            "x=$(printf '%0200s' {1..1000})",
            "x=a; while :; do x=$x$x; done",
            "set -- a; while :; do set -- $1$1; done",
            "x=\\'; while :; do x=${x@Q}; done",
            "echo a | sed ':a;s/a/aa/g;ba'",
            "echo a | sed ':a;s/.*/&&/;ba'",
            "echo a | sed -E ':a;s/(a*)/\\1\\1/;ba'",
            "echo a | sed ':a;G;H;ba'",
            "seq 30000 | sed ':a;N;ba'",
            "echo a | sed '" + "s/a/aaaaaaaa/g;" * 12 + "'",
            "printf %065000d 1 | sed 's/0/aaaaaaaa/g;s/a/bbbbbbbb/3'",
            "awk 'BEGIN { $0 = \"a\"; while (1) $0 = $0 $0 }'",
            'awk \'BEGIN { $0 = "a"; while (1) { OFS = $0; $3 = "" } }\'',
            "awk 'BEGIN { x = \"a\"; while (1) x = toupper(x) tolower(x) }'",
            'awk \'BEGIN { x = "a"; while (1) x = sprintf("%s%s", x, x) }\'',
            'awk \'BEGIN { x = "a"; while (1) x = gensub(/a/, "aa", "g", x) }\'',
            "jq -n 'reduce range(40) as $i (\"a\"; . + .)'",
            "jq -n 'reduce range(40) as $i (\"a\"; . + .)?'",
            'jq -n \'reduce range(40) as $i ("a"; "\\(.)\\(.)")\'',
            "jq -n 'reduce range(40) as $i (\"a\"; [., .] | add)'",
            'jq -n \'reduce range(40) as $i ("a"; gsub("a"; "aa"))\'',
            "jq -n 'reduce range(40) as $i ([1]; . + .)'",
            "jq -n 'reduce range(40) as $i ([1]; [.[], .[]])'",
            'jq -n \'reduce range(40) as $i ("\\""; tojson)\'',
            "jq -n 'try [range(1e9)] catch 1'",
            "jq -n '.[1e7] = 1'",
            "jq -n '\"a\" * 1e6'",
        ],
    ),
    "variable_bytes": (
        {"variable_bytes": 1000 * KIB},
        [
            "printf -v x %090000d 1; for i in {1..40}; do eval v$i=\\$i\\$x; done",
            "printf -v x %090000d 1; for i in {1..40}; do declare v$i=$i$x; done",
            "printf -v x %090000d 1; for i in {1..40}; do printf -v v$i %s $i$x; done",
            "printf -v x %090000d 1; for i in {1..40}; do read v$i <<< $i$x; done",
            "printf -v x %090000d 1; for i in {1..40}; do eval v$i+=a v$i+=\\$x; done",
            "printf -v x %03000d 1; for i in {1..900}; do eval v$i=$i; for j in {1..9}; do eval v$i+=\\$x; done; done",
            'printf -v x %090000d 1; for i in {1..40}; do eval "for v$i in $i$x; do break; done"; done',
            "printf -v x %090000d 1; for i in {1..40}; do a[i]=$i$x; done",
            "printf -v x %090000d 1; declare -A a; for i in {1..40}; do a[$i]=$i$x; done",
            "printf -v x %090000d 1; for i in {1..40}; do a+=($i$x); done",
            "printf -v x %090000d 1; declare -A a; for i in {1..40}; do a+=([$i]=$i$x); done",
            'printf -v x %090000d 1; for i in {1..40}; do set -- "$@" $i$x; done',
            "printf -v x %090000d 1; for i in {1..40}; do alias v$i=$i$x; done",
            "printf -v x %090000d 1; f() { f a$1; }; f $x",
            "printf -v x %090000d 1; f() { local y=a$x; x=$y; f; }; f",
            "printf -v x %090000d 1; for i in {1..40}; do x=$i$x; x=${x:0:90000}; sleep 9 & done",
            "printf -v x %090000d 1; f() { y=a$x; x=$y; (f); exit $?; }; f",
            "printf -v x %090000d 1; f() { export x=a$x; bash -c f || exit 1; }; export -f f; f",
            "seq 100000 > f; mapfile a < f",
            "seq 100000 > f; mapfile -n 100000 a < f",
            "for i in {1..9}; do a+=({1..9000}); done",
            'a=({1..9000}); for i in {1..60}; do eval "a$i=(\\${a[@]})"; done',
            "for i in {1..90000}; do a[i]=$i; done",
            "for i in {1..50000}; do eval x$i=$i; done",
            "for i in {1..50000}; do ((x$i=1)); done",
        ],
    ),
    "whole_bytes": (
        {"whole_bytes": 100 * KIB},
        [
            "jq . < /dev/zero",
            "zip -q o.zip /dev/zero",
            "sqlite3 /dev/zero .tables",
            "truncate -s 1M f; rg x f",
            "rg x /dev/urandom",
            "split -n r/3 /dev/urandom",
        ],
    ),
    "width_chars": (
        {"width_chars": 2000},
        [
            "printf %02001d 1",
            "printf '%*s' 2001 1",
            "printf %.2001f 1",
            "/usr/bin/printf %2001d 1",
            "awk 'BEGIN { printf \"%2001d\", 1 }'",
            "awk 'BEGIN { x = sprintf(\"%*d\", 2001, 1) }'",
            "seq -f %2001g 3",
            "date +%2001Y",
            "echo a | nl -w 2001",
            "stat -c %2001n .",
            "find . -printf %2001p",
            "numfmt --padding=2001 5",
            "numfmt --format=%.2001f 5",
            "echo a | split -a 2001",
            "printf 'a\tb\n' | expand -t 2001",
            "echo a | csplit -n 2001 - 1",
        ],
    ),
    "argument_bytes": (
        {"argument_bytes": 1000},
        [
            "printf -v x %02000d 1; ls $x",
            "printf -v x %02000d 1; bash -c : $x",
            "printf -v x %02000d 1; /bin/echo a $x b",
            "printf -v x %02000d 1; command cat $x | cat",
            "printf -v x %02000d 1; echo $x | xargs echo",
            "printf -v x %02000d 1; echo : > f; chmod +x f; ./f $x",
            "printf -v x %02000d 1; eval exec cat {1..70000} $x",
        ],
    ),
    "expansion_words": (
        {"expansion_words": 100},
        [
            "echo {1..200}",
            "a=({1..200})",
            "for x in {1..200}; do :; done",
            "set -- a b; while :; do set -- $@ $@; done",
        ],
    ),
    "expression_chars": (
        {"expression_chars": 20},
        [
            "a[1+1+1+1+1+1+1+1+1+1+1+1]=1",
            "x=abc; echo ${x:0+0+0+0+0+0+0+0+0+0+0+0}",
            "a=b+b b=c+c c=d+d d=e+e e=f+f; echo $((a))",
        ],
    ),
    "recursion": (
        {"recursion": 20},
        [
            "f() { (f); }; f",
            "f() { x=$(f); }; f",
            "set -o pipefail; f() { f | cat; }; f",
            "f() { cat <(f); }; f",
            "f() { (f) || true; (f) || true; }; f; :",
            "f() { env bash -c f; }; export -f f; f",
        ],
    ),
    "loop_steps": (
        {"loop_steps": 50},
        [
            "while :; do :; done",
            "for ((;;)); do :; done",
            "for i in {1..60}; do :; done",
            "for i in {1..10}; do for j in {1..10}; do :; done; done",
            "for i in {1..10}; do (for j in {1..10}; do :; done) || exit; done",
            "select x in a b; do :; done < <(yes 1)",
        ],
    ),
    "open_files": (
        {"open_files": 12},
        [
            "for i in {1..20}; do exec {fd}< /dev/null; done",
            "for i in {1..20}; do exec {fd}<<< x; done",
            'for i in {10..30}; do eval "exec $i>&1"; done',
            "eval 'cat '$(printf '<(:) %.0s' {1..20})",
            'for i in {1..20}; do eval "coproc c$i { cat; }"; done',
        ],
    ),
    "processes": (
        {"processes": 4},
        [
            "cat | cat | cat | cat | cat",
            "for i in {1..9}; do sleep 9 & done",
            "cat <(:) <(:) <(:) <(:) <(:)",
            "( ( ( ( (:); :); :); :); :)",
            "x=$(echo $(echo $(echo $(echo $(:; echo 1)))))",  # a lone echo needs no process
            "f() { bash -c f; :; }; export -f f; f",
            "env env env env env true",
            "timeout 9 timeout 9 timeout 9 timeout 9 timeout 9 true",
            "seq 9 | xargs -P 9 -I{} sleep 0.05",
            "seq 9 | parallel -j 9 sleep 0.05 #",
        ],
    ),
    "sort_memory": ({"sort_memory": 100, "spill_bytes": 100}, []),  # it spills, which has its own limit
    "spill_bytes": ({"sort_memory": 100, "spill_bytes": 100}, ["seq 1000 | sort", "seq 1000 | sort | tail -1 || exit"]),
    "fan_out": ({"fan_out": 1}, []),  # what is too many waits its turn
    "regex_seconds": (
        {"regex_seconds": 0.01},
        ["printf -v x %060d 0; r='^(0|00)+(.)\\2$'; [[ ${x}12 =~ $r ]]"],
    ),
}


def test_every_limit_is_here() -> None:
    assert set(ROWS) == {field.name for field in fields(Limits)}


@pytest.mark.parametrize(("name", "script"), [(name, script) for name, (_, rows) in ROWS.items() for script in rows])
def test_what_hits_a_limit_fails_and_says_so(name: str, script: str) -> None:
    async def act() -> None:
        async with Workspace(limits=Limits(**ROWS[name][0])) as ws:
            await ws.execute("keep=1")
            result = await ws.execute(f"set -o pipefail; {script}")
            assert result.exit_code != 0
            said = "timed out after 0.02 s" if name == "wall_time" else f"limit reached: {name} ("
            assert said in result.error_text
            assert (await ws.execute("echo $keep", timeout=None)).text == "1\n"

    asyncio.run(act())


BOMBS = [
    "f() { f | f & }; f; wait",
    ":() { : | : & }; :; wait",
    "f() { f & f & wait; }; f",
    "f() { (f); (f); :; }; f",
    "f() { x=$(f); y=$(f); :; }; f",
    "f() { cat <<< $(f)$(f); }; f",
    "f() { cat <(f) <(f); }; f",
    "f() { bash -c f; bash -c f; :; }; export -f f; f",
    "echo 'bash $0 & bash $0 | bash $0' > s; bash s; wait",
    "echo 'exec bash $0' > s; bash s",
    "echo 'seq 9 | xargs -P 9 -I{} bash $0; :' > s; bash s",
    "echo 'seq 9 | parallel -j 9 bash $0; :' > s; bash s",
    "echo 'find s -exec env bash {} \\;' > s; bash s",
    "echo 'bash -c :' > e; export BASH_ENV=$PWD/e; bash -c :",
    "export PROMPT_COMMAND='bash -i <<< :'; bash -i <<< :",
    "echo '. ./s' > s; . ./s",
    'x=\'eval "$x"\'; eval "$x"',
    "shopt -s expand_aliases\nalias a='eval a'\na",
    "f() { f; }; set -E; trap f ERR; false",
    "f() { kill -USR1 $$; f; }; trap f USR1; kill -USR1 $$; :",
    "f() { (trap f EXIT); (f); }; f",
    "f() { coproc { f | f; }; f; }; f",
    "while :; do coproc cat; done",
    "while :; do sleep 9 & done",
]


@pytest.mark.parametrize("script", BOMBS)
def test_what_multiplies_without_end_ends_with_a_message(script: str) -> None:
    async def act() -> None:
        async with Workspace(limits=Limits(processes=40, recursion=200)) as ws:
            await ws.execute("keep=1")
            result = await ws.execute(script)
            assert result.exit_code != 0
            assert "limit reached: " in result.error_text or "nesting level exceeded (200)" in result.error_text
            again = await ws.execute(
                "unset -f :; trap - ERR USR1; unset BASH_ENV; echo $(bash -c 'echo 2' | cat) $keep"
            )
            assert (again.text, again.error_text) == ("2 1\n", "")
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(act())


def test_a_line_that_nests_too_deeply_does_not_keep_the_next_ones_from_running() -> None:
    async def act() -> None:
        async with Workspace(limits=Limits(recursion=200)) as ws:
            result = await ws.execute("f() { f; }; f\necho $? $(echo next | cat)")
            assert result.text == "1 next\n" and result.exit_code == 1

    asyncio.run(act())


def test_what_is_at_its_limit_of_descriptors_can_still_close_some() -> None:
    async def act() -> None:
        async with Workspace(limits=Limits(open_files=12)) as ws:
            result = await ws.execute('for i in {10..18}; do eval "exec $i<<< x"; done; exec 10<&-; cat <<< 1')
            assert (result.text, result.error_text) == ("1\n", "")

    asyncio.run(act())


def test_output_beyond_the_limit_is_not_kept() -> None:
    async def act() -> None:
        async with Workspace(limits=Limits(output_bytes=1000)) as ws:
            result = await ws.execute("for i in {1..50}; do seq 1000; done 2> /dev/null")
            assert result.truncated and len(result.stdout) == 1000

    asyncio.run(act())


def test_a_debug_trap_that_nests_too_deeply_leaves_the_session_whole() -> None:
    async def act() -> None:
        async with Workspace(limits=Limits(recursion=20)) as ws:
            result = await ws.execute("f() { local x=1; f; }; trap f DEBUG; :")
            assert "maximum function nesting level exceeded (20)" in result.error_text
            assert (await ws.execute("trap - DEBUG; echo ${#FUNCNAME[@]} ${x-none}")).text == "0 none\n"

    asyncio.run(act())


def test_a_sort_beyond_its_memory_spills_and_is_right() -> None:
    async def act() -> None:
        async with Workspace(limits=Limits(sort_memory=1000)) as ws:
            result = await ws.execute("seq 3000 -1 1 | sort -n | cmp - <(seq 3000) && echo same")
            assert result.text == "same\n"

    asyncio.run(act())


def test_a_limit_is_no_answer_of_a_command_whose_status_one_is_an_answer() -> None:
    async def test() -> None:
        async with Workspace(limits=Limits(string_bytes=100 * KIB, whole_bytes=100 * KIB)) as ws:
            for command in ("grep x /dev/zero", "grep -c x < /dev/zero", "cmp -s <(tail -n 1 /dev/zero) /dev/null"):
                result = await ws.execute(command)
                assert "limit reached" in result.error_text, command
            result = await ws.execute("grep -q x /dev/zero")
            assert (result.exit_code, result.error_text) == (2, f"grep: limit reached: string_bytes ({100 * KIB})\n")

    asyncio.run(test())
