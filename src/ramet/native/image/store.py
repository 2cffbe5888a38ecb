"""`Images`: images that are unpacked once per machine and user, and shared by all boxes, read-only.

    images/KEY/{root,env.json}      the root of the image whose manifest, configuration or tar has this digest
    images/known/PATH               the key of a tar, as long as the file is what it was
    BOX/image                       the key that a box uses

- A box names its key before it uses the entry, under a shared lock; deleting takes the lock alone.
- A directory that is the root of a system is used as it is.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from ramet.core.errors import RametError
from ramet.native.image.root import ImageRoot, cannot_use, failed
from ramet.native.image.source import DAMAGED, Source, is_layout, open_source
from ramet.native.image.unpack import Unpacker
from ramet.native.layout import Layout, Owner, closed_above, make_directory
from ramet.native.leftovers import collect_dead, make_locked, remove_layout

KEPT: Final = 4
"""Images that stay on the disk when no box uses them, by their last use."""
REFERENCE: Final = "image"
BLOCK: Final = 1 << 20


class Images:
    """The unpacked images below the directory of all boxes of this user."""

    def __init__(self, base: str, owner: Owner) -> None:
        self._base, self._owner, self._folder = base, owner, f"{base}/images"

    def take(self, layout: Layout, path: str, most: int) -> ImageRoot:
        """Return the root of the image at `path` for a box; unpack it once, within `most` bytes."""
        try:
            found = self._take(layout, path, most)
        except OSError as error:
            raise failed(path, error) from None
        except DAMAGED as error:
            raise cannot_use(path, f"it is damaged: {error}", "Save or download the image again.") from None
        found.check(path)
        return found

    def _take(self, layout: Layout, path: str, most: int) -> ImageRoot:
        if not os.path.lexists(path):
            raise cannot_use(path, "nothing is there", "Name a root directory, an OCI layout or a tar on this machine.")
        if os.path.isdir(path) and not is_layout(path):
            self._check_reachable(path)
            return ImageRoot(os.path.realpath(path))
        for folder in (self._folder, f"{self._folder}/known"):
            os.makedirs(folder, mode=0o711, exist_ok=True)
            os.chmod(folder, 0o711)
        known = "" if os.path.isdir(path) else self._tar_key(path)
        found = self._found(layout, known) if known else None
        if found is not None:
            return found
        with open_source(path, known or f"sha256:{_digest(path)}") as source:
            if not os.path.isdir(path):
                self._remember(path, source.key)
            return self._found(layout, source.key) or self._unpack(layout, source, most)

    def _check_reachable(self, path: str) -> None:
        """Root's boxes run as another user, who must be able to enter the directory."""
        if self._owner.foreign and (closed := closed_above(path)) is not None:
            raise cannot_use(
                path, f"root's programs run as a user who cannot enter {closed}",
                "Open it (chmod o+x), or name an OCI layout or a tar.",
            )  # fmt: skip

    def _found(self, layout: Layout, key: str) -> ImageRoot | None:
        place = self._place(key)
        with self._locked(fcntl.LOCK_SH):
            with open(f"{layout.root}/{REFERENCE}", "w") as file:
                file.write(key)
            if not os.path.isdir(place):
                return None
            os.utime(place)
        with open(f"{place}/env.json") as file:
            return ImageRoot(f"{place}/root", json.load(file), key)

    def _unpack(self, layout: Layout, source: Source, most: int) -> ImageRoot:
        collect_dead(self._folder)  # what killed processes have begun
        folder, lock = make_locked(self._folder)
        try:
            make_directory(made := f"{folder}/image")
            make_directory(f"{made}/root")
            layout.give(f"{made}/root")
            unpacker = Unpacker(source.name, f"{made}/root", self._owner, most)
            try:
                for layer in source.layers:
                    with source.open(layer) as tar:
                        unpacker.apply(tar)
            finally:
                unpacker.close()
            with open(f"{made}/env.json", "w") as file:
                json.dump(dict(source.env), file)
            try:
                os.rename(made, self._place(source.key))
            except OSError:
                if not os.path.isdir(self._place(source.key)):  # else another process was faster
                    raise
        finally:
            remove_layout(folder)
            os.close(lock)
        self._collect()
        found = self._found(layout, source.key)
        if found is None:
            raise RametError("native_unavailable", f"the image {source.name} was deleted meanwhile", "Try again.")
        return found

    def _collect(self) -> None:
        """Delete images that no box uses, except those that were used last."""
        with self._locked(fcntl.LOCK_EX):
            entries = [entry for entry in os.scandir(self._folder) if entry.name.startswith("sha")]
            newest = sorted(entries, key=lambda entry: entry.stat().st_mtime_ns, reverse=True)
            wanted = {entry.name for entry in newest[:KEPT]} | {os.path.basename(self._place(k)) for k in self._used()}
            for entry in newest:
                if entry.name not in wanted:
                    remove_layout(entry.path)

    def _used(self) -> Iterator[str]:
        for box in os.scandir(self._base):
            try:
                with open(f"{box.path}/{REFERENCE}") as file:
                    yield file.read()
            except (FileNotFoundError, NotADirectoryError):
                continue  # it uses the host's programs, or is no box

    def _place(self, key: str) -> str:
        return f"{self._folder}/{key.replace(':', '-')}"

    # ------------------------------------------------------------------------------------------------------- tars

    def _tar_key(self, path: str) -> str:
        """Return the key of a tar that was unpacked before; empty for another file."""
        try:
            with open(self._known(path)) as file:
                found = json.load(file)
        except (FileNotFoundError, ValueError):
            return ""
        return str(found["key"]) if found["stamp"] == _stamp(path) else ""

    def _remember(self, path: str, key: str) -> None:
        made = f"{self._known(path)}.{os.getpid()}"
        with open(made, "w") as file:
            json.dump({"stamp": _stamp(path), "key": key}, file)
        os.rename(made, self._known(path))

    def _known(self, path: str) -> str:
        return f"{self._folder}/known/{hashlib.sha256(os.fsencode(os.path.realpath(path))).hexdigest()}"

    @contextmanager
    def _locked(self, how: int) -> Iterator[None]:
        fd = os.open(f"{self._folder}/lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, how)
            yield
        finally:
            os.close(fd)


def _stamp(path: str) -> list[int]:
    found = os.stat(path)
    return [found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns]


def _digest(path: str) -> str:
    """Hash a tar; what is no file of a layout is named by that."""
    if os.path.isdir(path):
        return ""
    found = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(BLOCK):
            found.update(block)
    return found.hexdigest()
