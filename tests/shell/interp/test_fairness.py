"""No script holds up the event loop, and none takes more than its limits; measured in the loop's own time."""

from __future__ import annotations

import asyncio
import random
import time
from itertools import pairwise

import pytest
from tests.support.loop_holds import Lateness, held_by, too_long

from ramet import Workspace
from ramet.core.limits import Limits

BIG = "x=$(head -c 1000000 /dev/zero | tr '\\0' a)"
MANY = "a=({1..20000})"
DOUBLING = " ".join(f"{name}={after}+{after}" for name, after in pairwise("abcdefghijklmnopqrstuvwxyz"))
HOSTILE = {
    "a pattern that matches nowhere": f"{BIG}; : ${{x//a*b/c}}",
    "a pattern that matches everywhere": f"{BIG}; y=${{x//[a-c]/bb}}; echo ${{#y}}",
    "stripping": f"{BIG}; : ${{x%%?b*}} ${{x##*b?}} ${{x%b}}",
    "a regular expression": f"{BIG}; [[ $x =~ (a*)*b ]]",
    "a row of statements": "; ".join([":"] * 20_000),
    "a chain": " && ".join([":"] * 5_000),
    "deep ifs": "if :; then " * 900 + ":; " + "fi; " * 900,
    "a range": "a=({1..20000}); set -- {1..20000}; b=(\"${a[@]}\")",
    "many arguments": "echo {1..20000} > /dev/null; printf '%s\\n' {1..20000} > /dev/null",
    "splitting": "x=$(seq 20000); set -- $x; for y in $x; do :; done",
    "mapfile": "mapfile -t a < <(seq 20000)",
    "showing much": f"{BIG}; declare -p x > /dev/null; set > /dev/null; a=({{1..20000}}); declare -p a > /dev/null",
    "printing into a variable": "a=({1..20000}); printf -v x '%s,' \"${a[@]}\"",
    "reading a long line": f"{BIG}; IFS=, read -a y <<< \"$x\"; read z <<< \"$x\"",
    "a long pattern": f"{BIG}; [[ ${{x}}b == $x* ]]; case b$x in *$x) ;; esac",
    "many fields": "a=({1..20000}); echo ${!a[@]} ${a[*]} > /dev/null; b=(\"${a[@]:5:15000}\")",
    "a large capture": "x=$(head -c 1000000 /dev/zero | tr '\\0' a)",
    "a long expression": f"(({'1+' * 5000}1))",
    "loops over an array": "a=({1..20000}); for x in \"${a[@]}\" ${a[@]} \"${!a[@]}\"; do break; done",
    "an array in a function": "a=({1..20000}); f() { local -a b=(\"${a[@]}\"); }; f",
    "an associative array": "declare -A m; for i in {1..9000}; do m[k$i]=; done; for k in \"${!m[@]}\"; do break; done",
    "a command of many lines": "x=$(yes 'a*b|c) ;;' | head -5000); eval \"case x in $x esac\"",
    "here-documents": f"{BIG}; y=$x$x$x; cat <<< $y > /dev/null; cat <<E > /dev/null\n$y\nE\necho $y > /dev/null",
    "a comparison": f"{BIG}; [[ $x == \"$x\" ]]",
    "many functions": "for i in {1..2000}; do eval \"f$i() { :; }\"; done; declare -f > /dev/null",
    "many parameters": "set -- {1..20000}; while [ $# -gt 19500 ]; do shift; done",
    "many jobs": "for i in {1..500}; do sleep 100 & done; kill $(jobs -p)",
    "a very long expression": f"(({'1+' * 20_000}1)); x=$(({'2*' * 20_000}1))",
    "a long expression in a variable": "x=$(yes 1+ | head -20000 | tr -d '\\n')1; ((y = $x)); echo $y; ((y = x))",
    "many cases": "case z in " + " ".join(f"a{i}) ;;" for i in range(20_000)) + " z) echo z;; esac",
    "many patterns": "case z in " + " ".join(f"*a{i}) ;;" for i in range(4_000)) + " z) echo z;; esac",
    "many variables": "for i in {1..20000}; do declare v$i=$i; done; { set; declare; declare -p; } > /dev/null",
    "a large function": "f() {\n" + "echo hi\n" * 20_000 + "}\nf > /dev/null",
    "a large substitution": "x=$(" + "echo hi\n" * 20_000 + ")",
    "a large subshell": "(\n" + "echo hi\n" * 20_000 + ") > /dev/null",
    "a large here-document": "cat > /dev/null <<E\n" + "line $x of text\n" * 20_000 + "E\n",
    "a large quoted here-document": "cat > /dev/null <<'E'\n" + "line $x of text\n" * 20_000 + "E\n",
    "comments": "# x\n" * 20_000,
    "escapes": ": " + "\\a" * 20_000,
    "a long word": ": " + "a" * 2_000_000 + " '" + "b" * 2_000_000 + "'",
    "parameters in a word": ': "' + "a$x" * 20_000 + '"',
    "many words": ": " + "w " * 20_000,
    "a long chain": " && ".join([":"] * 20_000),
    "deep substitutions": "echo " + "$(" * 400 + ":" + ")" * 400,
    "substitutions without end": "echo " + "$(" * 20_000,
    "a very large here-string": "x=$(head -c 1000000 /dev/zero | tr '\\0' a); cat <<< $x > /dev/null",
    "slices of a large array": "a=({1..20000}); for i in {1..200}; do : \"${a[@]:i*1000:3}\"; done",
    "an eval bomb": "x=:; for i in {1..15}; do x=\"$x;$x\"; done; eval \"$x\"",
    "pairs of an associative array": "declare -A m=(" + " ".join(f"[k{i}]=v" for i in range(20_000)) + ")",
    "a million elements": "a=({1..20000}); a+=(1)",
    "a hole in a large array": f"{MANY}; unset 'a[7]'; b=(\"${{a[@]}}\"); : ${{!a[@]}}; unset a b",
    "many lines": "seq 20000 > /tmp/x; mapfile -t a < /tmp/x; read -a a -d '' < /tmp/x",
    "large slices": f"{MANY}; : \"${{a[@]:1}}\" ${{a[@]:1}}; x=\"${{a[*]:1}}\"; b=(\"${{a[@]:5:15000}}\")",
    "many keys": f"{MANY}; : \"${{!a[@]}}\" ${{#a[@]}}; x=\"${{!a[*]}}\"",
    "many values in one text": f"{MANY}; x=${{a[*]}}; x=\"${{a[*]}}\"; : \"${{a[*]}}\" ${{a[*]}} \"x${{a[@]}}y\"",
    "many values changed": f"{MANY}; b=(\"${{a[@]/1/y}}\")",
    "many values or others": f"{MANY}; : \"${{a[@]:-x}}\" ${{a[@]-x}}",
    "many parameters in and out": "set -- {1..20000}; shift; x=\"$*\"; for x; do break; done; set -- \"${@:2}\"",
    "shells with a large array": f"{MANY}; for i in {{1..9}}; do (a[1]=2); done; a[2]=3 & a[3]=4; : | a[1]=2; wait",
    "functions with a large array": f"{MANY}; f() {{ local -I a; a[1]=3; }}; f; a=x f; f \"${{a[@]}}\"",
    "a large array listed": "a=({1..20000}); { declare -p a; declare; set; echo \"${a[@]@A}\"; } > /dev/null",
    "an array filled from its end": "for ((i=20000; i; i--)); do a[i]=; done; : \"${a[@]}\" \"${a[@]:5:3}\"",
    "many steps of a millisecond": "a=({1..900}); for i in {1..20}; do " + ": \"${a[@]@A}${a[@]@K}\"\n" * 9 + "done",
    "a function of such steps": "a=({1..900}); f() {\n" + "x=\"${a[*]@A}\"\n" * 60 + "}; f",
    "a chain of such steps": "a=({1..900}); " + " && ".join(["x=\"${a[*]@A}\""] * 60),
    "turns of such steps": "a=({1..900}); i=0; until ((i++ == 60)); do x=\"${a[*]@A}\"; done",
    "groups on middling texts": "shopt -s extglob; printf -v x %030000d; [[ $x == +(0|1|00)2 ]]; : ${x/*(0|00)1}",
    "many middling arguments": f"printf -v x %0200000d; printf '%q %d' {'$x ' * 5} > /dev/null",
    "values that double": f"{DOUBLING}; echo $((a)); ((a)); [[ a -eq 1 ]]; let a; x[a]=1",
    "a large associative array": "declare -A m; for i in {1..20000}; do m[k$i]=; done; : \"${m[@]}\" ${m[*]/x/y}",
    "many assignments": " ".join(["a=1"] * 20_000),
    "many assignments before a command": " ".join(f"a{i % 500}=1" for i in range(20_000)) + " :",
    "many elements": "declare -a m=(" + " ".join(f"[{i}]=v" for i in range(20_000)) + ")",
    "pairs without subscripts": "declare -A m=(" + " ".join(f"k{i} v" for i in range(20_000)) + ")",
    "many numbers": "typeset -i a=({1..20000})",
    "many declarations": "declare " + " ".join(f"v{i}=1" for i in range(10_000)) + "; unset ${!v*}",
    "a large environment": "export " + " ".join(f"v{i}=1" for i in range(10_000)) + "; env > /dev/null",
    "a long list in braces": "echo {" + ",".join(f"a{i}" for i in range(20_000)) + "} > /dev/null",
    "tests in a row": "[[ " + " && ".join(["a == a"] * 10_000) + " ]]; [ " + " -a ".join(["a = a"] * 10_000) + " ]",
    "patterns of one case": "case z in " + "|".join(f"a{i}*" for i in range(5_000)) + ") ;; esac",
    "many parameters as words": ": " + "$x " * 20_000,
    "a long number": "((x=0x" + "1" * 20_000 + "))",
    "a long expression to assign": "x=$(yes 1+ | head -9000 | tr -d '\\n')1; declare -i n=$x; n=$x; a[$x]=1; let $x",
    "very many words for a program": "/bin/true {1..20000}; printf -v x '%s,' {1..20000}",
}  # fmt: skip


SMALL = "head -c 9 /dev/zero | tr a b > /dev/null; seq 1 > /dev/null; [[ a =~ b ]]"


@pytest.mark.parametrize("name", HOSTILE)
def test_nothing_holds_up_the_loop(name: str) -> None:
    assert not too_long(lambda: held_by(HOSTILE[name], SMALL), 0.04)  # the mark is 20 ms


@pytest.mark.parametrize(
    "script",
    [
        "echo {1..100000000}",
        "echo {1..1000}{1..1000}{1..1000}",
        f"echo {'{a,b}' * 40}",
        "a=({1..100000000})",
        "for x in {1..100000000}; do echo $x; done",
        "set -- {1..100000000}",
    ],
)
def test_a_brace_expansion_is_counted_before_it_is_made(script: str) -> None:
    async def main() -> None:
        ws = Workspace()
        start = time.thread_time()
        result = await ws.execute(script)
        assert time.thread_time() - start < 5  # milliseconds, and for ever where it is made
        assert result.exit_code != 0
        assert result.stdout == b""
        assert b"limit reached: expansion_words" in result.stderr

    asyncio.run(main())


@pytest.mark.parametrize(
    "script",
    [
        "x=$(head -c 40000000 /dev/zero | tr '\\0' a); : ${x//?/bb}",
        "x=$(seq 300000); while :; do y=${x//1*[!0-9]2/}; done",
        "while :; do x=({1..100000}); done",
        ":; " * 50_000 + "while :; do :; done",
    ],
)
def test_time_ends_everything_promptly(script: str) -> None:
    async def main() -> None:
        ws = Workspace()
        start = time.thread_time()
        result = await ws.execute(script, timeout=0.3)
        assert result.exit_code == 124
        assert time.thread_time() - start < 5
        assert (await ws.execute("echo on")).stdout == b"on\n"

    asyncio.run(main())


ENDLESS = {
    "sleep": "sleep 100",
    "a tight loop": "while :; do :; done",
    "a regular expression": "x=$(head -c 1000000 /dev/zero | tr '\\0' a); while :; do [[ $x =~ (a*)*b ]]; done",
    "a pipeline": "yes | while read x; do :; done | cat > /dev/null",
    "a command that reads on": "yes | sort",
    "a job that is waited for": "sleep 100 & wait",
    "a substitution": "x=$(while :; do :; done)",
}


async def how_late(script: str) -> float:
    """Seconds between the order to stop and the end, the longer one of cancellation and timeout."""
    ws = Workspace()
    running = asyncio.create_task(ws.execute(script))
    await asyncio.sleep(0.1)
    since = Lateness()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    late = since()
    since = Lateness()
    assert (await ws.execute(script, timeout=0.1)).exit_code == 124
    late = max(late, since(0.1))
    assert (await ws.execute("echo on")).stdout == b"on\n"
    await ws.close()
    return late


async def cancelled_at(script: str, moment: float) -> float:
    """Seconds from a cancellation in the middle of a script to its end; the session is as it was."""
    ws = Workspace()
    await ws.execute("keep=1; cd /tmp; kept() { echo $keep; }")

    async def again_and_again() -> None:
        while True:
            await ws.execute(script)

    running = asyncio.create_task(again_and_again())
    await asyncio.sleep(moment)
    since = Lateness()
    running.cancel()
    await asyncio.wait((running,))
    late = since()
    assert running.cancelled()
    result = await ws.execute("kept; pwd; (echo $keep | cat); echo $BASH_SUBSHELL")
    assert (result.stdout, result.stderr) == (b"1\n/tmp\n1\n0\n", b"")
    await ws.close()
    return late


@pytest.mark.parametrize("name", [*HOSTILE, *ENDLESS])
def test_cancelled_at_any_moment_a_session_goes_on(name: str) -> None:
    script = (HOSTILE | ENDLESS)[name]
    moments = random.Random(name)
    assert not too_long(lambda: cancelled_at(script, moments.uniform(0, 0.12)), 0.05)


@pytest.mark.parametrize("name", ENDLESS)
def test_cancellation_and_timeouts_take_no_50_ms(name: str) -> None:
    assert not too_long(lambda: how_late(ENDLESS[name]), 0.05)


@pytest.mark.parametrize("script", ["echo ${y:$x}", "echo ${a[$x]}", "[[ $x -eq 1 ]]", "echo $((x))"])
def test_a_long_expression_where_nothing_may_wait_has_a_limit_with_a_name(script: str) -> None:
    async def run(limits: Limits) -> tuple[int, bytes]:
        ws = Workspace(limits=limits)
        result = await ws.execute(f"x=$(yes 1+ | head -5000 | tr -d '\\n')1; y=; a=(); {script}")
        return result.exit_code, result.stderr

    code, said = asyncio.run(run(Limits()))
    assert code != 0
    assert b"limit reached: expression_chars (8192)" in said
    assert asyncio.run(run(Limits(expression_chars=20_000)))[1] == b""


def test_words_of_a_command_are_limited_however_they_come() -> None:
    async def main() -> None:
        ws = Workspace(limits=Limits(expansion_words=1000))
        result = await ws.execute("echo {1..999}; echo {1..500} {1..501}; echo no")
        assert result.exit_code != 0
        assert result.stdout.count(b"\n") == 1
        assert b"expansion_words" in result.stderr

    asyncio.run(main())


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("x=abc; x+=def; y=$x; x+=g; echo $x $y", "abcdefg abcdef\n"),
        ("f() { local x=1; x+=2; echo $x; }; x=a; f; x+=b; echo $x", "12\nab\n"),
        ("x=1; (x+=2; echo $x); echo $x", "12\n1\n"),
        ("a=(x); a+=(y z); a+=(); echo ${a[@]} ${#a[@]} ${!a[@]}", "x y z 3 0 1 2\n"),
        ("a=([5]=x); a+=(y); echo ${!a[@]}", "5 6\n"),
        ("a=s; a+=(t); echo ${a[@]}", "s t\n"),
        ("declare -i -a n; n=(1+1 2*3); echo ${n[@]}", "2 6\n"),
        ("declare -n r=t; r=(1 2); echo ${t[@]}", "1 2\n"),
        ("read -ra w <<< $'a b\\r'; echo ${#w[@]} ${#w[1]}", "2 2\n"),
        ("read a b c <<< ' 1 2  3  4 '; echo \"$a|$b|$c\"", "1|2|3  4\n"),
        ("read a b <<< ' 1 '; echo \"$a|$b|\"", "1||\n"),
        ("IFS=: read a b <<< '1:2:3:'; echo \"$a|$b\"", "1|2:3:\n"),
        ("printf '%s-' {1..3000} | wc -c; printf '%b-' a 'b\\c' {1..3000}", "13893\na-b"),
        ("printf '%d\\n' {1..2000} z 2> /dev/null | tail -1", "0\n"),
        ("echo -n {1..20000} | md5sum; echo $(seq 20000) | tr -d '\\n' | md5sum", None),
        ("RANDOM=5; a=$(echo $RANDOM); b=$(echo $RANDOM); [[ $a != $b ]] && echo differ", "differ\n"),
        ("(( 8 / 0 ))", ""),
    ],
)
def test_quick_ways_mean_the_same(script: str, expected: str | None) -> None:
    async def main() -> None:
        out = (await Workspace().execute(script)).stdout.decode()
        if expected is None:
            first, second = out.splitlines()
            assert first == second
        else:
            assert out == expected

    asyncio.run(main())


@pytest.mark.parametrize("script", ["f() { (f); }; f", "f() { echo $(f); }; f", "f() { local x=1; (local x; f); }; f"])
def test_shells_within_shells_end_at_the_limit_of_processes(script: str) -> None:
    async def main() -> None:
        ws = Workspace(limits=Limits(processes=300))
        result = await ws.execute(f"{script}; echo after")
        assert b"fork: limit reached: processes (300)" in result.stderr
        assert result.stdout.endswith(b"after\n")

    asyncio.run(main())


@pytest.mark.parametrize(
    "script",
    [
        'x=\'eval "$x"; eval "$x"\'; eval "$x"',
        "f() { eval 'f; f'; }; f",
        "echo '. /tmp/s; . /tmp/s' > /tmp/s; . /tmp/s",
    ],
)
def test_what_nests_without_end_ends_as_a_whole(script: str) -> None:
    async def main() -> None:
        ws = Workspace(limits=Limits(recursion=300))
        result = await ws.execute(f"{script}\necho after")
        assert result.stderr.count(b"nesting level exceeded (300)") == 1
        assert result.stdout == b"after\n"

    asyncio.run(main())
