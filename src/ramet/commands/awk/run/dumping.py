"""What awk writes of a program beside running it: its variables (-d), the program itself (-o), and how it ran (-p)."""

from __future__ import annotations

from ramet.commands.awk.compile.program import Compiled
from ramet.commands.awk.run.streams import Runtime
from ramet.commands.awk.run.values import Array, Value, number_text
from ramet.commands.awk.syntax.lexer import IN_NAMESPACE
from ramet.commands.awk.syntax.printing import printed
from ramet.commands.awk.syntax.tree import Program
from ramet.core.errors import reason
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.text.strftime import NANO, at, strftime, zone_of

_ESCAPED = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\\": "\\\\", '"': '\\"', "\a": "\\a", "\b": "\\b", "\f": "\\f"}


async def dump_variables(runtime: Runtime, name: str) -> None:
    held = dict(runtime.symtab.items()) | {"SYMTAB": runtime.symtab, "FUNCTAB": runtime.functab}
    for special, value in runtime.special.items():
        held[special] = "" if value is None else value
    lines = [f"{variable.replace(IN_NAMESPACE, '::')}: {_shown(value)}\n" for variable, value in sorted(held.items())]
    runtime.flush()
    await _written(runtime.proc, name, "".join(lines), "variable list")


async def print_program(proc: Proc, program: Program, name: str) -> None:
    await _written(proc, name, printed(program), "profile")


async def print_profile(runtime: Runtime, compiled: Compiled, name: str) -> None:
    """The program with how often its parts ran."""
    assert compiled.slots is not None
    runtime.flush()
    counted = runtime.namespace["C"]
    counts = {key: counted[slot] for key, slot in compiled.slots.items()}
    when, _ = at(int(runtime.proc.now() * NANO), zone_of(runtime.proc))
    head = f"\t# gawk profile, created {strftime('%a %b %e %H:%M:%S %Y', when, 0)}\n\n"
    await _written(runtime.proc, name, head + printed(compiled.program, counts), "profile")


async def _written(proc: Proc, name: str, text: str, what: str) -> None:
    try:
        out = await proc.create("/dev/stdout" if name == "-" else name)
    except OSError as error:
        proc.complain(f"warning: could not open `{name}' for writing: {reason(error)}")
        proc.complain(f"warning: sending {what} to standard error")
        out = await proc.create("/dev/stderr")
    out.write(encode(text))
    await proc.close(out)


def _shown(value: Value) -> str:
    if isinstance(value, Array):
        return f"array, {len(value)} elements"
    if value is None:
        return "uninitialized scalar"
    if value.__class__ is float:
        return number_text(value, "%.6g")
    text = "".join(_ESCAPED.get(char, char if char >= " " else f"\\{ord(char):03o}") for char in value)
    return f'"{text}"'
