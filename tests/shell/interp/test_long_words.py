"""What is said and done about a very long word is what is said and done about a short one."""

from __future__ import annotations

import asyncio
import random
import re
import threading

import pytest

from ramet import Workspace
from ramet.core.streams import PipeWriter
from ramet.shell.expand.word.transform import key_text
from ramet.shell.syntax.nodes import Function
from ramet.shell.syntax.parser import Parser
from ramet.shell.syntax.printer import function_text, to_text

SHORT = "zqz"
LONG = SHORT * 400_000
COMMANDS = (
    'exit "$x"',
    '(exit "$x"); echo $?',
    'f() { return "$x"; }; f; echo $?',
    'for i in 1 2; do break "$x"; done; echo $?',
    "x=-$x; shift $x; echo $?",
    'read "=$x"; read -n "$x" y; read -t "$x" y; read -u "$x" y; echo $?',
    'read y "=$x" <<< "a b"; echo $? $y',
    'read -a "=$x" <<< "a b"; echo $?',
    'mapfile "=$x"; mapfile -n "$x" y; echo $?',
    "mapfile -C 'echo \"$x\" >&2; :' -c 1 y <<< a",
    'mapfile -C "echo $x" -c 1 y <<< a',
    'help "$x"; echo $?',
    'ulimit "$x"; ulimit -n "$x"; echo $?',
    'pushd "+$x"; popd "$x"; dirs "$x"; dirs "+$x"; echo $?',
    'caller "$x"; echo $?',
    'set -o "$x"; echo $?',
    'declare -p "$x" SHELL; echo $?',
    'declare "=$x" y=1; export "=$x"; readonly "$x-=1"; f() { local "=$x"; }; f; echo $? $y',
    'declare -f "$x"; declare -F "$x"; declare -pf "$x"; export -f "$x"; echo $?',
    'declare -n "r=-$x"; declare -n s; s="-$x"; echo $?',
    'let "$x+"; let "1 $x"; echo $?',
    "(( 1 $x )); echo $?",
    'unset -v "=$x"; unset "q[$x]"; declare -A q=([$x]=1 [b]=2); unset "q[$x]"; declare -p q',
    'kill "$x"; kill -s "$x" 1; kill -"$x" 1; kill -s"$x" 1; kill -l "$x"; kill %"$x"; echo $?',
    'wait "$x"; wait -n "$x"; wait -p "=$x" 1; jobs "$x"; disown "$x"; set -m; fg "$x"; bg "$x"; echo $?',
    'complete -A "$x" z; complete -o "$x" z; complete -p "$x"; compopt "$x"; compopt -o "$x" z',
    'complete -W "$x" z; complete -p',
    'builtin "$x"; command -v "$x"; command -V "$x"; type "$x"; hash "$x"; enable "$x"; enable -f "$x"; echo $?',
    'alias y="$x" z=1; alias y z; alias; type y; command -v y; unalias "$x"; echo $?',
    'history -d "$x"; history -p "$x"; history "$x"; echo $?',
    'printf -v "=$x" a; declare -A q; printf -v "q[$x]" a; printf -v y "%$x" a; printf "%d %c" "$x" "$x"; echo $?',
    'test "$x" "$x" "$x"; test "$x" "$x"; test "$x" -eq 1; [ -o "$x" ]; [[ -o $x ]]; echo $?',
    '"$x"; exec "$x"',
    ": ${y?$x}",
    ': "${y:?a$x$x}"',
    ': ${y:=a$x$x}; echo "$y"',
    "x=-$x; : ${!x}; echo $?",
    ': <& "$x"; : <& "$x-"; echo $?',
    'select i in a; do echo "$REPLY"; break; done <<< "$x"',
    'PS3=$x; select i in a; do echo "$REPLY"; break; done <<< 1',
    'PS4="$x+"; set -x; :; : "$x"',
    'TIMEFORMAT="$x"; time :; TIMEFORMAT="$x%%$x"; time :',
    "BASH_COMPAT=$x",
    'set -o posix; set -o "$x"; echo not here',
    'set -o posix; readonly "q[$x]=1"; echo not here',
    'set -o posix; f() { return "$x"; }; f; shift "$x"; echo $?; for i in 1; do break "$x"; done; echo not here',
    "readonly y=1; y=$x; declare y=$x; echo $?",
    "declare -c y=z$x; echo $y",
    'declare -A "y=([a]=$x [b]=2)"; declare -a "z=(1 $x)"; declare -p y z',
    'declare -A y; y[a$x]=1; declare -p y; echo "${!y[@]}" "${y[a$x]}"',
    'declare -A y=(["a $x"]=1); declare -p y; echo "${y[@]@K}"',
    'eval "f() { y=$x\\"$x\\"\'$x\'; cat <<< $x; echo \\`: $x\\` \\$(: $x) \\${y:-$x}; }"; declare -f f; type f; set',
    'eval "f() { cat << E\n$x\nE\n}"; f; declare -f f; export -f f; bash -c "declare -f f; f"',
    'eval "echo \\`echo $x\\` \\${y:-$x} \\$\'$x\' \\$\\"$x\\" ~$x"',
    'eval "{ $x"; eval "$x )"; eval ") $x"; eval "case $x in ( )"; echo $?',
    'eval "cat <<- E\n\t\ta$x\n\t$x\tb\nE\n"',
    "eval \"cat <<- 'E'\n\t\ta$x\n\t$x\tb\nE\n\"",
    'history -s "$x" ; history -w /tmp/h; history -c; history -r /tmp/h; history; cat /tmp/h',
    'bash <<< "y=$x; read z\na b\necho \\$y \\$z"',
    'trap \'echo "$BASH_COMMAND"\' ERR; eval "false $x"',
)


async def said(script: str, word: str) -> tuple[bytes, bytes, int]:
    async with Workspace() as ws:
        await ws.execute("cd /tmp")
        result = await ws.execute(f"x={word}\n{script}")
        return result.stdout, result.stderr, result.exit_code


@pytest.mark.parametrize("script", COMMANDS)
def test_a_long_word_is_treated_as_a_short_one(script: str) -> None:
    out, err, status = asyncio.run(said(script, SHORT))
    found_out, found_err, found_status = asyncio.run(said(script, LONG))
    assert found_status == status
    assert found_out.replace(LONG.encode(), SHORT.encode()) == out
    assert found_err.replace(LONG.encode(), SHORT.encode()) == err


def test_keys_are_quoted_where_they_need_to_be() -> None:
    for code in (*range(1, 0x300), 0x20AC, 0xDC80, 0xDCFF, 0x1F600):
        char = chr(code)
        meant = char in " \t\n'\"\\|&;()<>!{}*[]?^$`"
        plain = not meant and code > 32 and not 127 <= code < 0xA0 and not 0xDC80 <= code <= 0xDCFF
        assert (key_text(f"a{char}b") == f"a{char}b") is plain, hex(code)


@pytest.mark.parametrize("quoted", [True, False])
def test_tabs_go_from_every_line_of_a_document_however_long(quoted: bool) -> None:
    rng = random.Random(7)
    pieces = [
        "\t" * 70_000,
        "\t",
        "a" * 70_000,
        "b\n",
        "\n",
        "\t\tc",
        "\\\n" if quoted else "d\n",
        "e" * 200_000 + "\n",
    ]
    for _ in range(40):
        body = "".join(rng.choices(pieces, k=rng.randrange(1, 9))) + "\n"
        node = Parser(f"cat <<- {chr(39) if quoted else ''}E{chr(39) if quoted else ''}\n{body}E\n").next()
        assert node is not None
        here = node.statements[0].node.redirects[0].here  # type: ignore[union-attr]
        text = "".join(part.text for part in here.body.parts)  # type: ignore[union-attr]
        assert text == re.sub(r"(?m)^\t+", "", body)


def test_a_function_with_very_long_words_is_printed_as_it_was_written() -> None:
    word = "w" * 1_100_000
    text = f"f () \n{{ \n    y={word} '{word}' \"{word}$x-{word}\" $(echo {word})\n}}"
    node = Parser(text).next()
    assert node is not None
    function = node.statements[0].node
    assert isinstance(function, Function)
    assert function_text(function) == text
    assert Parser(to_text(node)).next() == node


@pytest.mark.parametrize("size", [65_535, 65_536, 65_537, 131_072, 200_000])
def test_names_of_any_length_are_names(size: int) -> None:
    name = "n" * size

    async def values() -> bytes:
        async with Workspace() as ws:
            return (await ws.execute(f'echo ${{{name}}}-${name}-${{{name}:-d}}-"${name}"-`echo {name}` | wc -c')).stdout

    # A name beyond 65,536 characters is that of no variable, and means nothing more.
    assert asyncio.run(values()) == b"%d\n" % (size + 6)


def test_only_the_thread_of_the_loop_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe whose reader looks at it just then would lose what another thread writes."""
    threads: set[int] = set()
    write = PipeWriter.write

    def watched(self: PipeWriter, data: bytes) -> None:
        threads.add(threading.get_ident())
        write(self, data)

    async def act() -> str:
        async with Workspace() as ws:
            await ws.execute(f"x={LONG}")
            return (await ws.execute('{ declare "=$x" "-$x"; unset -v "=$x"; } 2>&1 | cut -c 1-40')).text

    monkeypatch.setattr(PipeWriter, "write", watched)
    assert asyncio.run(act()).count("bash: line 1: ") == 3
    assert threads == {threading.get_ident()}
