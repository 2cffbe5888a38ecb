"""yq: the language of jq over YAML; needs a YAML library, which is optional."""

from __future__ import annotations

import csv
import datetime
import io
import json
import re
from typing import Any

from ramet.commands.declare import Command, UsageError
from ramet.commands.inputs import slurp
from ramet.commands.jq import values
from ramet.commands.jq.builtins import Halt
from ramet.commands.jq.command import Session
from ramet.commands.jq.options import Options
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


_FORMATS = {"j": "json", "y": "yaml", "yml": "yaml", "c": "csv", "t": "tsv", "p": "props", "a": "auto"}
_READS = ("yaml", "json", "csv", "tsv", "props", "auto")
_WRITES = ("yaml", "json", "csv", "tsv", "props", "auto")


def _arguments(words: list[str]) -> tuple[Options, str, str, bool, bool]:
    """The options of the session, the formats read and written, and whether to edit in place and to read nothing."""
    o = Options()
    form, read, in_place, null_input = "yaml", "yaml", False, False
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
        elif word in ("-j", "--tojson"):
            form = "json"
        elif found := re.match(r"(-o|--output-format|-p|--input-format)(?:=|(?<=-[op])(?=.)|$)", word):
            given = word[found.end() :]
            if not given:
                if at >= len(words):
                    raise UsageError(f"flag needs an argument: {word}", 1, hint=False)
                given = words[at]
                at += 1
            chosen = _FORMATS.get(given, given)
            if found[1] in ("-o", "--output-format"):
                form = chosen
            else:
                read = chosen
        elif word in ("-P", "--prettyPrint", "-y", "--yaml-output", "-M", "--no-colors"):
            continue
        elif word in ("-e", "--exit-status"):
            o.exit_status = True
        elif word in ("e", "eval") and not rest:
            continue
        elif word.startswith("-") and len(word) > 1:
            raise UsageError(f"unknown flag: {word}", 1, hint=False)
        else:
            rest.append(word)
    if form not in _WRITES:
        raise UsageError(f"unknown output format '{form}'", 1, hint=False)
    if read not in _READS:
        raise UsageError(f"unknown input format '{read}'", 1, hint=False)
    if not rest:
        raise UsageError("no expression given", 1, hint=False)
    o.null_input = null_input
    o.words = rest
    return o, form, read, in_place, null_input


def _by_name(word: str) -> str:
    """The format that the ending of a file's name tells; YAML otherwise."""
    ending = word.rpartition(".")[2] if "." in word else ""
    return {"json": "json", "csv": "csv", "tsv": "tsv", "properties": "props"}.get(ending, "yaml")


def _documents(library: Any, text: bytes, form: str) -> list[Json]:
    if form in ("csv", "tsv"):
        rows = list(csv.reader(text.decode("utf-8", "replace").splitlines(), delimiter="," if form == "csv" else "\t"))
        names = rows[0] if rows else []
        return [[{n: _scalar(library, cell) for n, cell in zip(names, row, strict=False)} for row in rows[1:]]]
    if form == "props":
        root: dict[str, Json] = {}
        for line in text.decode("utf-8", "replace").splitlines():
            name, equals, value = line.partition("=")
            if equals and not line.lstrip().startswith(("#", "!")):
                _put(root, name.strip().split("."), _scalar(library, value.strip()))
        return [root]
    # JSON is a kind of YAML, and several texts of it may follow each other.
    if form == "json":
        return list(values_in(text.decode("utf-8", "replace")))
    return [_plain(item) for item in library.safe_load_all(text)]


def values_in(text: str) -> list[Json]:
    """The JSON values of a text, one after the other."""
    decoder, found, at = json.JSONDecoder(), list[Json](), 0
    while rest := text[at:].lstrip():
        at = len(text) - len(rest)
        try:
            value, at = decoder.raw_decode(text, at)
        except ValueError as error:
            raise UsageError(f"bad JSON input: {error}", 1, hint=False) from None
        found.append(value)
    return found


def _scalar(library: Any, text: str) -> Json:
    value = library.safe_load(text) if text else ""
    return value if isinstance(value, (int, float, bool)) else text


def _put(root: dict[str, Json], path: list[str], value: Json) -> None:
    for name in path[:-1]:
        inner = root.setdefault(name, {})
        root = inner if isinstance(inner, dict) else root
    root[path[-1]] = value


async def yq(proc: Proc, _: None, words: list[str]) -> int:
    library = _library()
    o, form, read, in_place, null_input = _arguments(words)
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
            wanted = _by_name(word) if read == "auto" else read
            documents = [None] if null_input else _documents(library, text, wanted)
        except OSError as error:
            proc.stderr.write(encode(f"Error: open {word}: {reason(error).lower()}\n"))
            return 1
        except library.YAMLError as error:
            proc.stderr.write(encode(f"Error: bad file '{word}': {' '.join(str(error).split())}\n"))
            return 1
        results, failed = _results(proc, run, documents)
        data = "".join(
            _shown(library, item, "yaml" if form == "auto" else form, o, number) for number, item in enumerate(results)
        ).encode()
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
    if form == "props":
        return "".join(f"{name} = {values.to_text(item)}\n" for name, item in _leaves(value, ""))
    if form in ("csv", "tsv"):
        return _table(value, "," if form == "csv" else "\t")
    if form == "json":
        return (values.dumps(value) if o.compact else values.pretty(value, "  ")) + "\n"
    if isinstance(value, (dict, list)) and value:
        mark = "---\n" if number else ""
        return mark + str(library.safe_dump(value, sort_keys=False, allow_unicode=True, default_flow_style=False))
    return values.dumps(value) + "\n"


def _leaves(value: Json, name: str) -> list[tuple[str, Json]]:
    if isinstance(value, (dict, list)):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        return [leaf for key, item in items for leaf in _leaves(item, f"{name}.{key}" if name else str(key))]
    return [(name, value)]


def _table(value: Json, separator: str) -> str:
    rows = value if isinstance(value, list) else [value]
    if rows and all(isinstance(row, dict) for row in rows):
        names = list(dict.fromkeys(name for row in rows for name in row))
        rows = [names, *([row.get(name) for name in names] for row in rows)]
    elif not all(isinstance(row, list) for row in rows):
        rows = [rows]
    out = io.StringIO()
    writer = csv.writer(out, delimiter=separator, lineterminator="\n")
    for row in rows:
        writer.writerow("" if cell is None else cell if isinstance(cell, str) else values.dumps(cell) for cell in row)
    return out.getvalue()


COMMANDS = [
    Command(
        "yq",
        yq,
        summary="Command-line YAML processor; expressions are jq's.",
        usage="[-r] [-i] [-n] [-p yaml|json|csv|tsv|props] [-o yaml|json|csv|tsv|props] EXPRESSION [FILE]...",
        raw=True,
    )
]
