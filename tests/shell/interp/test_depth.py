"""Nothing that nests meets a limit of the host: what bash does, or would do with more memory, works at any depth that a
script can reasonably have, on a small stack, in time that grows with the depth alone; beyond our own limit it is one
loud error, and the session goes on."""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.shell.interp.test_promises import Box
from tests.support.shell_runner import run_script

from ramet.concurrency.recursion import DEEPEST, room
from ramet.shell.interp.state.serialize import copy, dump, load
from ramet.shell.syntax import Parser, parse
from ramet.shell.syntax.printer import function_text, to_text

_STACK = (512 if sys.version_info < (3, 13) else 4096) * 1024
"""Bytes: a sixteenth of what threads usually have. From 3.13 on, Python takes up to 2.5 MB to free what nests 10,000
levels, and no more for any number of them."""


def _nested(begin: str, middle: str, end: str, before: str = "", after: str = "") -> Callable[[int], str]:
    return lambda n: before + begin * n + middle + end * n + after


RUN: dict[str, tuple[Callable[[int], str], str]] = {
    "group": (_nested("{ ", "echo x", "; }"), "x\n"),
    "group with a program": (_nested("{ ", "seq 1", "; }"), "1\n"),
    "redirected group": (_nested("{ ", "echo x", "; } 2>&1"), "x\n"),
    "if": (_nested("if :; then ", "echo x", "; fi"), "x\n"),
    "condition of if": (_nested("if ", "echo x", "; then :; fi"), "x\n"),
    "else": (_nested("if false; then :; else ", "echo x", "; fi"), "x\n"),
    "while": (_nested("while :; do ", "echo x", "; break; done"), "x\n"),
    "until": (_nested("until false; do ", "echo x", "; break; done"), "x\n"),
    "for": (_nested("for i in 1; do ", "echo x", "; done"), "x\n"),
    "for ((": (_nested("for ((i=0;i<1;i++)); do ", "echo x", "; break; done"), "x\n"),
    "case": (_nested("case a in a) ", "echo x", ";; esac"), "x\n"),
    "and": (_nested(": && { ", "echo x", "; }"), "x\n"),
    "not": (_nested("! { ", ":", "; }", after="; echo $?"), "0\n"),
    "functions in functions": (_nested("f() { ", "echo x", "; }; f"), "x\n"),
    "[[ ( ]]": (_nested("( a == b || ", "a", " )", "[[ ", " ]]; echo $?"), "0\n"),
    "[[ ! ]]": (_nested("! ( ", "a", " )", "[[ ", " ]]; echo $?"), "0\n"),
    "$(( ( ))": (_nested("(x+", "1", ")", "x=1; echo $((", "))"), "{n1}\n"),
    "(( ))": (_nested("(", "1", ")", "(( ", " )); echo $?"), "0\n"),
    "$((": (_nested("$((1+", "1", "))", "echo "), "{n1}\n"),
    "$[": (_nested("$[1+", "1", "]", "echo "), "{n1}\n"),
    "?:": (_nested("1 ? ", "7", " : 0", "echo $((", "))"), "7\n"),
    "subscript": (_nested("${a[", "0", "]}", "a=(0); echo "), "0\n"),
    "${a:-": (_nested("${a:-", "x", "}", "echo "), "x\n"),
    '"${a:-': (_nested('"${a:-', "x", '}"', "echo "), "x\n"),
    "${a:= in quotes": (_nested("${a:=", "x", "}", 'echo "', '"'), "x\n"),
    "${a#": (_nested("${a#", "x", "}", "a=xx; echo "), "x\n"),
    "${a/": (_nested("${a/", "y", "/}", "a=xx; echo "), "\n"),
    "${a:n}": (_nested("${a:", "0", "}", "a=0; echo "), "0\n"),
    "here-document": (_nested("${a:-", "x", "}", "cat <<E\n", "\nE\n"), "x\n"),
    "here-string": (_nested("${a:-", "x", "}", "cat <<< "), "x\n"),
    "array": (_nested("${a:-", "x", "}", "b=(", "); echo ${b[0]}"), "x\n"),
    "bad parameter": (_nested("${a b:-", "", "}", "echo ", "; echo x"), ""),
    "case @(": (_nested("@(", "x", ")", "shopt -s extglob\ncase x in ", ") echo x;; esac"), "x\n"),
    "[[ ?(": (_nested("?(", "x", ")", "[[ x == ", " ]]; echo $?"), "0\n"),
    "[[ *(": (_nested("*(", "x", ")", "[[ xx == ", " ]]; echo $?"), "0\n"),
    "${a##+(": (_nested("+(", "x", ")", "shopt -s extglob\na=xxy; echo ${a##", "}"), "y\n"),
    "glob !(": (_nested("!(", "x", ")", "shopt -s extglob\n>x; echo "), "x\n"),
    "{a,": (_nested("{a,", "b", "}", "set -- ", "; echo $#"), "{n1}\n"),
    ",b}": (_nested("{", "b", ",a}", "set -- ", "; echo $#"), "{n1}\n"),
    "{$a,": (_nested("{$a,", "b", "}", "a=1; set -- ", "; echo $#"), "{n1}\n"),
    "command": (lambda n: "command " * n + "echo x", "x\n"),
    "builtin": (lambda n: "builtin " * n + "echo x", "x\n"),
    "time": (lambda n: "{ " + "time " * n + "echo x; } 2> /dev/null", "x\n"),
    "function": (lambda n: f"f() {{ if (($1)); then f $(($1-1)); else echo x; fi; }}; f {n}", "x\n"),
    "function and eval": (lambda n: f"f() {{ if (($1)); then eval 'f $(($1-1))'; else echo x; fi; }}; f {n}", "x\n"),
    "function in a condition": (lambda n: f"f() {{ (($1)) || return 0; ! f $(($1-1)); }}; f {n}; echo $?", "0\n"),
    "source": (lambda n: f"n={n}; echo 'if ((n-->0)); then . ./s; else echo x; fi' > s; . ./s", "x\n"),
    "traps": (lambda n: f"n={n}; trap '((n-->0)) && kill -USR1 $$' USR1; kill -USR1 $$; echo x", "x\n"),
    "forgotten function": (_nested("{ ", ":", "; }", "f() { ", "; }; f() { :; }; unset -f f; echo x"), "x\n"),
    "function that is forked": (_nested("if :; then ", "echo x", "; fi", "f() { ", "; }; (f); f | cat"), "x\nx\n"),
}
SHALLOWER: dict[str, tuple[Callable[[int], str], str]] = {
    "subshell": (_nested("( ", "echo x", " )"), "x\n"),
    "$(": (_nested("$(echo ", "x", ")", "echo "), "x\n"),
    '"$(': (_nested('"$(echo ', "x", ')"', "echo "), "x\n"),
    "<(": (_nested("<(cat ", "/dev/null", ")", "cat ", "; echo x"), "x\n"),
    "pipeline": (_nested("{ ", "echo x", "; } | cat"), "x\n"),
    "subshell of a function": (lambda n: f"f() {{ if (($1)); then (f $(($1-1))); else echo x; fi; }}; f {n}", "x\n"),
    "$( of a function": (lambda n: f"f() {{ if (($1)); then echo $(f $(($1-1))); else echo x; fi; }}; f {n}", "x\n"),
    "eval": (lambda n: "eval " * n + "echo x", "x\n"),
    "bash -c": (
        lambda n: f'export n={n} s=\'if ((n-->0)); then bash -c "$s"; else echo x; fi\'; bash -c "$s"',
        "x\n",
    ),
}
"""What takes a process per level, of which there may be some thousands, or reads its text at every level."""


@pytest.fixture(autouse=True)
def _no_collections() -> Iterator[None]:
    """The collector would take half of the time: every tree here is of hundreds of thousands of objects."""
    gc.disable()
    yield
    gc.enable()


def _on_a_small_stack(work: Callable[[], Any]) -> Any:
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(work())
        except BaseException as error:
            found.append(error)

    usual = threading.stack_size(_STACK)
    try:
        thread = threading.Thread(target=run)
        thread.start()
    finally:
        threading.stack_size(usual)
    thread.join()
    if isinstance(found[0], BaseException):
        raise found[0]
    return found[0]


def _ran(script: str) -> tuple[bytes, bytes, int]:
    result: tuple[bytes, bytes, int] = _on_a_small_stack(lambda: asyncio.run(run_script(script, {}, {}, {})))
    return result


@pytest.mark.parametrize("kind", RUN)
def test_five_thousand_levels(kind: str) -> None:
    make, expected = RUN[kind]
    limit = sys.getrecursionlimit()
    out, err, _ = _ran(make(5000))
    assert out.decode() == expected.replace("{n1}", "5001")
    assert b"recursion" not in err
    assert b"internal" not in err
    assert sys.getrecursionlimit() == limit


@pytest.mark.parametrize("kind", SHALLOWER)
def test_five_hundred_processes(kind: str) -> None:
    make, expected = SHALLOWER[kind]
    assert _ran(make(500)) == (expected.encode(), b"", 0)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("{ " * (DEEPEST + 1) + "echo x" + "; }" * (DEEPEST + 1), "syntax error: maximum nesting level exceeded"),
        ("echo " + "${a:-" * (DEEPEST + 2) + "x" + "}" * (DEEPEST + 2), "syntax error: maximum nesting level exceeded"),
        (
            "[[ " + "( " * (DEEPEST + 1) + "x" + " )" * (DEEPEST + 1) + " ]]",
            "syntax error: maximum nesting level exceeded",
        ),
        ("[[ x == " + "@(" * (DEEPEST + 1) + "x" + ")" * (DEEPEST + 1) + " ]]", "maximum nesting level exceeded"),
        ("f() { f; }; f", "f: maximum function nesting level exceeded (10240)"),
        ('s=\'eval "$s"\'; eval "$s"', "eval: maximum eval nesting level exceeded (10240)"),
        ("echo . ./s > s; . ./s", ".: maximum source nesting level exceeded (10240)"),
        ("trap 'kill -USR1 $$; :' USR1; kill -USR1 $$", "trap: maximum trap nesting level exceeded (10240)"),
    ],
)
def test_where_it_ends(script: str, message: str) -> None:
    async def twice() -> None:
        box = Box()
        status, _, err = await box.run(script)
        assert status != 0
        assert message in err
        assert err.count("\n") == 1
        assert await box.run("echo after") == (0, "after\n", "")

    _on_a_small_stack(lambda: asyncio.run(twice()))


@pytest.mark.parametrize("kind", ["if", "case", "for ((", "[[ ( ]]", "${a:-", "$((", "functions in functions"])
def test_printing_and_letting_go(kind: str) -> None:
    text = RUN[kind][0](2000)

    def work() -> tuple[str, int]:
        tree = parse(text)
        printed = to_text(tree)
        again = Parser(printed).next()
        assert again is not None
        assert len(to_text(again)) == len(printed)
        function = Parser(f"f() {{ {text}; }}").next()
        assert function is not None
        shown = function_text(function.statements[0].node)  # type: ignore[arg-type]
        return printed, len(shown)

    printed, length = _on_a_small_stack(work)
    assert printed.count("\n") < length


@pytest.mark.parametrize("kind", ["if", "group", '"${a:-', "[[ ( ]]", "functions in functions"])
def test_functions_are_carried(kind: str) -> None:
    make, expected = RUN[kind]
    text = make(1000)

    async def work() -> None:
        box, other = Box(), Box()
        assert await box.run(f"f() {{ {text}; }}") == (0, "", "")
        assert load(other.session, json.loads(json.dumps(dump(box.session)))) == []
        assert await other.run("f") == (0, expected, "")
        twin = other.shell.session({})
        copy(other.session, twin)
        other.session = twin
        assert await other.run("f; unset -f f; f 2> /dev/null || echo gone") == (0, expected + "gone\n", "")

    _on_a_small_stack(lambda: asyncio.run(work()))


def test_room_closes_behind_the_last_one() -> None:
    limit = sys.getrecursionlimit()
    with room:
        wide = sys.getrecursionlimit()
        with room:
            assert sys.getrecursionlimit() == wide > limit
        assert sys.getrecursionlimit() == wide
    assert sys.getrecursionlimit() == limit
    with pytest.raises(ValueError, match="x"), room:
        raise ValueError("x")
    assert sys.getrecursionlimit() == limit
