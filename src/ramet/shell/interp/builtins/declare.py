"""`declare`, `typeset`, `local`, `export` and `readonly`: set variables and their attributes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Final

from ramet.concurrency.offload import checkpoint, offload, offload_large
from ramet.concurrency.sizes import BATCH, LONG_SCRIPT
from ramet.shell.expand.arith.numerals import is_name
from ramet.shell.expand.errors import (
    BadNumber,
    BadSubscript,
    ErrexitExempt,
    Fatal,
    LineError,
    PosixFatal,
    Readonly,
    ShellError,
)
from ramet.shell.expand.values import (
    CAPITAL,
    EXPORT,
    INTEGER,
    LOWER,
    NAMEREF,
    READONLY,
    TRACE,
    UPPER,
    Assoc,
    Dynamic,
    Indexed,
    NameRef,
)
from ramet.shell.interp.builtins.declare_args import MARKERS, Request, functions, show, show_locals
from ramet.shell.interp.builtins.usage import explained
from ramet.shell.interp.builtins.variable_list import write_settings
from ramet.shell.interp.fast.local import led_to
from ramet.shell.interp.run.assign import (
    AssignWord,
    Item,
    assign_items,
    assign_word,
    compile_assign,
    put,
    without_arrays,
)
from ramet.shell.interp.run.batches import each, then, turn
from ramet.shell.interp.run.maybe_async import Result, drive
from ramet.shell.interp.run.traps import Leave
from ramet.shell.interp.state.scopes import is_subscript, split_subscript
from ramet.shell.interp.state.shell_state import Builtin, ShellState
from ramet.shell.interp.state.special_variables import KEPT_BY_SHELL
from ramet.shell.interp.state.variables import Variables
from ramet.shell.syntax.errors import SyntaxFailure
from ramet.shell.syntax.nodes import ArrayLiteral, Script, Simple, Word
from ramet.shell.syntax.parser import Parser
from ramet.shell.syntax.printer import word_text

_BITS: Final = {
    "i": INTEGER,
    "l": LOWER,
    "n": NAMEREF,
    "r": READONLY,
    "t": TRACE,
    "u": UPPER,
    "x": EXPORT,
    "c": CAPITAL,
}
_ASSIGNED: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]{0,65535}+)(\[.*?\])?(\+?)=", re.DOTALL).match
_USAGE: Final = {
    "declare": "declare [-aAfFgiIlnrtux] [name[=value] ...] or declare -p [-aAfFilnrtux] [name ...]",
    "typeset": "typeset [-aAfFgiIlnrtux] name[=value] ... or typeset -p [-aAfFilnrtux] [name ...]",
    "local": "local [option] name[=value] ...",
    "export": "export [-fn] [name[=value] ...] or export -p",
    "readonly": "readonly [-aAf] [name[=value] ...] or readonly -p",
}


def _options(sh: ShellState, argv: list[str], allowed: str) -> Request | None:
    request = Request(argv[0])
    signs = "-" if argv[0] in MARKERS else "-+"
    i = 1
    while i < len(argv):
        word = argv[i]
        if isinstance(word, AssignWord) or len(word) < 2 or word[0] not in signs:
            break
        i += 1
        if word == "--":
            break
        on = word[0] == "-"
        for letter in islice(word, 1, None):
            if letter not in allowed:
                _assign_compounds(sh, argv)
                sh.complain(f"{argv[0]}: {word[0]}{letter}: invalid option")
                sh.err(f"{argv[0]}: usage: {_USAGE[argv[0]]}\n")
                return None
            if letter in _BITS:
                if on:
                    request.add |= _BITS[letter]
                    if letter in "luc":
                        request.remove |= (LOWER | UPPER | CAPITAL) & ~_BITS[letter]
                else:
                    request.remove |= _BITS[letter]
            elif letter in "aA":
                request.both = on and request.array in ("a", "A") and request.array != letter
                request.array = letter if on else "+" + letter
            elif letter == "f":
                request.functions = on
            elif letter == "F":
                request.functions = request.names_only = on
            elif letter == "g":
                request.everywhere = on
            elif letter == "I":
                request.inherit = on
            elif letter == "p":
                request.show = True
    request.words = argv[i:]
    return request


class Compound(LineError):
    """A compound assignment that fails; it ends the line."""


class _Element(ShellError):
    """An array element that cannot be assigned; its message has no command name."""


def declare(sh: ShellState, argv: list[str]) -> Result:
    request = _options(sh, argv, "aAfFgiIlnrtuxpc")
    if request is None:
        return 2
    if request.functions:
        return functions(sh, request)
    if request.show or (not request.words and (request.add or request.array)):
        return _show_assigned(sh, request)
    if not request.words:
        return drive(write_settings(sh, argv[0]))
    return _apply(sh, request, local=_in_function(sh) and not request.everywhere)


def _show_assigned(sh: ShellState, request: Request) -> Result:
    """`declare -p`: arrays among its words are assigned before it shows anything."""
    words = request.words
    request.words = [word for word in words if isinstance(word, AssignWord) and word.items is not None]
    made = _apply(sh, request, local=_in_function(sh) and not request.everywhere) if request.words else 0

    def shown(_: int) -> Result:
        request.words = [
            word.name if isinstance(word, AssignWord) and word.items is not None else word for word in words
        ]
        return show(sh, request)

    return then(made, shown)


def _in_function(sh: ShellState) -> bool:
    return any(frame.function for frame in sh.frames)


def _assign_compounds(sh: ShellState, argv: list[str]) -> None:
    """Compound assignments are made while the words are expanded, before the builtin gets to refuse."""
    if any(isinstance(word, AssignWord) and word.items is not None for word in argv):
        associative = any(word[:1] == "-" and "A" in word for word in argv[1:] if not isinstance(word, AssignWord))
        without_arrays(sh, argv, associative)


def local(sh: ShellState, argv: list[str]) -> Result:
    if len(argv) == 2 and argv[1] == "--help":
        return drive(explained(sh, "local"))
    if not _in_function(sh):
        _assign_compounds(sh, argv)
        return sh.error("local: can only be used in a function")
    request = _options(sh, argv, "aAfFgiIlnrtuxpc")
    if request is None:
        return 2
    if "-" in request.words:
        frame = next(frame for frame in reversed(sh.frames) if frame.function)
        if frame.options is None:
            frame.options = (set(sh.options), set())
            frame.special = True
        request.words = [word for word in request.words if word != "-"]
        if not request.words:
            return 0
    if not request.words:
        return drive(show_locals(sh))
    if request.show:
        return _show_assigned(sh, request)
    return _apply(sh, request, local=not request.everywhere)


def export(sh: ShellState, argv: list[str]) -> Result:
    request = _options(sh, argv, "fnpaA")
    if request is None:
        return 2
    if request.add & NAMEREF:
        request.add, request.remove = 0, EXPORT
        words, request.words = request.words, []

        def keep(word: str) -> None:
            if isinstance(word, AssignWord) or _has_work(sh, word):
                request.words.append(word)

        def rest(_: int) -> Result:
            if not request.words:
                return 0
            return functions(sh, request) if request.functions else _apply(sh, request, local=False)

        return then(each(sh, words, keep), rest)
    request.add |= EXPORT
    if request.functions:
        return functions(sh, request)
    if not request.words:
        request.add = EXPORT
        return show(sh, request)
    return _apply(sh, request, local=False)


def _has_work(sh: ShellState, word: str) -> bool:
    """Return whether `export -n` has something to do: a variable, a function, or an error to report."""
    return word in sh.vars or word in sh.functions or not is_name(word)


def readonly(sh: ShellState, argv: list[str]) -> Result:
    request = _options(sh, argv, "faAnp")
    if request is None:
        return 2
    request.add = READONLY
    if request.functions:
        return functions(sh, request)
    if not request.words:
        return show(sh, request)
    return _apply(sh, request, local=False)


# ---------------------------------------------------------------------------------------------------- applying


def _apply(sh: ShellState, request: Request, local: bool) -> Result:
    words = request.words
    if any(_is_read(sh, request, word) for word in words if _closes(word)):
        return drive(_apply_reading(sh, request, words, local))
    if len(words) > BATCH or any(map(_is_large, words)):
        return drive(offload(sh.budget, partial(_apply_all, sh, request, words, local)))
    return _apply_all(sh, request, words, local)


def _is_large(word: str) -> bool:
    """Whether an argument assigns enough to be applied in a thread."""
    if not isinstance(word, AssignWord):
        return len(word) > LONG_SCRIPT
    return len(word.value) > LONG_SCRIPT if word.items is None else len(word.items) > BATCH


def _apply_all(sh: ShellState, request: Request, words: list[str], local: bool) -> int:
    status = 0
    for word in words:
        checkpoint()
        try:
            if not _apply_one(sh, request, word, local):
                status = 1
        except Readonly as error:
            sh.complain(f"{'' if request.command in MARKERS else f'{request.command}: '}{error.message}")
            request.unassigned = True
            status = 1
        except Compound as error:
            raise LineError(error.message) from None
        except (BadSubscript, Fatal):
            raise
        except BadNumber as error:
            raise BadNumber(f"{request.command}: {error.message}") from None
        except ErrexitExempt as error:
            raise LineError(f"{request.command}: {error.message}") from None
        except _Element as error:
            sh.complain(error.message)
            status = 1
        except ShellError as error:
            sh.complain(f"{request.command}: {error.message}")
            status = 1
            if error.status == 127:
                raise
    return 4 if request.unassigned and _is_process(sh) else status


def _is_process(sh: ShellState) -> bool:
    """Whether the declaration is all that a stage of a pipeline does."""
    stage = sh.stage_command
    if not isinstance(stage, Simple) or not stage.words or sh.frames:
        return False
    first = stage.words[0]
    return isinstance(first, Word) and word_text(first) in ("declare", "typeset", "command", "builtin", *MARKERS)


def _parsed(word: str) -> AssignWord | None:
    """A word that looks like an assignment only after expansion (`declare "$name=1"`)."""
    if isinstance(word, AssignWord):
        return word
    match = _ASSIGNED(word)
    if match is None:
        return None
    key = match[2][1:-1] if match[2] else None
    return assign_word(match[1], key, bool(match[3]), word[match.end() :], None)


def _apply_one(sh: ShellState, request: Request, word: str, local: bool) -> bool:
    assignment = _parsed(word)
    name, key = (assignment.name, assignment.key) if assignment is not None else split_subscript(word)
    if not is_name(name) or (key is not None and request.command in ("export", "readonly")):
        element = assignment is not None and key is not None and is_name(name)
        sh.complain(f"{request.command}: `{f'{name}[{key}]' if element else word}': not a valid identifier")
        sh.export_failed = element  # of an array
        request.late |= word.startswith("-") and "A" in word
        request.unassigned |= element or request.command not in MARKERS
        return False
    if key is not None and not is_subscript(key):
        sh.complain(f"{request.command}: `{word}': not a valid identifier")
        request.unassigned = True
        return False
    store = sh.variables
    reference = bool(request.add & NAMEREF) or bool(request.remove & NAMEREF)
    if local:
        if not reference and store.scopes and type(store.values.get(name)) is NameRef:
            name = led_to(store, name)
            if not is_name(name):
                return True  # elements cannot be local
        if request.remove & NAMEREF and type(store.values.get(name)) is NameRef and store.get(name) is None:
            return True  # in a function only a reference to something becomes a text again
        if name in KEPT_BY_SHELL and type(store.values.get(name)) is Dynamic:
            sh.complain(f"{request.command}: {name}: variable may not be assigned value")
            return False
        if request.add & (EXPORT | READONLY):
            store.adopt(name, True)
        inherit = request.inherit or "localvar_inherit" in sh.shopts
        store.local(name, inherit)
        parts = assignment is not None and (assignment.items is not None or key is not None)
        if (request.array in ("a", "A") or parts) and not inherit and not reference and not request.both:
            _empty_array(store, name, request.array or "a")
    elif request.everywhere and store.scopes:
        return _apply_global(sh, request, name, assignment)
    elif not reference:
        name, deeper = store.follow(name)
        key = deeper if deeper is not None else key
        if not name:
            return False
        if (request.command in ("export", "readonly") and not request.remove) or request.add & (EXPORT | READONLY):
            store.adopt(name, request.command not in MARKERS)
    old_flags = store.attrs.get(name, 0)
    compound = assignment is not None and assignment.items is not None
    if compound and request.late:
        request = replace(request, array="A")
    if old_flags & READONLY and compound:
        raise Compound(f"{name}: readonly variable")
    if old_flags & READONLY and (assignment is not None or request.remove & READONLY):
        if request.command in MARKERS and assignment is not None:
            store.amiss(f"{name}: readonly variable")
        else:
            prefix = "" if request.command in MARKERS else f"{request.command}: "
            sh.complain(f"{prefix}{name}: readonly variable")
        sh.export_failed = request.command in MARKERS
        request.unassigned = True
        if request.command == "export":
            store.flag(name, request.add & EXPORT, request.remove & EXPORT)
        return False
    referring = bool(request.add & NAMEREF) and not (request.array and not local and store.values.get(name) is None)
    marking = assignment is None and request.command in MARKERS  # those make no arrays
    if not marking and not _shape(sh, request, name, key, assignment):
        return False
    if referring:
        return _make_reference(sh, request, name, assignment)
    store.flag(name, request.add & ~READONLY & ~NAMEREF, request.remove)
    if assignment is not None and key is not None and request.add & READONLY:
        # It is readonly before it gets to have the element.
        if not isinstance(store.values.get(name), Indexed | Assoc):
            store.indexed(name).blank = local
        sh.complain(f"{name}: readonly variable")
    elif assignment is not None:
        if request.add & INTEGER and key is None and assignment.items is None:
            store.values.setdefault(name, None)  # it is declared also when its value turns out to be no number
        _assign(sh, name, key, assignment)
    elif name not in store.values:
        store.values[name] = None
    if request.add & READONLY:
        store.flag(name, READONLY)
    marked = sh.allexport and not request.remove & EXPORT and (assignment is not None or not store.scopes)
    if marked and key is None and not isinstance(store.values.get(name), Indexed | Assoc):
        store.flag(name, EXPORT)
    return True


def _assign(sh: ShellState, name: str, key: str | None, assignment: AssignWord) -> None:
    if assignment.items is not None:
        assign_items(sh, name, assignment.items, assignment.append)
    elif key is not None:
        if key in ("@", "*", "") and not sh.variables.is_assoc(name):
            sh.variables.indexed(name).blank = False
            raise _Element(f"{name}[{key}]: bad array subscript")
        try:
            sh.variables.set_element(name, key, assignment.value, assignment.append)
        except LineError as error:
            if type(error) not in (LineError, PosixFatal):
                raise
            raise _Element(error.message) from None
    elif assignment.read is not None and isinstance(sh.vars.get(name), Indexed | Assoc):
        assign_items(sh, name, assignment.read, assignment.append)
    else:
        flags = sh.variables.attrs.get(name, 0)
        put(sh, name, assignment.value, assignment.append)
        if sh.allexport and not flags & EXPORT and isinstance(sh.vars.get(name), Indexed | Assoc):
            sh.variables.flag(name, remove=EXPORT)


def _looks_compound(value: str) -> bool:
    return value.startswith("(") and value.endswith(")")


def _closes(word: str) -> bool:
    return (word.value if isinstance(word, AssignWord) else word).endswith(")")


def _is_read(sh: ShellState, request: Request, word: str) -> bool:
    """`declare -a "x=(1 2)"`: whether an argument holds text that is read as a compound assignment."""
    if isinstance(word, AssignWord):
        name = word.name if word.items is None and word.key is None and _looks_compound(word.value) else ""
    else:
        match = _ASSIGNED(word)
        name = match[1] if match is not None and not match[2] and word.startswith("(", match.end()) else ""
    if not name:
        return False
    return request.array in ("a", "A") or isinstance(sh.vars.get(sh.variables.follow(name)[0]), Indexed | Assoc)


async def _apply_reading(sh: ShellState, request: Request, words: list[str], local: bool) -> int:
    status = 0
    for word in words:
        if _closes(word) and _is_read(sh, request, word):
            read = _parsed(word)
            assert read is not None
            keyed = request.array == "A" or sh.variables.is_assoc(read.name)
            try:
                read.read = await _compound_items(sh, read.value, keyed)
            except LineError:
                if read.name not in sh.vars and not local:  # it is there, with nothing in it
                    (sh.variables.make_assoc if keyed else sh.variables.indexed)(read.name).blank = False
                raise
            word = read
        apply = partial(_apply_all, sh, request, [word], local)
        status = (await offload(sh.budget, apply) if _is_large(word) else apply()) or status
        await turn(sh)
    return status


async def _compound_items(sh: ShellState, value: str, keyed: bool) -> Sequence[Item]:
    """What stands between the parentheses, expanded as it would be in a compound assignment of the script."""
    options = sh.syntax_options()

    def parse() -> Script | None:
        return Parser(f"x={value}\n", None, options, sh.line_now()).next()

    try:
        script = await offload_large(sh.budget, len(value), parse, LONG_SCRIPT)
    except SyntaxFailure as failure:
        raise _unreadable(sh, failure, value) from None
    node = script.statements[0].node if script is not None else None
    if not isinstance(node, Simple) or not node.assigns or not isinstance(node.assigns[0].value, ArrayLiteral):
        return [Item(None, False, value)]
    compile_it = partial(compile_assign, node.assigns[0], keyed)
    compiled = await offload_large(sh.budget, len(value), compile_it, LONG_SCRIPT)
    found: AssignWord = await compiled.word(sh)
    assert found.items is not None
    if not keyed:
        return found.items
    elements = node.assigns[0].value.elements
    return [item._replace(source=element) for item, element in zip(found.items, elements, strict=True)]


def _unreadable(sh: ShellState, failure: SyntaxFailure, value: str) -> ShellError:
    """Report a value that cannot be parsed as a compound assignment, and return the error."""
    if failure.second is not None:
        failure.second = f"`{value[1:-1].rpartition(chr(10))[2]}'"
    for line in failure.lines(f"{sh.error_name}: array assign: ")[: 1 if sh.errexit else None]:
        sh.err(line + "\n")
    if sh.errexit or failure.inner:
        raise Leave(sh.shell.leave(sh, 2))
    error = LineError(failure.message)
    error.reported = True
    return error


def _empty_array(store: Variables, name: str, kind: str) -> None:
    """What was a text in the function that runs becomes an array that has nothing of it."""
    if type(store.values.get(name)) is str and not store.attrs.get(name, 0) & READONLY:
        store.values[name] = None
        (store.indexed(name) if kind == "a" else store.make_assoc(name)).blank = False


def _shape(sh: ShellState, request: Request, name: str, key: str | None, assignment: AssignWord | None) -> bool:
    """Make the variable the kind of array that was asked for."""
    store = sh.variables
    value = store.values.get(name)
    if type(value) is {"+a": Indexed, "+A": Assoc}.get(request.array, ()):
        sh.complain(f"{request.command}: {name}: cannot destroy array variables in this way")
        return False
    if request.both:
        if value is None:
            store.make_assoc(name).blank = assignment is None
            if assignment is not None and assignment.items is not None:
                assign_items(sh, name, assignment.items, assignment.append)
        sh.complain(f"{request.command}: {name}: cannot convert associative to indexed array")
        return False
    if request.array == "A":
        if type(value) is Indexed:
            if assignment is not None and assignment.items is not None:
                raise Compound(f"{name}: cannot convert indexed to associative array")
            sh.complain(f"{request.command}: {name}: cannot convert indexed to associative array")
            return False
        if type(value) is not Assoc:
            store.make_assoc(name).blank = value is None
    elif request.array == "a":
        if type(value) is Assoc:
            if assignment is not None and assignment.items is not None:
                raise Compound(f"{name}: cannot convert associative to indexed array")
            sh.complain(f"{request.command}: {name}: cannot convert associative to indexed array")
            return False
        if type(value) is not Indexed and not isinstance(value, Dynamic):
            store.indexed(name).blank = value is None
    elif assignment is None and key is not None and not isinstance(value, Indexed | Assoc):
        store.indexed(name).blank = value is None
    return True


def _is_balanced(target: str, base: str) -> bool:
    """Whether all of what follows a name is one subscript that has something in it."""
    depth = 0
    for place, char in enumerate(target[len(base) :]):
        depth += (char == "[") - (char == "]")
        if not depth and place + 1 < len(target) - len(base):
            return False
    return not depth and target != f"{base}[]"


def _make_reference(sh: ShellState, request: Request, name: str, assignment: AssignWord | None) -> bool:
    store = sh.variables
    value = store.values.get(name)
    if isinstance(value, Indexed | Assoc):
        sh.complain(f"{request.command}: {name}: reference variable cannot be an array")
        return False
    if assignment is not None and assignment.items is not None:
        assign_items(sh, name, assignment.items, assignment.append)
        sh.complain(f"{request.command}: {name}: reference variable cannot be an array")
        return False
    if assignment is not None and assignment.key is not None:
        sh.complain(f"{request.command}: {name}[{assignment.key}]: reference variable cannot be an array")
        return False
    target = assignment.value if assignment is not None else value if isinstance(value, str) else ""
    if assignment is not None and assignment.append:
        target = (value.target if type(value) is NameRef else value if isinstance(value, str) else "") + target
    if type(value) is NameRef and assignment is None:
        target = value.target
    base, _ = split_subscript(target)
    if assignment is not None and not target:
        sh.complain(f"{request.command}: `': not a valid identifier")
        return False
    if target and not (is_name(base) and _is_balanced(target, base)):
        sh.complain(f"{request.command}: `{target}': invalid variable name for name reference")
        request.unassigned = True
        return False
    if base == name:
        if not store.scopes:
            sh.complain(f"{request.command}: {name}: nameref variable self references not allowed")
            return False
        sh.complain(f"{request.command}: warning: {name}: circular name reference")
        sh.complain(f"warning: {name}: circular name reference")
    store.values[name] = NameRef(target)
    store.flag(name, request.add, request.remove | INTEGER)
    return True


def _apply_global(sh: ShellState, request: Request, name: str, assignment: AssignWord | None) -> bool:
    """`declare -g`: the variable as the outermost scope sees it."""
    store = sh.variables
    outermost = next((depth for depth, scope in enumerate(store.scopes) if name in scope), None)
    if outermost is None:
        request.everywhere = False
        try:
            return _apply_one(sh, request, assignment if assignment is not None else name, False)
        finally:
            request.everywhere = True
    hidden = (store.values.get(name), store.attrs.get(name, 0))
    store._restore(name, store.scopes[outermost][name])
    request.everywhere = False
    try:
        return _apply_one(sh, request, assignment if assignment is not None else name, False)
    finally:
        request.everywhere = True
        from ramet.shell.interp.state.scopes import MISSING

        store.scope_at(outermost)[name] = (store.values.get(name, MISSING), store.attrs.get(name, 0))
        store._restore(name, hidden)


TABLE: Final[dict[str, Builtin]] = {
    "declare": declare,
    "typeset": declare,
    "local": local,
    "export": export,
    "readonly": readonly,
}
