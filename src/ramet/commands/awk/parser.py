"""awk's grammar by recursive descent: from source text to the tree of a program."""

from __future__ import annotations

from ramet.commands.awk.lexer import Lexer, Token
from ramet.commands.awk.tree import (
    Assign,
    AwkError,
    Binary,
    Block,
    Builtin,
    Call,
    Cond,
    Delete,
    DoWhile,
    Exit,
    Expr,
    ExprStmt,
    Field,
    For,
    ForIn,
    Function,
    Getline,
    Grouping,
    If,
    In,
    Index,
    Match,
    Num,
    Print,
    Program,
    Regex,
    Return,
    Rule,
    Simple,
    Step,
    Stmt,
    Str,
    Switch,
    Unary,
    Var,
    While,
)

_ASSIGN = frozenset(("=", "+=", "-=", "*=", "/=", "%=", "^="))
_COMPARE = frozenset(("<", "<=", "==", "!=", ">", ">="))
_STARTS = frozenset(("number", "string", "name", "call", "builtin", "$", "!", "(", "-", "+", "++", "--"))
_SPECIAL = frozenset(("BEGIN", "END", "BEGINFILE", "ENDFILE"))


def parse(text: str) -> Program:
    return _Parser(text).program()


class _Parser:
    def __init__(self, text: str) -> None:
        self.lexer = Lexer(text)
        self.functions: dict[str, Function] = {}
        self.token = self.lexer.next()
        self.depth = 0
        self.flags = (False, False)

    # ------------------------------------------------------------------ tokens

    def advance(self) -> Token:
        token = self.token
        self.token = self.lexer.next()
        return token

    def at(self, *kinds: str) -> bool:
        return self.token.kind in kinds

    def accept(self, kind: str) -> bool:
        if self.token.kind == kind:
            self.advance()
            return True
        return False

    def expect(self, kind: str) -> Token:
        if self.token.kind != kind:
            raise self.unexpected()
        return self.advance()

    def unexpected(self) -> AwkError:
        what = {"newline": "newline or end of string", "end": "newline or end of string"}.get(
            self.token.kind, self.token.text
        )
        return AwkError(f"cmd. line:{self.token.line}: syntax error at or near {what}", 1)

    def newlines(self) -> None:
        while self.token.kind == "newline":
            self.advance()

    def separators(self) -> None:
        while self.token.kind in ("newline", ";"):
            self.advance()

    # ------------------------------------------------------------------ program

    def program(self) -> Program:
        rules: list[Rule] = []
        self.separators()
        while not self.at("end"):
            if self.at("function"):
                self.function()
            else:
                rules.append(self.rule())
            self.separators()
        return Program(tuple(rules), self.functions)

    def rule(self) -> Rule:
        if self.token.kind in _SPECIAL:
            kind = self.advance().kind
            if not self.at("{"):
                raise AwkError(f"cmd. line:{self.token.line}: {kind} blocks must have an action part", 1)
            return Rule(kind, None, None, self.block())
        pattern = until = None
        if not self.at("{"):
            pattern = self.expression()
            if self.accept(","):
                self.newlines()
                until = self.expression()
        body = self.block() if self.at("{") else None
        return Rule("", pattern, until, body)

    def function(self) -> None:
        self.advance()
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
        self.expect(")")
        self.newlines()
        if name in self.functions:
            raise AwkError(f"cmd. line:{self.token.line}: function name `{name}' previously defined", 1)
        self.functions[name] = Function(name, tuple(params), ())
        self.functions[name] = Function(name, tuple(params), self.block())

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
        """The statement that a header governs; a semicolon alone is an empty one."""
        self.newlines()
        if self.accept(";"):
            return Block(())
        return self.statement()

    def statement(self) -> Stmt:
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
            return While(test, self.body())
        if kind == "do":
            return self.do_statement()
        if kind == "for":
            return self.for_statement()
        if kind == "switch":
            return self.switch_statement()
        if kind == ";":
            self.advance()
            return Block(())
        made = self.simple()
        self.end_simple()
        return made

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
        self.advance()
        body = self.body()
        self.separators()
        self.expect("while")
        test = self.parenthesized()
        self.end_simple()
        return DoWhile(body, test)

    def for_statement(self) -> Stmt:
        self.advance()
        self.expect("(")
        if self.at("name"):
            saved = (self.lexer.pos, self.lexer.line, self.token)
            name = self.advance().text
            if self.accept("in") and self.at("name"):
                array = self.advance().text
                if self.accept(")"):
                    return ForIn(name, array, self.body())
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
        return For(start, test, step, self.body())

    def switch_statement(self) -> Stmt:
        self.advance()
        subject = self.parenthesized()
        self.newlines()
        self.expect("{")
        cases: list[tuple[Expr | None, tuple[Stmt, ...]]] = []
        self.separators()
        while not self.accept("}"):
            label: Expr | None = None
            if self.accept("case"):
                label = self.unary()
            else:
                self.expect("default")
            self.expect(":")
            self.separators()
            body: list[Stmt] = []
            while not self.at("case", "default", "}"):
                body.append(self.statement())
                self.separators()
            cases.append((label, tuple(body)))
        return Switch(subject, tuple(cases))

    def simple(self) -> Stmt:
        kind = self.token.kind
        if kind in ("next", "nextfile", "break", "continue"):
            self.advance()
            return Simple(kind)
        if kind == "exit":
            self.advance()
            return Exit(None if self.at(";", "newline", "}", "end") else self.expression())
        if kind == "return":
            self.advance()
            return Return(None if self.at(";", "newline", "}", "end") else self.expression())
        if kind == "delete":
            self.advance()
            parens = self.accept("(")
            if not self.at("name"):
                raise self.unexpected()
            name = self.advance().text
            subscripts = self.subscripts() if self.at("[") else None
            if parens:
                self.expect(")")
            return Delete(name, subscripts)
        if kind in ("print", "printf"):
            return self.print_statement()
        return ExprStmt(self.expression())

    def print_statement(self) -> Stmt:
        formatted = self.advance().kind == "printf"
        args: tuple[Expr, ...] = ()
        if not self.at(";", "newline", "}", "end", ">", ">>", "|", "|&"):
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
            raise self.unexpected()
        return Print(args, formatted, redirect, target)

    # ------------------------------------------------------------------ expressions

    def expression(self, no_gt: bool = False, no_in: bool = False) -> Expr:
        self.depth += 1
        if self.depth > 300:
            raise AwkError("expression is nested too deeply")
        saved, self.flags = self.flags, (no_gt, no_in)
        try:
            return self.ternary(no_gt, no_in)
        finally:
            self.depth -= 1
            self.flags = saved

    def ternary(self, no_gt: bool, no_in: bool) -> Expr:
        test = self.disjunction(no_gt, no_in)
        if not self.at("?"):
            return test
        self.advance()
        self.newlines()
        yes = self.expression(no_gt, no_in)
        self.newlines()
        self.expect(":")
        self.newlines()
        return Cond(test, yes, self.expression(no_gt, no_in))

    def disjunction(self, no_gt: bool, no_in: bool) -> Expr:
        left = self.conjunction(no_gt, no_in)
        while self.at("||"):
            self.advance()
            self.newlines()
            left = Binary("||", left, self.conjunction(no_gt, no_in))
        return left

    def conjunction(self, no_gt: bool, no_in: bool) -> Expr:
        left = self.membership(no_gt, no_in)
        while self.at("&&"):
            self.advance()
            self.newlines()
            left = Binary("&&", left, self.membership(no_gt, no_in))
        return left

    def membership(self, no_gt: bool, no_in: bool) -> Expr:
        left = self.matching(no_gt, no_in)
        while self.at("in") and not no_in:
            self.advance()
            name = self.expect("name").text
            items = left.items if isinstance(left, Grouping) else (left,)
            left = In(items, name)
        return left

    def matching(self, no_gt: bool, no_in: bool) -> Expr:
        left = self.comparison(no_gt, no_in)
        while self.at("~", "!~"):
            negated = self.advance().kind == "!~"
            left = Match(negated, left, self.comparison(no_gt, no_in))
        return left

    def comparison(self, no_gt: bool, no_in: bool) -> Expr:
        left = self.piped(no_gt, no_in)
        while self.token.kind in _COMPARE and not (no_gt and self.at(">")):
            op = self.advance().kind
            left = Binary(op, left, self.piped(no_gt, no_in))
        return left

    def piped(self, no_gt: bool, no_in: bool) -> Expr:
        left = self.concatenation(no_gt, no_in)
        while self.at("|", "|&"):
            saved = (self.lexer.pos, self.lexer.line, self.token)
            self.advance()
            if not self.accept("getline"):
                self.lexer.pos, self.lexer.line, self.token = saved
                break
            left = Getline("command", self.optional_lvalue(), left)
        return left

    def concatenation(self, no_gt: bool, no_in: bool) -> Expr:
        left = self.additive(no_gt, no_in)
        while self.token.kind in _STARTS and not self.at("+", "-") and not (self.at("in")):
            left = Binary(" ", left, self.additive(no_gt, no_in))
        return left

    def additive(self, no_gt: bool, no_in: bool) -> Expr:
        left = self.multiplicative()
        while self.at("+", "-"):
            op = self.advance().kind
            left = Binary(op, left, self.multiplicative())
        return left

    def multiplicative(self) -> Expr:
        left = self.unary()
        while self.at("*", "/", "%"):
            op = self.advance().kind
            left = Binary(op, left, self.unary())
        return left

    def unary(self) -> Expr:
        if self.at("!", "-", "+"):
            op = self.advance().kind
            return Unary(op, self.unary())
        return self.power()

    def power(self) -> Expr:
        left = self.postfix()
        if self.at("^"):
            self.advance()
            # -2^-2: the exponent may carry a sign of its own.
            right = self.unary_power()
            return Binary("^", left, right)
        return left

    def unary_power(self) -> Expr:
        if self.at("!", "-", "+"):
            op = self.advance().kind
            return Unary(op, self.unary_power())
        return self.power()

    def postfix(self) -> Expr:
        left = self.primary()
        if self.at("++", "--") and _is_lvalue(left):
            amount = 1 if self.advance().kind == "++" else -1
            return Step(amount, left, False)
        if self.token.kind in _ASSIGN and _is_lvalue(left):
            # Taken here and not at the top: `a && b = c` assigns to b.
            op = self.advance().kind
            self.newlines()
            return Assign(op, left, self.expression(*self.flags))
        return left

    def primary(self) -> Expr:
        token = self.token
        kind = token.kind
        if kind == "number":
            self.advance()
            return Num(_literal(token.text))
        if kind == "string":
            self.advance()
            return Str(token.text)
        if kind in ("/", "/="):
            source = self.lexer.regex(token.start)
            self.token = self.lexer.next()
            return Regex(source)
        if kind == "$":
            self.advance()
            if self.at("++", "--"):
                amount = 1 if self.advance().kind == "++" else -1
                return Field(Step(amount, self.primary(), True))
            if self.at("-", "+", "!"):
                op = self.advance().kind
                return Field(Unary(op, self.primary()))
            return Field(self.primary())
        if kind in ("++", "--"):
            self.advance()
            target = self.primary()
            if not _is_lvalue(target):
                raise self.unexpected()
            return Step(1 if kind == "++" else -1, target, True)
        if kind in ("-", "+", "!"):
            self.advance()
            return Unary(kind, self.unary())
        if kind == "(":
            return self.grouping()
        if kind == "getline":
            self.advance()
            into = self.optional_lvalue()
            if self.accept("<"):
                return Getline("file", into, self.file_operand())
            return Getline("main", into, None)
        if kind == "builtin":
            return self.builtin()
        if kind == "call":
            self.advance()
            return Call(token.text, self.arguments())
        if kind == "name":
            self.advance()
            if self.at("["):
                return Index(token.text, self.subscripts())
            return Var(token.text)
        raise self.unexpected()

    def file_operand(self) -> Expr:
        """What `getline <` reads from: no concatenation, so that `getline < "a" b` is not taken too far."""
        return self.postfix()

    def optional_lvalue(self) -> Expr | None:
        return self.primary() if self.at("name", "$") else None

    def grouping(self) -> Expr:
        self.advance()
        self.newlines()
        items = [self.expression()]
        self.newlines()
        while self.accept(","):
            self.newlines()
            items.append(self.expression())
            self.newlines()
        self.expect(")")
        return Grouping(tuple(items))

    def arguments(self) -> tuple[Expr, ...]:
        self.expect("(")
        self.newlines()
        items: list[Expr] = []
        while not self.at(")"):
            items.append(self.expression())
            self.newlines()
            if not self.accept(","):
                break
            self.newlines()
        self.expect(")")
        return tuple(items)

    def builtin(self) -> Expr:
        name = self.advance().text
        if not self.at("("):
            if name != "length":
                raise self.unexpected()
            return Builtin(name, (), False)
        return Builtin(name, self.arguments())

    def subscripts(self) -> tuple[Expr, ...]:
        self.expect("[")
        items = [self.expression()]
        while self.accept(","):
            self.newlines()
            items.append(self.expression())
        self.expect("]")
        return tuple(items)


def _literal(text: str) -> float:
    """A numeric constant of the source: decimal, or octal and hexadecimal as in C."""
    if text[:2] in ("0x", "0X"):
        return float(int(text, 16))
    if text[0] == "0" and len(text) > 1 and all(char in "01234567" for char in text):
        return float(int(text, 8))
    return float(text)


def _is_lvalue(node: Expr) -> bool:
    return isinstance(node, (Var, Index, Field))
