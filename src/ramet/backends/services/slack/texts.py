"""Messages of Slack as text, with names in place of ids."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from ramet.backends.services.names import split_name

_MARK: Final = re.compile(r"<([^<>]*)>")


def name_of(user: Mapping[str, Any]) -> str:
    profile = user.get("profile") or {}
    return str(profile.get("display_name") or user.get("name") or user.get("real_name") or user.get("id") or "unknown")


def file_name(file: Mapping[str, Any]) -> str:
    return split_name(str(file.get("name") or file.get("title") or "file"), file["id"])


def clock(ts: str, form: str = "%H:%M") -> str:
    return datetime.fromtimestamp(float(ts), UTC).strftime(form)


def thread_name(message: Mapping[str, Any]) -> str:
    return f"{clock(message['ts'], '%H-%M-%S')}__{message['ts']}.md"


def line_of(message: Mapping[str, Any], people: Mapping[str, Any]) -> str:
    """A message as text: time, name, words; further lines are indented."""
    user = message.get("user")
    name = name_of(people.get(user, {"id": user})) if user else str(message.get("username") or "bot")
    text = plain_text(str(message.get("text") or ""), people).replace("\n", "\n    ")
    files = "".join(f" [files/{file_name(file)}]" for file in message.get("files") or ())
    return f"{clock(str(message['ts']))} {name}: {text}{files}"


def plain_text(text: str, people: Mapping[str, Any]) -> str:
    """Slack's escaped text with names in place of ids."""

    def resolve(found: re.Match[str]) -> str:
        inner, _, label = found[1].partition("|")
        if inner.startswith("@"):
            return f"@{label or name_of(people.get(inner[1:], {'id': inner[1:]}))}"
        if inner.startswith("#"):
            return f"#{label or inner[1:]}"
        if inner.startswith("!"):
            return f"@{label.lstrip('@') or inner[1:]}"
        return f"{label} ({inner})" if label and label != inner else inner

    return html.unescape(_MARK.sub(resolve, text))


def escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
