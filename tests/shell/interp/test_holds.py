"""Values of 1 MB and lists of 20,000 items never hold the event loop."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest
from tests.support.loop_holds import held_by, slowness, too_long

from ramet import Workspace

LONG = "printf -v x '%01000000d' 0"
MANY = "a=({1..20000})"
SCRIPTS = {
    "a trace of many words": (MANY, 'exec 2> /dev/null; set -x; : "${a[@]}"'),
    "a trace of a long word": (LONG, "exec 2> /dev/null; set -x; : $x; y=$x; declare z=$x; [[ $x == a ]]"),
    "a trace of a long array": ("", "exec 2> /dev/null; set -x; declare -a b=({1..20000})"),
    "quotes around a long word": (f"{LONG}; x=${{x//0/\\'}}", 'y=${x@Q}; printf -v y %q "$x"'),
    "a long word of control characters": (f"{LONG}; x=${{x//0/$'\\n'}}", 'y=${x@Q}; printf -v y %q "$x"'),
    "many redirections": ("", ": " + "> /tmp/x " * 4000),
    "many stages": ("", " | ".join([":"] * 2000)),
    "a long line": (f"{LONG}; echo $x$x > /tmp/x", "read a b < /tmp/x; read -n 1000000 a < /tmp/x; mapfile a < /tmp/x"),
    "a long line with escapes": (f"{LONG}; echo ${{x//000000000000/0\\\\a}} > /tmp/x", "read a b < /tmp/x"),
    "a large tree that goes": (
        "",
        "; ".join(f"echo $x an-argument-of-some-length-{i} > /dev/null" for i in range(12_000)),
    ),
    "a long text that goes": ("", ': "' + "a$x " * 20_000 + '"; :'),
    "brackets that never close": (f"{LONG}; x=${{x:0:500000}}; x=${{x//00000/ab*c[}}", "echo $x > /dev/null"),
    "a long line of history": (LONG, 'history -s "$x"; history > /dev/null'),
    "many words for env": (MANY, 'env true "${a[@]}"'),
    "a long text that is no number": (
        f"{LONG}; x+=a",
        'wait "$x"; ulimit -n "$x"; umask "$x"; [ "$x" -lt 4 ]; [ -t "$x" ]; read -n "$x" y; : ${!x}',
    ),
    "a long subscript": (f"{LONG}; declare -A q", 'unset "q[$x]"; [[ -v q[$x] ]]; printf -v "q[$x]" a'),
    "a long format": (LONG, 'printf "$x$x" > /dev/null'),
    "a long word of several parts": (LONG, ': "a$x" "b$x" "c$x" "d$x" "e$x"; : "f$x$x" {g,h}"$x"'),
    "long lines of a builtin": (LONG, 'compgen -P "$x" -W "a b c" > /dev/null'),
    "a long regular expression": (LONG, '[[ a =~ $x ]]; [[ a =~ "$x" ]]; [[ a =~ $x$x ]]'),
    "many values that complete a word": (MANY, "compgen -W '${a[@]}' > /dev/null"),
    "a long HISTIGNORE": (f"{LONG}; HISTIGNORE=$x", "history -s q"),
    "many values in a condition": (
        MANY,
        '[[ ${a[*]} == x ]]; [[ " ${a[*]} " < x ]]; case " ${a[*]} " in x) ;; esac',
    ),
    "many values in a document": (MANY, ': <<< "x ${a[*]}"; : << E\n${a[*]} ${a[@]}\nE\n'),
    "many empty lines within a command": (
        "",
        "{ :" + "\n" * 20_000 + "}; { " + "# a comment\n" * 20_000 + ":; }",
    ),
    "a pattern below many directories": ("mkdir -p /tmp/d/{1..4000}", "cd /tmp/d; y=(*/*)"),
    "names that complete a word": ("mkdir /tmp/d; cd /tmp/d; touch {1..4000}", "compgen -f > /dev/null; compgen -d"),
    "many things that patterns leave out": (f"{LONG}; GLOBIGNORE=${{x//000000000/a*:}}; cd /", "y=(*)"),
    "many places to look for a directory": (f"{LONG}; CDPATH=${{x//0000000/:}}", "cd nope"),
    "a long alias": (
        f'shopt -s expand_aliases; {LONG}; alias z=": $x"',
        'eval z; alias z > /dev/null; alias > /dev/null; trap "$x" USR1; trap -p > /dev/null',
    ),
    "few long values that become one": (
        f"{LONG}; a=($x 1$x)",
        'y="${a[*]}"; y="${a[*]:-b}"; y="${a[*]^}"; set -- "${a[@]}"; y="b$*"; : "${a[*]}" <<< "${a[*]}"',
    ),
    "a word that is too long for a command": (
        "yes | tr -d '\\n' | head -c 1000000 > /tmp/x",
        "xargs true < /tmp/x; xargs -0 true < /tmp/x; xargs -I{} true < /tmp/x",
    ),
    "a long name in a redirection": (LONG, ': > "$x"'),
    "a long text that is declared": (LONG, 'declare y=$x; export z=$x; alias w=$x; f() { local v="a$1"; }; f "$x"'),
    "a long text that is made longer": (LONG, "y=$x; y+=a; y+=b; q[1]=$x; q[1]+=c; declare -n r=y; y=$x; r+=d"),
    "a long text that is a pattern": (LONG, ': *$x; : a"$x"*; : [$x]; case $x in "${x%0}") ;; esac'),
    "a long text that is tested": (LONG, '[[ -z a$x ]]; [ "a$x" = "a$x" ]; y="${x:+a$x}"; : "${q:-$x$x}"'),
    "a long text that is an environment": (LONG, "export x; env > /dev/null; printenv x > /dev/null"),
    "a long path": (LONG, 'exec 2> /dev/null; : >> "a$x"; cd "$x"; . "$x"'),
    "a long word that is refused": (
        LONG,
        'f() { return "$x"; }; f; read "=$x"; pushd "$x"; dirs "$x"; caller "$x"; set -o "$x"; declare -p "$x"',
    ),
    "a long word that is refused otherwise": (
        LONG,
        'mapfile "$x"; ulimit -n "$x"; kill -"$x" 1; complete -p "$x"; printf -v "$x" a; test "$x" "$x" a; : ${y?$x}',
    ),
    "a long word in a function": (
        LONG,
        'eval "f() { y=$x; }"; declare -f f > /dev/null; type f > /dev/null; export -f f; env > /dev/null',
    ),
    "a long key": (LONG, 'declare -A q; q[$x]=1; : "${!q[@]}"; declare -p q > /dev/null; unset "q[$x]"'),
    "a long prompt": (LONG, "exec 2> /dev/null; PS3=$x; select i in a; do break; done <<< 1; PS4=$x; set -x; :"),
    "a long reply": (LONG, 'select i in a; do break; done <<< "$x"'),
    "a long array that is read": (LONG, 'declare -a "y=($x)"'),
    "a long document without its tabs": (LONG, "eval \"cat <<- 'E' > /dev/null\n\t$x\nE\n\""),
    "a long syntax error": (LONG, 'eval "{ $x )"'),
    "a long command in backticks": (LONG, 'eval "y=\\`: $x\\` z=\\${w:-$x}"'),
    "many parameters that are listed": (MANY, 'set -- "${a[@]}"; set > /dev/null'),
    "a long form of a time": (LONG, 'printf "%($x)T"; printf "%(${x//000/%Y})T"'),
    "many commands of history": (
        "printf 'echo %d\\n' {1..20000} > /tmp/h; HISTSIZE=-1; history -r /tmp/h",
        "history -r /tmp/h; history -w /tmp/h",
    ),
    "many words that are one": (MANY, 'history -s "${a[@]}"; eval "#" "${a[@]}"'),
    "long patterns": (
        f"{LONG}; x=${{x:0:10000}}; x=${{x//0/[ab]}}",
        "[[ a == $x ]]; [[ a != b$x ]]; case a in b) ;; c$x | d$x) ;; esac; v=a; y=${v//e$x}",
    ),
    "many things that no history keeps": (f"{LONG}; HISTIGNORE=${{x//0000000000/a:b*:}}", "history -s a"),
    "a long menu": ("", "select x in {1..20000}; do break; done <<< 1 2> /dev/null"),
    "continued lines": ("", "{ " + ": a\\\n" * 20_000 + "\n}"),
    "quoted lines": ("", '{ : "' + "$x\n" * 20_000 + '"\n}'),
    "a chain of aliases": (
        "shopt -s expand_aliases\n" + "".join(f"alias a{i}='a{i + 1} '\n" for i in range(3_000)) + "alias a3000=:",
        "a0 x",
    ),
    "an alias of many commands": ("shopt -s expand_aliases\nalias q='" + ": ;" * 5_000 + " :'", "q"),
}


SMALL = "cat /dev/null; printf %q x; [[ a =~ b ]]"


@pytest.mark.parametrize("name", SCRIPTS)
def test_large_values_leave_the_loop_free(name: str) -> None:
    before, script = SCRIPTS[name]
    assert not too_long(lambda: held_by(script, SMALL, before), 0.04)  # the mark is 20 ms


_FIRST = """
import asyncio, sys
from tests.support.loop_holds import longest_hold
from ramet import Workspace

async def main():
    ws = Workspace()
    await ws.execute(":")
    print(await longest_hold(ws.execute(sys.argv[1])))

asyncio.run(main())
"""


@pytest.mark.parametrize("script", ["awk 1 /dev/null", "tar cf /tmp/t /tmp", "sed p /dev/null", "[[ a =~ b ]]", "nope"])
def test_an_import_at_first_use_does_not_hold_the_loop(script: str) -> None:
    def held() -> float:
        command = [sys.executable, "-c", _FIRST, script]
        return float(subprocess.run(command, capture_output=True, check=True, text=True).stdout)

    assert any(held() < 0.02 * slowness() for _ in range(5))


LENGTHS = {
    "ternaries": ("echo $((" + "0?2:" * 20_000 + "3))", "3"),
    "signs": ("echo $((" + "- " * 50_000 + "1))", "1"),
    "powers": ("echo $((" + "1**" * 20_000 + "1))", "1"),
    "assignments": ("echo $((" + "x=" * 20_000 + "1))", "1"),
    "negations": ("! " * 50_000 + ":; echo $?", "0"),
    "negated tests": ("[[ " + "! " * 50_000 + "a ]]; echo $?", "0"),
    "a chain": (" && ".join([":"] * 20_000) + "; echo $?", "0"),
    "tests": ("[[ " + " || ".join(["-z a"] * 20_000) + " ]]; echo $?", "1"),
    "elses": ("if false; then :; " + "elif false; then :; " * 5_000 + "else echo 1; fi", "1"),
}


@pytest.mark.parametrize("name", LENGTHS)
def test_length_is_no_depth(name: str) -> None:
    script, expected = LENGTHS[name]

    async def main() -> None:
        ws = Workspace()
        result = await ws.execute(script)
        assert (result.stderr, result.stdout) == (b"", f"{expected}\n".encode())
        await ws.close()

    asyncio.run(main())
