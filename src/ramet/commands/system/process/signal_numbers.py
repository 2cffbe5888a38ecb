"""Signal numbers by name."""

from __future__ import annotations

from ramet.core.signals import NAMES

SIGNALS = {"POLL" if name == "IO" else name: number for number, name in enumerate(NAMES) if number}


def signal_number(text: str) -> int | None:
    """Return the number of a signal given by number or name."""
    if text.isdigit():
        return int(text) if int(text) <= 64 else None
    name = text.upper().removeprefix("SIG")
    return 0 if name == "EXIT" else SIGNALS.get(name, {"IO": 29, "CLD": 17, "IOT": 6}.get(name))
