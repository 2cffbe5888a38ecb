"""Command line parameters: `Option` and `Argument`, and the `Command` read from a verb's signature.

Rules:
- A verb is a plain function. Each parameter is `Annotated[TYPE, Option(...)]` or `Annotated[TYPE, Argument(...)]`;
  TYPE is str, int, float, bool or list[str], with `| None` where the default is None.
- The docstring is the help of the verb; parsing, help, completion and the reference page read nothing else.
- Imports only `typing`: every start of `ramet` pays for this module.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, get_args, get_type_hints

SHARED: Final = frozenset({"store", "config", "quiet", "as_json"})
"""Names of options that many verbs have."""
REQUIRED: Final = object()
"""Default of a parameter that has none."""


Complete = Callable[[str, str, list[str]], list[str]]
"""Lists the values that begin with a prefix: called with it, the address of the store, and the arguments before it."""


class Argument:
    """A positional argument. `complete` lists values for the shell's completion.

    With `dashes`, a last argument of many words has all words after `--`, and those only.
    """

    def __init__(self, *, help: str, complete: Complete | None = None, dashes: bool = False) -> None:
        self.help, self.complete, self.dashes = help, complete, dashes


class Option:
    """An option. Without flags it is `--name`, or `--name/--no-name` for a bool.

    `value` is how help writes its value, where the name of the option does not say it. `envvar` names a variable with
    the value; for a switch, `VARIABLE=VALUE` is what turns it on.
    """

    def __init__(
        self,
        *flags: str,
        help: str,
        value: str = "",
        envvar: str = "",
        minimum: int | None = None,
        complete: Complete | None = None,
    ) -> None:
        self.flags, self.help, self.value, self.envvar, self.minimum = flags, help, value, envvar, minimum
        self.complete = complete


class Given(frozenset[str]):
    """Names of the parameters set on the command line or in the environment; a verb may request it."""


class Parameter:
    """One parameter of a verb: its declaration, its type and its default."""

    def __init__(self, name: str, hint: Any, default: Any) -> None:
        kind, self.declared = get_args(hint)
        kinds = [one for one in get_args(kind) if one is not type(None)] if type(None) in get_args(kind) else [kind]
        self.name, self.default, self.required = name, default, default is REQUIRED
        self.many = kinds[0] == list[str]
        self.kind: type = str if self.many else kinds[0]
        self.help: str = self.declared.help
        self.flags: tuple[str, ...] = ()
        self.negative: tuple[str, ...] = ()
        self.envvar = ""
        if isinstance(self.declared, Option):
            dashed = name.replace("_", "-")
            self.envvar = self.declared.envvar
            self.flags = self.declared.flags or (f"--{dashed}",)
            if self.kind is bool and not self.declared.flags:
                self.negative = (f"--no-{dashed}",)

    @property
    def is_option(self) -> bool:
        return bool(self.flags)

    @property
    def is_switch(self) -> bool:
        """Whether it takes no value."""
        return self.kind is bool

    @property
    def label(self) -> str:
        """Its name in messages and usage lines."""
        return max(self.flags, key=len) if self.flags else self.name.upper()

    @property
    def spelling(self) -> str:
        """Its flags as in `-m, --message MESSAGE`."""
        names = sorted([*self.flags, *self.negative], key=len)
        return ", ".join(names) + ("" if self.is_switch else f" {self.value}")

    @property
    def value(self) -> str:
        """How help writes its value."""
        named = self.declared.value if isinstance(self.declared, Option) else ""
        return named or max(self.flags, key=len).lstrip("-").replace("-", "_").upper()


class Command:
    """A callable verb: its path on the command line, its help and its parameters."""

    def __init__(self, path: str, function: Callable[..., int | None]) -> None:
        code, defaults = function.__code__, function.__defaults__ or ()
        names = code.co_varnames[: code.co_argcount]
        hints = get_type_hints(function, include_extras=True)
        self.path, self.function = path, function
        self.help = " ".join((function.__doc__ or "").split())
        self.wants_given = next((name for name in names if hints[name] is Given), None)
        self.parameters = [
            Parameter(name, hints[name], default)
            for name, default in zip(names, (REQUIRED,) * (len(names) - len(defaults)) + defaults, strict=True)
            if name != self.wants_given
        ]

    @property
    def arguments(self) -> list[Parameter]:
        return [one for one in self.parameters if not one.is_option]

    @property
    def options(self) -> list[Parameter]:
        return [one for one in self.parameters if one.is_option]

    @property
    def listed_options(self) -> list[Parameter]:
        """The options as help lists them: those of many verbs last."""
        return sorted(self.options, key=lambda one: one.name in SHARED)

    @property
    def usage(self) -> str:
        """Its usage line, as in `ramet exec NAME [COMMAND] [OPTIONS]`."""
        words = [self.path]
        for one in self.arguments:
            name = one.label + ("..." if one.many else "")
            words.append(name if one.required else f"[{name}]")
        return " ".join([*words, "[OPTIONS]"] if self.options else words)
