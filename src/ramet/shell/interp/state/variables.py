"""The variables of a shell: values, attributes and dynamic scope.

- Plain text is a `str` in one dict, so reading a variable is one lookup; `attrs` has only names with attributes.
- Shallow binding: a local variable replaces the value in the dict; the `Scope` of its function saves the old one.
- Arrays are copy-on-write between shells: `token` marks the arrays that this shell owns.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeVar

from ramet.concurrency.sizes import SMALL
from ramet.core.errors import LimitExceeded
from ramet.core.limits import DEFAULT_LIMITS
from ramet.shell.expand.arith.numerals import is_name
from ramet.shell.expand.c_locale import at_seam, whole
from ramet.shell.expand.errors import ErrexitExempt, Fatal, LineError, PosixFatal, Readonly
from ramet.shell.expand.values import (
    CAPITAL,
    EXPORT,
    INTEGER,
    LOWER,
    NAMEREF,
    READONLY,
    UPPER,
    Assoc,
    Dynamic,
    Indexed,
    NameRef,
    Value,
    bucket,
    is_unset,
    key_names,
)
from ramet.shell.interp.state.scopes import (
    HIDDEN_GLOBAL,
    MISSING,
    HiddenGlobal,
    Missing,
    Saved,
    Scope,
    hidden_key,
    split_subscript,
)
from ramet.shell.interp.state.variable_bytes import ENTRY, REFERENCE, SHORT, VariableBytes, charge_of
from ramet.text.casing import lower, upper

A = TypeVar("A", Indexed, Assoc)
TRANSFORM: Final = INTEGER | LOWER | UPPER | CAPITAL
_MAX_HOPS: Final = 8


class Variables:
    __slots__ = (
        "__weakref__",
        "arith",
        "attrs",
        "bytes_held",
        "charged",
        "exporting",
        "host",
        "key_of",
        "limit",
        "longest",
        "number",
        "places",
        "scopes",
        "shared",
        "token",
        "values",
        "warn",
    )

    def __init__(self) -> None:
        self.values: dict[str, Value] = {}
        self.attrs: dict[str, int] = {}
        self.scopes: list[Scope] = []
        self.shared = 0
        """How many of the outer scopes another shell may have as well: they are copied before they change."""
        self.places: dict[int, tuple[int, int]] = {}
        """Where `getopts` is, the argument and the place in it, for each OPTIND: by the scope that owns it."""
        self.token: object = object()
        self.bytes_held, self.charged = VariableBytes(), False
        """The memory of this session's variables, and whether this shell is counted in it by itself."""
        self.exporting = False
        """Whether what is set is exported as well (`set -a`)."""
        self.limit, self.longest = DEFAULT_LIMITS.string_bytes, DEFAULT_LIMITS.expression_chars
        """Limits in characters: of a value, and of an expression that is evaluated on the event loop."""
        self.host: object = None
        self.arith: Callable[[str], int] = int
        self.number: Callable[[str], int] = int
        self.key_of: Callable[[str], str] = str
        self.warn: Callable[[str], object] = str

    def fork(self, borrow: bool) -> Variables:
        """A copy for another shell; with `borrow` this one promises not to run until the copy is gone.

        Arrays are copy-on-write: those that two shells may see at the same time have no owner.
        """
        twin = object.__new__(Variables)  # `ShellState.fork` wires the callbacks
        twin.values = dict(self.values)
        twin.attrs = dict(self.attrs)
        twin.scopes = list(self.scopes)
        twin.shared = self.shared = len(self.scopes)
        twin.places = dict(self.places)
        twin.token = object()
        twin.limit, twin.longest = self.limit, self.longest
        twin.bytes_held, twin.charged = self.bytes_held, False
        twin.exporting = self.exporting
        if not borrow:
            for value in itertools.chain(self.values.values(), self._hidden()):
                if type(value) is Indexed or type(value) is Assoc:
                    value.owner = None
        return twin

    def _hidden(self) -> Iterator[Any]:
        """Values that function calls hide and that may still have an owner."""
        for scope in reversed(self.scopes):
            if scope.looked_through:
                return  # and so were those around it, at the same time
            scope.looked_through = True
            for value, _ in scope.values():
                yield value

    # ------------------------------------------------------------------------------------------------ reading

    def get(self, name: str) -> str | None:
        """The value as text: element 0 of an array; None when unset."""
        value = self.values.get(name)
        if type(value) is str or value is None:
            return value
        if type(value) is Indexed:
            return value.get(0)
        if type(value) is Assoc:
            return value.items.get("0")
        if type(value) is Dynamic:
            found = value.get(self.host)
            if isinstance(found, dict):
                return found.get("0")
            return found if isinstance(found, str) else (found[0] if found else None)
        target, subscript = self.follow(name)
        if not target:
            return None
        if subscript is not None:
            return self.element(target, subscript)
        return self.get(target)

    def _global_behind(self, name: str) -> str:
        """What a circular reference of a function means: the global variable of its name; empty where there is none."""
        depth = next((depth for depth, scope in enumerate(self.scopes) if name in scope), -1)
        if depth < 0:
            return ""
        hidden, flags = self.scopes[depth][name]
        key = hidden_key(name)
        if not isinstance(hidden, HiddenGlobal):
            self.scope_at(depth)[name] = (HIDDEN_GLOBAL, 0)
            if not isinstance(hidden, Missing):
                self.values[key] = hidden
            if flags:
                self.attrs[key] = flags
        return key

    def follow(self, name: str) -> tuple[str, str | None]:
        """Where a name leads through name references, with the subscript of the last one."""
        value = self.values.get(name)
        if type(value) is not NameRef:
            return name, None
        for _ in range(_MAX_HOPS):
            target, subscript = split_subscript(value.target)
            if subscript is not None or not target:
                return target, subscript
            value = self.values.get(target)
            if type(value) is not NameRef:
                return target, None
        self.warn(f"warning: {name}: circular name reference")
        return self._global_behind(name), None

    def array(self, name: str) -> Indexed | Assoc | None:
        """The array behind a name, if it is one (computed arrays included)."""
        value = self.values.get(name)
        if type(value) is Dynamic:
            found = value.get(self.host)
            if isinstance(found, dict):
                return Assoc(found)
            if not isinstance(found, list):
                return None
            array = Indexed(found)
            array.blank = not found and name == "FUNCNAME"  # outside of functions it has no value
            return array
        return value if isinstance(value, Indexed | Assoc) else None

    def has_value(self, name: str) -> bool:
        """Whether a name has any value: `a=()` is one, `declare -a a` is none."""
        if self.elements(name):
            return True
        array = self.array(self.follow(name)[0])
        return array is not None and not array.blank

    def elements(self, name: str) -> list[str]:
        """What `${name[@]}` stands for; perhaps the array's own list, which is not to be changed."""
        name, subscript = self.follow(name)
        if subscript is not None:
            found = None if subscript in ("@", "*") else self.element(name, subscript)
            return [] if found is None else [found]
        array = self.array(name)
        if type(array) is Indexed and (whole := array.whole) is not None:
            return whole
        if array is not None:
            return array.values()
        value = self.get(name)
        return [] if value is None else [value]

    def keys(self, name: str) -> list[str]:
        name, _ = self.follow(name)
        array = self.array(name)
        if array is not None:
            return key_names(array)
        return [] if self.get(name) is None else ["0"]

    def is_assoc(self, name: str) -> bool:
        name, _ = self.follow(name)
        value = self.values.get(name)
        return type(value) is Assoc or (type(value) is Dynamic and value.assoc)

    def element(self, name: str, subscript: str) -> str | None:
        """One element; the subscript is a key or arithmetic, as the array wants it."""
        if subscript in ("@", "*"):
            found = self.elements(name)
            if sum(map(len, found)) > self.limit:
                raise LimitExceeded("string_bytes", self.limit)
            return " ".join(found) if found else None
        if self.is_assoc(name):
            return self.item(name, self.key_of(subscript))
        return self.item(name, self.arith(subscript))

    def item(self, name: str, key: int | str) -> str | None:
        """One element by its evaluated key."""
        value = self.values.get(name)
        if type(value) is NameRef:
            name, _ = self.follow(name)
            value = self.values.get(name)
        if type(value) is Assoc:
            return value.items.get(str(key))
        array = value if type(value) is Indexed else self.array(name)
        if type(array) is Assoc:
            return array.items.get(str(key))
        if type(key) is str:
            self.amiss(f"{name}[{key}]: bad array subscript")
            return None
        index = int(key)
        if isinstance(array, Indexed):
            if index < 0:
                index += array.top
                if index < 0:
                    self.amiss(f"{name}: bad array subscript")
                    return None
            return array.get(index)
        if index < 0:
            self.amiss(f"{name}: bad array subscript")
        return self.get(name) if index == 0 else None

    def amiss(self, message: str) -> None:
        """Report a bad subscript; under `set -e` it ends the shell."""
        if getattr(self.host, "errexit", False):
            raise Fatal(message, 1)
        self.warn(message)

    def is_set(self, name: str) -> bool:
        return self.get(name) is not None

    # ------------------------------------------------------------------------------------------------ writing

    def charge(self, size: int) -> None:
        """Count bytes that are about to be stored; raise where the session's variables exceed `variable_bytes`."""
        held = self.bytes_held
        if not self.charged:
            self.charged = True
            held.enter(self)
        held.estimate += size
        if held.estimate > held.mark:
            held.recount(size)

    def transform(self, name: str, value: str) -> str:
        """What the attributes of a variable make of a value."""
        flags = self.attrs.get(name, 0)
        if flags & TRANSFORM:
            if flags & INTEGER:
                return str(self.number(value))
            if flags & LOWER:
                return lower(value)
            if flags & UPPER:
                return upper(value)
            return upper(value[:1]) + lower(value[1:])
        return value

    def writable(self, name: str) -> None:
        if self.attrs.get(name, 0) & READONLY:
            raise Readonly(name)

    def assignable(self, name: str) -> None:
        """The same for what assigns: under `set -e` a shell that fails in it ends, whatever stands around."""
        if self.attrs.get(name, 0) & READONLY:
            if getattr(self.host, "errexit", False):
                raise Fatal(f"{name}: readonly variable", 1)
            raise Readonly(name)

    def set(self, name: str, value: str, append: bool = False) -> None:
        """`name=value` or `name+=value`, with everything that the attributes ask for."""
        old = self.values.get(name)
        if not value.isascii():
            value = whole(value)
        if type(old) is NameRef:
            target, subscript = self.follow(name)
            if not old.target:
                if not value:
                    raise LineError("`': not a valid identifier")
                self.bind(name, value)
                return
            if not target:
                failure = LineError("circular name reference")
                failure.reported = True  # on the way here, as a warning
                raise failure
            if subscript is not None:
                self.set_element(target, subscript, value, append)
                return
            hidden = self._hidden_since(name, target)
            if hidden is not None:
                self._set_hidden(hidden, target, value, append)
                return
            name, old = target, self.values.get(target)
        if name in self.attrs:
            self.assignable(name)
            if append:
                value = self._appended(name, self.get(name) or "", value)
            value = self.transform(name, value)
        elif append:
            if type(old) is str:
                if not value.isascii():
                    old, value = at_seam(old, value)
                if len(old) + len(value) > max(self.limit, SMALL):
                    raise LimitExceeded("string_bytes", self.limit)
                self.charge(len(value))
                # Python makes a text longer in place as long as nothing else holds it.
                self.values[name] = None
                old += value
                self.values[name] = old
                return
            value = self._appended(name, self.get(name) or "", value)
        if type(old) is not str or len(value) >= SHORT:
            self.charge(max(value.__sizeof__(), SHORT))
        if type(old) is str or old is None:
            self.values[name] = value
        elif type(old) is Indexed:
            self.indexed(name).set(0, value)
        elif type(old) is Assoc:
            self.make_assoc(name).set("0", value)
        elif type(old) is Dynamic and old.set is not None:
            old.set(self.host, value)
        if self.exporting:
            self.flag(name, EXPORT)

    def _hidden_since(self, reference: str, target: str) -> int | None:
        """Return the scope that hides the target of a function's reference, if it was opened later: assignments
        through the reference go to the older variable, though reads see the newer one."""
        depth = len(self.scopes) - 1
        while depth >= 0 and reference not in self.scopes[depth]:
            depth -= 1
        if depth < 0:
            return None
        later = (at for at in range(depth + 1, len(self.scopes)) if target in self.scopes[at])
        return next(later, None)

    def _set_hidden(self, depth: int, name: str, value: str, append: bool) -> None:
        """`set` of the variable that a scope has taken over."""
        scope = self.scope_at(depth)
        shown: Saved = (self.values.get(name, MISSING), self.attrs.get(name, 0))
        self._restore(name, scope[name])
        try:
            self.set(name, value, append)
        finally:
            scope[name] = (self.values.get(name, MISSING), self.attrs.get(name, 0))
            self._restore(name, shown)

    def _appended(self, name: str, old: str, value: str) -> str:
        if self.attrs.get(name, 0) & INTEGER:
            return str(self.number(old or "0") + self.number(value))
        if len(old) + len(value) > self.limit:
            raise LimitExceeded("string_bytes", self.limit)
        return old + value if value.isascii() else "".join(at_seam(old, value))

    def bind(self, name: str, target: str) -> None:
        """Point a name reference at something."""
        base, _ = split_subscript(target)
        if target and not is_name(base):
            raise ErrexitExempt(("`", target, "': not a valid identifier"))
        if base == name and not self.scopes:
            raise LineError(f"{name}: nameref variable self references not allowed")
        if base == name:
            self.warn(f"warning: {name}: circular name reference")
        self.values[name] = NameRef(target)

    def own(self, name: str, array: A) -> A:
        """The array as one that we may write to."""
        if array.owner is not self.token:
            self.charge(REFERENCE * len(array))
            array = array.copy(self.token)
            self.values[name] = array
        return array

    def indexed(self, name: str) -> Indexed:
        """The variable as a writable indexed array; a plain value becomes its element 0."""
        value = self.values.get(name)
        if type(value) is Indexed:
            return value if value.owner is self.token else self.own(name, value)
        old = self.get(name)
        self.charge(SHORT)
        array = Indexed(() if old is None else (old,), self.token)
        self.values[name] = array
        return array

    def set_element(self, name: str, subscript: str, value: str, append: bool = False) -> None:
        """`name[subscript]=value`."""
        name, _ = self.follow(name)
        if self.is_assoc(name):
            key = self.key_of(subscript)
            if not key:
                raise LineError((f"{name}[", subscript, "]: bad array subscript"))
            self.set_item(name, key, value, append)
        else:
            self.set_item(name, self.arith(subscript), value, append)

    def set_item(self, name: str, key: int | str, value: str, append: bool = False) -> None:
        """`name[key]=value` with the key evaluated."""
        if key == "":
            self.warn(f"`{name}[]': not a valid identifier")
            return
        name, deeper = self.follow(name)
        if deeper is not None:
            raise LineError(f"`{name}[{deeper}]': not a valid identifier")
        if name in self.attrs:
            self.assignable(name)
        old = self.values.get(name)
        if type(old) is Dynamic and old.put is not None:
            old.put(self.host, str(key), value)
            return
        if type(old) is Assoc:
            assoc = self.own(name, old)
            text = str(key)
            if append:
                value = self._appended(name, assoc.items.get(text, ""), value)
            self.charge(ENTRY + len(text) + len(value))
            assoc.set(text, self.transform(name, value))
            return
        if type(key) is str:
            self.warn(f"{name}[{key}]: bad array subscript")
            return
        index = int(key)
        if index < 0:
            index += old.top if type(old) is Indexed else self.get(name) is not None
            if index < 0:
                raise PosixFatal(f"{name}[{key}]: bad array subscript")
        array = self.indexed(name)
        if append:
            value = self._appended(name, array.get(index) or "", value)
        held, size = self.bytes_held, ENTRY + len(value)
        held.estimate += size
        if held.estimate > held.mark:  # `indexed` has charged this shell
            held.recount(size)
        array.set(index, self.transform(name, value))

    def set_list(self, name: str, items: Iterable[str]) -> None:
        """Make an indexed array of these words (`read -a`, `mapfile`)."""
        name, _ = self.follow(name)
        self.assignable(name)
        if self.attrs.get(name, 0) & TRANSFORM:
            items = [self.transform(name, item) for item in items]
        texts = items if type(items) is list else list(items)
        self.charge(charge_of(texts))
        self.values[name] = Indexed(texts, self.token)

    def renew(self, name: str, items: Iterable[str]) -> None:
        """Replace a global array, below all scopes that hide it (`BASH_REMATCH`)."""
        array = Indexed(items, self.token)
        for depth, scope in enumerate(self.scopes):
            if name in scope:
                self.scope_at(depth)[name] = (array, 0)
                return
        self.attrs.pop(name, None)
        self.values[name] = array

    def unset(self, name: str) -> bool:
        """Remove a variable as `unset` does; False when there was none."""
        if name in self.attrs:
            self.writable(name)
        if name not in self.values:
            return False
        for depth in range(len(self.scopes) - 1, -1, -1):
            scope = self.scopes[depth]
            if name in scope:
                own = depth == self._own_depth() or "localvar_unset" in getattr(self.host, "shopts", ())
                if not scope.temporary and name not in scope.temps and own:
                    self.values[name] = None
                    self.attrs.pop(name, None)
                else:
                    self._restore(name, self.scope_at(depth).pop(name))
                return True
        del self.values[name]
        self.attrs.pop(name, None)
        return True

    def unset_item(self, name: str, key: int | str) -> None:
        self.writable(name)
        value = self.values.get(name)
        if type(value) is Assoc:
            self.own(name, value).unset(str(key))
        elif type(value) is Indexed:
            array = self.indexed(name)
            index = int(key)
            if index < 0:
                index += array.top
                if index < 0:
                    raise LineError(f"[{key}]: bad array subscript")
            array.unset(index)

    # ------------------------------------------------------------------------------------------------- scopes

    @property
    def option_place(self) -> tuple[int, int]:
        """Where `getopts` is with the OPTIND that is seen here."""
        return self.places.get(self._owner("OPTIND"), (1, 0))

    @option_place.setter
    def option_place(self, place: tuple[int, int]) -> None:
        self.places[self._owner("OPTIND")] = place

    def _owner(self, name: str) -> int:
        """The innermost scope that has the name for its own; -1 for none."""
        depth = len(self.scopes) - 1
        while depth >= 0 and name not in self.scopes[depth]:
            depth -= 1
        return depth

    def forget_locals(self) -> None:
        """Give back everything that the calls of functions have hidden, while they go on."""
        for depth in reversed(range(len(self.scopes))):
            scope = self.scope_at(depth)
            for name, saved in scope.items():
                self._restore(name, saved)
            scope.clear()

    def scope_at(self, depth: int) -> Scope:
        """A scope that is about to change."""
        if depth < self.shared:
            self.scopes[depth : self.shared] = [scope.twin() for scope in self.scopes[depth : self.shared]]
            self.shared = depth
        return self.scopes[depth]

    def push(self, temporary: bool = False) -> None:
        self.scopes.append(Scope(temporary))

    def _own_depth(self) -> int:
        """The place of the running function's scope."""
        depth = len(self.scopes) - 1
        while depth >= 0 and self.scopes[depth].temporary:
            depth -= 1
        return depth

    def pop(self) -> None:
        scope = self.scopes.pop()
        for name, saved in scope.items():
            self._restore(name, saved)

    def pop_all(self) -> None:
        """The same for all scopes at once: what was saved first is what counts."""
        saved: dict[str, Saved] = {}
        while self.scopes:
            saved.update(self.scopes.pop())
        for name, found in saved.items():
            self._restore(name, found)
            self.values.pop(hidden_key(name), None)
            self.attrs.pop(hidden_key(name), None)

    def _restore(self, name: str, saved: Saved) -> None:
        value, flags = saved
        if isinstance(value, HiddenGlobal):
            value, flags = self.values.pop(hidden_key(name), MISSING), self.attrs.pop(hidden_key(name), 0)
        if isinstance(value, Missing):
            self.values.pop(name, None)
        else:
            self.values[name] = value
        if flags:
            self.attrs[name] = flags
        else:
            self.attrs.pop(name, None)

    def save(self, name: str) -> None:
        """Remember what a name means outside, once per scope."""
        scope = self.scope_at(len(self.scopes) - 1)
        if name not in scope:
            value = self.values.get(name, MISSING)
            scope[name] = (value, self.attrs.get(name, 0))
            if isinstance(value, Indexed | Assoc):
                value.owner = None  # copied on the first write

    def adopt(self, name: str, declared: bool) -> None:
        """`x=1 f`, and `f` exports `x`: the variable outlives the call. `x=1 eval` takes one that is `declared` so."""
        if self.scopes and self.scopes[-1].temporary and name in self.scopes[-1]:
            if declared or "=" in self.scopes[-1].temps:
                del self.scope_at(len(self.scopes) - 1)[name]  # `x=1 export x` itself
            return
        depth = self._own_depth()
        if depth >= 0 and name in self.scopes[depth].temps:
            scope = self.scope_at(depth)
            scope.pop(name, None)
            scope.temps.discard(name)
            scope.temps.add(name + "=")

    def exchange(self) -> None:
        """Swap what the innermost scope hides with what it shows; a second call undoes it."""
        scope = self.scope_at(len(self.scopes) - 1)
        for name, saved in list(scope.items()):
            shown = (self.values.get(name, MISSING), self.attrs.get(name, 0))
            self._restore(name, saved)
            scope[name] = shown

    def local(self, name: str, inherit: bool = False) -> None:
        """Give the running function its own variable of this name."""
        depth = self._own_depth()
        scope = self.scope_at(depth)
        if name == "OPTIND":
            self.places.pop(depth, None)
        before = self.scopes[-1]
        if before is not scope and name in before:
            # `x=1 local x`: what was put before the command is what the function gets.
            saved = before.pop(name)
            scope.setdefault(name, saved)
            scope.temps.discard(name)
            return
        if name in scope:
            scope.temps.discard(name)
            return
        if name + "=" in scope.temps:
            return
        flags = self.attrs.get(name, 0)
        if flags & READONLY and not any(name in outer for outer in self.scopes):
            raise Readonly(name)  # a global one: those of other functions may be hidden
        scope[name] = (self.values.get(name, MISSING), flags)
        value = self.values.get(name)
        if inherit and isinstance(value, Indexed | Assoc):
            value.owner = None
        if not inherit:
            self.values[name] = None
            if flags & EXPORT:
                self.attrs[name] = EXPORT
            else:
                self.attrs.pop(name, None)

    # ---------------------------------------------------------------------------------------- names, attributes

    def flag(self, name: str, add: int = 0, remove: int = 0) -> None:
        """Change attributes."""
        flags = (self.attrs.get(name, 0) | add) & ~remove
        if flags:
            self.attrs[name] = flags
        else:
            self.attrs.pop(name, None)
        if remove & NAMEREF:
            value = self.values.get(name)
            if type(value) is NameRef:
                self.values[name] = value.target or None

    def names(self, prefix: str = "") -> list[str]:
        """Variables that have a value, sorted."""
        return sorted(
            name
            for name, value in self.values.items()
            if name.startswith(prefix) and "\0" not in name and not is_unset(value)
        )

    def exported(self) -> dict[str, str]:
        """The environment of a command."""
        env: dict[str, str] = {}
        values = self.values
        for name, flags in self.attrs.items():
            if flags & EXPORT and "\0" not in name:
                value = values.get(name)
                if type(value) is str:
                    env[name] = value
                elif value is not None and not isinstance(value, Indexed | Assoc):
                    text = self.get(name)
                    if text is not None:
                        env[name] = text
        return env

    def ordered(self, env: dict[str, str]) -> dict[str, str]:
        """An environment in the order of bash's tables: the scopes from the innermost out, by bucket, what came last
        first."""
        out: dict[str, str] = {}
        tables = [(list(scope), 3) for scope in reversed(self.scopes)]
        for names, mask in [*tables, (list(self.values), 1023)]:
            rows: list[list[str]] = [[] for _ in range(mask + 1)]
            for name in reversed(names):
                if name in env:
                    rows[bucket(name) & mask].append(name)
            for name in itertools.chain.from_iterable(rows):
                out.setdefault(name, env[name])
        return out | env

    def make_assoc(self, name: str) -> Assoc:
        """Turn a variable into an associative array (a plain value becomes the element `0`)."""
        value = self.values.get(name)
        if type(value) is Assoc:
            return self.own(name, value)
        if type(value) is Indexed:
            raise LineError(f"{name}: cannot convert indexed to associative array")
        self.charge(SHORT)
        array = Assoc({} if not isinstance(value, str) else {"0": value}, self.token)
        self.values[name] = array
        return array
