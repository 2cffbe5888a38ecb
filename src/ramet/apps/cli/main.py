"""The `ramet` command: workspaces of a store, from a terminal.

Tables, or JSON with `--json` or `RAMET_OUTPUT=json`. Exit codes: 0 ok, 1 error, 2 usage, 3 not found, 4 busy or
conflict, 124 timeout; `exec` returns the command's own status. `verb_table.py` lists all verbs. Only the requested
verb is imported, and `ramet --help` imports none, so that the command starts fast.
"""

from __future__ import annotations

import os
import sys
from typing import Final, NamedTuple

from ramet.apps.cli.entry import resume_gc
from ramet.apps.cli.verb_table import Verb, find, near

BEFORE: Final = {"--store": "WHERE", "--namespace": "NAMESPACE", "-n": "NAMESPACE"}
"""Options before the verb, and the names of their values."""
COMPLETION: Final = ("--install-completion", "--show-completion")


class Invocation(NamedTuple):
    """Options before the verb, and the words from the verb on."""

    words: list[str]
    store: str | None = None
    namespace: str | None = None

    def before(self, as_json: bool = False) -> dict[str, str]:
        """Return the values of options given before the verb."""
        if self.store is None and self.namespace is None:
            return {}
        from ramet.apps.cli.errors import report_errors
        from ramet.apps.cli.stores import HOME, namespace_of

        store = (os.environ.get("RAMET_HOME") if self.store is None else self.store) or HOME
        if self.namespace is not None:
            with report_errors(as_json):
                store = namespace_of(store, self.namespace)
        return {"store": store}


def main() -> None:
    """Run the command line; ends with `SystemExit`. `entry` is the process around it."""
    sys.exit(run(sys.argv[1:]))


def run(words: list[str]) -> int:
    """Run a command line and return its status. Errors of a verb raise `SystemExit`."""
    if "_RAMET_COMPLETE" in os.environ:
        from ramet.apps.cli.completion import answer

        return answer(os.environ["_RAMET_COMPLETE"], os.environ.get("_RAMET_LINE", ""))
    invocation = split(words)
    before = invocation.before(_wants_json(words))
    words = invocation.words
    if words[:1] == ["help"] and len(words) > 1:
        words = [*words[1:], "--help"]
    first = words[0] if words else ""
    if first in ("", "--help", "-h", "help") and len(words) < 2:
        from ramet.apps.cli.help import print_help

        print_help(None)
        return 0 if words else 2
    if first == "--version":
        words = ["version"]
    if first.partition("=")[0] in COMPLETION:
        from ramet.apps.cli.completion import run_option

        return run_option(words)
    verb = find(words[0])
    if verb is None:
        print(f"ramet: {_unknown(first)}", file=sys.stderr)
        return 2
    return _call(verb, words[1:], before)


def split(words: list[str]) -> Invocation:
    """Split off the options before the verb, and `ws`: `ramet ws log x` is `ramet log x`."""
    found: dict[str, str] = {}
    while words and words[0].partition("=")[0] in BEFORE:
        option, equals, value = words[0].partition("=")
        if not equals and len(words) < 2:
            break
        value, words = (value, words[1:]) if equals else (words[1], words[2:])
        found["store" if option == "--store" else "namespace"] = value
    return Invocation(words[1:] if words[:1] == ["ws"] else words, **found)


def _wants_json(words: list[str]) -> bool:
    return "--json" in words or os.environ.get("RAMET_OUTPUT") == "json"


def _call(verb: Verb, words: list[str], before: dict[str, str]) -> int:
    asked = words[: words.index("--")] if "--" in words else words
    wanted = "--help" in asked or "-h" in asked
    if wanted or (verb.verbs and not words):
        from ramet.apps.cli.help import print_help

        name = next((word for word in asked if word not in ("--help", "-h")), "")
        print_help(verb, next((one for one in verb.verbs if one.name == name), None))
        return 0 if wanted else 2
    from ramet.apps.cli.parser import UsageError, parse

    try:
        inner, path = _inner(verb, words) if verb.verbs else (verb, "ramet")
        command = inner.command(path)
        rest = words[1:] if verb.verbs and words[0] == inner.name else words
        values = parse(command, rest, before, os.environ)
    except UsageError as error:
        from ramet.apps.cli.errors import complain

        complain(error.cause, error.remedy, as_json=_wants_json(asked))
        return 2
    if not verb.imports_late:
        resume_gc()
    from ramet.apps.cli.errors import report_errors

    with report_errors(_wants_json(words)):
        return command.function(**values) or 0
    raise AssertionError("errors end the program")


def _inner(verb: Verb, words: list[str]) -> tuple[Verb, str]:
    """Find the verb within `keys` or `config`, and its path."""
    from ramet.apps.cli.parser import UsageError, more, nearest

    name, path = words[0], f"ramet {verb.name}"
    found = next((one for one in verb.verbs if one.name == name), None)
    if found is not None:
        return found, path
    if name.startswith("-") and len(name) > 1:
        flag = name.partition("=")[0] if name.startswith("--") else name[:2]
        raise UsageError(f"{verb.name} has no option {flag}", more(path))
    known = [one.name for one in verb.verbs]
    if verb.fallback:
        return next(one for one in verb.verbs if one.name == verb.fallback), path
    raise UsageError(f"{verb.name} has no {name!r}", nearest(name, known) or f"use one of {', '.join(known)}")


def _unknown(word: str) -> str:
    """Explain why a line cannot begin with this word, and what to write."""
    if word in BEFORE:
        return f"{word} needs a value\n       write ramet {word} {BEFORE[word]} VERB"
    if word.startswith("-"):
        return f"no option {word} before a verb\n       write ramet VERB {word}; see `ramet VERB --help`"
    meant = near(word)
    hint = f"did you mean {' or '.join(meant)}?" if meant else "see `ramet --help`"
    return f"no verb {word!r}\n       {hint}"
