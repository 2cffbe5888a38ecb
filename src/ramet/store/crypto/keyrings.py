"""Keyrings: the data keys of each workspace, wrapped by a key outside of the store.

    keys/<workspace>/<random>        a batch: wrapped ring key, ids of data keys, the data keys sealed with the ring key
    keys/<workspace>/closed-<id>     that key encrypts nothing new: another ring has a copy of it
    keys/<workspace>/shredded-<...>  ids of keys that were destroyed

- A ring only grows, by objects with new names, until it is shredded: writers cannot overwrite each other's keys.
- A key is closed before a copy of it leaves its ring. The workspace encrypts later writes with a new key.
- The keys of a ring have an order. What a revision needs has the key of the revision or an earlier one.
"""

from __future__ import annotations

import base64
import json
import secrets
import threading
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from ramet.concurrency.fork import renew_after_fork
from ramet.core.errors import RametError
from ramet.store.crypto.format import KEY_ID, NONCE, SECRET
from ramet.store.crypto.wrapping_keys import WrappingKey
from ramet.store.objects.objects import Objects

_RING: Final = b"ramet ring 1\0"
_CLOSED: Final = "closed-"
_SHREDDED: Final = "shredded-"


@dataclass(frozen=True)
class WrappedKey:
    """A key, encrypted by one wrapping key."""

    key: str
    name: str
    data: bytes

    def plain(self) -> dict[str, str]:
        return {"key": self.key, "name": self.name, "data": base64.b64encode(self.data).decode()}


def decode_wraps(plain: list[dict[str, str]]) -> tuple[WrappedKey, ...]:
    return tuple(WrappedKey(row["key"], row.get("name", ""), base64.b64decode(row["data"])) for row in plain)


def unwrap_key(wraps: tuple[WrappedKey, ...], key: WrappingKey, what: str) -> bytes:
    """Unwrap the key that one of these wraps holds; `wrong_key` when none is for this wrapping key."""
    kind = key.id.partition("-")[0]
    mine = [wrap for wrap in wraps if wrap.key == key.id]
    # A KMS key has several names, so another id may be the same key.
    mine += [wrap for wrap in wraps if wrap.key != key.id and kind == "kms" and wrap.key.startswith("kms-")]
    for number, wrap in enumerate(mine, 1):
        try:
            return key.unwrap(wrap.data)
        except RametError as error:
            if error.code != "wrong_key" or number == len(mine):
                raise
    made = " and ".join(sorted({wrap.key for wrap in wraps})) or "none"
    raise RametError(
        "wrong_key", f"{what} is wrapped by {made}, not by {key.id}", "pass the key of its creation or last rotation",
        {"wrapped_by": made},
    )  # fmt: skip


@dataclass(frozen=True)
class KeyBatch:
    """Data keys that were added to a ring together: a new one, or copies of those of another workspace."""

    workspace: str
    name: str
    number: int
    """Its position in the order of the ring."""
    own: bool
    created: float
    origin: str
    ids: tuple[bytes, ...]
    wraps: tuple[WrappedKey, ...]
    sealed: bytes

    def encode(self) -> bytes:
        plain = {
            "number": self.number, "own": self.own, "created": self.created, "origin": self.origin,
            "ids": [identity.hex() for identity in self.ids], "wraps": [wrap.plain() for wrap in self.wraps],
            "sealed": base64.b64encode(self.sealed).decode(),
        }  # fmt: skip
        return json.dumps(plain, sort_keys=True).encode()


def _decode(workspace: str, name: str, data: bytes) -> KeyBatch:
    try:
        plain: dict[str, Any] = json.loads(data)
        ids = tuple(bytes.fromhex(identity) for identity in plain["ids"])
        return KeyBatch(
            workspace, name, plain["number"], plain["own"], plain["created"], plain["origin"], ids,
            decode_wraps(plain["wraps"]), base64.b64decode(plain["sealed"]),
        )  # fmt: skip
    except (ValueError, KeyError, TypeError):
        raise RametError("store_corrupt", "a keyring is damaged", "restore it from a backup") from None


@dataclass
class Keyring:
    """The keys of one workspace."""

    workspace: str
    batches: list[KeyBatch] = field(default_factory=list)
    closed: set[bytes] = field(default_factory=set)
    shredded: set[bytes] = field(default_factory=set)

    @property
    def ids(self) -> list[bytes]:
        """Ids of all keys, in order."""
        order = sorted(self.batches, key=lambda batch: (batch.number, batch.name))
        return list(dict.fromkeys(identity for batch in order for identity in batch.ids))

    def open_batch(self) -> KeyBatch | None:
        """Return the newest own key that no other ring has, and that was not destroyed."""
        no = self.closed | self.shredded
        mine = [batch for batch in self.batches if batch.own and batch.ids[0] not in no]
        return max(mine, key=lambda batch: (batch.number, batch.name), default=None)

    @property
    def next_number(self) -> int:
        return max((batch.number for batch in self.batches), default=0) + 1


class Keyrings:
    """All keyrings of a store. `objects` encrypts with the common key."""

    def __init__(
        self, objects: Objects, key: WrappingKey, clock: Callable[[], float], check: Callable[[WrappingKey], object]
    ) -> None:
        self._objects, self.key, self._clock, self._check = objects, key, clock, check
        self.older: WrappingKey | None = None
        """While rotating, the key before this one."""
        self._batches: dict[str, KeyBatch] = {}
        """By object key: a batch never changes except for its wraps."""
        self._gone: dict[str, frozenset[bytes]] = {}
        self._secrets: dict[bytes, bytes] = {}
        self._ring_keys: dict[bytes, bytes] = {}
        """By wrapped bytes, so that a KMS is asked once per ring."""
        self._homes: dict[bytes, KeyBatch] = {}
        self._shredded: set[bytes] = set()
        self._met: set[str] = set()
        self._lock = threading.RLock()
        renew_after_fork(self, _lock=threading.RLock)

    # ---------------------------------------------------------------------------------------------- reading

    def ring(self, workspace: str) -> Keyring:
        """Read the current ring of a workspace."""
        return self._read(workspace, self._objects.list(f"keys/{workspace}/"), False)

    def preload(self, workspace: str) -> None:
        """Read the ring of a workspace once, so that its keys need no search through all rings."""
        if workspace not in self._met:
            self._met.add(workspace)
            self._read(workspace, self._objects.list(f"keys/{workspace}/"), True)

    def rings(self, *, skip_damaged: bool = False) -> list[Keyring]:
        """Read all rings; with `skip_damaged`, leave out those that cannot be read."""
        found: dict[str, list[str]] = {}
        for key in self._objects.list("keys/"):
            found.setdefault(key.split("/")[1], []).append(key)
        return [self._read(workspace, iter(keys), skip_damaged) for workspace, keys in sorted(found.items())]

    def _read(self, workspace: str, keys: Iterator[str], skip_damaged: bool) -> Keyring:
        ring = Keyring(workspace)
        for key in keys:
            name = key.rpartition("/")[2]
            if name.startswith(_CLOSED):
                ring.closed.add(bytes.fromhex(name.removeprefix(_CLOSED)))
                continue
            try:
                if name.startswith(_SHREDDED):
                    ring.shredded |= self._shredded_ids(key)
                else:
                    ring.batches.append(self._batch(key, workspace, name))
            except KeyError:
                continue  # shredded concurrently
            except RametError:
                if not skip_damaged:
                    raise
        return ring

    def _batch(self, key: str, workspace: str, name: str) -> KeyBatch:
        with self._lock:
            batch = self._batches.get(key)
            if batch is None:
                batch = self._batches[key] = _decode(workspace, name, self._objects.get(key))
                self._homes.update((identity, batch) for identity in batch.ids)
            return batch

    def _shredded_ids(self, key: str) -> frozenset[bytes]:
        with self._lock:
            if key not in self._gone:
                plain = json.loads(self._objects.get(key))
                self._gone[key] = frozenset(bytes.fromhex(identity) for identity in plain["ids"])
                self._shredded |= self._gone[key]
            return self._gone[key]

    @property
    def known(self) -> Set[bytes]:
        """Ids of keys that any ring read so far has or had."""
        return self._homes.keys() | self._shredded if self._shredded else self._homes.keys()

    def secret(self, identity: bytes) -> bytes:
        """Return a data key; `wrong_key` when it was destroyed, `store_corrupt` when no ring ever had it."""
        with self._lock:
            if identity not in self._secrets:
                if identity not in self._homes:
                    self.rings(skip_damaged=True)
                home = self._homes.get(identity)
                if identity in self._shredded:
                    home = self._copy(identity)  # never from the ring that destroyed it, where an old batch may be back
                if home is None and identity in self._shredded:
                    raise RametError(
                        "wrong_key", "cannot decrypt: the key was destroyed", "nothing can restore it",
                        {"shredded": True},
                    )  # fmt: skip
                if home is None:
                    raise RametError(
                        "store_corrupt", "an encrypted object names a key that no keyring has", "run verify"
                    )
                self._open(home)
            return self._secrets[identity]

    def _copy(self, identity: bytes) -> KeyBatch | None:
        """Find a destroyed key in the rings that had taken it over before."""
        rings = [ring for ring in self.rings(skip_damaged=True) if identity not in ring.shredded]
        return next((batch for ring in rings for batch in ring.batches if identity in batch.ids), None)

    def _open(self, batch: KeyBatch) -> None:
        plain = _decrypt_batch(batch, self._ring_key(batch))
        if plain is None:
            raise RametError("store_corrupt", "a keyring is damaged", "restore it from a backup")
        for number, identity in enumerate(batch.ids):
            self._secrets[identity] = plain[number * SECRET : (number + 1) * SECRET]

    def _ring_key(self, batch: KeyBatch) -> bytes:
        for wrap in batch.wraps:
            known = self._ring_keys.get(wrap.data)
            if known is not None:
                return known
        try:
            found = unwrap_key(batch.wraps, self.key, "a keyring")
        except RametError as error:
            if error.code != "wrong_key":
                raise
            other = self._from_siblings(batch)
            if other is None and self.older is None:
                raise
            found = other if other is not None else unwrap_key(batch.wraps, cast(WrappingKey, self.older), "a keyring")
        self._ring_keys.update((wrap.data, found) for wrap in batch.wraps)
        return found

    def _from_siblings(self, batch: KeyBatch) -> bytes | None:
        """Find the key of a ring through its other batches: a writer that missed a rotation may have added this one."""
        for other in self.ring(batch.workspace).batches:
            try:
                found = unwrap_key(other.wraps, self.key, "a keyring")
            except RametError as error:
                if error.code != "wrong_key":
                    raise
                continue
            if _decrypt_batch(batch, found) is not None:
                return found
        return None

    # ---------------------------------------------------------------------------------------------- writing

    def write_key(self, workspace: str) -> tuple[bytes, frozenset[bytes]]:
        """Return the id of the key for new writes of a workspace, and the ids of all keys in its ring."""
        with self._lock:
            ring = self.ring(workspace)
            batch = ring.open_batch()
            if batch is None:
                batch = self._add(ring, [(secrets.token_bytes(KEY_ID), secrets.token_bytes(SECRET))], True, workspace)
            return batch.ids[0], frozenset(ring.ids)

    def _still_valid(self) -> None:
        """Refuse to wrap a new ring with a key that no longer opens the store."""
        self._check(self.key)

    def _add(self, ring: Keyring, keys: list[tuple[bytes, bytes]], own: bool, origin: str) -> KeyBatch:
        if ring.batches:
            older = max(ring.batches, key=lambda batch: batch.number)
            ring_key, wraps = self._ring_key(older), older.wraps
        else:
            self._still_valid()
            ring_key = secrets.token_bytes(SECRET)
            wraps = (WrappedKey(self.key.id, self.key.name, self.key.wrap(ring_key)),)
        nonce = secrets.token_bytes(NONCE)
        sealed = nonce + AESGCM(ring_key).encrypt(nonce, b"".join(secret for _, secret in keys), _RING)
        ids = tuple(identity for identity, _ in keys)
        name = secrets.token_hex(8)
        batch = KeyBatch(ring.workspace, name, ring.next_number, own, self._clock(), origin, ids, wraps, sealed)
        key = f"keys/{ring.workspace}/{batch.name}"
        self._objects.put(key, batch.encode())
        ring.batches.append(batch)
        self._batches[key] = batch
        self._ring_keys.update((wrap.data, ring_key) for wrap in wraps)
        for identity, secret in keys:
            self._homes.setdefault(identity, batch)
            self._secrets[identity] = secret
        return batch

    def share(self, source: str, target: str, newest: bytes) -> None:
        """Copy keys of one workspace to another, up to the key of a revision.

        Both workspaces encrypt later writes with new keys.
        """
        with self._lock:
            theirs, mine = self.ring(source), self.ring(target)
            ids = theirs.ids
            if newest in theirs.shredded and newest not in mine.ids:
                raise _shredded_error(source)
            wanted = ids[: ids.index(newest) + 1] if newest in ids else ids
            missing = [identity for identity in wanted if identity not in mine.ids]
            for batch in theirs.batches:
                if batch.own and batch.ids[0] in missing and batch.ids[0] not in theirs.closed:
                    self._objects.put(f"keys/{source}/{_CLOSED}{batch.ids[0].hex()}", b"closed")
            if not missing:
                return
            added = self._add(mine, [(identity, self.secret(identity)) for identity in missing], False, source)
            # `shred` records the ids before it looks for copies: one of the two sees the other.
            if self.ring(source).shredded.intersection(missing):
                self._objects.delete(f"keys/{target}/{added.name}")
                self.forget()
                raise _shredded_error(source)
            for batch in mine.batches:
                # Later writes may need the copied keys, so they need a later key.
                if batch.own and batch.ids[0] not in mine.closed:
                    self._objects.put(f"keys/{target}/{_CLOSED}{batch.ids[0].hex()}", b"closed")

    # ------------------------------------------------------------------------------- destroying and rotating

    def shred(self, workspace: str) -> tuple[set[bytes], dict[str, int]]:
        """Destroy a ring. Returns the keys that no ring has any longer, and how many keys each other ring still has.

        An interrupted `shred` is completed by the next one.
        """
        with self._lock:
            self.rings()  # an unreadable ring may hold copies: fail before anything is destroyed
            mine = self.ring(workspace)
            if mine.ids:
                plain = {"ids": sorted(identity.hex() for identity in mine.ids), "time": self._clock()}
                # Before the keys go: their objects must read as shredded, not as damaged.
                self._objects.put(f"keys/{workspace}/{_SHREDDED}{secrets.token_hex(8)}", json.dumps(plain).encode())
            for batch in mine.batches:
                self._objects.delete(f"keys/{workspace}/{batch.name}")
            for identity in mine.closed:
                self._objects.delete(f"keys/{workspace}/{_CLOSED}{identity.hex()}")
            self.forget()
            gone = set(mine.ids) | mine.shredded
            # Only now, so that a concurrent fork keeps its copies.
            others = {ring.workspace: set(ring.ids) & gone for ring in self.rings()}
            kept = {name: len(ids) for name, ids in others.items() if ids}
            return gone - {identity for ids in others.values() for identity in ids}, kept

    def forget(self) -> None:
        """Drop everything that was read."""
        with self._lock:
            for known in (self._batches, self._gone, self._secrets, self._ring_keys, self._homes):
                known.clear()
            self._shredded.clear()
            self._met.clear()

    def rewrap(self, new: WrappingKey, *, only: bool) -> int:
        """Wrap all rings for another key as well, or with `only` for that key alone. Data keys are unchanged."""
        done = 0
        wrapped: dict[bytes, WrappedKey] = {}
        with self._lock:
            self.forget()
            for ring in self.rings():
                for batch in ring.batches:
                    theirs = [wrap for wrap in batch.wraps if wrap.key == new.id]
                    if not theirs:
                        ring_key = self._ring_key(batch)
                        if ring_key not in wrapped:
                            wrapped[ring_key] = WrappedKey(new.id, new.name, new.wrap(ring_key))
                        theirs = [wrapped[ring_key]]
                    wraps = tuple(theirs) if only else (*(w for w in batch.wraps if w.key != new.id), *theirs)
                    if wraps != batch.wraps:
                        changed = replace(batch, wraps=wraps)
                        self._objects.put(f"keys/{ring.workspace}/{batch.name}", changed.encode())
                        done += 1
            self.forget()
        return done


def _shredded_error(workspace: str) -> RametError:
    return RametError(
        "workspace_not_found", f"cannot copy the keys of {workspace!r}: they were destroyed", "nothing can restore them"
    )


def _decrypt_batch(batch: KeyBatch, ring_key: bytes) -> bytes | None:
    """Decrypt the data keys of a batch; None when the ring key is wrong."""
    try:
        return AESGCM(ring_key).decrypt(batch.sealed[:NONCE], batch.sealed[NONCE:], _RING)
    except InvalidTag:
        return None
