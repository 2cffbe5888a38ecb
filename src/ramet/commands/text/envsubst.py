"""envsubst: replace $NAME and ${NAME} by values of the environment."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ramet.commands.framework.command import Command, UsageError, flag
from ramet.commands.framework.stdin_errors import StdinError
from ramet.core.paths import encode
from ramet.core.proc import Proc

_REFERENCE = re.compile(rb"\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)\})")


@dataclass(frozen=True, slots=True)
class EnvsubstOptions:
    variables: bool = flag("-v", "--variables", help="output the variables occurring in SHELL-FORMAT")


async def envsubst(proc: Proc, o: EnvsubstOptions, operands: list[str]) -> int:
    if len(operands) > 1:
        raise UsageError("too many arguments", hint=False)
    named = [m[1] or m[2] for m in _REFERENCE.finditer(encode(operands[0]))] if operands else []
    if o.variables:
        if not operands:
            raise UsageError("missing arguments", hint=False)
        await proc.emit(b"".join(name + b"\n" for name in named))
        return 0
    wanted = frozenset(named) if operands else None
    values = {encode(name): encode(text) for name, text in proc.env.items()}

    def value(found: re.Match[bytes]) -> bytes:
        name = found[1] or found[2]
        return values.get(name, b"") if wanted is None or name in wanted else found[0]

    held = b""
    while block := await proc.stdin.read():
        whole, newline, held = (held + block).rpartition(b"\n")
        await proc.emit(_REFERENCE.sub(value, whole + newline))
        await proc.budget.yield_turn()
    await proc.emit(_REFERENCE.sub(value, held))
    return 0


COMMANDS = [
    Command(
        "envsubst",
        envsubst,
        EnvsubstOptions,
        summary="Substitute the values of environment variables.",
        usage="[OPTION] [SHELL-FORMAT]",
        examples=[("envsubst '$HOST $PORT' < nginx.tmpl", "only these two; other dollars stay")],
        version_letters="V",
        help_letters="h",
        stdin_error=StdinError('error while reading "standard input": {}', fatal=True),
    ),
]
