"""The `ramet` command: workspaces of a store, from a terminal.

Tables on a terminal, JSON with `--json` or when piped. Exit codes: 0 ok, 1 error, 2 usage, 3 not found, 4 busy or
conflict, 124 timeout; `exec` passes the command's own status through. Only the verb that was asked for is imported,
and help for all of them needs none, so that the command answers at once; an ordinary `exec`, `ls`, `log` or `show` does
not even need a command line to be built. All verbs are in `verbs.py`.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Final

from ramet.apps.cli.entry import loaded
from ramet.apps.cli.verb_table import SHOWN, VERBS, Verb, find, help_text, near

if TYPE_CHECKING:
    import typer


BEFORE: Final = {"--store": "WHERE", "--namespace": "NAMESPACE", "-n": "NAMESPACE"}
"""Options that stand before the verb."""
COMPLETION: Final = ("--install-completion", "--show-completion")


def build(*only: Verb) -> typer.Typer:
    """The command line with all verbs, or with these alone."""
    import typer

    app = typer.Typer(name="ramet", no_args_is_help=True, rich_markup_mode="rich", pretty_exceptions_enable=False)

    @app.callback(help="Durable workspaces for agents: one file tree, a real shell, every state versioned.")
    def everything() -> None: ...

    for family, verbs in VERBS.items():
        for verb in verbs:
            if only and verb not in only:
                continue
            loaded = verb.load()
            if isinstance(loaded, typer.Typer):
                app.add_typer(loaded, name=verb.name, rich_help_panel=family, epilog=_epilog(verb))
            else:
                app.command(verb.name, rich_help_panel=family, epilog=_epilog(verb))(loaded)
    return app


def _epilog(verb: Verb) -> str | None:
    lines = SHOWN.get(verb.name)
    return None if lines is None else "\n\n".join(["Examples:", *(line.replace("[", "\\[") for line in lines)])


def __getattr__(name: str) -> Any:
    if name == "app":
        return build()
    raise AttributeError(name)


def main() -> None:
    """Do what the command line says; ends with `SystemExit`. `entry` is the process around it."""
    if "_RAMET_COMPLETE" in os.environ:
        _without_ws()
    words = sys.argv[1:] = _store_first(sys.argv[1:])
    if words[:1] == ["ws"]:
        words = sys.argv[1:] = words[1:]  # `ramet ws log x` is `ramet log x`
    if words[:1] == ["help"] and len(words) > 1:
        words = sys.argv[1:] = [*words[1:], "--help"]
    first = words[0] if words else ""
    if first in ("", "--help", "-h", "help") and len(words) < 2 and "_RAMET_COMPLETE" not in os.environ:
        sys.stdout.write(help_text(bold=sys.stdout.isatty() and "NO_COLOR" not in os.environ, width=_width()))
        sys.exit(0 if words else 2)
    if first == "--version":
        words = sys.argv[1:] = ["version"]
        first = "version"
    if first in ("exec", "run") and "_RAMET_COMPLETE" not in os.environ:
        from ramet.apps.cli.verbs.exec import run, understood

        line = understood(words[1:])
        if line is not None:
            sys.exit(run(line))
    if first in ("ls", "log", "show") and "_RAMET_COMPLETE" not in os.environ:
        from ramet.apps.cli import quick as glancing

        act = glancing.understood(first, words[1:])
        if act is not None:
            loaded()
            act()
            sys.exit(0)
    verb = find(first)
    if verb is not None and verb.name != first:
        words[0] = sys.argv[1] = verb.name
    if verb is not None and "_RAMET_COMPLETE" not in os.environ:
        from ramet.apps.cli.help import run as run_verb

        built = build(verb)
        loaded()
        run_verb(built, words)
    if first and verb is None and first.partition("=")[0] not in COMPLETION:
        print(f"ramet: {_unknown(first)}", file=sys.stderr)
        sys.exit(2)
    built = build()
    loaded()
    built(prog_name="ramet")


def _unknown(word: str) -> str:
    """What is wrong with a line that begins with this word, and what to do."""
    if word in BEFORE:
        return f"{word} needs a value\n       write ramet {word} {BEFORE[word]} VERB"
    if word.startswith("-"):
        return (
            f"there is no option {word} before a verb\n       write ramet VERB {word}; `ramet VERB --help` tells which"
        )
    meant = near(word)
    hint = f"did you mean {' or '.join(meant)}?" if meant else "`ramet --help` lists them all"
    return f"there is no verb {word!r}\n       {hint}"


def _store_first(words: list[str]) -> list[str]:
    """`ramet --store WHERE -n NAMESPACE VERB ...`: this is for any verb, so the store goes where all look for it."""
    namespace = None
    while words and words[0].partition("=")[0] in BEFORE:
        option, equals, value = words[0].partition("=")
        if not equals and len(words) < 2:
            break
        value, words = (value, words[1:]) if equals else (words[1], words[2:])
        if option == "--store":
            from ramet.apps.cli.verbs.exec import asked_before

            asked_before(os.environ.get("RAMET_HOME"))
            os.environ["RAMET_HOME"] = value
        else:
            namespace = value
    if namespace is not None:
        from ramet.apps.cli.errors import reported
        from ramet.apps.cli.verbs.exec import within

        with reported():
            os.environ["RAMET_HOME"] = within(namespace)
    return words


def _without_ws() -> None:
    """`ramet ws lo` completes as `ramet lo` does."""
    for name in ("COMP_WORDS", "_TYPER_COMPLETE_ARGS"):
        words = os.environ.get(name, "").split(None, 2)
        if words[1:2] == ["ws"] and (len(words) > 2 or os.environ[name][-1].isspace()):
            os.environ[name] = f"{words[0]} {words[2] if len(words) > 2 else ''}"
            if name == "COMP_WORDS":
                os.environ["COMP_CWORD"] = str(int(os.environ.get("COMP_CWORD", "2")) - 1)


def _width() -> int:
    return min(os.get_terminal_size().columns if sys.stdout.isatty() else 100, 120)
