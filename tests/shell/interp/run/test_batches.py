"""Builtins with 20,000 operands, and tables with 20,000 entries, never hold the event loop."""

from __future__ import annotations

import asyncio
import random

import pytest
from tests.support.loop_holds import Lateness, held_by, too_long

from ramet import Workspace
from ramet.concurrency.sizes import BATCH

N = 20_000
WORDS = f"{{1..{N}}}"
NAMES = f"v{{1..{N}}}"
PAIRS = " ".join(f"[k{i}]=v" for i in range(20_000))
FUNCTIONS = "\n".join(f"f{i}() {{ :; }}" for i in range(3_000))
SCRIPTS = {
    "alias": ("", f"alias {WORDS}; alias {NAMES}=x"),
    "aliases listed": (f"alias {NAMES}=x", "alias; compgen -a; (:); unalias -a"),
    "unalias": (f"alias {NAMES}=x", f"unalias {NAMES}; unalias {NAMES}"),
    "enable": ("", f"enable {WORDS}; enable -n {WORDS}"),
    "shopt": ("", f"shopt {WORDS}; shopt -s {WORDS}; shopt -o {WORDS}"),
    "trap": ("", f"trap : {WORDS}; trap -p {WORDS}"),
    "jobs": ("", f"jobs {WORDS}; disown {WORDS}"),
    "kill": ("", f"kill {{9000000..90{N:05}}}; kill -l {WORDS}; wait {{9000000..9010000}}"),
    "help": ("", "help {1..3000}"),
    "complete": ("", f"complete -W x {WORDS}; complete -p {WORDS}; complete; compopt -o nospace {WORDS}"),
    "ulimit and umask": ("", f"ulimit {WORDS}; umask {WORDS}"),
    "set": ("", f"set {WORDS}; set - {WORDS}; set -- {WORDS}"),
    "unset": ("", f"unset {NAMES}; unset {WORDS}; unset -f {NAMES}"),
    "export": ("", f"export {NAMES}=1; export {WORDS}; export -n {NAMES}; export -f {NAMES}; export -p {NAMES}"),
    "declare": ("", f"declare {NAMES}=1; declare -p {NAMES}; declare -f {NAMES}; readonly {NAMES}"),
    "local": ("", f"f() {{ local {NAMES}=1; local; }}; f"),
    "read": ("", f"read {NAMES} <<< 'a b c'; read {WORDS} <<< x"),
    "let": ("", f"let {WORDS}"),
    "hash": ("", f"hash -p /bin/x {WORDS}; hash; hash -l; hash -d {WORDS}; hash -t {WORDS}"),
    "source and eval": ("echo : > /tmp/s", f". /tmp/s {WORDS}; eval : {WORDS}"),
    "directories": ("", f"dirs {WORDS}; pushd {WORDS}; popd {WORDS}; cd {WORDS}; pwd {WORDS}"),
    "words that are not looked at": ("", f"break {WORDS}; return {WORDS}; times {WORDS}; caller {WORDS}"),
    "a large environment": (f"export {NAMES}=1", "env; env x=1 true; bash -c :; x=1 true; exec -c true"),
    "many functions": (FUNCTIONS, "declare -f; declare -F; (:); export -f $(compgen -A function); bash -c :"),
    "many variables": (f"declare {NAMES}=1", "set; declare -p; declare; (:); compgen -v; : ${!v*}; unset ${!v*}"),
    "a large associative array": (f"declare -A m=({PAIRS})", 'declare -p m; : "${m[@]}" ${!m[@]}; (m[x]=1); unset m'),
    "prompts": ("a=({1..20000})", ': "${a[@]@P}"'),
    "killed jobs": ("for i in {1..800}; do sleep 100 & done", "kill $(jobs -p); wait"),
    "ended jobs": ("for i in {1..800}; do : & done", "wait"),
}
LONG = "s=$(head -c 1000000 /dev/zero | tr '\\0' a)"
NAMED = ["$s", "/$s", "cat < $s", ": > $s", "[[ -e $s ]]", "cd $s", ". $s", ". /$s", "type $s", "hash $s", "trap : $s",
         "exec $s", "umask $s", "alias $s=x", "echo $s*", "TIMEFORMAT=$s; time :", "set -$s", "kill $s"]  # fmt: skip


async def held(before: str, script: str) -> float:
    small = "cat /dev/null; env > /dev/null; bash -c :; seq 1 > /dev/null; [[ a =~ b ]]"
    return await held_by(f"{{ {script}\n}} > /dev/null 2>&1", small, f"{{ {before or ':'}\n}} > /dev/null 2>&1")


@pytest.mark.parametrize("name", SCRIPTS)
def test_many_operands_leave_the_loop_free(name: str) -> None:
    assert not too_long(lambda: held(*SCRIPTS[name]), 0.04)  # the mark is 20 ms


@pytest.mark.parametrize("script", NAMED)
def test_a_long_name_leaves_the_loop_free(script: str) -> None:
    assert not too_long(lambda: held(LONG, script), 0.04)


async def late_by(before: str, script: str, moment: float) -> float:
    """Seconds that a timeout comes late; the session goes on."""
    ws = Workspace()
    await ws.execute(f"{{ keep=1; {before or ':'}\n}} > /dev/null 2>&1")
    late = 0.0
    for _ in range(3):
        since = Lateness()
        result = await ws.execute(f"{{ {script}\n}} > /dev/null 2>&1", timeout=moment)
        if result.exit_code == 124:
            late = max(late, since(moment))
        assert (await ws.execute("echo $keep ${#FUNCNAME[@]} $BASH_SUBSHELL")).stdout == b"1 0 0\n"
    await ws.close()
    return late


@pytest.mark.parametrize("name", SCRIPTS)
def test_stopped_among_many_operands_a_session_goes_on(name: str) -> None:
    moments = random.Random(name)
    assert not too_long(lambda: late_by(*SCRIPTS[name], moments.uniform(0.005, 0.08)), 0.05)


@pytest.mark.parametrize("count", [3, BATCH * 2])
@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("alias k{1..NN}=v; alias | wc -l; alias k{1..NN} | wc -l; alias k1 x 2>&1 | wc -l", "NN NN 2"),
        ("alias k{1..NN}=v; unalias k{1..NN} x 2>&1 | wc -l; unalias k{2..NN}; alias", "1 alias k1='v'"),
        ("shopt -s extglob{,,} x{1..NN} 2>&1 | wc -l; shopt -q extglob x; echo $?", "NN 1"),
        ("trap : x{1..NN} INT 2>&1 | wc -l; trap : x{1..NN} INT 2> /dev/null; trap", "NN trap -- ':' SIGINT"),
        ("export v{1..NN}=1; export -p | grep -c ' v'; env | grep -c ^v; declare -p v{1..NN} | wc -l", "NN NN NN"),
        ("export v{1..NN}=1; export -n v{2..NN}; bash -c 'echo ${!v*}'", "v1"),
        ("f() { local v{1..NN}=1; local | wc -l; echo ${!v*} | wc -w; }; f; echo ${#v1}", "NN NN 0"),
        ("v1=x; f() { local v{1..NN}; v1=y; :; }; f & wait; f; echo $v1", "x"),
        ("read v{1..NN} <<< 'a b c'; echo $v1 $v2 $v3; echo ${!v*} | wc -w", "a b c NN"),
        ("hash -p /x k{1..NN}; hash -l | wc -l; hash -d k{2..NN}; hash -l", "NN builtin hash -p /x k1"),
        ("let x={1..NN} y=0; echo $? $x", "1 NN"),
        ("for ((i=0;i<NN;i++)); do eval \"f$i() { :; }\"; done; declare -F | wc -l; declare -f f1", "NN f1 () { : }"),
        ("set {1..NN}; echo $#; set - a{1..NN}; echo $# $1", "NN NN a1"),
        ("complete -W x k{1..NN}; complete | wc -l; complete -r k{2..NN}; complete", "NN complete -W 'x' k1"),
        ("kill -l x{1..NN} 9 2> /dev/null; echo $?", "KILL 1"),
        ("enable x{1..NN} 2>&1 | wc -l; enable -n test echo{,,}; enable -n", "NN enable -n echo enable -n test"),
        ("dirs +0{,,} x{1..NN} > /dev/null 2>&1; echo $?", "2"),
    ],
)  # fmt: skip
def test_few_and_many_mean_the_same(script: str, expected: str, count: int) -> None:
    async def main() -> str:
        return " ".join((await Workspace().execute(script.replace("NN", str(count)))).text.split())

    assert asyncio.run(main()) == expected.replace("NN", str(count))
