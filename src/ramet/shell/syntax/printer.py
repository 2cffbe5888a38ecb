"""Print syntax trees as shell text.

- `to_text` prints what parses back to an equal tree, `function_text` and `command_text` what bash itself prints.
- The ``bash`` flag of the one printer repeats bash's habits (``elif`` as a nested ``if``, ``$'..'`` as plain quotes,
  ``|&`` as ``2>&1 |``), which change the text but not its meaning.
- Here-documents are held back until the line is complete.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

from ramet.concurrency.recursion import room
from ramet.shell.syntax.nodes import (
    AndOr,
    AnsiQuoted,
    ArithCommand,
    ArithSub,
    ArrayLiteral,
    Assignment,
    Case,
    Cond,
    CondAnd,
    CondBinary,
    CondExpr,
    CondGroup,
    CondNot,
    CondOr,
    CondUnary,
    CondWord,
    Coproc,
    DoubleQuoted,
    Escaped,
    For,
    ForArith,
    Function,
    Group,
    HereDoc,
    If,
    Literal,
    Param,
    Part,
    Pipeline,
    ProcessSub,
    Redirect,
    Script,
    Select,
    Simple,
    SingleQuoted,
    Statement,
    Subshell,
    While,
    Word,
)

_STEP = 4
_WIDEST = 10_000
"""Columns that a line is indented by at most: the text of what nests deep would be nothing but blanks."""
_UNLOUD = str.maketrans({"\\": "\\\\", "`": "\\`"})
_ANSI = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\a": "\\a", "\b": "\\b", "\f": "\\f", "\v": "\\v", "\x1b": "\\E"}
_ANSI |= {"\\": "\\\\", "'": "\\'"}


def to_text(node: Any) -> str:
    """Text that parses to an equal tree: a script, a statement, a command, a word or an assignment."""
    return _printed(node, bash=False)


def lines_text(script: Script) -> str:
    """The same for what stands in a substitution, whose lines stay lines: each is read when those before it ran."""
    printer = _Printer(bash=False, substituted=True)
    with room:
        printer.script(script)
        printer.bodies("")
    return printer.text()


def command_text(node: Any) -> str:
    """A command as bash shows it in ``jobs``, ``$BASH_COMMAND`` and traces of compound commands."""
    return _printed(node, bash=True)


def function_text(function: Function, posix: bool = False) -> str:
    """Return what ``declare -f`` prints, without the newline at the end; `posix` by POSIX's rules."""
    printer = _Printer(bash=True)
    printer.keyword = "" if posix else "function "
    with room:
        printer.definition(function, "")
    return printer.text()


def function_value(function: Function) -> str:
    """What an exported function is in the environment: the definition without its name and almost without
    indentation."""
    printer = _Printer(bash=True, step=0)
    printer.indent = 1
    with room:
        printer.definition(function, "")
    text = "".join(printer.out)
    body = text.partition("{ \n")[2]
    close = body.rindex("\n }")
    return f"() {{ {body[:close]}\n}}{body[close + 3 :]}"


def word_text(word: Word, bash: bool = False) -> str:
    """A word as written."""
    if len(word.parts) == 1 and isinstance(part := word.parts[0], Literal):
        return part.text
    printer = _Printer(bash)
    with room:
        return printer.word(word)


def substitution_text(script: Script) -> str:
    """What bash makes of the commands between the parentheses of a substitution."""
    printer = _Printer(True)
    with room:
        return printer._nested(script)


def assignment_text(assignment: Assignment, bash: bool = False) -> str:
    """An assignment as written."""
    printer = _Printer(bash)
    with room:
        return printer.assignment(assignment)


def _printed(node: Any, bash: bool) -> str:
    printer = _Printer(bash)
    with room:
        if isinstance(node, Word):
            return printer.word(node)
        if isinstance(node, Assignment):
            return printer.assignment(node)
        if isinstance(node, Script):
            printer.script(node)
        elif isinstance(node, Statement):
            printer.script(Script((node,)))
        else:
            printer.node(node)
        printer.bodies("")
    return printer.text()


def _single(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


_CHOOSING = ("-", "=", "?", "+")
"""How operators end whose operand is as quoted as what it stands in."""


class _Printer:
    def __init__(self, bash: bool, step: int = _STEP, substituted: bool = False) -> None:
        self.bash = bash
        self.step = step
        self.substituted = substituted  # in a command substitution bash keeps the ends of lines
        self.out: list[str] = []
        self.keyword = "function "  # before the definitions of functions within others
        self.indent = 0
        self.inside = 0  # functions that we are in: there, lists go on separate lines
        self.pending: list[HereDoc] = []
        self.lists = 0  # lists of several commands that we are in
        self.document = False  # a here-document was the last thing printed
        self.lead = False  # indentation is due before the next command
        self.ended = False  # the last thing printed was the `&` of a background command
        self.quoted = False  # within double quotes, where quotes of an operand are none

    # ------------------------------------------------------------------- basics

    def put(self, text: str) -> None:
        self.out.append(text)
        self.ended = text == " &" or (self.ended and not text)

    def text(self) -> str:
        return "".join(self.out)

    def last(self) -> str:
        return next((text[-1] for text in reversed(self.out) if text), "")

    def semicolon(self) -> None:
        if self.last() == "\n" or self.ended or (self.bash and self.last() == "&"):
            return
        self.put(";")

    def newline(self, text: str) -> None:
        self.put("\n" + " " * min(self.indent, _WIDEST) + text)

    def bodies(self, separator: str) -> None:
        """Prints a separator and the here-documents that were held back."""
        if separator and separator != ";":
            self.put(separator)
        if self.pending:
            documents, self.pending = self.pending, []
            self.put("\n")
            for here in documents:
                self.put(self._body(here))
            if self.bash and separator and separator != ";":
                self.put(" ")
            self.document = True

    def _body(self, here: HereDoc) -> str:
        body = self.parts(here.body.parts)
        return body + here.delimiter + "\n"

    # -------------------------------------------------------------------- lists

    def script(self, script: Script) -> None:
        last = len(script.statements) - 1
        self.lists += last > 0
        for place, statement in enumerate(script.statements):
            self.node(statement.node)
            if statement.background:
                if self.bash and isinstance(statement.node, AndOr | Pipeline):
                    self.bodies("")  # as between the links of a chain
                self.bodies(" &")
                if place < last:
                    self.put(" ")
                    self.lead = False
            elif place < last:
                if statement.newline and self.substituted:
                    self._next_line()
                else:
                    self._next_statement(not place and not isinstance(statement.node, AndOr | Pipeline))
        self.lists -= last > 0

    def _next_line(self) -> None:
        self.bodies("")
        self.put("\n\n" if self.inside else "\n")
        self.lead, self.document = bool(self.inside), False

    def _next_statement(self, first: bool) -> None:
        if self.pending:
            self.bodies("" if self.inside else ";")
            self.document = self.bash and first and self.inside > 0  # then bash leaves out the next semicolon too
            if self.inside:
                self.put("\n")
                self.lead = True
            return
        if not self.document or (not self.bash and self.last() != "\n"):
            self.put(";")
        self.document = False
        if self.inside:
            self.put("\n")
            self.lead = True
        else:
            self.put(" ")

    def block(self, script: Script) -> None:
        """Print a list on separate lines, one step further in."""
        self.put("\n")
        self.indent += self.step
        self.lead = True
        self.script(script)
        self.bodies("")
        self.lead = False
        self.indent -= self.step

    def inline(self, script: Script) -> None:
        """A list that begins on the line that we are on."""
        self.lead = False
        self.script(script)

    def node(self, node: Any) -> None:
        if self.lead:
            self.put(" " * min(self.indent, _WIDEST))
            self.lead = False
        if isinstance(node, AndOr):
            self.node(node.first)
            joined = isinstance(node.first, Pipeline) and len(node.first.stages) > 1
            for op, command in node.rest:
                if joined and self.bash:
                    self.bodies("")  # as bash does, although the result cannot be parsed again
                self.bodies(f" {op} ")
                self.node(command)
                joined = True
            return
        if isinstance(node, Pipeline):
            self._pipeline(node)
            return
        if isinstance(node, Simple):  # also one that is unread yet
            self._simple(node)
            return
        method: Callable[[Any], None] = getattr(self, "_" + type(node).__name__.lower())
        method(node)
        redirects: tuple[Redirect, ...] = getattr(node, "redirects", ())
        if redirects:
            self.put(" ")
            self.redirections(redirects)

    def _pipeline(self, node: Pipeline) -> None:
        if node.timed:
            self.put(node.timed + " ")
        if node.negated:
            self.put("! ")
        elif not node.stages and not node.timed:
            self.put("! ! ")
        for place, stage in enumerate(node.stages):
            self.node(stage)
            if place == len(node.stages) - 1:
                break
            if node.merge[place] and self.bash:
                self.put(" 2>&1")
            self.bodies(" |&" if node.merge[place] and not self.bash else " |")
            self.put(" ")

    # ----------------------------------------------------------------- commands

    def _simple(self, node: Simple) -> None:
        words = [self.assignment(one) for one in node.assigns]
        words += [self.assignment(one) if isinstance(one, Assignment) else self.word(one) for one in node.words]
        self.put(" ".join(words))
        if node.redirects:
            if words:
                self.put(" ")
            self.redirections(node.redirects)

    def _group(self, node: Group) -> None:
        self.put("{ ")
        if self.inside:
            self.block(node.body)
            self.newline("}")
        else:
            self.inline(node.body)
            self.bodies("")
            self.semicolon()
            self.put(" }")

    def _subshell(self, node: Subshell) -> None:
        self.put("( ")
        self.inline(node.body)
        self.bodies("")
        self.put(" )")

    def _if(self, node: If) -> None:
        self._clauses(node.clauses, node.orelse)

    def _clauses(self, clauses: Sequence[tuple[Script, Script]], orelse: Script | None, first: int = 0) -> None:
        for place, (condition, body) in enumerate(islice(clauses, first, None), first):
            if place > first and self.bash:
                # bash knows no elif once it has parsed one.
                self.semicolon()
                self.newline("else")
                self.indent += self.step
                self.newline("")
                self._clauses(clauses, orelse, place)
                self.indent -= self.step
                self.semicolon()
                self.newline("fi")
                return
            if place > first:
                self.semicolon()
                self.newline("elif ")
            else:
                self.put("if ")
            self.inline(condition)
            alone = len(condition.statements) == 1 and not isinstance(condition.statements[0].node, AndOr | Pipeline)
            if not (self.bash and self.lists and alone):  # there bash prints the documents behind the next command
                self.bodies("")
            self.semicolon()
            self.put(" then")
            self.block(body)
            self.bodies("")
        if orelse is not None:
            self.semicolon()
            self.newline("else")
            self.block(orelse)
        self.semicolon()
        self.newline("fi")

    def _while(self, node: While) -> None:
        self.put("until " if node.until else "while ")
        self.inline(node.condition)
        self.bodies("")
        self.semicolon()
        self.put(" do")
        self.block(node.body)
        self.semicolon()
        self.newline("done")

    def _for(self, node: For | Select, keyword: str = "for") -> None:
        self.put(f"{keyword} {node.name}")
        if node.words is not None:
            self.put(" in " + " ".join([self.word(one) for one in node.words]))
        elif self.bash:
            self.put(' in "$@"')
        self.put(";")
        self._do(node.body)

    def _select(self, node: Select) -> None:
        self._for(node, "select")

    def _forarith(self, node: ForArith) -> None:
        words = [self.word(one) for one in (node.init, node.condition, node.step)]
        parts = "; ".join([text or "1" for text in words] if self.bash else words)
        self.put(f"for (({parts}))")
        self._do(node.body)

    def _do(self, body: Script) -> None:
        self.newline("do")
        self.block(body)
        self.semicolon()
        self.newline("done")

    def _case(self, node: Case) -> None:
        self.put(f"case {self.word(node.word)} in ")
        self.indent += self.step
        for item in node.items:
            self.newline("")
            if not self.bash or self.word(item.patterns[0]) == "esac":
                self.put("(")
            self.put(" | ".join([self.word(one) for one in item.patterns]) + ")")
            self.block(item.body)
            self.newline(item.end)
        self.indent -= self.step
        self.newline("esac")

    def _cond(self, node: Cond) -> None:
        self.put(f"[[ {self.condition(node.expr)} ]]")

    def condition(self, expr: CondExpr) -> str:
        if isinstance(expr, CondWord):
            return ("-n " if self.bash else "") + self.word(expr.word)
        if isinstance(expr, CondUnary):
            return f"{expr.op} {self.word(expr.word)}"
        if isinstance(expr, CondBinary):
            return f"{self.word(expr.left)} {expr.op} {self.word(expr.right)}"
        if isinstance(expr, CondNot):
            return f"! {self.condition(expr.expr)}"
        if isinstance(expr, CondGroup):
            return f"( {self.condition(expr.expr)} )"
        if isinstance(expr, CondAnd):
            return " && ".join([self.condition(item) for item in expr.items])
        assert isinstance(expr, CondOr)
        return " || ".join([self.condition(item) for item in expr.items])

    def _arithcommand(self, node: ArithCommand) -> None:
        self.put(f"(({self.word(node.body)}))")

    def _coproc(self, node: Coproc) -> None:
        name = node.name
        if not self.bash and name == "COPROC":
            self.put("coproc ")
        else:
            self.put(f"coproc {name} ")
        self.node(node.body)

    def _function(self, node: Function) -> None:
        if self.bash:
            self.definition(node, self.keyword)
            return
        self.put(f"function {node.name} " if node.keyword else f"{node.name} () ")
        self.node(node.body)

    def definition(self, node: Function, keyword: str) -> None:
        """A function as ``declare -f`` shows it: the body in braces, whatever it is."""
        self.put(f"{keyword}{node.name} () \n{' ' * min(self.indent, _WIDEST)}{{ ")
        self.inside += 1
        body = node.body
        redirects: tuple[Redirect, ...] = ()
        if isinstance(body, Group):
            redirects = body.redirects
            self.block(body.body)
        else:
            self.block(Script((Statement(body),)))
        self.inside -= 1
        self.newline("}")
        self.document = False
        if redirects:
            self.put(" ")
            self.redirections(redirects)
            if not self.inside:
                self.bodies("")

    # ------------------------------------------------------------- redirections

    def redirections(self, redirects: Sequence[Redirect]) -> None:
        self.document = self.document and not self.bash
        self.put(" ".join([self._redirect(one) for one in redirects]))

    def _redirect(self, redirect: Redirect) -> str:
        op, target = redirect.op, redirect.target
        prefix = "" if redirect.fd is None else str(redirect.fd)
        if redirect.var is not None:
            prefix = f"{{{redirect.var}}}"
        if redirect.here is not None:
            self.pending.append(redirect.here)
            delimiter = self.word(target)
            if self.bash:
                delimiter = _single(redirect.here.delimiter) if redirect.here.quoted else redirect.here.delimiter
            return f"{prefix}{op}{delimiter}"
        text = self.word(target)
        if op in ("<&", ">&"):
            if self.bash:
                usual = "0" if op == "<&" else "1"
                if text.isdigit() or text.endswith("-"):
                    prefix = prefix or usual
                elif prefix == usual:
                    prefix = ""
                if text == "-":
                    op = ">&"
            return f"{prefix}{op}{text}"
        if self.bash and prefix == ("0" if op[0] == "<" else "1"):
            prefix = ""
        if self.bash and op == "<>" and not prefix:
            prefix = "0"
        return f"{prefix}{op} {text}"

    # -------------------------------------------------------------------- words

    def assignment(self, node: Assignment) -> str:
        subscript = "" if node.subscript is None else f"[{self.word(node.subscript)}]"
        head = f"{node.name}{subscript}{'+' if node.append else ''}="
        if isinstance(node.value, Word):
            return head + self.word(node.value)
        return head + self._array(node.value)

    def _array(self, array: ArrayLiteral) -> str:
        elements = []
        for element in array.elements:
            value = self.word(element.value)
            if element.subscript is not None:
                value = f"[{self.word(element.subscript)}]{'+' if element.append else ''}={value}"
            elements.append(value)
        return f"({' '.join(elements)})"

    def word(self, word: Word) -> str:
        parts = word.parts
        if len(parts) == 1 and isinstance(parts[0], Literal):
            return parts[0].text
        return self.parts(parts)

    def parts(self, parts: Sequence[Part]) -> str:
        return "".join([self._part(part) for part in parts])  # by plain calls: parts may nest deep

    def _part(self, part: Part) -> str:
        if isinstance(part, Literal):
            return part.text
        if isinstance(part, Escaped):
            return "\\" + part.char
        if isinstance(part, SingleQuoted):
            return f"'{part.text}'"
        if isinstance(part, DoubleQuoted):
            outer, self.quoted = self.quoted, True
            text = self.parts(part.parts)
            self.quoted = outer
            return f'{"$" if part.locale and not self.bash else ""}"{text}"'
        if isinstance(part, Param):
            return self._param(part)
        if isinstance(part, AnsiQuoted):
            if self.bash:
                return part.value if self.quoted else _single(part.value)
            return "$'" + "".join(_ANSI.get(c, c) for c in part.value) + "'"
        if isinstance(part, ArithSub):
            return f"$[{self.word(part.body)}]" if part.bracket else f"$(({self.word(part.body)}))"
        if isinstance(part, ProcessSub):
            return f"{part.direction}({self._nested(part.body)})"
        if part.body is None:
            return f"`{part.written or part.source.translate(_UNLOUD)}`"
        text = self._nested(part.body)
        return f"$({' ' if text.startswith('(') else ''}{text})"

    def _nested(self, script: Script) -> str:
        inner = _Printer(self.bash, substituted=self.bash)
        inner.script(script)
        inner.bodies("")
        return "".join(inner.out)

    def _param(self, param: Param) -> str:
        if param.bad is not None:
            return param.bad[1:] if param.bad.startswith("\0") else "${" + param.bad + "}"
        if not param.braced:
            return "$" + param.name
        head = {"length": "#", "indirect": "!", "keys": "!", "names": "!"}.get(param.form, "")
        subscript = param.subscript
        key = "" if subscript is None else f"[{subscript if isinstance(subscript, str) else self.word(subscript)}]"
        op, outer = param.op, self.quoted
        self.quoted = outer and op[-1:] in _CHOOSING
        args = [self.word(one) for one in param.args]
        self.quoted = outer
        if op in ("/", "//", "/#", "/%"):
            tail = op + "/".join(args)
        elif op == ":":
            tail = ":" + ":".join(args)
        else:
            tail = op + "".join(args)
        return f"${{{head}{param.name}{key}{tail}}}"
