"""Option fields of an options class: `flag`, `value`, `choose` and the like; parsing is in `command`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


class UsageError(Exception):
    """Wrong command line; `message` follows `name: ` on stderr."""

    def __init__(self, message: str, status: int | None = None, hint: bool = True) -> None:
        super().__init__(message)
        self.message, self.status, self.hint = message, status, hint


@dataclass(frozen=True, slots=True)
class Spec:
    """One option: its spellings, what it takes and what it stores."""

    names: tuple[str, ...]
    takes: str  # "none", "required", "optional"
    store: str  # "const", "value", "append", "count", "refuse", "ignore"
    const: object = None
    metavar: str = "ARG"
    help: str = ""
    convert: Callable[[str], object] | None = None
    choices: tuple[str, ...] = ()
    digits: bool = False  # `-5` is this option with the value 5
    dest: str = ""


def flag(*names: str, help: str = "", const: object = True, default: object = False) -> Any:
    """A switch; with `const` and `default` it may store something else than True."""
    return _field(default, Spec(names, "none", "const", const=const, help=help))


def choose(table: Mapping[str, object], *, default: object = None, help: Mapping[str, str] | str = "") -> Any:
    """Several switches that set one field, last one wins: `{"-d --delete": "d", "-t": "t"}`."""
    specs = [
        Spec(tuple(k.split()), "none", "const", const=v, help=help if isinstance(help, str) else help.get(k, ""))
        for k, v in table.items()
    ]
    return _field(default, *specs)


def count(*names: str, help: str = "") -> Any:
    """How often a switch was given."""
    return _field(0, Spec(names, "none", "count", help=help))


def value(
    *names: str,
    metavar: str = "ARG",
    default: object = None,
    convert: Callable[[str], object] | None = None,
    choices: Sequence[str] = (),
    digits: bool = False,
    help: str = "",
) -> Any:
    """An option with an argument; `choices` may be abbreviated; `convert` raises ValueError or UsageError."""
    spec = Spec(
        names, "required", "value", metavar=metavar, help=help, convert=convert, choices=tuple(choices), digits=digits
    )
    return _field(default, spec)


def optional(
    *names: str,
    metavar: str = "ARG",
    const: object,
    default: object = None,
    choices: Sequence[str] = (),
    help: str = "",
) -> Any:
    """An option whose argument may be left out (`--color[=WHEN]`, `-i[SUFFIX]`); `const` is stored then."""
    spec = Spec(names, "optional", "value", const=const, metavar=metavar, help=help, choices=tuple(choices))
    return _field(default, spec)


def several(*names: str, metavar: str = "ARG", convert: Callable[[str], object] | None = None, help: str = "") -> Any:
    """An option that may be repeated; the field is a tuple of all its arguments."""
    return _field((), Spec(names, "required", "append", metavar=metavar, help=help, convert=convert))


def mixed(*fields: Any, default: object) -> Any:
    """One field set by several declarations, last one wins: `mixed(flag("-v", const="a"), value("-w"), default="")`."""
    specs = [spec for part in fields for spec in part.metadata["specs"]]
    return _field(default, *specs)


def ordered(*, operands: bool = False) -> Any:
    """A field with all options in order as `(field name, value)` pairs; with `operands`, operands are named ''."""
    return field(default=(), metadata={"ordered": True, "operands": operands})


def _field(default: object, *specs: Spec) -> Any:
    return field(default=default, metadata={"specs": specs})


@dataclass(frozen=True, slots=True)
class NoOptions:
    """For commands that take operands only."""
