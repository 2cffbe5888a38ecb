"""jq's modules: search path, lookup and metadata."""

from __future__ import annotations

from ramet.commands.data.jq.parser import Node, parse
from ramet.commands.data.jq.values import CompileError, Json, decoder
from ramet.commands.framework.inputs import slurp
from ramet.core.proc import Proc

_MOST = 500
"""Most modules that `modulemeta` describes."""


class Modules:
    def __init__(self, proc: Proc, libraries: list[str]) -> None:
        self._proc, self._libraries = proc, libraries

    def bases(self, meta: Node | None, origin: str) -> list[str]:
        """Return the directories that an import looks at: those that it names, or else all that modules may be in."""
        search = _constant(meta) if meta is not None else None
        given = search.get("search") if isinstance(search, dict) else None
        if given is None:
            return [".", *self._libraries]
        words = given if isinstance(given, list) else [given]
        return [f"{origin}/{word}" if origin and not str(word).startswith("/") else str(word) for word in words]

    async def text(self, path: str, suffix: str, bases: list[str]) -> tuple[str, str]:
        """Return the text of a module, and the directory that it is in."""
        name = path.rsplit("/", 1)[-1]
        for base in bases:
            for candidate in (f"{base}/{path}{suffix}", f"{base}/{path}/{name}{suffix}"):
                try:
                    data = await slurp(self._proc, candidate)
                except OSError:
                    continue
                return data.decode("utf-8", "replace"), candidate.rpartition("/")[0]
        raise CompileError(f"module not found: {path}\n")

    async def described(self) -> dict[str, Json]:
        """Return what each module says of itself, by the name that it is imported by."""
        found: dict[str, Json] = {}
        for base in (".", *self._libraries):
            for name in await self._names(base, ""):
                if name not in found and len(found) < _MOST:
                    try:
                        text, _ = await self.text(name, ".jq", [base])
                        found[name] = _described(parse(text))
                    except CompileError:
                        continue
        return found

    async def _names(self, base: str, below: str) -> list[str]:
        path = self._proc.path(f"{base}/{below}" if below else base)
        names: list[str] = []
        try:
            entries = [entry async for entry in self._proc.fs.scan(path)]
        except OSError:
            return []
        for name, stat in entries:
            if name.endswith(".jq"):
                names.append(below + name.removesuffix(".jq"))
                if below.rstrip("/") == name.removesuffix(".jq"):
                    names.append(below.rstrip("/"))
            elif stat.is_dir and not below:
                names += await self._names(base, f"{name}/")
        return names


def _described(tree: Node) -> Json:
    meta = _constant(tree[4]) if tree[4] is not None else {}
    about: dict[str, Json] = dict(meta) if isinstance(meta, dict) else {}
    deps: list[Json] = []
    for _, path, alias, given in tree[1]:
        extra = _constant(given) if given is not None else {}
        row: dict[str, Json] = dict(extra) if isinstance(extra, dict) else {}
        if alias is not None:
            row["as"] = alias.removeprefix("$")
        row |= {"is_data": alias is not None and alias.startswith("$"), "relpath": path}
        deps.append(row)
    return {**about, "deps": deps, "defs": [f"{definition[1]}/{len(definition[2])}" for definition in tree[2]]}


def _constant(node: Node) -> Json:
    """Return the value of a constant; None where it is none."""
    kind = node[0]
    if kind == "literal":
        return node[1]
    if kind == "number":
        return decoder.decode(node[1])
    if kind == "collect":
        return [] if node[1] is None else _items(node[1])
    if kind == "object":
        return {_constant(key): _constant(value) for key, value in node[1]}
    return None


def _items(node: Node) -> list[Json]:
    return [*_items(node[1]), *_items(node[2])] if node[0] == "comma" else [_constant(node)]
