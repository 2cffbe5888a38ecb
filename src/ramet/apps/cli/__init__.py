"""The `ramet` command: workspaces of a store, from a terminal.

Tables on a terminal, JSON with `--json` or when piped. Exit codes: 0 ok, 1 error, 2 usage, 3 not found, 4 busy or
conflict, 124 timeout; `exec` passes the command's own status through. Engines are imported by the verb that needs
them, so that `--help` stays quick. All verbs are in the table below.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import typer

from ramet.apps.cli import carrying, history, serving, workspaces

app = typer.Typer(
    name="ramet",
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Durable workspaces for agents: one file tree, a real shell, every state versioned.\n\n"
    "[bold]First minute[/]\n\n"
    "  ramet create demo\n\n"
    "  ramet exec demo 'echo hello > /greeting; ls -l /'\n\n"
    "  ramet log demo\n\n"
    "  ramet fork demo demo-2",
)


def version() -> None:
    """Print the version."""
    from ramet import __version__

    print(__version__)


VERBS: Final[dict[str, tuple[tuple[str, Callable[..., Any]], ...]]] = {
    "Workspaces": (
        ("create", workspaces.create),
        ("ls", workspaces.list_workspaces),
        ("exec", workspaces.execute),
        ("fork", workspaces.fork),
        ("revert", workspaces.revert),
        ("merge", workspaces.merge),
        ("tag", workspaces.tag),
        ("rm", workspaces.rm),
    ),
    "History": (
        ("log", history.log),
        ("diff", history.diff),
        ("show", history.show_file),
        ("blame", history.blame),
        ("bisect", history.bisect),
    ),
    "In and out": (
        ("checkout", carrying.checkout),
        ("snapshot", carrying.snapshot),
        ("export", carrying.export),
        ("import", carrying.import_archive),
    ),
    "For programs": (("serve", serving.serve), ("mcp", serving.mcp)),
    "Care": (("verify", carrying.verify), ("repair", carrying.repair), ("version", version)),
}
for _panel, _verbs in VERBS.items():
    for _name, _verb in _verbs:
        app.command(_name, rich_help_panel=_panel)(_verb)


def main(run: Callable[[], Any] = app) -> None:
    """The entry point of the `ramet` command."""
    run()
