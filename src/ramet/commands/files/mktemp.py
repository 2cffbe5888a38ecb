"""mktemp: create temporary files and directories with unused names."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

from ramet.commands.files.cp import lookup
from ramet.commands.files.touch import quiet_setattr
from ramet.commands.framework.command import (
    Command,
    UsageError,
    flag,
    mixed,
    optional,
    quote,
    typographic,
    value,
)
from ramet.core.errors import reason
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.core.resource import How
from ramet.core.stat import Attrs


@dataclass(frozen=True, slots=True)
class MktempOptions:
    directory: bool = flag("-d", "--directory", help="create a directory, not a file")
    dry_run: bool = flag("-u", "--dry-run", help="do not create anything; merely print a name")
    quiet: bool = flag("-q", "--quiet", help="suppress diagnostics about file/dir-creation failure")
    suffix: str | None = value("--suffix", metavar="SUFF", help="append SUFF to TEMPLATE")
    tmpdir: str | None = mixed(
        optional(
            "--tmpdir", metavar="DIR", const="", help="interpret TEMPLATE relative to DIR, else $TMPDIR, else /tmp"
        ),
        value("-p", metavar="DIR", help="interpret TEMPLATE relative to DIR"),
        default=None,
    )
    in_tmp: bool = flag("-t", help="interpret TEMPLATE as a single file name component, relative to $TMPDIR")


async def mktemp(proc: Proc, o: MktempOptions, operands: list[str]) -> int:
    if len(operands) > 1:
        raise UsageError("too many templates")
    template = operands[0] if operands else "tmp.XXXXXXXXXX"
    suffix = o.suffix or ""
    if o.suffix is not None and not template.endswith("X"):
        raise UsageError(f"with --suffix, template {quote(template)} must end in X", hint=False)
    if o.suffix is None and "X" in template:
        end = template.rindex("X") + 1
        template, suffix = template[:end], template[end:]
    if "/" in suffix:
        raise UsageError(f"invalid suffix {quote(suffix)}, contains directory separator", hint=False)
    found = re.search(r"X*\Z", template)
    run = len(found[0]) if found else 0
    if run < 3:
        raise UsageError(f"too few X's in template {quote(operands[0] if operands else template)}", hint=False)
    base: str | None = None
    tmp = proc.env.get("TMPDIR") or "/tmp"
    if o.in_tmp:
        if "/" in template:
            raise UsageError(f"invalid template, {quote(template)}, contains directory separator", hint=False)
        base = proc.env.get("TMPDIR") or o.tmpdir or "/tmp"
    elif o.tmpdir is not None:
        base = o.tmpdir or tmp
        if template.startswith("/"):
            raise UsageError(f"invalid template, {quote(template)}; with --tmpdir, it may not be absolute", hint=False)
    elif not operands:
        base = tmp
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
    chooser = random.SystemRandom()
    for _ in range(100):
        name = template[:-run] + "".join(chooser.choices(letters, k=run)) + suffix
        full = name if base is None else f"{base.rstrip('/')}/{name}"
        try:
            path = proc.path(full)
            if o.dry_run:
                if await lookup(proc, path) is not None:
                    continue
            elif o.directory:
                await proc.fs.mkdir(path)
                await quiet_setattr(proc, path, Attrs(mode=0o700))
            else:
                await proc.fs.write(path, b"", How.CREATE)
                await quiet_setattr(proc, path, Attrs(mode=0o600))
        except FileExistsError:
            continue
        except OSError as error:
            if not o.quiet:
                shape = f"{base.rstrip('/')}/{template}{suffix}" if base is not None else template + suffix
                what = "directory" if o.directory else "file"
                proc.complain(
                    typographic(proc, f"failed to create {what} via template {quote(shape)}: {reason(error)}")
                )
            return 1
        await proc.emit(encode(full + "\n"))
        return 0
    proc.complain("failed to find an unused name")
    return 1


COMMANDS = [
    Command(
        "mktemp",
        mktemp,
        MktempOptions,
        summary="Create a temporary file or directory, safely, and print its name.",
        usage="[OPTION]... [TEMPLATE]",
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
]
