"""`.gitignore` rules: decide which paths are ignored; the last matching pattern wins."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rule:
    match: re.Pattern[str]
    ignores: bool
    directories_only: bool


@functools.lru_cache(maxsize=4096)
def glob_regex(glob: str, anywhere: bool = True) -> re.Pattern[str]:
    """Compile a glob over slash-separated paths: `*` and `?` stop at slashes, `**` does not."""
    out: list[str] = []
    at, depth = 0, 0
    while at < len(glob):
        char = glob[at]
        if glob.startswith("**/", at) and (at == 0 or glob[at - 1] == "/"):
            out.append("(?:.*/)?")
            at += 3
            continue
        if glob.startswith("/**", at) and at + 3 == len(glob):
            out.append("/.*")
            at += 3
            continue
        if char == "*":
            out.append(".*" if glob.startswith("**", at) else "[^/]*")
            at += 2 if glob.startswith("**", at) else 1
            continue
        if char == "?":
            out.append("[^/]")
        elif char == "[":
            close = glob.find("]", at + 2)
            if close < 0:
                out.append("\\[")
            else:
                inner = glob[at + 1 : close]
                inner = "^" + inner[1:] if inner[0] in "!^" else inner
                out.append("[" + inner.replace("\\", "\\\\") + "]")
                at = close
        elif char == "\\" and at + 1 < len(glob):
            at += 1
            out.append(re.escape(glob[at]))
        elif char == "{":
            depth += 1
            out.append("(?:")
        elif char == "}" and depth:
            depth -= 1
            out.append(")")
        elif char == "," and depth:
            out.append("|")
        else:
            out.append(re.escape(char))
        at += 1
    out.extend(")" for _ in range(depth))
    prefix = "(?:.*/)?" if anywhere else ""
    return re.compile(prefix + "".join(out), re.DOTALL)


def parse(text: str, base: str) -> list[Rule]:
    """Parse an ignore file of directory `base` (empty, or ending in a slash)."""
    rules: list[Rule] = []
    for line in text.split("\n"):
        line = line.rstrip("\r")
        line = line.rstrip(" ") if not line.endswith("\\ ") else line
        if not line or line.startswith("#"):
            continue
        ignores = not line.startswith("!")
        pattern = line if ignores else line[1:]
        only_directories = pattern.endswith("/")
        pattern = pattern.rstrip("/")
        anchored = "/" in pattern
        pattern = pattern.removeprefix("/")
        if not pattern:
            continue
        found = glob_regex(pattern, not anchored)
        rules.append(Rule(re.compile(re.escape(base) + f"(?:{found.pattern})", re.DOTALL), ignores, only_directories))
    return rules


def ignored(rules: list[Rule], path: str, directory: bool) -> bool:
    """Return whether the rules ignore the path."""
    for rule in reversed(rules):
        if rule.directories_only and not directory:
            continue
        if rule.match.fullmatch(path):
            return rule.ignores
    return False
