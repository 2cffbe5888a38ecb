"""What the parser makes of each form of the grammar."""

from __future__ import annotations

import pytest

from ramet.shell.syntax import Options, Parser, SyntaxFailure, parse
from ramet.shell.syntax import nodes as n
from ramet.shell.syntax.printer import to_text


def word(text: str) -> n.Word:
    return n.Word((n.Literal(text),)) if text else n.Word(())


def one(text: str, extglob: bool = False) -> n.Node:
    script = parse(text, Options(extglob=extglob))
    assert len(script.statements) == 1
    return script.statements[0].node


def simple(text: str, extglob: bool = False) -> n.Simple:
    node = one(text, extglob)
    assert isinstance(node, n.Simple)
    return node


def parts(text: str, extglob: bool = False) -> tuple[n.Part, ...]:
    """The parts of the word after `echo`."""
    found = simple(f"echo {text}", extglob).words[1]
    assert isinstance(found, n.Word)
    return found.parts


L, E, S, P = n.Literal, n.Escaped, n.SingleQuoted, n.Param


def D(*inside: n.Part, locale: bool = False) -> n.DoubleQuoted:  # noqa: N802 - named after the node
    return n.DoubleQuoted(inside, locale)


def V(name: str) -> n.Param:  # noqa: N802 - a plain $name
    return n.Param(name, braced=False)


WORDS: list[tuple[str, tuple[n.Part, ...]]] = [
    ("abc", (L("abc"),)),
    ("a\\ b", (L("a"), E(" "), L("b"))),
    ("'a b'c", (S("a b"), L("c"))),
    ('"a $x b"', (D(L("a "), V("x"), L(" b")),)),
    ('"\\$\\a"', (D(E("$"), L("\\a")),)),
    ('$"x"', (D(L("x"), locale=True),)),
    ("$'a\\tb'", (n.AnsiQuoted("a\tb", ""),)),
    ("$'it\\'s'", (n.AnsiQuoted("it's", ""),)),
    ("$x", (V("x"),)),
    ("$1x", (V("1"), L("x"))),
    ("$@$*$#$?$-$$$!", tuple(V(c) for c in "@*#?-$!")),
    ("$", (L("$"),)),
    ("a$", (L("a$"),)),
    ('"$"', (D(L("$")),)),
    ("${x}", (P("x"),)),
    ("${10}", (P("10"),)),
    ("${#x}", (P("x", form="length"),)),
    ("${#}", (P("#"),)),
    ("${##}", (P("#", form="length"),)),
    ("${#@}", (P("@", form="length"),)),
    ("${#-}", (P("-", form="length"),)),
    ("${#:-x}", (P("#", op=":-", args=(word("x"),)),)),
    ("${##x}", (P("#", op="#", args=(word("x"),)),)),
    ("${!x}", (P("x", form="indirect"),)),
    ("${!}", (P("!"),)),
    ("${!x*}", (P("x", form="names", op="*"),)),
    ("${!x@}", (P("x", form="names", op="@"),)),
    ("${!a[@]}", (P("a", "@", "keys"),)),
    ("${!a[0]}", (P("a", word("0"), "indirect"),)),
    ("${!x:-y}", (P("x", form="indirect", op=":-", args=(word("y"),)),)),
    ("${!#}", (P("#", form="indirect"),)),
    ("${a[*]}", (P("a", "*"),)),
    ("${a[i+1]}", (P("a", word("i+1")),)),
    ("${a[b[1]]}", (P("a", word("b[1]")),)),
    ("${x-}", (P("x", op="-", args=(word(""),)),)),
    ("${x:=a b}", (P("x", op=":=", args=(word("a b"),)),)),
    ("${x:?}", (P("x", op=":?", args=(word(""),)),)),
    ("${x+$y}", (P("x", op="+", args=(n.Word((V("y"),)),)),)),
    ("${x##*/}", (P("x", op="##", args=(word("*/"),)),)),
    ("${x%.*}", (P("x", op="%", args=(word(".*"),)),)),
    ("${x/a/b}", (P("x", op="/", args=(word("a"), word("b"))),)),
    ("${x//a}", (P("x", op="//", args=(word("a"),)),)),
    ("${x/#a/}", (P("x", op="/#", args=(word("a"), word(""))),)),
    ("${x/%a/b/c}", (P("x", op="/%", args=(word("a"), word("b/c"))),)),
    ("${x/\\//_}", (P("x", op="/", args=(n.Word((E("/"),)), word("_"))),)),
    ("${x////c}", (P("x", op="//", args=(word("/"), word("c"))),)),
    ("${x///y}", (P("x", op="//", args=(word("/y"),)),)),
    ("${x///$y}", (P("x", op="//", args=(n.Word((L("/"), V("y"))),)),)),
    ("${x^}", (P("x", op="^"),)),
    ("${x,,[A-Z]}", (P("x", op=",,", args=(word("[A-Z]"),)),)),
    ("${x~~}", (P("x", op="~~"),)),
    ("${x:1}", (P("x", op=":", args=(word("1"),)),)),
    ("${x: -1:2}", (P("x", op=":", args=(word(" -1"), word("2"))),)),
    ("${x:a?b:c:2}", (P("x", op=":", args=(word("a?b:c"), word("2"))),)),
    ("${x:(1):n[2]}", (P("x", op=":", args=(word("(1)"), word("n[2]"))),)),
    ("${x@Q}", (P("x", op="@Q"),)),
    ("${x!y}", (P("", bad="x!y"),)),
    ("${}", (P("", bad=""),)),
    ("${a[]}", (P("", bad="a[]"),)),
    ('"${a[}"', (D(P("", bad="a[")),)),
    ("${a[-4:2}", (P("", bad="a[-4:2"),)),
    ("${x@Z}", (P("", bad="x@Z"),)),
    ("\"${x:-'a'}\"", (D(P("x", op=":-", args=(word("'a'"),))),)),
    ("\"${x#'a'}\"", (D(P("x", op="#", args=(n.Word((S("a"),)),))),)),
    ('"${x:-"a b"}"', (D(P("x", op=":-", args=(n.Word((D(L("a b")),)),))),)),
    ("`a \\`b\\` \\$c \\\\ \\d`", (n.CommandSub(None, "a `b` $c \\ \\d", True),)),
    ('"`echo \\"x\\"`"', (D(n.CommandSub(None, 'echo "x"', True)),)),
    ("$((1 + x))", (n.ArithSub(word("1 + x")),)),
    ("$((  ))", (n.ArithSub(word("  ")),)),
    ("$(($x+${y}))", (n.ArithSub(n.Word((V("x"), L("+"), P("y")))),)),
    ("$[a[1]+2]", (n.ArithSub(word("a[1]+2"), True),)),
    ("a\\\nb", (L("ab"),)),
    ("$\\\nx", (V("x"),)),
    ("$ab\\\ncd", (V("abcd"),)),
    ("${ab\\\ncd}", (P("abcd"),)),
    ('"a\\\nb"', (D(L("ab")),)),
    ("a#b", (L("a#b"),)),
    ("{a,b}", (L("{a,b}"),)),
    ("'a\nb'", (S("a\nb"),)),
    ("x=1", (L("x=1"),)),
]


@pytest.mark.parametrize(("text", "expected"), WORDS, ids=[text for text, _ in WORDS])
def test_words(text: str, expected: tuple[n.Part, ...]) -> None:
    assert parts(text) == expected


def test_extended_patterns_are_text_with_parts_inside() -> None:
    assert parts("@(a|$x b)c", True) == (L("@(a|"), V("x"), L(" b)c"))
    assert parts("!(a'('|*(b))", True) == (L("!(a"), S("("), L("|*(b))"))
    with pytest.raises(SyntaxFailure, match=r"unexpected token `\('"):
        parse("echo @(a)")


def test_substitutions_hold_parsed_commands() -> None:
    (sub,) = parts("$(case x in x) echo ')';; esac # )\n)")
    assert isinstance(sub, n.CommandSub) and sub.body is not None
    assert isinstance(sub.body.statements[0].node, n.Case)
    (sub,) = parts("$( (a) )")
    assert isinstance(sub, n.CommandSub) and sub.body is not None
    assert isinstance(sub.body.statements[0].node, n.Subshell)
    (sub,) = parts("$((a); (b))")
    assert isinstance(sub, n.CommandSub) and sub.body is not None
    assert len(sub.body.statements) == 2
    out, inp = parts("<(a)x>(b)")[0], parts("<(a)x>(b)")[2]
    assert isinstance(out, n.ProcessSub) and out.direction == "<"
    assert isinstance(inp, n.ProcessSub) and inp.direction == ">"


def test_simple_commands() -> None:
    node = simple('a=1 b+=2 c[i + 1]=3 d=(x [2]=y [k]+=z "q") e= cmd x=y 2>f >&2 <<<w {v}<g')
    assert node.assigns == (
        n.Assignment("a", None, False, word("1")),
        n.Assignment("b", None, True, word("2")),
        n.Assignment("c", word("i + 1"), False, word("3")),
        n.Assignment(
            "d",
            None,
            False,
            n.ArrayLiteral(
                (
                    n.ArrayElement(None, False, word("x")),
                    n.ArrayElement(word("2"), False, word("y")),
                    n.ArrayElement(word("k"), True, word("z")),
                    n.ArrayElement(None, False, n.Word((D(L("q")),))),
                )
            ),
        ),
        n.Assignment("e", None, False, word("")),
    )
    assert node.words == (word("cmd"), word("x=y"))
    assert node.redirects == (
        n.Redirect(">", word("f"), 2),
        n.Redirect(">&", word("2")),
        n.Redirect("<<<", word("w")),
        n.Redirect("<", word("g"), None, "v"),
    )


def test_arguments_of_declarations_are_assignments() -> None:
    node = simple("declare -a x=(1 2) y=$z w")
    assert [type(one) for one in node.words] == [n.Word, n.Word, n.Assignment, n.Assignment, n.Word]
    assert type(simple("command export a=b").words[2]) is n.Word
    by_the_rules = parse("command command export a=b", Options(posix=True)).statements[0].node
    assert isinstance(by_the_rules, n.Simple) and type(by_the_rules.words[3]) is n.Assignment
    assert type(simple("echo a=b").words[1]) is n.Word
    assert simple("let x=(1+2)*3").words[1] == word("x=(1+2)*3")
    assert simple("a[1]x=2").words == (word("a[1]x=2"),)


def test_several_words_and_lines() -> None:
    parser = Parser("a; b &\n\n# comment\nc && d ||\n e\nf \\\n g\n")
    shapes = []
    while (line := parser.next()) is not None:
        shapes.append([(type(s.node).__name__, s.background, s.line) for s in line.statements])
    assert shapes == [
        [("Simple", False, 1), ("Simple", True, 1)],
        [("AndOr", False, 4)],
        [("Simple", False, 6)],
    ]


FORMS = [
    "if a; then b; elif c; then d; else e; fi",
    "while a; do b; done",
    "until a; do b; done",
    "for x in a b; do c; done",
    "for x; do c; done",
    "for x in; do c; done",
    "for x in a; { b; }",
    "for ((i=0; i<3; i++)); do a; done",
    "for ((;;)) { a; }",
    "select x in a b; do c; done",
    "case $x in (a|b) c;; d) ;& e) f;;& *) esac",
    "{ a; b; }",
    "( a; b )",
    "f() { a; } > x",
    "function f { a; }",
    "function f() ( a )",
    "a | b |& c",
    "! a | b",
    "! ! a",
    "time a",
    "time -p a | b",
    "time -- a",
    "time",
    "!",
    "a && b || c",
    "a & b",
    "[[ -f x && ( $a == b* || ! $c =~ ^(a b|c)$ ) ]]",
    "[[ a < b ]]",
    "[[ a -eq 1 ]]",
    "[[ a ]]",
    "[[ -n = ]]",
    "[[ a ==\tb ]] > f",
    "((x++)) > f",
    "( (a) )",
    "((a); b)",
    "coproc { a; }",
    "coproc N { a; }",
    "coproc a b",
    "coproc N (a)",
    "cat <<A <<-'B' | c\nx $y\nA\n\tz $w\n\tB\n",
    "a > f < g >> h 2>&1 <&3 3>&- <> i >| j &> k &>> l",
    "a 3<<<x",
    "{fd}> x",
    "x=1 > f",
    "echo a#b # comment",
    "a ]] in",
    "x a[",
    "case in in in) a;; esac",
    "$x a",
    "time time a",
    "f$(x)() { a; }",
    "${x!y} ${}",
    "(( \"\\\"(\" ))",
    "\"f\"x() { a; }",
]  # fmt: skip


@pytest.mark.parametrize("text", FORMS)
def test_forms_print_back_to_the_same_tree(text: str) -> None:
    tree = parse(text)
    assert parse(to_text(tree)) == tree


def test_here_documents() -> None:
    node = simple('cat <<A - <<"B"; echo\n$x \\$ \\" \\\nq\nA\n$y\nB\n'.replace("; echo", ""))
    first, second = node.redirects
    assert first.here == n.HereDoc(n.Word((V("x"), L(" "), E("$"), L(' \\" q\n'))), "A", False)
    assert second.here == n.HereDoc(word("$y\n"), "B", True)
    tabs = simple("cat <<-E\n\t\ta\n\tE\n").redirects[0]
    assert tabs.here == n.HereDoc(word("a\n"), "E", False)
    empty = simple("cat <<'E F'\nE F\n").redirects[0]
    assert empty.here == n.HereDoc(word(""), "E F", True)
    continued = simple("cat <<E\na\\\nE\nE\n").redirects[0]
    assert continued.here == n.HereDoc(word("aE\n"), "E", False)
    closed = parts("$(cat <<E\nx\nE)")[0]
    assert isinstance(closed, n.CommandSub)


DELIMITERS = {
    "E": ("E", False),
    "'E F'": ("E F", True),
    '"E"': ("E", True),
    "\\E": ("E", True),
    "$'a\\tb'": ("a\tb", True),
    '"$@"': ("$@", True),
    "$x": ("$x", False),
    '"a\\$b"c': ("a$bc", True),
    "E$(echo 'x')": ("E$(echo 'x')", False),
    "E`x`": ("E`x`", False),
}


@pytest.mark.parametrize("text", DELIMITERS)
def test_delimiters(text: str) -> None:
    delimiter, quoted = DELIMITERS[text]
    here = simple(f"cat <<{text}\nbody\n{delimiter}\n").redirects[0].here
    assert here == n.HereDoc(word("body\n"), delimiter, quoted)


def test_a_wrong_document_fails_when_it_is_expanded() -> None:
    here = simple("cat <<E\na $(b\nE\n").redirects[0].here
    assert here is not None and here.body == n.Word((n.Param("", bad="a $(b"),))


def test_here_document_without_end_warns() -> None:
    parser = Parser("cat <<E\nx\n")
    assert parser.next() is not None
    assert parser.warnings == [(2, "warning: here-document at line 1 delimited by end-of-file (wanted `E')")]
    for text in ("cat <<E", "cat <<E \\", "cat <<E\na\\"):
        parser = Parser(text)
        assert parser.next() is not None
        assert len(parser.warnings) == 1


def test_aliases() -> None:
    def read(text: str, **aliases: str) -> str:
        parser = Parser(text, aliases, Options(expand_aliases=True))
        out = []
        while (line := parser.next()) is not None:
            out.append(to_text(line))
        return " / ".join(out)

    assert read("ll x", ll="ls -l") == "ls -l x"
    assert read("'ll' x; \\ll; x=1 ll", ll="ls -l") == "'ll' x; \\ll; x=1 ls -l"
    assert read("ls x", ls="ls -l") == "ls -l x"
    assert read("a x", a="b", b="a y") == "a y x"
    assert read("sudo ll ll", sudo="echo ", ll="list") == "echo list ll"
    assert read("sudo x ll", sudo="echo ", ll="list") == "echo x ll"
    assert read("sudo ll", sudo="echo x ", ll="list") == "echo x list"
    assert read("i a; fi", i="if true; then") == "if true; then\n    a;\nfi"
    assert read("two z", two="x\ny") == "x / y z"
    assert read("a | b && c", a="A", b="B", c="C") == "A | B && C"
    assert read("a; a", a="b") == "b; b"
    assert Parser("ll", {"ll": "x"}).next() == parse("ll")


def test_options_may_change_between_lines() -> None:
    parser = Parser("shopt -s extglob\necho @(a)\n")
    parser.next()
    parser.options = Options(extglob=True)
    assert parser.next() == parse("echo @(a)", Options(extglob=True))


def test_operators_may_be_cut_by_line_continuations() -> None:
    assert parse("a &\\\n& b") == parse("a && b")
    assert parse("a |\\\n\\\n| b") == parse("a || b")
    assert parse("a &\\\n b") == parse("a & b")
    assert parse("a >\\\n> b") == parse("a >> b")


def test_any_byte_passes() -> None:
    text = b"echo \xff '\xfe' \xc3\xa9".decode("utf-8", "surrogateescape")
    assert to_text(parse(text)) == text


def test_function_body_must_be_compound() -> None:
    node = one("f() for i in a; do b; done")
    assert isinstance(node, n.Function) and isinstance(node.body, n.For)
    node = one("f()\n\n{ a; }")
    assert isinstance(node, n.Function) and isinstance(node.body, n.Group)


def test_lines_are_those_of_the_source() -> None:
    script = parse("a\nif b\nthen\n  c\nfi\n[[ x ]]\nf() {\n g $(h\n i)\n}\n")
    assert [statement.line for statement in script.statements] == [1, 2, 6, 7]
    node = script.statements[1].node
    assert isinstance(node, n.If)
    assert node.clauses[0][1].statements[0].line == 4
    late = Parser("a\nb", start_line=10)
    late.next()
    line = late.next()
    assert line is not None and line.statements[0].line == 11


ODD = {
    # texts that mean the same
    "a | \\\nb": "a | b",
    "echo a; \\\n": "echo a",
    "f ( ) { a; }": "f() { a; }",
    "f$x() { a; }": "f$x () { a; }",
    "a=1 b=2 \\\n": "a=1 b=2",
    "for ((i='1;2'; \"a;b\"; `c;d`)); do x; done": "for ((i='1;2'; \"a;b\"; `c;d`)) { x; }",
    "echo ${ab\\\n:-c}": "echo ${ab:-c}",
    "echo ${\\\nx}": "echo ${x}",
    "cat <<E; a\nx\nE\n": "cat <<E\nx\nE\na",
    "{ cat <<E\nx\nE\n}": "{ cat <<E\nx\nE\n}",
    '(( "(" + 1 ))': '((  "(" + 1 ))'.replace("((  ", "(( "),
    "echo $(( \\( ))": "echo $(( \\( ))",
    "echo $((a) )": "echo $( (a) )",
    "x[$(a])]=1": "x[$(a])]=1",
}


@pytest.mark.parametrize(("text", "same"), ODD.items())
def test_odd_spellings(text: str, same: str) -> None:
    assert parse(text) == parse(same)


def test_extended_patterns_must_be_closed() -> None:
    with pytest.raises(SyntaxFailure, match="looking for matching"):
        parse("echo @(a", Options(extglob=True))
    assert parts("a'@'@(b)", True) == (L("a"), S("@"), L("@(b)"))
    for text in ("echo '@'(b)", "echo $(a)(b)"):
        with pytest.raises(SyntaxFailure, match="unexpected token"):
            parse(text, Options(extglob=True))


def test_here_documents_inside_substitutions_wait_for_their_line() -> None:
    (sub,) = parts("$(cat <<E)\nx\nE\n")
    assert isinstance(sub, n.CommandSub)


def test_backslash_at_the_end_of_the_text() -> None:
    assert parts("a\\") == (L("a\\"),)
