"""Parse awk expressions: one method for each level of precedence."""

from __future__ import annotations

from ramet.commands.awk.syntax.dialect import GNU, Dialect
from ramet.commands.awk.syntax.lexer import AwkToken, Lexer
from ramet.commands.awk.syntax.tree import (
    Assign,
    AwkError,
    Binary,
    Builtin,
    Call,
    Cond,
    Expr,
    Field,
    Function,
    Getline,
    Grouping,
    In,
    Index,
    Indirect,
    Match,
    Num,
    Regex,
    Step,
    Str,
    Typed,
    Unary,
    Var,
)

_ASSIGN = frozenset(("=", "+=", "-=", "*=", "/=", "%=", "^="))
ENDS_OF_PRINT = (";", "newline", "}", "end", ">", ">>", "|", "|&")
"""What may follow all that a print statement prints."""
_COMPARE = frozenset(("<", "<=", "==", "!=", ">", ">="))
_STARTS = frozenset(
    ("number", "string", "name", "call", "builtin", "$", "!", "(", "-", "+", "++", "--", "@", "getline")
)
ARGUMENTS = {
    "length": (0, 1), "substr": (2, 3), "index": (2, 2), "split": (2, 4), "sub": (2, 3), "gsub": (2, 3),
    "gensub": (3, 4), "match": (2, 3), "sin": (1, 1), "cos": (1, 1), "atan2": (2, 2), "exp": (1, 1), "log": (1, 1),
    "sqrt": (1, 1), "int": (1, 1), "rand": (0, 0), "srand": (0, 1), "tolower": (1, 1), "toupper": (1, 1),
    "system": (1, 1), "close": (1, 2), "fflush": (0, 1), "systime": (0, 0), "strftime": (0, 3), "mktime": (1, 2),
    "strtonum": (1, 1), "compl": (1, 1), "lshift": (2, 2), "rshift": (2, 2), "asort": (1, 3), "asorti": (1, 3),
    "patsplit": (2, 4), "isarray": (1, 1), "typeof": (1, 2), "mkbool": (1, 1), "intdiv": (3, 3),
    "dcgettext": (1, 3), "dcngettext": (3, 5), "bindtextdomain": (1, 2),
}  # fmt: skip
"""How many arguments a built-in function takes at least and at most."""


ARRAY_ARGUMENTS = {"split": (1, 3), "patsplit": (1, 3), "asort": (0, 1), "asorti": (0, 1), "match": (2,)}
"""Which arguments of a built-in function are arrays, counted from 0."""
_PLACES = ("first", "second", "third", "fourth")


class Expressions:
    """Tokens one after another, and what they make where a value is meant."""

    def __init__(self, text: str, dialect: Dialect = GNU) -> None:
        self.lexer = Lexer(text, dialect)
        self.functions: dict[str, Function] = {}
        self.token = self.lexer.next()
        self.depth = 0
        self.flags = (False, False)
        self.where = ""
        """The kind of rule that is being read, or `function`."""
        self.loops = self.switches = 0
        self.listing = -1
        """Where what is printed begins."""
        self.tight = False
        """Whether an operand is being read that no assignment can be."""
        self.errors: list[str] = []
        self.lines: dict[int, int] = {}
        """The source line of expressions by the identity of their nodes."""
        self.variables: set[str] = set()
        """Names that stood for variables so far."""

    def advance(self) -> AwkToken:
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

    def expect(self, kind: str) -> AwkToken:
        if self.token.kind != kind:
            raise self.unexpected()
        return self.advance()

    def unexpected(self) -> AwkError:
        ended = self.token.kind in ("newline", "end")
        return self.wrong("unexpected newline or end of string" if ended else "syntax error")

    def wrong(self, message: str, token: AwkToken | None = None) -> AwkError:
        at = self.token if token is None else token
        if at.kind == "end":
            end = len(self.lexer.text.rstrip("\n"))
            return self.lexer.error(message, end, self.lexer.text.count("\n", 0, end) + 1)
        # An unexpected end of line has been read already.
        return self.lexer.error(message, at.start, at.line + (at.kind == "newline"))

    def newlines(self) -> None:
        while self.token.kind == "newline":
            self.advance()

    def separators(self) -> None:
        while self.token.kind in ("newline", ";"):
            self.advance()

    def report(self, message: str) -> None:
        """An error that does not keep the rest from being read."""
        self.errors.append(f"cmd. line:{self.token.line}: error: {message}")

    # ------------------------------------------------------------------ expressions

    def expression(self, no_gt: bool = False, no_in: bool = False) -> Expr:
        self.depth += 1
        if self.depth > 300:
            raise AwkError("expression is nested too deeply")
        saved, self.flags = (self.flags, self.tight), (no_gt, no_in)
        self.tight = False
        try:
            return self.ternary(no_gt, no_in)
        finally:
            self.depth -= 1
            self.flags, self.tight = saved

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
            left = self.inside((left,))
            if self.token.kind in _COMPARE and not (no_gt and self.at(">")):
                left = Binary(self.advance().kind, left, self.piped(no_gt, no_in))
            left = self.matched(left, no_gt, no_in)
        return left

    def inside(self, subscripts: tuple[Expr, ...]) -> Expr:
        """Return the array that stands behind `in`."""
        name = self.expect("name").text
        outer: list[tuple[Expr, ...]] = []
        while self.at("["):
            outer.append(self.subscripts())
        return In(subscripts, name, tuple(outer))

    def matching(self, no_gt: bool, no_in: bool) -> Expr:
        return self.matched(self.comparison(no_gt, no_in), no_gt, no_in)

    def matched(self, left: Expr, no_gt: bool, no_in: bool) -> Expr:
        while self.at("~", "!~"):
            if isinstance(left, Regex):
                self.lexer.warnings.append(
                    f"cmd. line:{self.token.line}: warning: regular expression on left of `~' or `!~' operator"
                )
            negated = self.advance().kind == "!~"
            left = Match(negated, left, self.comparison(no_gt, no_in))
        return left

    def comparison(self, no_gt: bool, no_in: bool) -> Expr:
        left = self.piped(no_gt, no_in)
        if self.token.kind in _COMPARE and not (no_gt and self.at(">")):
            op = self.advance().kind
            left = Binary(op, left, self.piped(no_gt, no_in))
            if self.token.kind in _COMPARE and not (no_gt and self.at(">")):
                raise self.unexpected()
        return left

    def piped(self, no_gt: bool, no_in: bool) -> Expr:
        left = self.concatenation(no_gt, no_in)
        while self.at("|", "|&"):
            saved = (self.lexer.pos, self.lexer.line, self.token)
            kind = "command" if self.advance().kind == "|" else "coprocess"
            if not self.accept("getline"):
                self.lexer.pos, self.lexer.line, self.token = saved
                break
            left = self.after_getline(Getline(kind, self.optional_lvalue(), left), no_gt, no_in)
        return left

    def after_getline(self, left: Expr, no_gt: bool, no_in: bool) -> Expr:
        """`cmd | getline x y` and `cmd | getline x + 1` go on with what getline returns."""
        while self.token.kind in _STARTS:
            if self.at("+", "-"):
                left = Binary(self.advance().kind, left, self.multiplicative())
            else:
                left = Binary(" ", left, self.additive(no_gt, no_in))
        return left

    def concatenation(self, no_gt: bool, no_in: bool) -> Expr:
        left = self.additive(no_gt, no_in)
        while self.token.kind in _STARTS and not self.at("+", "-") and not (self.at("in")):
            loose, self.tight = self.tight, True
            left = Binary(" ", left, self.additive(no_gt, no_in))
            self.tight = loose
        return left

    def additive(self, no_gt: bool, no_in: bool) -> Expr:
        left = self.multiplicative()
        while self.at("+", "-"):
            op = self.advance().kind
            loose, self.tight = self.tight, True
            left = Binary(op, left, self.multiplicative())
            self.tight = loose
        return left

    def multiplicative(self) -> Expr:
        left = self.unary()
        while self.at("*", "/", "%"):
            op = self.advance().kind
            loose, self.tight = self.tight, True
            left = Binary(op, left, self.unary())
            self.tight = loose
        return left

    def unary(self) -> Expr:
        if self.at("!", "-", "+"):
            op = self.advance().kind
            loose, self.tight = self.tight, True
            operand = self.unary()
            self.tight = loose
            return Unary(op, operand)
        return self.power()

    def power(self) -> Expr:
        left = self.postfix()
        if self.at("^"):
            self.advance()
            # -2^-2: the exponent may have a sign.
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
        if self.token.kind in _ASSIGN and _is_lvalue(left) and not self.tight:
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
            octal = self.lexer.dialect.extensions
            return Num(_literal(token.text) if octal else float(token.text), token.text)
        if kind == "string":
            self.advance()
            return Str(token.text)
        if kind in ("/", "/="):
            return Regex(self.regex(token.start))
        if kind == "$":
            self.advance()
            if self.at("++", "--"):
                amount = 1 if self.advance().kind == "++" else -1
                return Field(Step(amount, self.primary(), True))
            if self.at("-", "+", "!"):
                op = self.advance().kind
                return Field(Unary(op, self.primary()))
            operand = self.primary()
            if isinstance(operand, Field) and self.at("++", "--"):
                # `$$a++++` is `$($a++)++`: the inner field has the first claim.
                operand = Step(1 if self.advance().kind == "++" else -1, operand, False)
            return Field(operand)
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
            if self.where in ("BEGINFILE", "ENDFILE"):
                self.report(f"non-redirected `getline' invalid inside `{self.where}' rule")
            return Getline("main", into, None)
        if kind == "builtin":
            return self.builtin()
        if kind == "call":
            self.advance()
            made = Call(token.text, self.arguments())
            self.lines[id(made)] = token.line
            return made
        if kind == "name":
            self.advance()
            self.variables.add(token.text)
            if not self.at("["):
                return Var(token.text)
            path = [self.subscripts()]
            while self.at("["):
                path.append(self.subscripts())
            return Index(token.text, path[-1], tuple(path[:-1]))
        if kind == "@":
            self.advance()
            if self.at("/", "/="):
                return Typed(self.regex(self.token.start))
            name = self.expect("call").text
            return Indirect(name, self.arguments())
        raise self.unexpected()

    def regex(self, start: int) -> str:
        source = self.lexer.regex(start)
        self.token = self.lexer.next()
        return source

    def file_operand(self) -> Expr:
        """Return what `getline <` reads from: no concatenation, so that `getline < "a" b` is not taken too far."""
        loose, self.tight = self.tight, True
        operand = self.additive(no_gt=True, no_in=True)
        self.tight = loose
        return operand

    def optional_lvalue(self) -> Expr | None:
        return self.primary() if self.at("name", "$") else None

    def grouping(self) -> Expr:
        """Parentheses; a list in them is the subscripts of `(i, j) in a`, or all that `print` prints."""
        listed = self.advance().start == self.listing
        self.newlines()
        items = [self.expression()]
        self.newlines()
        while self.accept(","):
            self.newlines()
            items.append(self.expression())
            self.newlines()
        self.expect(")")
        if len(items) > 1:
            if self.accept("in"):
                return self.inside(tuple(items))
            if not listed or not self.at(*ENDS_OF_PRINT):
                raise self.unexpected()
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
        self.closing = self.expect(")")
        return tuple(items)

    def builtin(self) -> Expr:
        name = self.advance().text
        if not self.at("("):
            if name != "length":
                raise self.unexpected()
            return Builtin(name, ())
        args = self.arguments()
        low, high = ARGUMENTS.get(name, (0, 1_000))
        if not low <= len(args) <= high:
            raise self.wrong(f"{len(args)} is invalid as number of arguments for {name}", self.closing)
        if name in ("sub", "gsub") and len(args) == 3 and not _is_changeable(args[2]):
            raise self.wrong(f"{name} third parameter is not a changeable object", self.closing)
        if name == "index" and isinstance(args[1], Regex):
            raise AwkError(
                f"cmd. line:{self.token.line}: fatal: index: regexp constant as second argument is not allowed"
            )
        self.check_arrays(name, args)
        return Builtin(name, args)

    def check_arrays(self, name: str, args: tuple[Expr, ...]) -> None:
        """Whether names stand where a function wants arrays."""
        for place in ARRAY_ARGUMENTS.get(name, ()):
            if place < len(args) and not isinstance(args[place], (Var, Index)):
                raise AwkError(f"cmd. line:{self.token.line}: fatal: {name}: {_PLACES[place]} argument is not an array")

    def subscripts(self) -> tuple[Expr, ...]:
        self.expect("[")
        items = [self.expression()]
        while self.accept(","):
            self.newlines()
            items.append(self.expression())
        self.expect("]")
        return tuple(items)


def _literal(text: str) -> float:
    """Return a numeric constant of the source: decimal, or octal and hexadecimal as in C."""
    if text[:2] in ("0x", "0X"):
        return float(int(text, 16))
    if text[0] == "0" and len(text) > 1 and all(char in "01234567" for char in text):
        return float(int(text, 8))
    return float(text)


def _is_lvalue(node: Expr) -> bool:
    return isinstance(node, (Var, Index, Field))


def _is_changeable(node: Expr) -> bool:
    """Return whether sub and gsub accept this as third argument: gawk allows constants."""
    if isinstance(node, Grouping) and len(node.items) == 1:
        return _is_changeable(node.items[0])
    return isinstance(node, (Var, Index, Field, Num, Str, Regex))
