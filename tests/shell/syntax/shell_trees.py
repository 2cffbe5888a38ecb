"""Random syntax trees: every node of the grammar, in the shapes that the parser itself makes."""

from __future__ import annotations

from random import Random
from typing import Literal as OneOf

from ramet.shell.syntax import nodes as n
from ramet.shell.syntax.printer import word_text

_NAMES = ["a", "foo", "x1", "_y"]
_CMD = n.Word((n.Literal("cmd"),))


class Trees:
    """Makes trees no deeper than asked for."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def chance(self, one_in: int) -> bool:
        return self.random.randrange(one_in) == 0

    def text(self, alphabet: str, least: int = 0, most: int = 4) -> str:
        return "".join(self.random.choice(alphabet) for _ in range(self.random.randint(least, most)))

    def name(self) -> str:
        return self.random.choice(_NAMES)

    # --------------------------------------------------------------------- words

    def plain(self) -> n.Word:
        return n.Word((n.Literal(self.text("abc*~é-.+,\udcff", 1)),))

    def arith(self) -> n.Word:
        return n.Word((n.Literal(self.random.choice(["1", "x + 1", "a[2]*3", "(1)"])),))

    def param(self) -> n.Param:
        name = self.name()
        subscripts: list[n.Word | OneOf["@", "*"] | None] = [None, None, "@", "*", self.arith()]
        subscript = self.random.choice(subscripts)
        kind = self.random.randrange(9)
        if kind == 0:
            return n.Param(name, braced=False)
        if kind == 1:
            return n.Param(name, subscript, "length")
        if kind == 2:
            return n.Param(name, None, "indirect")
        if kind == 3:
            return n.Param(name, None, "names", self.random.choice("@*"))
        if kind == 4:
            return n.Param(name, "@", "keys")
        if kind == 5:
            op = self.random.choice(["-", ":-", "=", ":=", "?", ":?", "+", ":+", "#", "##", "%", "%%"])
            return n.Param(name, subscript, "value", op, (self.plain(),))
        if kind == 6:
            args = (self.plain(), self.plain()) if self.chance(2) else (self.plain(),)
            return n.Param(name, subscript, "value", self.random.choice(["/", "//", "/#", "/%"]), args)
        if kind == 7:
            args = (self.arith(), self.arith()) if self.chance(2) else (self.arith(),)
            return n.Param(name, subscript, "value", ":", args)
        return n.Param(name, subscript, "value", self.random.choice(["@Q", "@U", "^", "^^", ",", ",,", ""]))

    def expansion(self, depth: int) -> n.Part:
        kind = self.random.randrange(4 if depth > 0 else 3)
        if kind == 0:
            return self.param()
        if kind == 1:
            return n.ArithSub(self.arith(), self.chance(5))
        if kind == 2:
            return n.CommandSub(None, self.text("ab `$\\"), True)
        return n.CommandSub(self.script(depth - 1))

    def double(self, depth: int) -> n.DoubleQuoted:
        parts: list[n.Part] = []
        for _ in range(self.random.randrange(4)):
            if self.chance(2):
                parts.append(self.expansion(depth))
            else:
                parts.append(n.Literal(self.random.choice([" b", "'y", "\n", "\\q", "{"])))
        return n.DoubleQuoted(_merged(parts), self.chance(8))

    def part(self, depth: int) -> n.Part:
        kind = self.random.randrange(8)
        if kind <= 2:
            return n.Literal(self.text("abc*?~é-./%@+,\udcff", 1))
        if kind == 3:
            return n.SingleQuoted(self.text('ab $\n"\\'))
        if kind == 4:
            return n.Escaped(self.random.choice(" $'\"\\;|&(){}*"))
        if kind == 5:
            return n.AnsiQuoted(self.text("ab\n\t'\\é"), "")
        if kind == 6:
            return self.double(depth)
        if depth > 0 and self.chance(6):
            return n.ProcessSub(self.random.choice("<>"), self.script(depth - 1))  # type: ignore[arg-type]
        return self.expansion(depth)

    def any_word(self, depth: int) -> n.Word:
        return n.Word(_merged([self.part(depth) for _ in range(self.random.randint(1, 3))]))

    def word(self, depth: int) -> n.Word:
        """A word that is nothing else wherever it stands."""
        word = self.any_word(depth)
        text = word_text(word)
        unsafe = text[0] in "{}![]-=+?@*0123456789" or "=" in text or "[" in text or text in ("in", "esac")
        return _CMD if unsafe else word

    def words(self, depth: int, most: int = 2) -> tuple[n.Word, ...]:
        return tuple(self.word(depth) for _ in range(self.random.randint(0, most)))

    # ------------------------------------------------------------------ commands

    def assignment(self, depth: int, argument: bool = False) -> n.Assignment:
        value: n.Word | n.ArrayLiteral = n.Word(()) if self.chance(5) else self.word(depth)
        if self.chance(4):
            elements = [n.ArrayElement(None, False, word) for word in self.words(depth)]
            elements += [n.ArrayElement(self.arith(), self.chance(2), self.word(depth))] if self.chance(2) else []
            value = n.ArrayLiteral(tuple(elements))
        # In an argument a subscript is part of a word, and has nothing in it that ends one.
        subscript = n.Word((n.Literal(self.random.choice(["1", "a[2]*3"])),)) if argument else self.arith()
        return n.Assignment(self.name(), subscript if self.chance(4) else None, self.chance(4), value)

    def redirect(self, depth: int) -> n.Redirect:
        fd = self.random.randrange(10) if self.chance(3) else None
        if self.chance(6):
            quoted = self.chance(2)
            target = n.Word((n.SingleQuoted("E O"),)) if quoted else n.Word((n.Literal("EOF"),))
            parts: list[n.Part] = [n.Literal("a 'b' \"c\"\n")]
            if not quoted:
                parts += [self.param(), n.Literal("\n")]
            body = n.Word(_merged(parts))
            return n.Redirect("<<", target, fd, None, n.HereDoc(body, "E O" if quoted else "EOF", quoted))
        op = self.random.choice(["<", ">", ">>", ">|", "<>", "<&", ">&", "<<<", "&>", "&>>"])
        if op[0] == "&":
            fd = None
        var = "fd" if fd is None and op[0] != "&" and self.chance(8) else None
        return n.Redirect(op, self.word(depth), fd, var)

    def redirects(self, depth: int) -> tuple[n.Redirect, ...]:
        return tuple(self.redirect(depth) for _ in range(self.random.choice([0, 0, 1, 2])))

    def simple(self, depth: int) -> n.Simple:
        assigns = tuple(self.assignment(depth) for _ in range(self.random.choice([0, 0, 1])))
        words: tuple[n.Word | n.Assignment, ...] = (self.word(depth), *self.words(depth))
        if self.chance(8):
            words = (n.Word((n.Literal("declare"),)), self.assignment(depth, True), self.word(depth))
        return n.Simple(assigns, words, self.redirects(depth))

    def condition(self, depth: int) -> n.CondExpr:
        kind = self.random.randrange(7 if depth > 0 else 3)
        if kind == 0:
            return n.CondWord(self.word(depth))
        if kind == 1:
            return n.CondUnary(self.random.choice(["-f", "-z", "-v"]), self.word(depth))
        if kind == 2:
            return n.CondBinary(self.random.choice(["==", "!=", "=~", "<", "-eq"]), self.word(0), self.word(0))
        if kind == 3:
            return n.CondGroup(self.condition(depth - 1))
        if kind == 4:
            return n.CondNot(n.CondGroup(self.condition(depth - 1)))
        items = tuple(n.CondGroup(self.condition(depth - 1)) for _ in range(self.random.randint(2, 3)))
        return n.CondAnd(items) if kind == 5 else n.CondOr(items)

    def compound(self, depth: int) -> n.Command:
        inner = depth - 1
        redirects = self.redirects(0)
        kind = self.random.randrange(10)
        if kind == 0:
            return n.Group(self.script(inner), redirects)
        if kind == 1:
            return n.Subshell(self.script(inner), redirects)
        if kind == 2:
            clauses = tuple((self.script(inner), self.script(inner)) for _ in range(self.random.randint(1, 2)))
            return n.If(clauses, self.script(inner) if self.chance(2) else None, redirects)
        if kind == 3:
            return n.While(self.script(inner), self.script(inner), self.chance(2), redirects)
        if kind in (4, 5):
            words = None if self.chance(3) else self.words(inner)
            return (n.For if kind == 4 else n.Select)(self.name(), words, self.script(inner), redirects)
        if kind == 6:
            return n.ForArith(self.arith(), n.Word(()), self.arith(), self.script(inner), redirects)
        if kind == 7:
            ends = [";;", ";&", ";;&"]
            items = tuple(
                n.CaseItem((self.word(0), *self.words(0, 1)), self.script(inner), self.random.choice(ends))  # type: ignore[arg-type]
                for _ in range(self.random.randrange(3))
            )
            return n.Case(self.word(inner), items, redirects)
        if kind == 8:
            return n.Cond(self.condition(2), redirects)
        return n.ArithCommand(self.arith(), redirects)

    def command(self, depth: int) -> n.Command:
        if depth <= 0 or self.chance(2):
            return self.simple(depth)
        if self.chance(8):
            return n.Function(self.name(), self.compound(depth), self.chance(2))
        if self.chance(10):
            return n.Coproc(self.random.choice(["COPROC", "NAME"]), self.compound(depth))
        return self.compound(depth)

    def pipeline(self, depth: int) -> n.Command | n.Pipeline:
        if not self.chance(4):
            return self.command(depth)
        stages = tuple(self.command(depth) for _ in range(self.random.randint(1, 3)))
        negated = self.chance(3)
        timed = self.random.choice(["", "time", "time -p"]) if len(stages) > 1 or negated else "time"
        merge = (*(self.chance(3) for _ in stages[1:]), False)
        return n.Pipeline(stages, negated, timed, merge)  # type: ignore[arg-type]

    def node(self, depth: int) -> n.Node:
        first = self.pipeline(depth)
        if not self.chance(4):
            return first
        rest = [(self.random.choice(["&&", "||"]), self.pipeline(depth)) for _ in range(self.random.randint(1, 2))]
        return n.AndOr(first, tuple(rest))  # type: ignore[arg-type]

    def script(self, depth: int) -> n.Script:
        count = self.random.choice([1, 1, 2, 3])
        return n.Script(tuple(n.Statement(self.node(depth), self.chance(5)) for _ in range(count)))


def _merged(parts: list[n.Part]) -> tuple[n.Part, ...]:
    """Neighbouring literals are one literal; text after ``$name`` must not continue the name."""
    merged: list[n.Part] = []
    for part in parts:
        last = merged[-1] if merged else None
        if isinstance(part, n.Literal) and isinstance(last, n.Literal):
            merged[-1] = n.Literal(last.text + part.text)
        elif isinstance(last, n.Param) and not last.braced:
            merged[-1] = n.Param(last.name)
            merged.append(part)
        else:
            merged.append(part)
    return tuple(merged)
