"""`awk -d`: the global variables and what they hold, written to a file when the program has ended."""

from __future__ import annotations

from ramet.commands.awk.lexer import IN_NAMESPACE
from ramet.commands.awk.runtime import Runtime
from ramet.commands.awk.tree import AwkError
from ramet.commands.awk.values import Array, Value, number_text
from ramet.core.errors import reason
from ramet.core.paths import encode

_ESCAPED = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\\": "\\\\", '"': '\\"', "\a": "\\a", "\b": "\\b", "\f": "\\f"}


async def dump_variables(runtime: Runtime, name: str) -> None:
    held = dict(runtime.symtab.items()) | {"SYMTAB": runtime.symtab, "FUNCTAB": runtime.functab}
    for special, value in runtime.special.items():
        held[special] = "" if value is None else value
    lines = [f"{variable.replace(IN_NAMESPACE, '::')}: {_shown(value)}\n" for variable, value in sorted(held.items())]
    try:
        out = await runtime.proc.create("/dev/stdout" if name == "-" else name)
    except OSError as error:
        raise AwkError(f"warning: could not open `{name}' for writing: {reason(error)}") from None
    runtime.flush()
    out.write(encode("".join(lines)))
    await runtime.proc.close(out)


def _shown(value: Value) -> str:
    if isinstance(value, Array):
        return f"array, {len(value)} elements"
    if value is None:
        return "uninitialized scalar"
    if value.__class__ is float:
        return number_text(value, "%.6g")
    text = "".join(_ESCAPED.get(char, char if char >= " " else f"\\{ord(char):03o}") for char in value)
    return f'"{text}"'
