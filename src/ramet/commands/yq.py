"""yq: the language of jq over YAML; needs a YAML library, which is optional."""

from __future__ import annotations

import datetime
from typing import Any

from ramet.commands.declare import Command, UsageError
from ramet.commands.inputs import slurp
from ramet.commands.jq import values
from ramet.commands.jq.builtins import Halt
from ramet.commands.jq.command import Options, Session
from ramet.commands.jq.scopes import Run
from ramet.commands.jq.values import Break, CompileError, JqError, Json
from ramet.core.errors import reason
from ramet.core.paths import encode
from ramet.core.proc import Proc


def _library() -> Any:
    try:
        import yaml  # type: ignore[import-untyped]
    except ImportError:
        raise UsageError("reading YAML needs PyYAML, which is not installed", 1, hint=False) from None
    return yaml


def _plain(value: Any) -> Json:
    """YAML values as JSON knows them."""
    if isinstance(value, dict):
        return {
            str(key) if not isinstance(key, bool) else str(key).lower(): _plain(item) for key, item in value.items()
        }
    if isinstance(value, (list, tuple, set)):
        return [_plain(item) for item in value]
    if isinstance(value, (datetime.datetime, datetime.date)):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value


def _arguments(words: list[str]) -> tuple[Options, str, bool, bool]:
    o = Options()
    form, in_place, null_input = "yaml", False, False
    rest: list[str] = []
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word in ("-r", "--unwrapScalar", "--raw-output"):
            o.raw_output = True
        elif word in ("-i", "--inplace"):
            in_place = True
        elif word in ("-n", "--null-input"):
            null_input = True
        elif word in ("-c", "--compact-output"):
            o.compact, form = True, "json"
        elif word in ("-j", "--tojson", "-o=json", "-ojson", "--output-format=json"):
            form = "json"
        elif word in ("-o", "--output-format"):
            if at >= len(words):
                raise UsageError(f"flag needs an argument: {word}", 1, hint=False)
            form = {"j": "json", "y": "yaml"}.get(words[at], words[at])
            at += 1
        elif word in ("-P", "--prettyPrint", "-y", "--yaml-output", "-o=yaml", "-oyaml", "-M", "--no-colors"):
            continue
        elif word in ("-e", "--exit-status"):
            o.exit_status = True
        elif word in ("e", "eval") and not rest:
            continue
        elif word.startswith("-") and len(word) > 1:
            raise UsageError(f"unknown flag: {word}", 1, hint=False)
        else:
            rest.append(word)
    if form not in ("json", "yaml"):
        raise UsageError(f"unknown output format '{form}'", 1, hint=False)
    if not rest:
        raise UsageError("no expression given", 1, hint=False)
    o.null_input = null_input
    o.words = rest
    return o, form, in_place, null_input


async def yq(proc: Proc, _: None, words: list[str]) -> int:
    library = _library()
    o, form, in_place, null_input = _arguments(words)
    program = o.words.pop(0)
    session = Session(proc, o)
    try:
        run = await session.program(program)
    except CompileError as error:
        proc.stderr.write(encode(f"Error: {error}\n"))
        return 1
    status = 0
    for word in o.words or ["-"]:
        try:
            text = b"" if null_input else await slurp(proc, word)
            documents = [None] if null_input else [_plain(item) for item in library.safe_load_all(text)]
        except OSError as error:
            proc.stderr.write(encode(f"Error: open {word}: {reason(error).lower()}\n"))
            return 1
        except library.YAMLError as error:
            proc.stderr.write(encode(f"Error: bad file '{word}': {' '.join(str(error).split())}\n"))
            return 1
        results, failed = _results(proc, run, documents)
        data = "".join(_shown(library, item, form, o, number) for number, item in enumerate(results)).encode()
        if in_place and word != "-" and not failed:
            await proc.fs.write(proc.path(word), data)
        else:
            await proc.emit(data)
        status = 1 if failed else status
        if o.exit_status and not (results and values.truthy(results[-1])):
            status = 1
    return status


def _results(proc: Proc, run: Run, documents: list[Json]) -> tuple[list[Json], bool]:
    results: list[Json] = []
    for document in documents:
        try:
            results.extend(run(None, document))
        except JqError as error:
            proc.stderr.write(encode(f"Error: {values.to_text(error.value)}\n"))
            return results, True
        except (Break, Halt, RecursionError):
            return results, True
    return results, False


def _shown(library: Any, value: Json, form: str, o: Options, number: int) -> str:
    if isinstance(value, str) and (o.raw_output or form == "yaml"):
        return value + "\n"
    if form == "json":
        return (values.dumps(value) if o.compact else values.pretty(value, "  ")) + "\n"
    if isinstance(value, (dict, list)) and value:
        mark = "---\n" if number else ""
        return mark + str(library.safe_dump(value, sort_keys=False, allow_unicode=True, default_flow_style=False))
    return values.dumps(value) + "\n"


COMMANDS = [
    Command(
        "yq",
        yq,
        summary="Command-line YAML processor; expressions are jq's.",
        usage="[-r] [-i] [-n] [-o json|yaml] EXPRESSION [FILE]...",
        raw=True,
    )
]
