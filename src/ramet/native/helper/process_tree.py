"""The processes below this one, and what `/proc` says about each."""

from __future__ import annotations

import os


def descendants() -> list[tuple[int, bytes]]:
    """Every process below this one, with its state: the box shows only the processes of its own pid namespace."""
    parents: dict[int, list[tuple[int, bytes]]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    fields = file.read().rpartition(b") ")[2].split()
            except OSError:
                continue  # it ended meanwhile
            parents.setdefault(int(fields[1]), []).append((int(name), fields[0]))
    found: list[tuple[int, bytes]] = []
    todo = [os.getpid()]
    while todo:
        for pid, state in parents.get(todo.pop(), ()):
            todo.append(pid)
            found.append((pid, state))
    return found


def figures(path: str) -> dict[bytes, int]:
    """Read lines such as `RssAnon: 12 kB`, in bytes; nothing of a process that has ended."""
    found = {}
    try:
        with open(path, "rb") as file:
            for line in file:
                name, _, rest = line.partition(b":")
                if rest.endswith(b" kB\n"):
                    found[name] = int(rest[:-4]) * 1024
    except (OSError, ValueError):
        return {}
    return found
