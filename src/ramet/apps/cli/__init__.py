"""The `ramet` command: workspaces of a store, from a terminal.

Tables on a terminal, JSON with `--json` or when piped. Exit codes: 0 ok, 1 error, 2 usage, 3 not found, 4 busy or
conflict, 124 timeout; `exec` passes the command's own status through. Only the verb that was asked for is imported,
and help for all of them needs none, so that the command answers at once; an ordinary `exec`, `ls`, `log` or `show` does
not even need a command line to be built. All verbs are in `verbs.py`.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from ramet.apps.cli.entry import loaded
from ramet.apps.cli.verbs import SHOWN, VERBS, Verb, find, help_text, near

if TYPE_CHECKING:
    import typer


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
    if words[:1] == ["ws"] and len(words) > 1:
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
        from ramet.apps.cli.running import run, understood

        line = understood(words[1:])
        if line is not None:
            sys.exit(run(line))
    if first in ("ls", "log", "show") and "_RAMET_COMPLETE" not in os.environ:
        from ramet.apps.cli import glancing

        act = glancing.understood(first, words[1:])
        if act is not None:
            loaded()
            act()
            sys.exit(0)
    verb = find(first)
    if verb is not None and verb.name != first:
        words[0] = sys.argv[1] = verb.name
    if verb is not None and "_RAMET_COMPLETE" not in os.environ:
        from ramet.apps.cli.helping import run as run_verb

        built = build(verb)
        loaded()
        run_verb(built, words)
    if first and not first.startswith("-") and verb is None:
        meant = near(first)
        hint = f"did you mean {' or '.join(meant)}?" if meant else "`ramet --help` lists them all"
        print(f"ramet: there is no verb {first!r}\n       {hint}", file=sys.stderr)
        sys.exit(2)
    built = build()
    loaded()
    built(prog_name="ramet")


def _store_first(words: list[str]) -> list[str]:
    """`ramet --store WHERE VERB ...`: what follows is for any verb, so the store goes where all of them look for it."""
    if words and words[0].startswith("--store="):
        words = ["--store", words[0].partition("=")[2], *words[1:]]
    if words[:1] == ["--store"] and len(words) > 1:
        os.environ["RAMET_HOME"] = words[1]
        return words[2:]
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
