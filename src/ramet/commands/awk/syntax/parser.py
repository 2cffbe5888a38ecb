"""Parse awk source by recursive descent into the tree of a program."""

from __future__ import annotations

import re
from bisect import bisect_left

from ramet.commands.awk.compile.analyze import SPECIAL, SPECIAL_ARRAYS
from ramet.commands.awk.run.regex import odd_escape_words, odd_escapes
from ramet.commands.awk.syntax.builtin_names import BUILTINS
from ramet.commands.awk.syntax.dialect import GNU, Dialect
from ramet.commands.awk.syntax.expressions import ENDS_OF_PRINT, Expressions
from ramet.commands.awk.syntax.lexer import IN_NAMESPACE
from ramet.commands.awk.syntax.tree import (
    AwkError,
    Block,
    Delete,
    DoWhile,
    Exit,
    Expr,
    ExprStmt,
    For,
    ForIn,
    Function,
    Grouping,
    If,
    Num,
    Print,
    Program,
    Regex,
    Return,
    Rule,
    Simple,
    Stmt,
    Str,
    Switch,
    Typed,
    Unary,
    While,
)

RESERVED = SPECIAL | SPECIAL_ARRAYS
"""Names of variables that awk itself looks at."""

_COMPOUND = frozenset(("{", "if", "while", "do", "for", "switch", ";"))
_SPECIAL = frozenset(("BEGIN", "END", "BEGINFILE", "ENDFILE"))


def parse(text: str, dialect: Dialect = GNU) -> Program:
    """Return the tree of a program."""
    parser = None
    try:
        parser = _Parser(text, dialect)
        return parser.program()
    except AwkError as error:
        error.warnings = (*parser.lexer.warnings, *parser.errors) if parser is not None else ()
        raise


class _Parser(Expressions):
    # ------------------------------------------------------------------ program

    def __init__(self, text: str, dialect: Dialect = GNU) -> None:
        super().__init__(text, dialect)
        self.starts: dict[int, int] = {}
        """Offsets of rules, functions and statements by the identity of their nodes."""
        self.odd: set[str] = set()
        """Escapes in patterns that were complained of."""

    def program(self) -> Program:
        rules: list[Rule] = []
        self.newlines()
        while not self.at("end"):
            if self.at(";"):
                raise AwkError(f"cmd. line:{self.token.line}: each rule must have a pattern or an action part", 1)
            if self.at("function"):
                self.function()
            elif self.at("@") and self.lexer.text.startswith(("namespace", "load"), self.lexer.pos):
                self.directive()
            else:
                rules.append(self.rule())
            self.accept(";")
            self.newlines()
        if self.errors:
            raise AwkError(self.errors.pop(), 1)
        warnings = tuple(self.lexer.warnings)
        return Program(tuple(rules), self.functions, warnings, self.all_lines(), frozenset(self.odd))

    def all_lines(self) -> dict[int, int]:
        ends = [found.start() for found in re.finditer("\n", self.lexer.text)]
        return {node: bisect_left(ends, start) + 1 for node, start in self.starts.items()} | self.lines

    def regex(self, start: int) -> str:
        line = self.token.line
        source = super().regex(start)
        for char in odd_escapes(source, self.lexer.dialect.extensions):
            warning = f"cmd. line:{line}: {odd_escape_words(char)}"
            if char not in self.odd:
                self.odd.add(char)
                self.lexer.warnings.append(warning)
        return source

    def directive(self) -> None:
        """`@namespace "name"` or `@load "library"`."""
        self.advance()
        word = self.advance().text.rpartition(IN_NAMESPACE)[2]
        if not self.at("string"):
            raise self.unexpected()
        if word == "load":
            why = "dynamic loading of libraries is not supported"
            raise AwkError(f"cmd. line:{self.token.line}: error: {why}", 1)
        name = self.token.text
        if not name.replace("_", "a").isalnum() or name[0].isdigit() or not name.isascii():
            raise AwkError(
                f"cmd. line:{self.token.line}: error: namespace name `{name}' must meet identifier naming rules", 1
            )
        self.lexer.namespace = name
        self.advance()

    def rule(self) -> Rule:
        start = self.token.start
        made = self.bare_rule()
        self.starts[id(made)] = start
        return made

    def bare_rule(self) -> Rule:
        if self.token.kind in _SPECIAL:
            kind = self.advance().kind
            if not self.at("{", "newline", "end", ";"):
                raise self.unexpected()
            if not self.at("{"):
                line = self.token.line + (self.token.kind == "newline")
                raise AwkError(f"cmd. line:{line}: {kind} blocks must have an action part", 1)
            self.where = kind
            return Rule(kind, None, None, self.block())
        self.where = ""
        pattern = until = None
        if not self.at("{"):
            pattern = self.expression()
            if self.accept(","):
                self.newlines()
                line = self.token.line
                until = self.expression()
                self.lines[id(until)] = line
        body = self.block() if self.at("{") else None
        if body is None and not self.at(";", "newline", "end"):
            raise self.unexpected()
        return Rule("", pattern, until, body)

    def function(self) -> None:
        start = self.token.start
        self.advance()
        if self.token.kind == "builtin" and self.token.text in BUILTINS:
            raise self.wrong(f"`{self.token.text}' is a built-in function, it cannot be redefined")
        if not self.at("name", "call"):
            raise self.unexpected()
        name = self.advance().text
        self.expect("(")
        params: list[str] = []
        self.newlines()
        while self.at("name"):
            params.append(self.advance().text)
            self.newlines()
            if not self.accept(","):
                break
            self.newlines()
            if not self.at("name"):
                raise self.unexpected()
        self.expect(")")
        self.newlines()
        if name in self.functions or name in RESERVED or name in self.variables:
            self.report(f"function name `{name}' previously defined")
        for place, param in enumerate(params):
            if param == name:
                self.report(f"function `{name}': cannot use function name as parameter name")
            elif param in RESERVED:
                self.report(f"function `{name}': cannot use special variable `{param}' as a function parameter")
            elif param in params[:place]:
                first = params.index(param) + 1
                self.report(f"function `{name}': parameter #{place + 1}, `{param}', duplicates parameter #{first}")
        self.functions[name] = Function(name, tuple(params), ())
        self.where = "function"
        self.functions[name] = made = Function(name, tuple(params), self.block())
        self.starts[id(made)] = start

    # ------------------------------------------------------------------ statements

    def block(self) -> tuple[Stmt, ...]:
        self.expect("{")
        body: list[Stmt] = []
        self.separators()
        while not self.at("}"):
            if self.at("end"):
                raise self.unexpected()
            body.append(self.statement())
            self.separators()
        self.advance()
        return tuple(body)

    def end_simple(self) -> None:
        if self.at(";", "newline"):
            self.advance()
            return
        if not self.at("}", "end", "else", "while"):
            raise self.unexpected()

    def body(self) -> Stmt:
        """Return the statement that a header governs; a semicolon alone is an empty one."""
        self.newlines()
        if self.accept(";"):
            return Block(())
        return self.statement()

    def looped(self) -> Stmt:
        self.loops += 1
        made = self.body()
        self.loops -= 1
        return made

    def statement(self) -> Stmt:
        start = self.token.start
        if self.token.kind in _COMPOUND:
            made = self.compound()
            if not isinstance(made, DoWhile):  # which ends before the newline behind it
                self.starts[id(made)] = start
            return made
        made = self.simple()
        self.starts[id(made)] = start
        self.end_simple()
        return made

    def compound(self) -> Stmt:
        kind = self.token.kind
        if kind == "{":
            return Block(self.block())
        if kind == "if":
            return self.if_statement()
        if kind == "while":
            self.advance()
            test = self.parenthesized()
            if self.accept(";"):
                return While(test, Block(()))
            return While(test, self.looped())
        if kind == "do":
            return self.do_statement()
        if kind == "for":
            return self.for_statement()
        if kind == "switch":
            return self.switch_statement()
        self.expect(";")
        return Block(())

    def parenthesized(self) -> Expr:
        self.expect("(")
        self.newlines()
        test = self.expression()
        self.newlines()
        self.expect(")")
        return test

    def if_statement(self) -> Stmt:
        self.advance()
        test = self.parenthesized()
        yes = self.body()
        # An `else` may follow after newlines and one semicolon.
        saved = (self.lexer.pos, self.lexer.line, self.token)
        self.separators()
        if self.accept("else"):
            return If(test, yes, self.body())
        self.lexer.pos, self.lexer.line, self.token = saved
        return If(test, yes, None)

    def do_statement(self) -> Stmt:
        start = self.token.start
        self.advance()
        body = self.looped()
        self.separators()
        self.expect("while")
        line = self.token.line
        test = self.parenthesized()
        self.lines[id(test)] = line
        made = DoWhile(body, test)
        self.starts[id(made)] = start
        if self.at(";", "newline"):  # the parenthesis ends it well enough
            self.end_simple()
        return made

    def for_statement(self) -> Stmt:
        self.advance()
        self.expect("(")
        if self.at("name"):
            saved = (self.lexer.pos, self.lexer.line, self.token)
            name = self.advance().text
            if self.accept("in") and self.at("name"):
                array = self.advance().text
                outer: list[tuple[Expr, ...]] = []
                while self.at("["):
                    outer.append(self.subscripts())
                if self.accept(")"):
                    return ForIn(name, array, self.looped(), tuple(outer))
            self.lexer.pos, self.lexer.line, self.token = saved
        start = None if self.at(";") else self.simple()
        self.expect(";")
        self.newlines()
        test = None if self.at(";") else self.expression()
        self.expect(";")
        self.newlines()
        step = None if self.at(")") else self.simple()
        self.expect(")")
        if self.accept(";"):
            return For(start, test, step, Block(()))
        return For(start, test, step, self.looped())

    def switch_statement(self) -> Stmt:
        self.advance()
        subject = self.parenthesized()
        self.newlines()
        self.expect("{")
        cases: list[tuple[Expr | None, tuple[Stmt, ...]]] = []
        self.switches += 1
        self.separators()
        while not self.accept("}"):
            label: Expr | None = None
            if self.accept("case"):
                label = self.label()
            else:
                self.expect("default")
            self.expect(":")
            if label is None and any(known is None for known, _ in cases):
                self.report("duplicate `default' detected in switch body")
            elif isinstance(label, (Num, Str)) and any(_same(label, known) for known, _ in cases):
                shown = label.text if isinstance(label, Num) else label.value
                self.report(f"duplicate case values in switch body: {shown}")
            self.separators()
            body: list[Stmt] = []
            while not self.at("case", "default", "}"):
                body.append(self.statement())
                self.separators()
            cases.append((label, tuple(body)))
        self.switches -= 1
        return Switch(subject, tuple(cases))

    def label(self) -> Expr:
        """Parse the constant behind `case`."""
        if not self.at("number", "string", "/", "/=", "@", "+", "-"):
            raise self.unexpected()
        signed = self.at("+", "-")
        made = self.unary()
        if not isinstance(made, Unary if signed else (Num, Str, Regex, Typed)):
            raise self.unexpected()
        return made

    def simple(self) -> Stmt:
        kind = self.token.kind
        if kind in ("next", "nextfile", "break", "continue"):
            self.advance()
            if self.at(";", "newline", "}", "end"):
                self.leaving(kind)
            return Simple(kind)
        if kind == "exit":
            self.advance()
            return Exit(None if self.at(";", "newline", "}", "end") else self.expression())
        if kind == "return":
            if self.where != "function":
                raise self.wrong("`return' used outside function context")
            self.advance()
            return Return(None if self.at(";", "newline", "}", "end") else self.expression())
        if kind == "delete":
            self.advance()
            parens = self.accept("(")
            if not self.at("name"):
                raise self.unexpected()
            name = self.advance().text
            path: list[tuple[Expr, ...]] = []
            while self.at("["):
                path.append(self.subscripts())
            if parens:
                self.expect(")")
            return Delete(name, path[-1] if path else None, tuple(path[:-1]))
        if kind in ("print", "printf"):
            return self.print_statement()
        return ExprStmt(self.expression())

    def leaving(self, word: str) -> None:
        """Whether `next`, `break` and so on have something here to go on with."""
        if word in ("next", "nextfile"):
            if self.where in ("BEGIN", "END", "ENDFILE") or (word == "next" and self.where == "BEGINFILE"):
                self.report(f"`{word}' used in {self.where} action")
        elif not self.loops and (word == "continue" or not self.switches):
            # gawk comes across it twice.
            place = "a loop" if word == "continue" else "a loop or switch"
            self.report(f"`{word}' is not allowed outside {place}")
            self.report(f"`{word}' is not allowed outside {place}")

    def print_statement(self) -> Stmt:
        formatted = self.advance().kind == "printf"
        args: tuple[Expr, ...] = ()
        if not self.at(*ENDS_OF_PRINT):
            self.listing = self.token.start
            items = [self.expression(no_gt=True)]
            while self.accept(","):
                self.newlines()
                items.append(self.expression(no_gt=True))
            args = tuple(items)
            if len(args) == 1 and isinstance(args[0], Grouping) and len(args[0].items) > 1:
                args = args[0].items
        redirect, target = "", None
        if self.at(">", ">>", "|", "|&"):
            redirect = self.advance().kind
            target = self.concatenation(no_gt=True, no_in=False)
        if formatted and not args:
            raise AwkError(f"cmd. line:{self.token.line}: fatal: printf: no arguments")
        return Print(args, formatted, redirect, target)


def _same(label: Num | Str, other: Expr | None) -> bool:
    return type(label) is type(other) and label.value == other.value
