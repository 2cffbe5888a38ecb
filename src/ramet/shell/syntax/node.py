"""`node`: the decorator of the tree's classes: slotted as a dataclass is, but quicker to import and to make.

A dataclass compiles six methods per class. The tree has some forty classes, and nearly every word that is read makes
objects of them; so here only ``__init__`` is compiled, and everything else is shared. Nodes are frozen, and it is the
type checker that holds everyone to it: a check when the program runs would cost a sixth of all parsing.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


class Position:
    """The default of a field that says where something stood: it never takes part in equality."""

    __slots__ = ("default",)

    def __init__(self, default: Any) -> None:
        self.default = default


def position(*, default: Any) -> Any:
    """A field that does not count when nodes are compared."""
    return Position(default)


def _eq(self: Any, other: Any) -> Any:
    if self is other:
        return True
    key: Callable[[Any], Any] = self._key
    if getattr(other, "_key", None) is not key:
        return NotImplemented
    return key(self) == key(other)


def _hash(self: Any) -> int:
    return hash((self._kind, self._key(self)))


def _repr(self: Any) -> str:
    fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._fields)
    return f"{self._kind.__name__}({fields})"


def _reduce(self: Any) -> tuple[type, tuple[Any, ...]]:
    return self._kind, tuple(getattr(self, name) for name in self._fields)


@dataclass_transform(frozen_default=True, field_specifiers=(position,))
def node(cls: type[T]) -> type[T]:
    """Makes a slotted class of the annotations of ``cls``, frozen for the type checker.

    Names with an underscore are room for a class below it that fills the fields later (`lazy_simple`): it is equal to,
    printed as and carried as its node is.
    """
    names = tuple(name for name in cls.__annotations__ if name[0] != "_")
    space = {
        key: value
        for key, value in cls.__dict__.items()
        if key not in (*cls.__annotations__, "__dict__", "__weakref__")
    }
    parameters, body, scope = [], [], dict[str, Any]()
    compared = []
    for name in names:
        default = cls.__dict__.get(name, _MISSING)
        if isinstance(default, Position):
            default = default.default
        else:
            compared.append(name)
        if default is _MISSING:
            parameters.append(name)
        else:
            scope[f"_default_{name}"] = default
            parameters.append(f"{name}=_default_{name}")
        body.append(f" self.{name} = {name}")
    getter: Callable[[Any], Any] = attrgetter(*compared)
    space.update(
        __slots__=tuple(cls.__annotations__),
        __match_args__=names,
        __eq__=_eq,
        __hash__=_hash,
        __repr__=_repr,
        __reduce__=_reduce,
        _fields=names,
        _key=staticmethod(getter),
    )
    made: Any = type(cls.__name__, cls.__bases__, space)
    made._kind = made
    exec(f"def __init__(self, {', '.join(parameters)}):\n" + "\n".join(body), scope)
    made.__init__ = scope["__init__"]
    return made  # type: ignore[no-any-return]


_MISSING = object()
