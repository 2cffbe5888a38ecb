"""The jq command: program, variables, inputs and exit status."""

from __future__ import annotations

from functools import partial

from ramet.commands.data.jq import values
from ramet.commands.data.jq.builtins import Halt
from ramet.commands.data.jq.io.reader import JsonReader, ParseError, copied_lines
from ramet.commands.data.jq.options import JqOptions, options
from ramet.commands.data.jq.run import JqRun
from ramet.commands.data.jq.values import CompileError, Json
from ramet.commands.framework.command import Command, UsageError, help_text, version_text
from ramet.commands.framework.inputs import HELD, slurp
from ramet.concurrency.offload import offload
from ramet.concurrency.recursion import Room
from ramet.core.errors import reason
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.core.streams import live

_ROOM = Room(6000)


async def jq(proc: Proc, _: None, words: list[str]) -> int:
    o = options(words)
    if o.help or o.version or o.configuration:
        about = help_text(COMMANDS[0]) if o.help else version_text(COMMANDS[0]) if o.version else "builtin\n"
        await proc.emit(encode(about))
        return 0
    try:
        if o.from_file is not None:
            text = (await slurp(proc, o.from_file)).decode("utf-8", "replace")
        elif o.words:
            text = o.words.pop(0)
        else:
            text = "."
        for kind, name, file in o.files:
            o.named[name] = await _file_variable(proc, kind, name, file)
    except OSError as error:
        proc.stderr.write(encode(f"jq: error: Could not open {error.filename or o.from_file}: {reason(error)}\n"))
        return 2
    state = JqRun(proc, o)
    longest = values.LONGEST.set(proc.budget.limits.string_bytes)
    try:
        with _ROOM:
            return await _execute(state, text)
    finally:
        values.LONGEST.reset(longest)


async def _execute(state: JqRun, text: str) -> int:
    proc, o = state.proc, state.o
    try:
        run = await state.program(text)
    except (CompileError, RecursionError) as error:
        message = str(error) or "the program is nested too deeply"
        if "at <top-level>" not in message and not message.startswith("module not found"):
            message = f"{message} at <top-level>, line 1:\n{text}"
        proc.stderr.write(encode(f"jq: error: {message}\njq: 1 compile error\n"))
        return 3
    try:
        with live(proc.stdin, state.push):
            await (_copy(state) if o.compact and text.strip() == "." and _copies(o) else state.run(run))
    except Halt as halt:
        if halt.shown and halt.value is not None:
            shown = halt.value if isinstance(halt.value, str) else values.dumps(halt.value) + "\n"
            proc.stderr.write(shown.encode("utf-8", "replace"))
        await state.flush()
        return halt.status
    await state.flush()
    if state.failed_file:
        return 2
    if state.status:
        return state.status
    if o.exit_status:
        return 4 if not state.any_output else 0 if values.truthy(state.last) else 1
    return 0


def _copies(o: JqOptions) -> bool:
    """Return whether `.` may take the short way: values in, the same values out on one line each."""
    return not (
        o.slurp
        or o.null_input
        or o.raw_input
        or o.raw_output
        or o.join
        or o.nul
        or o.ascii
        or o.colour
        or o.sort
        or o.stream
        or o.seq
        or o.exit_status
    )


async def _copy(state: JqRun) -> None:
    """`jq -c .`: many lines at a time."""
    async for made in state.batches(copied_lines):
        if isinstance(made, bytes):
            data = made
        else:
            text = partial("".join, map(state.text, made))
            shown = await offload(state.proc.budget, text) if state.host.large else text()
            data = shown.encode("utf-8", "replace")
        if len(data) < HELD:
            state.out.append(data.decode("utf-8", "replace"))
        else:
            await state.flush()
            await state.proc.emit(data)
        await state.yield_turn()
        if state.parse_error is not None:
            break
    if state.parse_error is not None:
        state.proc.stderr.write(encode(f"jq: parse error: {state.parse_error}\n"))
        state.status = 5


async def _file_variable(proc: Proc, kind: str, name: str, file: str) -> Json:
    bad = f"Bad JSON in --{kind} {name} {file}"
    try:
        data = await slurp(proc, file)
    except OSError as error:
        raise UsageError(f"{bad}: Could not open {file}: {reason(error)}", 2, hint=False) from None
    if kind == "rawfile":
        return data.decode("utf-8", "replace")
    reader = JsonReader()
    reader.feed(data, True)
    try:
        return list(reader.take(True))
    except ParseError as error:
        raise UsageError(f"{bad}: {error}", 2, hint=False) from None


COMMANDS = [
    Command(
        "jq",
        jq,
        summary="Command-line JSON processor.",
        usage="[OPTIONS] FILTER [FILES...]",
        details="""
            The language is jq 1.7's. Options: -n -s -r -j -a -c -C -S -e -R -f FILE -L DIR -h -V --tab --indent N
            --stream --stream-errors --seq --raw-output0 --arg NAME VALUE --argjson NAME JSON --slurpfile NAME FILE
            --rawfile NAME FILE --args --jsonargs.
        """,
        examples=(
            ("jq '.items[].name' f.json", "one field of every item"),
            ("jq -r '.[] | [.a, .b] | @csv' f.json", "rows for a spreadsheet"),
        ),
        raw=True,
        bad_usage=2,
        version_line="jq-1.7.1",
        write_error=("error: writing output failed: ", 2),
    )
]
