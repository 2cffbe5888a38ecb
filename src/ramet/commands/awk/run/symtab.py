"""SYMTAB and FUNCTAB: variables and functions of the running program as arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ramet.commands.awk.run.values import Array, Value
from ramet.commands.awk.syntax.tree import AwkError

if TYPE_CHECKING:
    from _collections_abc import dict_items

    from ramet.commands.awk.run.state import State


class Symbols(Array):
    """The global variables by name; what is stored under a name is stored in the variable."""

    __slots__ = ("_runtime",)

    def __init__(self, runtime: State) -> None:
        super().__init__()
        self._runtime = runtime

    def _found(self) -> dict[str, Value]:
        runtime = self._runtime
        found = {
            name[2:].replace("__ns__", "::"): value
            for name, value in runtime.namespace.items()
            if name.startswith(("v_", "a_"))
        }
        counts = {name: getattr(runtime, name) for name in _COUNTED}
        arrays = {"ENVIRON": runtime.environ, "ARGV": runtime.argv, "PROCINFO": runtime.procinfo}
        return {**runtime.special, **counts, "NF": runtime.get_nf(), **arrays, **found}

    def __contains__(self, name: object) -> bool:
        return name in self._found()

    def __getitem__(self, name: str) -> Value:
        return self._found().get(name)

    def get(self, name: str, default: Any = None) -> Any:
        return self._found().get(name, default)

    def __setitem__(self, name: str, value: Value) -> None:
        if name not in self._found():
            raise AwkError("fatal: cannot assign to arbitrary elements of SYMTAB")
        self._runtime.assign(name, value)

    def __iter__(self) -> Iterator[str]:
        return iter(self._found())

    def __len__(self) -> int:
        return len(self._found())

    def items(self) -> dict_items[str, Value]:
        return self._found().items()


_COUNTED = ("NR", "FNR", "RSTART", "RLENGTH")
