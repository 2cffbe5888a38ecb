"""`name+=value` where a text is very long: put together a part at a time, unless Python lengthens it in place."""

from __future__ import annotations

from sys import getrefcount
from typing import TYPE_CHECKING, Any, Final

from ramet.shell.expand.values import HUGE, Assoc, Indexed, NameRef

if TYPE_CHECKING:
    from ramet.shell.interp.state.variables import Variables

_AT_ONCE: Final = 1 << 23
"""Characters that are put behind a text in place at once."""
_HOPS: Final = 8
_OURS: Final = 4
"""References to a text that a variable has and the functions here: the table's, the caller's, and two for a look."""


def is_copied(old: str, value: str) -> bool:
    """Whether `old += value` is made in a new place, in parts; for a caller that has the former as a variable does.

    A text that has just become so long gets a place of its own, in which it can grow (see `concurrency.bigtext`).
    """
    if len(old) + len(value) <= HUGE:
        return False
    return len(old) <= HUGE or len(value) > _AT_ONCE or getrefcount(old) > _OURS


def put_behind(texts: dict[str, Any], name: str, value: str) -> None:
    """`texts[name] += value` in place, where nothing else has the text."""
    text: str = texts[name]
    texts[name] = None
    text += value
    texts[name] = text


for _ in range(64):
    put_behind({"x": "a"}, "x", "b")  # Python works in place only in code that it has seen at work


def longer(old: str, value: str) -> str:
    if len(old) + len(value) <= HUGE:
        return old + value
    return "".join((old, value)) if old and value else old or value


def takes_long(store: Variables, name: str, value: str, key: str | None = None) -> bool:
    """Whether to put a text behind that of a variable, or of an element, takes its time."""
    kept = store.values.get(name)
    for _ in range(_HOPS):  # where references go in a circle is for others to say
        if type(kept) is not NameRef:
            break
        kept = store.values.get(kept.target)
    if type(kept) is str and key is None and name not in store.attrs:
        return is_copied(kept, value)
    if type(kept) is str:
        old: str | None = kept
    elif type(kept) is Assoc:
        old = kept.items.get("0" if key is None else key)
    elif type(kept) is Indexed:
        index = "0" if key is None else key
        old = kept.get(int(index)) if index.isdecimal() else None
    else:
        return False
    return old is not None and old != "" and len(old) + len(value) > HUGE
