"""Locks and pools after `os.fork()`: a child finds each of them new, not held by a thread that it does not have.

Celery, `gunicorn --preload` and `multiprocessing` fork a process that has imported and used Ramet.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from weakref import WeakKeyDictionary

_renewed: WeakKeyDictionary[object, dict[str, Callable[[], object]]] = WeakKeyDictionary()
"""What to make anew, by the object or module that has it."""


def renew_after_fork(owner: object, **made: Callable[[], object]) -> None:
    """Set these attributes of an object or module to what the functions return, in every child of a fork."""
    _renewed.setdefault(owner, {}).update(made)


def _renew() -> None:
    for owner, made in list(_renewed.items()):
        for name, make in made.items():
            setattr(owner, name, make())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
