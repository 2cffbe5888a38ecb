"""yq: jq's language on YAML, JSON, CSV, TSV and properties; needs PyYAML."""

from __future__ import annotations

import csv
import io
import json
import re
from functools import partial
from typing import Any

from ramet.commands.data import yaml_text
from ramet.commands.data.jq import values
from ramet.commands.data.jq.builtins import Halt
from ramet.commands.data.jq.options import JqOptions
from ramet.commands.data.jq.run import JqRun
from ramet.commands.data.jq.scopes import Run
from ramet.commands.data.jq.values import CompileError, JqBreak, JqError, Json
from ramet.commands.data.yaml_style import Document
from ramet.commands.data.yaml_text import YamlWriter
from ramet.commands.framework.command import Command, UsageError
from ramet.commands.framework.inputs import slurp
from ramet.concurrency.offload import checkpoint, offload_large
from ramet.concurrency.sizes import LONG_SCRIPT
from ramet.core.errors import reason
from ramet.core.paths import encode
from ramet.core.proc import Proc

_DEEP = "yaml: exceeded max depth"
_FORMATS = {"j": "json", "y": "yaml", "yml": "yaml", "c": "csv", "t": "tsv", "p": "props", "a": "auto"}
_READS = ("yaml", "json", "csv", "tsv", "props", "auto")
_WRITES = ("yaml", "json", "csv", "tsv", "props", "auto")


class _Arguments:
    """The parsed options: jq's, formats, and in-place editing."""

    def __init__(self) -> None:
        self.o = JqOptions()
        self.form = self.read = "yaml"
        self.in_place = self.pretty = False
        self.indent = 2


def _arguments(words: list[str]) -> _Arguments:
    asked = _Arguments()
    o = asked.o
    form, read, null_input = "yaml", "yaml", False
    rest: list[str] = []
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word in ("-r", "--unwrapScalar", "--raw-output"):
            o.raw_output = True
        elif word in ("-i", "--inplace"):
            asked.in_place = True
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
        elif word in ("-P", "--prettyPrint"):
            asked.pretty = True
        elif found := re.fullmatch(r"(?:-I|--indent)=?(\d*)", word):
            given = found[1] or (words[at] if at < len(words) else "")
            at += not found[1]
            if not given.isdecimal():
                raise UsageError(f"flag needs a number: {word}", 1, hint=False)
            asked.indent = max(1, int(given))
        elif word in ("-y", "--yaml-output", "-M", "--no-colors", "-N", "--no-doc"):
            continue
        elif word in ("--arg", "--argjson") and at + 1 < len(words):
            name, text = words[at], words[at + 1]
            at += 2
            o.named[name] = text if word == "--arg" else values_in(text)[0]
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
    asked.form, asked.read = form, read
    return asked


def _by_name(word: str) -> str:
    """Return the format that the ending of a file's name tells; YAML otherwise."""
    ending = word.rpartition(".")[2] if "." in word else ""
    return {"json": "json", "csv": "csv", "tsv": "tsv", "properties": "props"}.get(ending, "yaml")


def _documents(library: Any, text: bytes, form: str) -> list[Document | Json]:
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
    return list(yaml_text.read(library, text.decode("utf-8", "replace")))


_SPACE = re.compile(r"\s*")


def values_in(text: str) -> list[Json]:
    """Return the JSON values of a text, one after the other."""
    decoder, found, at = json.JSONDecoder(), list[Json](), 0
    while (blank := _SPACE.match(text, at)) is not None and blank.end() < len(text):
        checkpoint()
        try:
            value, at = decoder.raw_decode(text, blank.end())
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
    longest = values.LONGEST.set(proc.budget.limits.string_bytes)
    try:
        return await _yq(proc, words)
    finally:
        values.LONGEST.reset(longest)


async def _yq(proc: Proc, words: list[str]) -> int:
    import yaml as library  # type: ignore[import-untyped]

    asked = _arguments(words)
    o, read, in_place, null_input = asked.o, asked.read, asked.in_place, asked.o.null_input
    program = o.words.pop(0)
    session = JqRun(proc, o)
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
            documents: list[Document | Json] = [None]
            if not null_input:
                work = partial(_documents, library, text, wanted)
                documents = await offload_large(proc.budget, len(text), work, LONG_SCRIPT)
        except OSError as error:
            proc.stderr.write(encode(f"Error: open {word}: {reason(error).lower()}\n"))
            return 1
        except library.YAMLError as error:
            proc.stderr.write(encode(f"Error: bad file '{word}': {' '.join(str(error).split())}\n"))
            return 1
        except RecursionError:
            proc.stderr.write(encode(f"Error: bad file '{word}': {_DEEP}\n"))
            return 1
        try:
            answer = partial(_answers, library, asked, run, documents)
            data, results, complaint = await session.run_in_thread(answer)
        except RecursionError:
            proc.stderr.write(encode(f"Error: {_DEEP}\n"))
            return 1
        failed = complaint is not None
        proc.stderr.write(encode(complaint or ""))
        if in_place and word != "-" and not failed:
            await proc.fs.write(proc.path(word), data)
        else:
            await proc.emit(data)
        status = 1 if failed else status
        if o.exit_status and not (results and values.truthy(results[-1])):
            status = 1
    return status


def _answers(
    library: Any, asked: _Arguments, run: Run, documents: list[Document | Json]
) -> tuple[bytes, list[Json], str | None]:
    """Return what is printed, the values of it, and what is said of an error, if there was one."""
    results: list[Json] = []
    texts: list[str] = []
    complaint: str | None = None
    for document in documents:
        held = document if isinstance(document, Document) else None
        found, complaint = _results(run, held.value if held is not None else document)
        writer = yaml_text.YamlWriter(library, held, asked.indent, asked.pretty)
        shown = "yaml" if asked.form == "auto" else asked.form
        texts += [_render(writer, item, shown, asked.o, len(texts) + at) for at, item in enumerate(found)]
        results += found
        if complaint is not None:
            break
    return "".join(texts).encode("utf-8", "surrogatepass"), results, complaint


def _results(run: Run, value: Json) -> tuple[list[Json], str | None]:
    results: list[Json] = []
    try:
        for result in run(None, value):
            results.append(result)
            checkpoint()
    except JqError as error:
        return results, f"Error: {values.to_text(error.value)}\n"
    except (JqBreak, Halt, RecursionError):
        return results, ""
    return results, None


def _render(writer: YamlWriter, value: Json, form: str, o: JqOptions, number: int) -> str:
    if isinstance(value, str) and (o.raw_output or form == "yaml"):
        return value + "\n"
    if form == "props":
        return "".join(f"{name} = {values.to_text(item)}\n" for name, item in _leaves(value, ""))
    if form in ("csv", "tsv"):
        return _table(value, "," if form == "csv" else "\t")
    if form == "json":
        return (values.dumps(value) if o.compact else values.pretty(value, "  ")) + "\n"
    if isinstance(value, (dict, list)) and value:
        return ("---\n" if number else "") + writer.text(value)
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
