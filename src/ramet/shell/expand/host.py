"""`Host`: the interface through which expansion uses the running shell."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Protocol

from ramet.core.limits import Budget
from ramet.shell.expand.values import Value
from ramet.shell.syntax import nodes


class Store(Protocol):
    """The variables, as expansion uses them."""

    attrs: dict[str, int]
    values: dict[str, Value]

    def get(self, name: str) -> str | None: ...
    def set(self, name: str, value: str, append: bool = False) -> None: ...
    def follow(self, name: str) -> tuple[str, str | None]: ...
    def elements(self, name: str) -> list[str]: ...
    def keys(self, name: str) -> list[str]: ...
    def array(self, name: str) -> Any: ...
    def is_assoc(self, name: str) -> bool: ...
    def item(self, name: str, key: int | str) -> str | None: ...
    def element(self, name: str, subscript: str) -> str | None: ...
    def set_element(self, name: str, subscript: str, value: str, append: bool = False) -> None: ...
    def names(self, prefix: str = "") -> list[str]: ...


class Host(Protocol):
    vars: dict[str, Value]
    variables: Any
    params: list[str]
    budget: Budget

    @property
    def nounset(self) -> bool: ...

    @property
    def noglob(self) -> bool: ...

    def shopt(self, name: str) -> bool: ...
    def special(self, name: str) -> str | None:
        """`$? $$ $! $- $# $0 $_`."""
        ...

    def calculate(self, text: str) -> int:
        """An arithmetic expression that is already expanded. Raises ArithFailure."""
        ...

    def evaluate(self, text: str) -> int:
        """The same where a number is wanted, and an error ends more."""
        ...

    def evaluate_subscript(self, text: str) -> int:
        """The same in a subscript, where an error ends more."""
        ...

    def home(self, user: str) -> str | None:
        """The home directory of a user; of the session itself for the empty name."""
        ...

    def tilde(self, prefix: str) -> str | None:
        """What `~prefix` stands for; None to leave it."""
        ...

    def prompt(self, text: str) -> str:
        """`${x@P}`."""
        ...

    def complain(self, message: str) -> None: ...
    def command_text(self, node: nodes.CommandSub) -> Awaitable[str]:
        """The output of a command substitution, without trailing newlines."""
        ...

    def process_path(self, node: nodes.ProcessSub) -> Awaitable[str]:
        """`/dev/fd/N` for a process substitution."""
        ...
