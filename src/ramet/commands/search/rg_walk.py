"""Walk a tree for rg: files in order, without hidden, ignored and filtered ones."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from operator import itemgetter

from ramet.commands.framework.command import UsageError
from ramet.commands.framework.inputs import slurp
from ramet.commands.search.gitignore import Rule, glob_regex, ignored, parse
from ramet.commands.search.rg_options import TYPES, RgOptions
from ramet.core import ops
from ramet.core.paths import Path
from ramet.core.proc import Proc
from ramet.core.stat import Kind


class Walk:
    """`fail` reports unreadable directories."""

    def __init__(self, proc: Proc, o: RgOptions, fail: Callable[[str, OSError], None]) -> None:
        self.proc, self.o, self.fail = proc, o, fail
        self.hidden = o.hidden or o.unrestricted >= 2
        self.no_ignore = o.no_ignore or o.unrestricted >= 1
        self.globs = [
            self.glob(str(stored), name == "iglobs" or o.globs_fold)
            for name, stored in o.order
            if name in ("globs", "iglobs")
        ]
        known = dict(TYPES)
        for option, stored in o.order:
            if option == "type_clear":
                known.pop(str(stored), None)
            elif option == "type_add":
                name, colon, glob = str(stored).partition(":")
                if not colon or not name.isalnum():
                    raise UsageError("invalid definition (format is type:glob, e.g., html:*.html)", 2, hint=False)
                known[name] = f"{known.get(name, '')} {glob}".strip()
        self.types = [_type_globs(known, name) for name in o.types]
        self.types_not = [_type_globs(known, name) for name in o.types_not]

    def glob(self, glob: str, icase: bool) -> tuple[bool, Callable[[str], object]]:
        wanted = not glob.startswith("!")
        pattern = glob if wanted else glob[1:]
        anchored = "/" in pattern.rstrip("/")
        text = pattern.removeprefix("/").rstrip("/")
        found = glob_regex(text.lower() if icase else text, not anchored)
        return wanted, ((lambda name: found.fullmatch(name.lower())) if icase else found.fullmatch)

    async def below(self, top: Path, prefix: str) -> AsyncIterator[tuple[Path, str]]:
        """Yield the files below a directory in order, without hidden and ignored ones."""
        fs = self.proc.fs
        rules = [] if self.no_ignore or self.o.no_ignore_parent else await self.parent_rules(top)
        for name in () if self.o.no_ignore_files else self.o.ignore_files:
            rules += parse((await slurp(self.proc, name)).decode("utf-8", "surrogateescape"), str(self.proc.cwd))
        pending: list[tuple[Path, str, int, list[Rule] | None]] = [(top, prefix, 1, rules)]
        while pending:
            place, shown, depth, known = pending.pop()
            if known is None:
                yield place, shown
                continue
            try:
                entries = sorted(await ops.kinds(fs, place), key=itemgetter(0))
            except OSError as error:
                self.fail(shown or ".", error)
                continue
            if not self.no_ignore:
                known = known + await self.rules_in(place, {name for name, _ in entries})
            below: list[tuple[Path, str, int, list[Rule] | None]] = []
            for name, stat in entries:
                path, kind = place / name, stat.kind
                if kind is Kind.LINK and self.o.follow:
                    try:
                        kind = (await fs.stat(path, follow=True)).kind
                    except OSError as error:
                        self.fail(shown + name, error)
                        continue
                if kind not in (Kind.FILE, Kind.DIR):
                    continue
                relative = str(path)[len(str(top)) :].lstrip("/")
                chosen = self.chosen(relative, name, kind is Kind.DIR)
                if chosen is False or (chosen is None and self.left_out(known, path, name, kind is Kind.DIR)):
                    continue
                if kind is Kind.DIR:
                    if self.o.max_depth is None or depth < self.o.max_depth:
                        below.append((path, f"{shown}{name}/", depth + 1, known))
                elif (chosen is not None or not any(wanted for wanted, _ in self.globs)) and self.typed(name):
                    below.append((path, shown + name, depth, None))
            pending.extend(reversed(below))

    def chosen(self, relative: str, name: str, directory: bool) -> bool | None:
        """Return the verdict of -g on a path: the last matching glob; directories can only be excluded."""
        for wanted, match in reversed(self.globs):
            if match(relative):
                return None if directory and wanted else wanted
        return None

    def left_out(self, rules: list[Rule], path: Path, name: str, directory: bool) -> bool:
        if name.startswith(".") and not self.hidden:
            return True
        return bool(rules) and ignored(rules, str(path), directory)

    def typed(self, name: str) -> bool:
        if any(match.fullmatch(name) for globs in self.types_not for match in globs):
            return False
        return not self.types or any(match.fullmatch(name) for globs in self.types for match in globs)

    async def parent_rules(self, top: Path) -> list[Rule]:
        rules: list[Rule] = []
        chain: list[Path] = []
        current = top
        while current.name:
            current = current.parent
            chain.append(current)
        for directory in reversed(chain):
            rules += await self.rules_in(directory, None)
        return rules

    async def rules_in(self, directory: Path, names: set[str] | None) -> list[Rule]:
        rules: list[Rule] = []
        base = str(directory).rstrip("/") + "/"
        for name in (".gitignore", ".ignore", ".rgignore"):
            if names is not None and name not in names:
                continue
            if self.o.no_ignore_vcs if name == ".gitignore" else self.o.no_ignore_dot:
                continue
            if name == ".gitignore" and not (self.o.no_require_git or await self.in_repository(directory)):
                continue
            try:
                data = await ops.read_bytes(self.proc.fs, directory / name)
            except OSError:
                continue
            rules += parse(data.decode("utf-8", "surrogateescape"), base)
        return rules

    async def in_repository(self, directory: Path) -> bool:
        current = directory
        while True:
            if await ops.exists(self.proc.fs, current / ".git"):
                return True
            if not current.name:
                return False
            current = current.parent


def _type_globs(known: dict[str, str], name: str) -> list[re.Pattern[str]]:
    if name == "all":
        return [glob_regex(glob, False) for globs in known.values() for glob in globs.split()]
    if name not in known:
        raise UsageError(f"unrecognized file type: {name}", 2, hint=False)
    return [glob_regex(glob, False) for glob in known[name].split()]
