"""Compile assignments: plain, to elements, of whole arrays."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, overload

from ramet.concurrency.offload import interruptible, offload, offload_large
from ramet.concurrency.sizes import BATCH, SMALL
from ramet.shell.expand.errors import LineError, PosixFatal, TooLong
from ramet.shell.expand.quote import single
from ramet.shell.expand.values import EXPORT, NAMEREF, Assoc, Dynamic, Indexed, NameRef, to_evaluate
from ramet.shell.expand.word import compile as words
from ramet.shell.expand.word import to_text as texts
from ramet.shell.expand.word.braces import expand_braces, has_braces
from ramet.shell.expand.word.tilde import untilded
from ramet.shell.interp.state.assignment_hooks import ON_ASSIGN
from ramet.shell.interp.state.shell_state import ShellState
from ramet.shell.interp.state.variable_bytes import ENTRY, SHORT, charge_of
from ramet.shell.plain_mode import FAST
from ramet.shell.syntax.nodes import ArithSub, ArrayElement, ArrayLiteral, Assignment, Literal, Part, Word
from ramet.shell.syntax.printer import assignment_text, word_text


class Item(NamedTuple):
    """An element of a compound assignment after expansion."""

    key: str | None
    append: bool
    value: str
    spread: tuple[str, ...] = ()
    """For an indexed array: the words that braces make of the element, subscripts and all."""
    source: ArrayElement | None = None
    """For an associative array: where it comes from, unless it has been an argument."""

    @property
    def written(self) -> str:
        """How errors show it: arguments have been expanded and quoted again by then."""
        if self.source is None:
            head = "" if self.key is None else f"[{single(self.key)}]{'+=' if self.append else '='}"
            return head + single(self.value)
        if self.source.subscript is None:
            return word_text(self.source.value)
        sign = "+=" if self.source.append else "="
        return f"[{word_text(self.source.subscript)}]{sign}{word_text(self.source.value)}"


class Values(Sequence[Item]):
    """The elements of a compound assignment without subscripts, made on demand."""

    __slots__ = ("texts",)

    def __init__(self, texts: list[str]) -> None:
        self.texts = texts

    def __len__(self) -> int:
        return len(self.texts)

    def __iter__(self) -> Iterator[Item]:
        return (Item(None, False, text) for text in self.texts)

    @overload
    def __getitem__(self, place: int) -> Item: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Item]: ...
    def __getitem__(self, place: int | slice) -> Item | Sequence[Item]:
        if isinstance(place, slice):
            return Values(self.texts[place])
        return Item(None, False, self.texts[place])


class AssignWord(str):
    """An argument of a declaration builtin that was written as an assignment: `name=value` with its parts."""

    __slots__ = ("append", "items", "key", "name", "read", "value")
    name: str
    key: str | None
    append: bool
    value: str
    items: Sequence[Item] | None
    read: Sequence[Item] | None
    """The elements that a builtin has read from an array that came as text."""


class Assign(NamedTuple):
    """A compiled assignment; `run(sh)` performs it, `word(sh)` gives it as an argument.

    Both may return an awaitable, and always do with `wait`.
    """

    wait: bool
    run: Callable[[ShellState], Any]
    word: Callable[[ShellState], Any]
    node: Assignment
    flat: Assign | None = None
    """For an array before a command: its text, for the environment."""
    element: tuple[texts.Text, texts.Text] | None = None
    """The subscript and the value of an element."""

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def trace_head(self) -> str:
        """The text of a trace before the value."""
        subscript = "" if self.node.subscript is None else f"[{word_text(self.node.subscript, bash=True)}]"
        return f"{self.node.name}{subscript}{'+' if self.node.append else ''}="

    @property
    def literal(self) -> str | None:
        """An array as text, for the environment of the command after it."""
        return (
            assignment_text(self.node, bash=True).partition("=")[2]
            if isinstance(self.node.value, ArrayLiteral)
            else None
        )


def compile_before_command(node: Assignment) -> Assign:
    """Compile an assignment for a command; it lasts when the words of the command vanish."""
    found = compile_assign(node)
    if not isinstance(node.value, ArrayLiteral) or node.subscript is not None:
        return found
    parts: list[Part] = [Literal("(")]
    for number, element in enumerate(node.value.elements):
        if number:
            parts.append(Literal(" "))
        if element.subscript is not None:
            sign = "+=" if element.append else "="
            parts += (Literal("["), *element.subscript.parts, Literal("]" + sign))
        parts += element.value.parts
    text = Word((*parts, Literal(")")))
    return found._replace(flat=_scalar(Assignment(node.name, None, node.append, text), text))


def compile_assign(node: Assignment, keyed: bool = False, argument: bool = False) -> Assign:
    """Compile an assignment; `keyed` when it is an argument that makes an associative array."""
    if isinstance(node.value, ArrayLiteral):
        if node.subscript is not None:
            return _list_in_list(node, node.subscript)
        return _for_either(_array(node, node.value), node.value, keyed)
    if node.subscript is not None:
        return _element(node, node.subscript, node.value)
    return _scalar(node, node.value, argument)


def put(sh: ShellState, name: str, value: str, append: bool = False) -> None:
    """Assign `name=value` to a variable of any kind."""
    sh.variables.set(name, value, append)
    if sh.allexport:
        sh.variables.flag(sh.variables.follow(name)[0], EXPORT)
    if name in ON_ASSIGN:
        ON_ASSIGN[name](sh, value)


async def word_of(assign: Assign, sh: ShellState) -> AssignWord:
    """Return an assignment as an argument."""
    found: Any = assign.word(sh)
    return found if isinstance(found, AssignWord) else await found


def _scalar(node: Assignment, value: Word, argument: bool = False) -> Assign:
    name, append = node.name, node.append
    number: Callable[[ShellState], Any] | None = None
    if len(value.parts) == 1 and isinstance(part := value.parts[0], ArithSub):
        wait, number = texts.number(part.body)
        text = texts.number_text(wait, number)
    else:
        text = texts.declared(value) if argument else texts.text(value, assign=True)
    inner = text.run
    plain = name not in ON_ASSIGN
    direct = FAST and not append and plain
    direct_append = FAST and append and plain
    seamless = len(value.parts) < 2
    if text.wait:

        async def waiting(sh: ShellState) -> None:
            sh.join_star = True
            try:
                found = await inner(sh)
            finally:
                sh.join_star = False
            put(sh, name, found, append)

        async def waiting_word(sh: ShellState) -> AssignWord:
            return assign_word(name, None, append, await inner(sh), None)

        return Assign(True, waiting, waiting_word, node)

    def run(sh: ShellState) -> None:
        found = inner(sh)
        if direct and name not in sh.variables.attrs and not sh.allexport and (seamless or found.isascii()):
            values = sh.vars
            old = values.get(name)
            if len(found) < SHORT and (type(old) is str or old is None):
                if old is None:
                    sh.variables.charge(SHORT)
                values[name] = found
                return
        if direct_append:
            old = sh.vars.get(name)
            size = len(old) + len(found) if type(old) is str else SMALL
            old = None  # the variable holds the only reference when its text grows
            if size < SMALL and found.isascii() and name not in sh.variables.attrs and not sh.allexport:
                if size >= SHORT:
                    sh.variables.charge(len(found))
                _append(sh.vars, name, found)
                return
        put(sh, name, found, append)

    def word(sh: ShellState) -> AssignWord:
        return assign_word(name, None, append, inner(sh), None)

    return Assign(False, run if number is None else _computed(node, number), word, node)


def _append(values: dict[str, Any], name: str, value: str) -> None:
    """Append to the text of a variable in place, which Python does when it is the only reference."""
    text: str = values[name]
    values[name] = None
    text += value
    values[name] = text


def _computed(node: Assignment, value: Callable[[ShellState], int]) -> Callable[[ShellState], Awaitable[None] | None]:
    """Compile `x=$((...))`, where a long expression is offloaded."""
    name, append = node.name, node.append
    direct = FAST and not append and name not in ON_ASSIGN

    async def later(sh: ShellState, resume: Callable[[], int]) -> None:
        put(sh, name, str(await offload(sh.budget, resume)), append)

    def run(sh: ShellState) -> Awaitable[None] | None:
        try:
            found = str(value(sh))
        except TooLong as error:
            if error.resume is None:
                raise
            return later(sh, error.resume)
        old = sh.vars.get(name) if direct else name
        if direct and name not in sh.variables.attrs and not sh.allexport and (type(old) is str or old is None):
            if old is None:
                sh.variables.charge(SHORT)
            sh.vars[name] = found
        else:
            put(sh, name, found, append)
        return None

    return run


def assign_word(name: str, key: str | None, append: bool, value: str, items: Sequence[Item] | None) -> AssignWord:
    subscript = "" if key is None else f"[{key}]"
    word = AssignWord(f"{name}{subscript}{'+' if append else ''}={value}")
    word.name, word.key, word.append, word.value, word.items, word.read = name, key, append, value, items, None
    return word


def _list_in_list(node: Assignment, subscript: Word) -> Assign:
    return _refused(node, f"{node.name}[{word_text(subscript)}]: cannot assign list to array member")


def _refused(node: Assignment, message: str) -> Assign:
    def refuse(sh: ShellState) -> Any:
        raise PosixFatal(message)

    return Assign(False, refuse, refuse, node)


def _element(node: Assignment, subscript: Word, value: Word) -> Assign:
    name, append = node.name, node.append
    written = word_text(subscript)
    if not written:
        return _refused(node, f"{name}[{written}]: bad array subscript")
    key, text = texts.subscript(subscript), texts.text(value, assign=True)
    name_in_word = texts.text(subscript)  # declare and its kin take the whole as a word, whose quotes are gone

    def store(sh: ShellState, index: str, found: str) -> None:
        set_item(sh, name, index, found, append, written)

    if key.wait or text.wait:

        async def both(sh: ShellState) -> tuple[str, str]:
            index = await key.run(sh) if key.wait else key.run(sh)
            return index, await text.run(sh) if text.wait else text.run(sh)

        async def waiting(sh: ShellState) -> None:
            store(sh, *await both(sh))

        async def waiting_word(sh: ShellState) -> AssignWord:
            index, found = await both(sh)
            return assign_word(name, str(index), append, found, None)

        return Assign(True, waiting, waiting_word, node, None, (key, text))

    def run(sh: ShellState) -> None:
        index = key.run(sh)
        store(sh, index, text.run(sh))

    def word(sh: ShellState) -> AssignWord:
        found = text.run(sh)
        return assign_word(name, name_in_word.run(sh), append, found, None)

    return Assign(False, run, word, node, None, (key, text))


def set_item(sh: ShellState, name: str, subscript: str, value: str, append: bool, written: str) -> None:
    """`name[subscript]=value` with the subscript as expanded text, and as it is written."""
    if sh.variables.is_assoc(name):
        if not subscript:
            raise PosixFatal(f"{name}[{written}]: bad array subscript")
        sh.variables.set_item(name, subscript, value, append)
        return
    if written in ("@", "*"):
        raise PosixFatal(f"{name}[{written}]: bad array subscript")
    sh.variables.set_item(name, sh.evaluate_subscript(to_evaluate(subscript)), value, append)


def _for_either(indexed: Assign, literal: ArrayLiteral, keyed: bool) -> Assign:
    """`name=(...)`, whose words are one text each, as they are written, when the array is an associative one."""
    node = indexed.node
    name, append = node.name, node.append
    plans: list[tuple[texts.Text | None, bool, texts.Text]] = []

    async def pairs(sh: ShellState, argument: bool = False) -> list[Item]:
        if not plans:
            size = len(literal.elements)
            plans[:] = await offload_large(sh.budget, size, lambda: list(_pair_plans(literal)), BATCH)
        items: list[Item] = []
        for number, (key, add, text) in enumerate(plans):
            if number and not number % BATCH:
                await sh.budget.yield_turn()
            index = None if key is None else await key.run(sh) if key.wait else key.run(sh)
            value = await text.run(sh) if text.wait else text.run(sh)
            items.append(Item(index, add, value, (), None if argument else literal.elements[number]))
        return items

    async def assign(sh: ShellState) -> None:
        await assign_all(sh, name, await pairs(sh), append)

    async def as_word(sh: ShellState) -> AssignWord:
        return assign_word(name, None, append, "(...)", await pairs(sh, argument=True))

    def run(sh: ShellState) -> Any:
        return assign(sh) if sh.variables.is_assoc(name) else indexed.run(sh)

    def word(sh: ShellState) -> Any:
        return as_word(sh) if keyed or (not sh.frames and sh.variables.is_assoc(name)) else indexed.word(sh)

    return Assign(True, run, word, node)


def _pair_plans(literal: ArrayLiteral) -> Iterator[tuple[texts.Text | None, bool, texts.Text]]:
    """Keys and values as texts: without tildes, braces, fields and names of files."""
    loose = bool(literal.elements) and _is_loose(literal.elements[0])
    for element in literal.elements:
        subscript = element.subscript
        if subscript is None:
            yield None, False, texts.bare(element.value)
        elif loose:
            sign = Literal("]+=" if element.append else "]=")
            yield None, False, texts.bare(Word((Literal("["), *subscript.parts, sign, *element.value.parts)))
        else:
            yield texts.bare(subscript), element.append, texts.bare(element.value)


def _plain_array(node: Assignment, literal: ArrayLiteral) -> Assign:
    """`name=(words)` without subscripts, as nearly all are."""
    name, append = node.name, node.append
    fields = words.words([untilded(element.value) for element in literal.elements])

    async def evaluate(sh: ShellState) -> list[str]:
        found = await words.fields_of(fields, sh)
        if sh.has_globs:
            found = await sh.shell.globbed(sh, found)
        if len(found) > sh.budget.limits.expansion_words:
            raise sh.budget.exceeded("expansion_words")
        return found

    async def run(sh: ShellState) -> None:
        found = await evaluate(sh)
        store = sh.variables
        old = store.values.get(name)
        if name in store.attrs or type(old) is Assoc or type(old) is NameRef or type(old) is Dynamic:
            await assign_all(sh, name, Values(found), append)
            return
        store.charge(charge_of(found))
        if not append:
            store.values[name] = Indexed(found, store.token)
            return
        array = store.indexed(name)
        array.blank = False
        array.extend(found)
        store.values[name] = array

    async def word(sh: ShellState) -> AssignWord:
        return assign_word(name, None, append, "(...)", Values(await evaluate(sh)))

    return Assign(True, run, word, node)


def _array(node: Assignment, literal: ArrayLiteral) -> Assign:
    if all(element.subscript is None for element in literal.elements):
        return _plain_array(node, literal)
    name, append = node.name, node.append
    plans = [_element_plan(element) for element in literal.elements]

    async def evaluate(sh: ShellState) -> list[Item]:
        items: list[Item] = []
        for number, plan in enumerate(plans):
            if number and not number % BATCH:
                await sh.budget.yield_turn()
            if isinstance(plan, Item):
                items.append(plan)
                continue
            key, add, text, fields = plan
            found: list[str] = []
            if fields is not None:
                found = await words.fields_of(fields, sh)
                if sh.has_globs and key is None:
                    found = await sh.shell.globbed(sh, found)
            if key is None:
                if len(items) + len(found) > sh.budget.limits.expansion_words:
                    raise sh.budget.exceeded("expansion_words")
                items += [Item(None, False, value) for value in found]
            elif text is not None:
                index = await key.run(sh) if key.wait else key.run(sh)
                sh.has_globs = False  # results of braces in an element are not globbed
                spread = tuple(map(str, found))
                items.append(Item(index, add, await text.run(sh) if text.wait else text.run(sh), spread))
        return items

    async def run(sh: ShellState) -> None:
        await assign_all(sh, name, await evaluate(sh), append)

    async def word(sh: ShellState) -> AssignWord:
        items = await evaluate(sh)
        return assign_word(name, None, append, "(...)", items)

    return Assign(True, run, word, node)


def _is_loose(first: ArrayElement) -> bool:
    """Is that the beginning of keys and values in turn? What begins with a bracket never is (`[a]]=b`)."""
    parts = first.value.parts
    bracket = bool(parts) and isinstance(parts[0], Literal) and parts[0].text.startswith("[")
    return first.subscript is None and not bracket


class _Plan(NamedTuple):
    """How to come by an element of a compound assignment."""

    key: texts.Text | None
    append: bool
    text: texts.Text | None
    fields: words.Words | None


def _element_plan(element: ArrayElement) -> _Plan | Item:
    """An element as it always is, or how to come by it."""
    if element.subscript is None:
        return _Plan(None, False, None, words.words((untilded(element.value),)))
    key, text, spread = texts.text(element.subscript), texts.element(element.value), _spread(element)
    if key.const is not None and text.const is not None and spread is None:
        return Item(key.const, element.append, text.const)
    return _Plan(key, element.append, text, spread)


async def assign_all(sh: ShellState, name: str, items: Sequence[Item], append: bool) -> None:
    """Assign `name=(...)` or `name+=(...)`; many elements are offloaded."""
    await offload_large(sh.budget, len(items), partial(assign_items, sh, name, items, append), BATCH)


def _spread(element: ArrayElement) -> words.Words | None:
    """`[0]={x,y}`: for an indexed array that is one word before it is an element, and braces make several of it."""
    if element.subscript is None or not has_braces(element.value):
        return None
    sign = Literal("]+=" if element.append else "]=")
    whole = Word((Literal("["), *element.subscript.parts, sign, *element.value.parts))
    return words.words((whole,)) if len(list(islice(expand_braces(whole), 2))) > 1 else None


def assign_items(sh: ShellState, name: str, items: Sequence[Item], append: bool) -> None:
    """`name=(...)` or `name+=(...)`."""
    store = sh.variables
    named = store.values.get(name)
    if type(named) is NameRef and not named.target:
        sh.complain(f"warning: {name}: removing nameref attribute")
        store.flag(name, remove=NAMEREF)
    name, deeper = store.follow(name)
    if deeper is not None:
        raise LineError(f"`{name}[{deeper}]': not a valid identifier")
    store.assignable(name)
    old = store.values.get(name)
    if type(old) is Assoc:
        _assign_pairs(sh, name, old, items, append)
        return
    if append:
        array = store.indexed(name)
        array.blank = False
    else:
        array = Indexed((), store.token)
    plain = name not in store.attrs
    if plain and isinstance(items, Values):
        store.charge(charge_of(items.texts))
        array.extend(items.texts)
        store.values[name] = array
    else:
        index = array.top
        store.values[name] = array
        for item in interruptible(items):
            if item.spread:
                store.charge(charge_of(item.spread))
                for word in item.spread:
                    array.set(index, word if plain else store.transform(name, word))
                    index += 1
                continue
            if item.key is not None:
                sign = "+=" if item.append else "="
                if item.key in ("@", "*"):
                    store.amiss(f"[{item.key}]{sign}{item.value}: cannot assign to non-numeric index")
                    continue
                place = sh.evaluate_subscript(item.key) if item.key.strip() else 0
                if place < 0:
                    place += array.top
                if place < 0 or not item.key:
                    store.amiss(f"[{item.key}]{sign}{item.value}: bad array subscript")
                    continue
                index = place
            value = item.value
            if item.append:
                value = store._appended(name, array.get(index) or "", value)
            store.charge(ENTRY + len(value))
            array.set(index, value if plain else store.transform(name, value))
            index += 1


def _assign_pairs(sh: ShellState, name: str, old: Assoc, items: Sequence[Item], append: bool) -> None:
    store = sh.variables
    store.charge(sum(ENTRY + len(item.key or "") + len(item.value) for item in items))
    array = old.copy(store.token) if append else Assoc({}, store.token, old.buckets)
    array.blank = False
    loose = items and items[0].key is None and not items[0].written.startswith("[")
    pending: Item | None = None
    for item in interruptible(items):
        if item.key == "" and not loose:
            store.amiss(f"{item.written}: bad array subscript")
        elif item.key is not None and not loose:
            value = item.value
            if item.append:
                value = store._appended(name, (array if append else old).items.get(item.key, ""), value)
            array.set(item.key, store.transform(name, value))
        elif loose:
            if pending is None:
                pending = item
                continue
            if pending.value:
                array.set(pending.value, store.transform(name, item.value))
            else:
                store.amiss(f"{pending.written}: bad array subscript")
            pending = None
        else:
            store.amiss(f"{name}: {item.written}: must use subscript when assigning associative array")
    if pending is not None and pending.value:
        array.set(pending.value, store.transform(name, ""))
    elif pending is not None:
        store.amiss(f"{pending.written}: bad array subscript")
    store.values[name] = array


def without_arrays(sh: ShellState, words: list[str], associative: bool = False) -> list[str]:
    """What a builtin that assigns nothing gets to see: of each compound assignment, which is made before, the name."""
    if AssignWord not in set(map(type, words)):
        return words
    seen: list[str] = []
    for word in words:
        if not isinstance(word, AssignWord) or word.items is None:
            seen.append(word)
            continue
        if associative:
            sh.variables.make_assoc(word.name)
        assign_items(sh, word.name, word.items, word.append)
        seen.append(word.name)
    return seen
