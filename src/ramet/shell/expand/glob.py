"""Pathname expansion (globbing): names in the tree that match a pattern, sorted by code point."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache, partial
from typing import Final

from ramet.concurrency.offload import interruptible, offload_large
from ramet.concurrency.sizes import BATCH, LONG_SCRIPT, MANY
from ramet.core import ops
from ramet.core.fs import FileSystem
from ramet.core.limits import Budget
from ramet.core.paths import TEXT_MAX, Path
from ramet.core.stat import Kind, Stat
from ramet.shell.expand.c_locale import as_bytes
from ramet.shell.expand.errors import LineError
from ramet.shell.expand.word.fields import ACTIVE, GlobWord
from ramet.text.pattern.matcher import compile_pattern

_PLAIN_ACTIVE: Final = re.compile(r"[*?]|\A[^\[]*+\[.+\]", re.DOTALL).search
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)


async def expand(
    fs: FileSystem,
    cwd: Path,
    fields: Sequence[str],
    shopts: Collection[str],
    ignore: str | None,
    budget: Budget,
    bytewise: bool = False,
) -> list[str]:
    """Replace every `GlobWord` among the fields by the names it matches; `bytewise` in the C locale."""
    out: list[str] = []
    for place, field in enumerate(fields):
        if not place % BATCH:
            await budget.yield_turn()
        if not isinstance(field, GlobWord):
            out.append(field)
            continue
        if not _is_pattern(field.pattern, shopts):
            out.append(str(field))
            continue
        await budget.yield_turn()
        walker = _Walker(fs, cwd, shopts, bool(ignore), budget)
        walker.bytewise = bytewise
        found = await _matches(walker, field.pattern)
        if ignore:
            found = await _not_ignored(found, ignore, shopts, walker)
        if found:
            out += found
        elif "failglob" in shopts:
            raise LineError(f"no match: {field}")
        elif "nullglob" not in shopts:
            out.append(str(field))
        if len(out) > budget.limits.expansion_words:
            raise budget.exceeded("expansion_words", "glob")
    return out


def _is_pattern(pattern: str, shopts: Collection[str]) -> bool:
    return ACTIVE(pattern) is not None and ("extglob" in shopts or _PLAIN_ACTIVE(pattern) is not None)


async def _not_ignored(names: list[str], ignore: str, shopts: Collection[str], walker: _Walker) -> list[str]:
    """Return the names that GLOBIGNORE leaves."""
    extglob, nocase = "extglob" in shopts, "nocaseglob" in shopts
    texts, patterns = await offload_large(
        walker.budget, len(ignore), partial(_ignored, ignore, extglob, nocase), LONG_SCRIPT
    )

    def keep() -> list[str]:
        return [
            name
            for name in interruptible(names)
            if name not in texts
            and name.rsplit("/", 1)[-1] not in (".", "..")
            and not any(means(name) for means in patterns)
        ]

    return await offload_large(walker.budget, len(names) * len(patterns), keep, BATCH)


@lru_cache(maxsize=16)
def _ignored(ignore: str, extglob: bool, nocase: bool) -> tuple[Collection[str], Collection[Callable[[str], bool]]]:
    """Return the plain names in GLOBIGNORE, and a test for each of its patterns."""
    texts: set[str] = set()
    patterns: dict[str, Callable[[str], bool]] = {}
    for one in interruptible(ignore.split(":")):
        if one and one not in texts and one not in patterns and len(one) < TEXT_MAX:
            pattern = compile_pattern(one, extglob, nocase)
            if pattern.literal is None or nocase:
                patterns[one] = pattern.matches if extglob and "(" in one else _by_parts(one, nocase)
            else:
                texts.add(pattern.literal)
    return texts, patterns.values()


def _by_parts(source: str, nocase: bool) -> Callable[[str], bool]:
    """Return the test for a pattern of GLOBIGNORE, in which only a star at the end matches a slash."""
    patterns = [compile_pattern(part, nocase=nocase) for part in source.split("/")]
    deeper = source.endswith("*") and not source.endswith("\\*")

    def means(name: str) -> bool:
        parts = name.split("/")
        if len(parts) < len(patterns) or (len(parts) > len(patterns) and not deeper):
            return False
        return all(pattern.matches(part) for pattern, part in zip(patterns, parts, strict=False))

    return means


def split_components(pattern: str) -> list[str]:
    """The pattern cut at its slashes (one inside an extended group or bracket does not count as a cut)."""
    parts: list[str] = []
    current: list[str] = []
    depth = i = 0
    while i < len(pattern):
        char = pattern[i]
        if char == "\\" and i + 1 < len(pattern):
            current.append(pattern[i : i + 2])
            i += 2
            continue
        if char == "(" and i and pattern[i - 1] in "@!+?*":
            depth += 1
        elif char == ")" and depth:
            depth -= 1
        if char == "/" and not depth:
            parts.append("".join(current))
            current = []
        else:
            current.append(char)
        i += 1
    parts.append("".join(current))
    return parts


async def _matches(walker: _Walker, pattern: str) -> list[str]:
    parts = await offload_large(walker.budget, len(pattern), partial(split_components, pattern), LONG_SCRIPT)
    found: list[str] = [""]
    separator, globbed = "", False
    for number, part in enumerate(parts):
        last = number == len(parts) - 1
        if not part and not last:
            separator += "" if globbed else "/"  # behind what was matched one slash is as good as many
            continue
        deep = part == "**" and walker.globstar
        if deep and not last and parts[number + 1] == "**":
            globbed = True
            continue  # as many as there are, they stand for the same
        prefixes = [prefix + separator for prefix in found]
        if deep:
            links = bool(prefixes[0]) or parts[number + 1 :] == [""]  # where the pattern begins it does not see them
            found = await walker.deep(prefixes, last, globbed, links)
        else:
            found = await walker.step(prefixes, part, last)
        globbed = globbed or bool(ACTIVE(part))
        separator = "" if deep else "/"
        if not found:
            return []
    return await offload_large(walker.budget, len(found), lambda: sorted(found), MANY)


class _Walker:
    def __init__(self, fs: FileSystem, cwd: Path, shopts: Collection[str], dots: bool, budget: Budget) -> None:
        self.fs, self.cwd, self.budget = fs, cwd, budget
        self.extglob = "extglob" in shopts
        self.nocase = "nocaseglob" in shopts
        self.dotglob = "dotglob" in shopts or dots
        self.globstar = "globstar" in shopts
        self.skipdots = "globskipdots" in shopts
        self.bytewise = False

    async def step(self, prefixes: list[str], part: str, last: bool) -> list[str]:
        """Each prefix extended by what one component matches."""
        if not part:
            return [prefix for prefix in prefixes if prefix.strip("/")]
        if not ACTIVE(part):
            name = _ESCAPE.sub(r"\1", part)
            return await self._named(prefixes, name, last)
        make = partial(compile_pattern, as_bytes(part) if self.bytewise else part, self.extglob, self.nocase)
        pattern = await offload_large(self.budget, len(part), make, LONG_SCRIPT)
        out: list[str] = []
        for prefix in prefixes:
            await self.budget.yield_turn()
            for place, (name, stat) in enumerate(await self._scan(prefix), 1):
                if not place % BATCH:
                    await self.budget.yield_turn()
                text = as_bytes(name) if self.bytewise else name
                if pattern.component(text, self.dotglob) and (last or await self._is_dir(prefix, name, stat)):
                    out.append(_join(prefix, name))
            if not self.skipdots and part.startswith("."):
                out += [_join(prefix, dot) for dot in (".", "..") if pattern.matches(dot)]
        return out

    async def _named(self, prefixes: list[str], name: str, last: bool) -> list[str]:
        out: list[str] = []
        for prefix in prefixes:
            await self.budget.yield_turn()
            joined = _join(prefix, name)
            try:
                stat = await self.fs.stat(self.fs.named(joined, self.cwd), follow=not last)
            except OSError:
                continue
            if last or stat.is_dir:
                out.append(joined)
        return out

    async def deep(self, prefixes: list[str], last: bool, globbed: bool, links: bool) -> list[str]:
        """`**`: each prefix, which may be `globbed` itself, extended by the directories at any depth (with a separator
        behind them), and with `last` by files too."""
        out: list[str] = []
        for prefix in prefixes:
            out += await self._deep(prefix, last, globbed, links)
        return out

    async def _deep(self, prefix: str, last: bool, globbed: bool, links: bool) -> list[str]:
        out: list[str] = []
        if not last:
            out.append(prefix)
        elif prefix.strip("/"):
            out.append(prefix.rstrip("/") if globbed else prefix)  # a name as it was found, or as it was written
        pending = [prefix]
        while pending:
            here = pending.pop()
            await self.budget.yield_turn()
            for place, (name, stat) in enumerate(await self._scan(here), 1):
                if not place % BATCH:
                    await self.budget.yield_turn()
                if name.startswith(".") and not self.dotglob:
                    continue
                joined = here + name
                if stat.kind is Kind.DIR:
                    pending.append(joined + "/")
                    out.append(joined if last else joined + "/")
                elif last:
                    out.append(joined)
                elif links and await self._is_dir(here, name, stat):
                    out.append(joined + "/")  # and no deeper than that
            if len(out) > self.budget.limits.expansion_words:
                raise self.budget.exceeded("expansion_words", "glob")
        return out

    async def _scan(self, prefix: str) -> list[tuple[str, Stat]]:
        try:
            path = self.fs.named(prefix, self.cwd) if prefix else self.cwd
            return await ops.entries(self.fs, path)
        except OSError:
            return []

    async def _is_dir(self, prefix: str, name: str, stat: Stat) -> bool:
        if stat.kind is Kind.LINK:
            try:
                stat = await self.fs.stat(self.fs.named(_join(prefix, name), self.cwd), follow=True)
            except OSError:
                return False
        return stat.kind is Kind.DIR


def _join(prefix: str, name: str) -> str:
    """A name behind a prefix, which ends in its own separator."""
    return prefix + name
