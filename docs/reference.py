"""The Python reference: every public name with its typed signature, its docstring and an example that runs.

Signatures and docstrings are read from the source by griffe; the examples are the scripts in `snippets/`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

import griffe

import ramet
from ramet.workspace.config.resources import BACKENDS
from ramet.workspace.stored.reference import StoredWorkspaceRef
from ramet.workspace.stored.workspace import StoredWorkspace

HERE = Path(__file__).parent
SNIPPETS = HERE / "snippets"
WIDTH = 100

GROUPS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "workspace": ("Workspaces", "A live file tree with a shell, and what goes into it.",
                  ("Workspace", "SyncWorkspace", "IOResult", "CommandFailed", "Settings", "Limits", "MountMode",
                   "Policy", "load_config")),
    "programs": ("Programs and the network", "Real programs in a box, and the hosts that commands may reach. "
                 "`pip install 'ramet[native]'` brings the box, `pip install 'ramet[http]'` `curl` and `wget`.",
                 ("Native", "NativeLimits", "Network", "Trial")),
    "store": ("The store", "Workspaces that last: revisions, forks, merges, and what is kept for how long.",
              ("Store", "OpenOptions", "CommitPolicy", "Revision", "Tag", "BlameLine", "Retention")),
    "record": ("The record", "Who changed what, by which command.", ("Record", "RecordFilter")),
    "agents": ("Agents and servers", "Sandboxes of agents, and the store of a server.", ("AgentRun", "connect")),
    "errors": ("Errors and values", "What calls raise, and what several of them return.",
               ("RametError", "LimitExceeded", "Stat")),
}  # fmt: skip
"""Pages with their title, their first sentence and the names on them; backends have a page in addition."""
RETURNED = {
    "Store": (("store[NAME]", StoredWorkspaceRef, ()), ("store.open(NAME)", StoredWorkspace, (ramet.Workspace,)))
}
"""What a name returns, with methods that are its own: heading, class, and the bases that have a page."""


@cache
def source(module: str) -> griffe.Module:
    """A module as griffe reads it, without importing the rest of the package."""
    path = Path(inspect.getsourcefile(__import__(module, fromlist=["_"])) or "")
    return griffe.visit(module, path, path.read_text())


def read(value: Any) -> Any:
    """What griffe knows of a class or function."""
    return source(value.__module__)[value.__qualname__]


def docstring(value: Any) -> str:
    found = value.docstring.value if value.docstring is not None else ""
    return re.sub(r"(?m)^ {8}", "    ", inspect.cleandoc(found))


def signature(name: str, function: Any) -> str:
    """A typed signature in a code block, with one parameter per line where it is long."""
    given = [one for one in function.parameters if one.name not in ("self", "cls")]
    parts, keyword = [], False
    for one in given:
        kind = one.kind.value if one.kind else ""
        if kind == "keyword-only" and not keyword:
            parts.append("*")
        keyword = keyword or kind in ("keyword-only", "variadic positional")
        star = {"variadic positional": "*", "variadic keyword": "**"}.get(kind, "")
        hint = f": {one.annotation}" if one.annotation is not None else ""
        shown = one.default is not None and not star
        default = "" if not shown else f" = {one.default}" if hint else f"={one.default}"
        parts.append(f"{star}{one.name}{hint}{default}")
    returns = f" -> {function.returns}" if getattr(function, "returns", None) not in (None, "None") else ""
    line = f"{name}({', '.join(parts)}){returns}"
    if len(line) <= WIDTH:
        return line
    return f"{name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){returns}"


def _default(field: Any) -> str:
    value = str(field.value) if field.value is not None else ""
    return "" if not value else " = ..." if "field(" in value else f" = {value}"


def constructor(value: Any, found: Any) -> str:
    """The call that makes an instance: of `__init__`, or of the fields of a dataclass."""
    if "__init__" in found.members:
        return signature(found.name, found["__init__"])
    fields = [one for one in found.attributes.values() if "instance-attribute" in one.labels and one.annotation]
    if not hasattr(value, "__dataclass_fields__"):
        return ""
    known = value.__dataclass_fields__
    chosen = [one for one in fields if one.name in known and known[one.name].init and one.name[0] != "_"]
    parts = [f"{one.name}: {one.annotation}{_default(one)}" for one in chosen]
    line = f"{found.name}({', '.join(parts)})"
    return line if len(line) <= WIDTH else f"{found.name}(\n" + "".join(f"    {part},\n" for part in parts) + ")"


def snippet(name: str) -> str:
    stem = re.sub(r"(Resource|Config)$", "", name) or name
    path = SNIPPETS / f"example_{stem.lower()}.py"
    return f"```python\n{path.read_text()}```\n"


def cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|").strip()


def fields(value: Any) -> Iterator[str]:
    """The documented fields and properties of a class, as rows of a table."""
    seen: set[str] = set()
    for base in value.__mro__[:-1]:
        if not base.__module__.startswith("ramet"):
            continue
        for name, one in read(base).members.items():
            is_property = one.is_attribute and "property" in one.labels
            is_field = one.is_attribute and one.annotation and not str(one.annotation).startswith("ClassVar")
            if name.startswith("_") or name in seen or not (is_property or is_field):
                continue
            seen.add(name)
            if docstring(one):
                yield f"| `{name}` | `{cell(str(one.annotation))}` | {cell(docstring(one))} |"


def methods(value: Any, bases: tuple[type, ...] = ()) -> Iterator[tuple[str, Any]]:
    inherited = {name for base in bases for name in dir(base)}
    for name in sorted(dir(value)):
        owner = next(base for base in value.__mro__ if name in vars(base) or base is object)
        if name.startswith("_") or not owner.__module__.startswith("ramet"):
            continue
        if name in inherited and name not in vars(value):
            continue
        found = read(owner).members.get(name)
        if found is not None and found.is_function and docstring(found):
            yield name, found


def described(
    heading: str, value: Any, example: str = "", bases: tuple[type, ...] = (), *, whole: bool = True
) -> list[str]:
    """A section: how to make it, what it is, an example; as a whole also its fields and methods."""
    found = read(value)
    made = signature(found.name, found) if found.is_function else constructor(value, found)
    lines = [f"## {heading}\n"]
    if made and not bases and heading.isidentifier():
        lines.append(f"```py\n{made}\n```\n")
    lines.append(docstring(found) + "\n")
    if found.is_class and "__init__" in found.members and (said := docstring(found["__init__"])):
        lines.append(said + "\n")
    lines += [example] if example else []
    if inspect.isclass(value) and issubclass(value, Enum):
        lines.append(f"Values: {', '.join(f'`{heading}.{one.name}`' for one in value)}.\n")
    if found.is_function or not whole:
        return lines
    if rows := list(fields(value)):
        lines += ["| field | type | meaning |", "|---|---|---|", *rows, ""]
    for name, one in () if heading.endswith("Config") else methods(value, bases):
        start = "await " if "async" in one.labels else ""
        lines += [f"### {found.name}.{name}\n", f"```py\n{start}{signature(name, one)}\n```\n", docstring(one) + "\n"]
    return lines


def group_page(key: str, note: str) -> str:
    title, said, names = GROUPS[key]
    lines = [f"# {title}\n", note, f"{said} [All public names](../python.md)\n"]
    for name in names:
        value = getattr(ramet, name)
        lines += described(name, value, snippet(name))
        for heading, kind, bases in RETURNED.get(name, ()):
            lines += described(heading, kind, bases=bases)
    return "\n".join(lines)


def backends() -> list[str]:
    placed = {name for _, _, names in GROUPS.values() for name in names} | {"__version__"}
    return sorted(set(ramet.__all__) - placed)


def backends_page(note: str) -> str:
    """Resources with their configurations, each pair with one example."""
    lines = ["# Backends\n", note]
    lines.append(
        "What can be mounted; [the table of backends](../backends.md) says what each needs and can do."
        " All have the ten verbs of a [resource](../writing-a-backend.md).\n"
    )
    names = backends()
    for name in names:
        if not name.endswith("Resource"):
            continue
        lines += described(name, getattr(ramet, name), snippet(name), whole=False)
        if extra := BACKENDS[settings_name(name)].extra:
            lines.append(f"Needs `pip install 'ramet[{extra}]'`.\n")
        config = name.removesuffix("Resource") + "Config"
        if config in names:
            lines += described(config, getattr(ramet, config))
    return "\n".join(lines)


def settings_name(resource: str) -> str:
    """The name of a resource in configuration files: `gsheets` for GoogleSheetsResource."""
    return resource.removesuffix("Resource").replace("CI", "_ci").replace("Google", "g").lower()


def anchor(name: str) -> str:
    return re.sub(r"[^\w-]", "", name.lower())


def index_page(note: str) -> str:
    lines = ["# Python reference\n", note, "Every public name of `ramet`, with an example that runs as a test.\n"]
    lines.append("A client's store and workspaces (`ramet.connect`) have the same methods; [which](surfaces.md).\n")
    pages = [*((title, f"python/{key}.md", names) for key, (title, _, names) in GROUPS.items())]
    pages.append(("Backends", "python/backends.md", tuple(backends())))
    for title, page, names in pages:
        lines += [f"## {title}\n", "| name | what it is |", "|---|---|"]
        for name in names:
            first = cell(docstring(read(getattr(ramet, name))).partition("\n\n")[0])
            lines.append(f"| [`{name}`]({page}#{anchor(name)}) | {first} |")
        lines.append("")
    return "\n".join(lines)
