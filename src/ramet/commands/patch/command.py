"""Command patch: read the whole input before any file changes."""

from __future__ import annotations

from functools import partial

from ramet.commands.files.cp import lookup
from ramet.commands.framework.command import Command, UsageError
from ramet.commands.framework.stdin_errors import StdinError
from ramet.commands.patch.files import patch_file
from ramet.commands.patch.job import PatchJob, PatchOptions
from ramet.commands.patch.parser import BadPatch, parse_patch
from ramet.concurrency.offload import offload_large
from ramet.concurrency.sizes import LARGE
from ramet.core import ops
from ramet.core.errors import reason
from ramet.core.proc import Proc


async def patch(proc: Proc, o: PatchOptions, operands: list[str]) -> int:
    if o.merge not in (None, "merge", "diff3"):
        raise UsageError("")
    if o.strip is not None and not o.strip.isdigit():
        raise UsageError(f"strip count {o.strip} is not a number", hint=False)
    if not o.fuzz.isdigit():
        raise UsageError(f"fuzz factor {o.fuzz} is not a number", hint=False)
    if len(operands) > 2:
        raise UsageError(f"{operands[2]}: extra operand")
    source = o.input if o.input is not None else operands[1] if len(operands) > 1 else "-"
    cwd = proc.path(o.directory) if o.directory is not None else proc.cwd
    job = PatchJob(proc, o, cwd, fuzz=int(o.fuzz))
    if o.directory is not None:
        there = await lookup(proc, cwd, follow=True)
        if there is None or not there.is_dir:
            why = "No such file or directory" if there is None else "Not a directory"
            proc.complain(f"**** Can't change to directory {o.directory} : {why}")
            return 2
    try:
        if source == "-" or (o.input is None and len(operands) < 2):
            data = await proc.stdin.read_all()
        elif proc.descriptor(source) is not None:
            data = await (await proc.open(source)).read_all()
        else:
            data = await ops.read_bytes(proc.fs, job.path(source))
    except OSError as error:
        proc.complain(f"**** Can't open patch file {source} : {reason(error)}")
        return 2
    try:
        patches = await offload_large(proc.budget, len(data), partial(parse_patch, data, o), LARGE)
    except BadPatch as bad:
        proc.complain(f"**** {bad}")
        return 2
    nameless = all(item.kind == "normal" and not (item.old_name or item.index_name) for item in patches)
    if not patches or (nameless and not operands):
        if data:
            proc.complain("**** Only garbage was found in the patch input.")
            return 2
        return 0
    for item in patches:
        await patch_file(job, item, operands[0] if operands else None)
        await proc.budget.yield_turn()
    return job.status


COMMANDS = [
    Command(
        "patch",
        patch,
        PatchOptions,
        summary="Apply a diff file to an original.",
        usage="[OPTION]... [ORIGFILE [PATCHFILE]]",
        bad_usage=2,
        ignored=(
            "--binary",
            "-g= --get=",
            "--quoting-style=",
            "--read-only=",
            "--follow-symlinks",
        ),
        examples=[
            ("patch -p1 < change.diff", "apply to the files below here"),
            ("patch -R -p1 -i change.diff", "take it back"),
        ],
        original="GNU patch 2.7.6",
        version_letters="v",
        prefix_hint=True,
        stdin_error=StdinError("**** fstat : {}", status=2, fatal=True, directory="**** read error : {}"),
    )
]
