"""`EncryptedObjects`: objects whose bytes and names are encrypted, with the interface of plain ones.

- A store is encrypted from its first object or never. Opening it without a key or with a wrong key, or opening a plain
  store with a key, fails before anything is read or written (`wrong_key`).
- Packs, indexes and revisions belong to a workspace and are encrypted with a key of its ring.
"""

from __future__ import annotations

import base64
import json
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from ramet.core.errors import RametError
from ramet.store.crypto.codec import MARKER, SEALED_MAGIC
from ramet.store.crypto.format import HEADER, OVERHEAD, SECRET, TAG, DataKey, padded_size
from ramet.store.crypto.keychain import CommonObjects, Keychain, label_of
from ramet.store.crypto.keyrings import WrappedKey, decode_wraps, unwrap_key
from ramet.store.crypto.wrapping_keys import KeySource, WrappingKey, open_key
from ramet.store.objects.compression import OBJECT_BYTES, DamagedFrame, decompress
from ramet.store.objects.log import Log
from ramet.store.objects.objects import Objects, ObjectWriter, delete_all

SCHEME: Final = "aes-256-gcm-1"
_OF_WORKSPACES: Final = ("packs/", "revisions/")
_SPACES: Final = ("refs/", "packs/", "revisions/", "tags/", "keys/")
_TRIES: Final = 8
_FRAME: Final = b"ramet frame 1\0"
_PADDING: Final = b"ramet padding 1\0"


class EncryptedObjects(CommonObjects):
    """The objects of an encrypted store.

    Only the results of `for_workspace` and `for_pack` can write what belongs to a workspace.
    """

    def __init__(
        self,
        raw: Objects,
        keychain: Keychain,
        key: DataKey | None = None,
        visible: frozenset[bytes] | None = None,
        plain_cache: bool = False,
    ) -> None:
        super().__init__(raw, keychain)
        self._sealer = keychain.sealer
        self.key = key
        self.visible = visible
        """The ids of the keys that this workspace has: its writers do not see objects of other keys."""
        self.plain_cache = plain_cache
        """Whether local caches may hold plain files."""

    def for_workspace(self, workspace: str) -> EncryptedObjects:
        """Return the same objects for a writer of this workspace, with its current key."""
        identity, visible = self.keychain.rings.write_key(workspace)
        return EncryptedObjects(self.raw, self.keychain, self.keychain.find(identity), visible, self.plain_cache)

    def for_pack(self, pack: str) -> EncryptedObjects:
        """Return the same objects for repacking a pack, with the key that the pack has."""
        identity = self.key_of(f"packs/{pack}.idx", f"packs/{pack}.pack")
        return EncryptedObjects(
            self.raw, self.keychain, self.keychain.find(identity), frozenset({identity}), self.plain_cache
        )

    def key_of(self, *keys: str) -> bytes:
        """Return the id of the key that encrypts an object; of several objects, the first that is readable."""
        *others, last = keys
        for key in others:
            try:
                return self._key_of(key)
            except (KeyError, RametError):
                continue
        return self._key_of(last)

    def _key_of(self, key: str) -> bytes:
        skip = len(SEALED_MAGIC) if _is_pack(key) else 0
        found = self.keychain.sealer.key_of(self.raw.get_range(self.keychain.names.encrypt(key), skip, HEADER))
        return self.keychain.find(found).id

    @property
    def common(self) -> CommonObjects:
        """The same store for objects of no workspace."""
        return CommonObjects(self.raw, self.keychain)

    def index(self, pack: str, data: bytes, identity: bytes) -> bytes:
        """Encrypt the index of a pack with the key of that pack."""
        pad = padded_size(len(data)) - len(data)
        return self.keychain.sealer.seal(self.keychain.find(identity), label_of(f"packs/{pack}.idx"), data, pad)

    def key_for(self, key: str) -> DataKey:
        if self.key is not None:
            return self.key
        if key.startswith(_OF_WORKSPACES):
            raise RametError(
                "invalid_argument", "cannot write without a workspace: the store is encrypted", "name the workspace"
            )
        return self.keychain.common

    def get(self, key: str) -> bytes:
        return self.raw.get(key) if _is_pack(key) else super().get(key)

    def get_range(self, key: str, start: int, size: int) -> bytes:
        return self.raw.get_range(key, start, size) if _is_pack(key) else super().get_range(key, start, size)

    def _encrypt(self, key: str, data: bytes) -> bytes:
        return _as_pack(data) if _is_pack(key) else super()._encrypt(key, data)

    @property
    def open_writer(self) -> Callable[[str, bytes], ObjectWriter] | None:
        """Opens a writer for a pack, whose frames are encrypted separately; None where the storage cannot."""
        begin: Callable[[str, bytes], ObjectWriter] | None = getattr(self.raw, "open_writer", None)
        return None if begin is None else lambda folder, head: begin(folder, _as_pack(head))

    def log(self, log: Log, space: str) -> EncryptedLog:
        """Encrypt a log that is stored outside of the objects."""
        return EncryptedLog(log, self.keychain, space)

    @property
    def clean(self) -> Any:
        """Removes temporary files of dead writers, where the storage has any."""
        return getattr(self.raw, "clean", None)

    def cache(self, workspace: str) -> CacheCipher:
        """Return the cipher for local caches of a workspace."""
        return CacheCipher(self, workspace)

    @property
    def frames(self) -> EncryptedFrameCodec:
        return EncryptedFrameCodec(self)

    @property
    def raw_objects(self) -> Objects:
        """The objects under their plain names with their encrypted bytes, for moving damaged ones."""
        return _RawObjects(self.raw, self.keychain)

    # ------------------------------------------------------------------------------------------------- keys

    def rotate(self, new: KeySource, old: KeySource | None = None) -> int:
        """Replace the wrapping key. Data is not rewritten. Returns the number of objects written.

        All keys are first wrapped for both, then the marker for the new key only, then the rest. An interrupted
        rotation continues when it is started again.
        """
        key, rings = open_key(new), self.keychain.rings
        rings.older = None if old is None else open_key(old)
        root = _root(self.raw, rings.key)
        marker = _Marker.read(self.raw)
        assert marker is not None
        mine = [wrap for wrap in marker.wraps if wrap.key == key.id] or [WrappedKey(key.id, "", key.wrap(root))]
        both = (*(wrap for wrap in marker.wraps if wrap.key != key.id), *mine)
        if both != marker.wraps:
            self.raw.put(MARKER, _Marker(both).encode())
        done = rings.rewrap(key, only=False)
        # From here on the old key opens nothing that is written.
        self.raw.put(MARKER, _Marker(tuple(mine)).encode())
        for _ in range(_TRIES):
            more = rings.rewrap(key, only=True)
            done += more
            if not more:
                break
        rings.key = key
        return done

    def shred(self, workspace: str) -> Shredded:
        """Destroy the keys of a workspace, and delete the objects that no key opens any longer."""
        gone, kept = self.keychain.rings.shred(workspace)
        self.keychain.forget()
        destroyed = {identity for identity in gone if self._is_destroyed(identity)}
        done = Shredded(workspace, len(destroyed), kept)
        names = self.keychain.names
        first: list[str] = []
        packs: list[str] = []
        for prefix in _OF_WORKSPACES:
            for key in list(self.list(prefix)):
                if _is_pack(key):
                    continue
                try:
                    found = self.keychain.sealer.key_of(self.raw.get_range(names.encrypt(key), 0, HEADER))
                except (KeyError, RametError):
                    continue
                if found in destroyed:
                    first.append(names.encrypt(key))
                    if key.endswith(".idx"):
                        packs.append(key.removesuffix(".idx") + ".pack")
                    notes = self.list(f"pushed/{key.rpartition('/')[2]}/")
                    first += (names.encrypt(note) for note in notes)
                    done.removed += 1
        # Indexes go first: a pack without one belongs to no workspace.
        delete_all(self.raw, first)
        delete_all(self.raw, packs)
        return done

    def _is_destroyed(self, identity: bytes) -> bool:
        """Return whether a key is certainly destroyed: its objects are about to be deleted."""
        try:
            self.keychain.find(identity)
        except RametError as error:
            return bool(error.context.get("shredded"))
        return False


class EncryptedFrameCodec:
    """Frames of an encrypted store; encoding one needs the key of a workspace."""

    magic = SEALED_MAGIC

    def __init__(self, objects: EncryptedObjects) -> None:
        self._sealer = objects.keychain.sealer
        self._objects = objects

    def frame(self, packed: bytes) -> bytes:
        return self._sealer.seal(self._objects.key_for("packs/"), _FRAME, packed)

    def unpack(self, frame: bytes, most: int | None = None, bound: int = OBJECT_BYTES) -> bytes:
        try:
            opened = self._sealer.open(_FRAME, frame)
        except RametError as error:
            if error.code == "store_corrupt":
                raise DamagedFrame(error.cause) from None
            raise
        return decompress(opened, most, bound)

    def trailer(self, size: int, last: bytes) -> bytes:
        """Return padding that marks the end of the frames: its length field is 0, which no frame has."""
        pad = padded_size(size + OVERHEAD) - size - OVERHEAD
        return self._sealer.seal(self._objects.key_for("packs/"), _PADDING + last[-TAG:], b"", pad)

    def blocks(self, pack: bytes) -> Iterator[tuple[int, bytes]]:
        at = len(self.magic)
        while at + OVERHEAD < len(pack):
            length = self._sealer.length_of(pack[at : at + HEADER])
            end = at + OVERHEAD + length
            if not length or end > len(pack):
                return
            try:
                yield at, self.unpack(pack[at:end])
            except (DamagedFrame, RametError):
                return
            at = end

    def is_end(self, pack: bytes, at: int) -> bool:
        header = pack[at : at + HEADER]
        return len(header) == HEADER and self._sealer.length_of(header) == 0


@dataclass
class Shredded:
    """What `shred` did."""

    workspace: str
    destroyed: int
    """Keys that no workspace has any longer."""
    kept_by: dict[str, int] = field(default_factory=dict)
    """Workspaces that hold copies of some of its keys after a fork or merge, and how many."""
    removed: int = 0
    """Objects that no key opens any longer and that were deleted."""


class CacheCipher:
    """Encrypts the local caches of one workspace; another workspace cannot read them."""

    def __init__(self, objects: EncryptedObjects, workspace: str) -> None:
        self._objects, self._workspace, self._keychain = objects, workspace, objects.keychain
        self._label = b"ramet local 1\0" + workspace.encode()

    def name(self, path: bytes) -> str:
        return self._keychain.names.digest(self._label + b"\0" + path)

    def seal(self, data: bytes) -> bytes:
        return self._keychain.sealer.seal(
            self._objects.for_workspace(self._workspace).key_for("packs/"), self._label, data
        )

    def open(self, data: bytes) -> bytes | None:
        try:
            return self._keychain.sealer.open(self._label, data)
        except RametError:
            return None


class _RawObjects:
    def __init__(self, raw: Objects, keychain: Keychain) -> None:
        self._raw, self._names = raw, keychain.names
        self._common = CommonObjects(raw, keychain)

    def get(self, key: str) -> bytes:
        return self._raw.get(self._names.encrypt(key))

    def get_range(self, key: str, start: int, size: int) -> bytes:
        return self._raw.get_range(self._names.encrypt(key), start, size)

    def put(self, key: str, data: bytes) -> None:
        self._raw.put(self._names.encrypt(key), data)

    def create(self, key: str, data: bytes) -> bool:
        return self._raw.create(self._names.encrypt(key), data)

    def delete(self, key: str) -> None:
        self._raw.delete(self._names.encrypt(key))

    def list(self, prefix: str, after: str = "") -> Iterator[str]:
        return self._common.list(prefix, after)


class EncryptedLog:
    """A log whose names and entries are encrypted like those in a bucket."""

    def __init__(self, log: Log, keychain: Keychain, space: str) -> None:
        self._log, self._keychain, self._space = log, keychain, space

    def names(self, start: str = "") -> list[str]:
        cut = len(self._space) + 1
        folder = start.rpartition("/")[0]
        begin = self._name(folder) + "/" if folder else ""
        plain = (self._keychain.names.decrypt(f"{self._space}/{name}") for name in self._log.names(begin))
        return sorted(name[cut:] for name in plain if name is not None and name[cut:].startswith(start))

    def _name(self, name: str) -> str:
        return self._keychain.names.encrypt(f"{self._space}/{name}")[len(self._space) + 1 :]

    def _label(self, name: str, number: int) -> bytes:
        return f"ramet entry 1\0{self._space}/{name}/{number}".encode()

    def _decrypt(self, name: str, number: int, data: bytes) -> bytes:
        try:
            return self._keychain.sealer.open(self._label(name, number), data)
        except RametError:
            return b""  # decoding the empty entry reports the damage

    def newest(self, name: str, after: int = 0) -> tuple[int, bytes] | None:
        found = self._log.newest(self._name(name), after)
        return None if found is None else (found[0], self._decrypt(name, *found))

    def entries(self, name: str, after: int = 0) -> Iterator[tuple[int, bytes]]:
        for number, data in self._log.entries(self._name(name), after):
            yield number, self._decrypt(name, number, data)

    def append(self, name: str, number: int, data: bytes) -> bool:
        sealed = self._keychain.sealer.seal(self._keychain.common, self._label(name, number), data, -len(data) % 256)
        return self._log.append(self._name(name), number, sealed)


def _as_pack(data: bytes) -> bytes:
    if data[: len(SEALED_MAGIC)] != SEALED_MAGIC:
        raise RametError("internal", "a pack that is not encrypted must not be written here", "report this")
    return data


def _is_pack(key: str) -> bool:
    """Return whether an object is a pack, whose frames are encrypted separately."""
    return key.startswith("packs/") and key.endswith(".pack")


# ------------------------------------------------------------------------------------------------------ opening


@dataclass(frozen=True)
class _Marker:
    """The one plain object: it says that the store is encrypted, and how."""

    wraps: tuple[WrappedKey, ...]

    def encode(self) -> bytes:
        rows = [{"key": wrap.key, "data": base64.b64encode(wrap.data).decode()} for wrap in self.wraps]
        return json.dumps({"format": 1, "encryption": {"scheme": SCHEME, "wraps": rows}}, sort_keys=True).encode()

    @classmethod
    def read(cls, objects: Objects) -> _Marker | None:
        try:
            data = objects.get(MARKER)
        except KeyError:
            return None
        try:
            plain: dict[str, Any] = json.loads(data)
            found = plain["encryption"]
            scheme, wraps = found["scheme"], decode_wraps(found["wraps"])
        except (ValueError, KeyError, TypeError):
            raise RametError(
                "store_corrupt", f"cannot open the store: {MARKER} is damaged",
                "restore it from a backup",
            ) from None  # fmt: skip
        if scheme != SCHEME:
            raise RametError(
                "unsupported", f"cannot open the store: unknown encryption {scheme}", "use a newer version"
            )
        return cls(wraps)


def open_encrypted(
    objects: Objects,
    key: KeySource | None,
    *,
    plain_cache: bool = False,
    clock: Callable[[], float] = time.time,
    claim: Callable[[bytes], bytes] | None = None,
) -> Objects:
    """Open objects that may be encrypted. An empty store opened with a key becomes encrypted."""
    if isinstance(objects, EncryptedObjects):
        return objects
    marker = _Marker.read(objects)
    if key is None:
        if marker is None:
            return objects
        raise RametError(
            "wrong_key", "cannot open the store: it is encrypted, and no key was given",
            "pass key= (RAMET_KEY on the command line)", {"wrapped_by": [wrap.key for wrap in marker.wraps]},
        )  # fmt: skip
    wrapping = open_key(key)
    if marker is None:
        used = any(True for space in _SPACES for _ in objects.list(space))
        if used and _Marker.read(objects) is None:
            raise RametError(
                "wrong_key", "cannot open the store: a key was given, but it is not encrypted",
                "open it without a key, or export its workspaces into a new store that has one",
            )  # fmt: skip
        made = _Marker((WrappedKey(wrapping.id, "", wrapping.wrap(secrets.token_bytes(SECRET))),)).encode()
        if not used and claim is None:
            objects.create(MARKER, made)  # of two concurrent creators, one wins
        elif not used and claim is not None:
            objects.put(MARKER, claim(made))
    root = _root(objects, wrapping, marker)
    keychain = Keychain(objects, root, wrapping, lambda current: _root(objects, current), clock)
    return EncryptedObjects(objects, keychain, plain_cache=plain_cache)


def _root(objects: Objects, key: WrappingKey, marker: _Marker | None = None) -> bytes:
    """Return the root key of the store; `wrong_key` when this key does not open it."""
    marker = marker or _Marker.read(objects)
    if marker is None:
        raise _missing_marker()
    return unwrap_key(marker.wraps, key, "the store")


def _missing_marker() -> RametError:
    return RametError("store_corrupt", f"cannot open the store: {MARKER} is missing", "restore it from a backup")
