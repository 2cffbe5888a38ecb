"""`Lowers`: lower layers of stored trees, shared by all boxes of this user on this machine.

    lowers/KEY/tree         the files of a tree, or of an upper layer that made this tree of the one below
    lowers/KEY/below        the key of the layer below, where there is one
    BOX/trees/N/layers      the key that an overlay uses

- A key names the content: an entry never changes, and a second box at the same tree mounts what is there.
- An overlay names its key before it uses the entry, both under a shared lock. Deleting takes the lock alone and leaves
  every entry that an overlay names, also one of a dead process, which recovery reads.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import stat as modes
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final

from ramet.backends.local.overlay_marks import is_removed
from ramet.native.layout import Owner, TreePlace, box_owner, make_directory, own_everything
from ramet.native.leftovers import remove_layout
from ramet.native.upper import walk_upper

KEPT: Final = 16
"""Entries that stay on the disk when no box uses them, by their last use."""
DEEPEST: Final = 8
"""Layers above each other, after which a tree is written out again."""
TICK_NS: Final = 10_000_000
"""How long the kernel's clock for file times may stand still."""
REFERENCE: Final = "layers"
NEXT: Final = "next"
"""In the directory of an overlay that another one has taken the place of: its layers, and its directory."""


@dataclass(frozen=True)
class Checkout:
    """How to write a stored tree to a directory. Not `kept`: no copy may outlive the workspace."""

    key: str
    fill: Callable[[str], object]
    kept: bool = True


@dataclass(frozen=True)
class StoredTrees:
    """Keys of the content of overlays, by prefix, as a commit that began at `began` (ns) has stored it."""

    keys: Mapping[str, str]
    began: int


class Lowers:
    """The shared layers below the directory of all boxes of this user."""

    def __init__(self, base: str, owner: Owner) -> None:
        self._base, self._owner, self._folder = base, owner, f"{base}/lowers"

    def take(self, folder: str, checkout: Checkout) -> tuple[str, ...]:
        """Return the layers of a tree, lowest first, for the overlay in `folder`."""
        self._make_folder()
        with self._locked(fcntl.LOCK_SH):
            with open(f"{folder}/{REFERENCE}", "w") as file:
                file.write(checkout.key)
            found = self.layers(checkout.key)
        if not found:
            made = self._new()
            checkout.fill(f"{made}/tree")
            own_everything(f"{made}/tree", self._owner)
            self._publish(made, checkout.key)
            found = self.layers(checkout.key)
            self.collect()
        os.utime(f"{self._folder}/{checkout.key}")
        return found

    def add(self, key: str, below: str, upper: str, began: int) -> bool:
        """Make an upper directory that is no longer mounted the top layer of the tree `key`.

        False where it cannot be: something changed after `began`, or it has a socket or pipe, which no stored tree has.
        """
        if key == below or os.path.isdir(f"{self._folder}/{key}") or len(self.layers(below)) >= DEEPEST:
            return False
        if not unchanged_since(upper, began):
            return False
        made = self._new()
        with open(f"{made}/below", "w") as file:
            file.write(below)
        os.rmdir(f"{made}/tree")
        os.rename(upper, f"{made}/tree")
        self._publish(made, key)
        self.collect()
        return True

    def layers(self, key: str) -> tuple[str, ...]:
        """Return the directories of a tree, lowest first; none where one is missing."""
        found: list[str] = []
        while True:
            folder = f"{self._folder}/{key}"
            if not os.path.isdir(folder):
                return ()
            found.append(f"{folder}/tree")
            try:
                with open(f"{folder}/below") as file:
                    key = file.read()
            except FileNotFoundError:
                return tuple(reversed(found))

    def collect(self) -> None:
        """Delete entries that no overlay uses, except those that were used last."""
        with self._locked(fcntl.LOCK_EX):
            entries = [entry for entry in os.scandir(self._folder) if entry.is_dir() and "." not in entry.name]
            newest = sorted(entries, key=lambda entry: entry.stat().st_mtime_ns, reverse=True)
            wanted = {entry.name for entry in newest[:KEPT]} | set(self._references())
            for name in [*wanted]:
                wanted |= {os.path.basename(os.path.dirname(path)) for path in self.layers(name)}
            lost = [entry.path for entry in entries if entry.name not in wanted]
            for path in lost:
                os.rename(path, f"{path}.old")
        for path in lost:
            remove_layout(f"{path}.old")

    def _references(self) -> Iterator[str]:
        for box in os.scandir(self._base):
            trees = f"{box.path}/trees"
            try:
                names = os.listdir(trees)
            except (FileNotFoundError, NotADirectoryError):
                continue  # it is no box, or has just been deleted
            for tree in names:
                try:
                    with open(f"{trees}/{tree}/{REFERENCE}") as file:
                        yield file.read()
                except FileNotFoundError:
                    continue  # it has its own lower layer

    def _make_folder(self) -> None:
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        if self._owner.foreign:
            os.chown(self._folder, -1, self._owner.gid)
            os.chmod(self._folder, 0o710)

    def _new(self) -> str:
        made = f"{self._folder}/{secrets.token_hex(8)}.new"
        make_directory(made)
        make_directory(f"{made}/tree")
        return made

    def _publish(self, made: str, key: str) -> None:
        """Name an entry by its key; another process may have been faster."""
        try:
            os.rename(made, f"{self._folder}/{key}")
        except OSError:
            if not os.path.isdir(f"{self._folder}/{key}"):
                raise
            remove_layout(made)

    @contextmanager
    def _locked(self, how: int) -> Iterator[None]:
        fd = os.open(f"{self._folder}/lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, how)
            yield
        finally:
            os.close(fd)


def read_place(folder: str) -> TreePlace:
    """Return the overlay that a dead process left in `folder`."""
    try:
        with open(f"{folder}/{NEXT}") as file:
            plain = json.load(file)
        later = read_place(plain["folder"])
        return later if later.shared else replace(later, shared=tuple(plain["shared"]))
    except FileNotFoundError:
        pass  # it is the last one
    try:
        with open(f"{folder}/{REFERENCE}") as file:
            key = file.read()
    except FileNotFoundError:
        return TreePlace(folder)
    base = os.path.dirname(os.path.dirname(os.path.dirname(folder)))
    return TreePlace(folder, Lowers(base, box_owner()).layers(key), key)


def succeed(place: TreePlace, new: TreePlace) -> None:
    """Note that an overlay has taken the place of another, before anything is written to it."""
    made = f"{place.folder}/{NEXT}.new"
    with open(made, "w") as file:
        json.dump({"folder": new.folder, "shared": new.shared}, file)
    os.rename(made, f"{place.folder}/{NEXT}")


def unchanged_since(upper: str, began: int) -> bool:
    """Whether an upper directory has only what a store keeps, and nothing that changed after `began` (ns)."""
    latest = began - TICK_NS
    if os.stat(upper).st_ctime_ns >= latest:
        return False
    return all(_is_plain(found) and found.st_ctime_ns < latest for _, found in walk_upper(upper))


def _is_plain(found: os.stat_result) -> bool:
    kind = modes.S_IFMT(found.st_mode)
    return is_removed(found) or kind in (modes.S_IFREG, modes.S_IFDIR, modes.S_IFLNK)
