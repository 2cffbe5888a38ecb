"""Put the questions of `ask` rules to the person at the terminal."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from ramet.apps.cli.terminal import UserTerminal

if TYPE_CHECKING:
    from ramet.workspace.policy import Allowed, Request


def ask_at_terminal(ws: Any, user: UserTerminal | None = None) -> None:
    """Let the policy of a workspace ask at `user`, or at the terminal of this process if it has one."""
    policy = getattr(ws, "policy", None)
    if policy is None or policy.answer is not None:
        return
    terminal = user or _own_terminal()
    if terminal is not None:

        async def answer(request: Request) -> Allowed:
            said = (await terminal.ask(prompt(request, ws.secrets.scrub_text(request.subject)))).strip().lower()
            if said in ("h", "host") and request.kind == "network":
                return "host"
            return said in ("y", "yes")

        policy.answer = answer


def prompt(request: Request, subject: str) -> str:
    """The question as the person sees it; what an agent wrote cannot draw on the terminal."""
    from ramet.workspace.policy import ASKS

    verb = f"{request.name} " if request.kind != "command" else ""
    what = ascii(f"{verb}{subject}")[1:-1] if not f"{verb}{subject}".isprintable() else f"{verb}{subject}"
    host = "/h=this host from now on" if request.kind == "network" else ""
    return f"ramet: agent {request.agent_id} asks to {ASKS[request.kind]}: {what}\n       allow? [y=once{host}/N] "


def _own_terminal() -> UserTerminal | None:
    """The terminal that the messages of this process go to, also while its input is a pipe."""
    if not sys.stderr.isatty():
        return None
    try:
        return UserTerminal(os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC))
    except OSError:
        return None  # a process without a controlling terminal
