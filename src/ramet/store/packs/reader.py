"""`PackReader`: read chunks and trees from packs, found through their indexes.

    packs/<id>.pack   "RAMETPK1", then zstd frames, one per block of about 64 KiB, of trees 256 KiB
                      ("RAMETPS1" and encrypted frames where the store is encrypted)
    packs/<id>.idx    "RAMETIX1", count (4), then sorted records:
                      id (32), start of the frame (8), size of the frame (4), offset in the block (4), size (4)

The id of a pack is the BLAKE3 of its bytes. A pack begins with an object of random bytes, so that no two packs have the
same name: a condemned pack that is being removed is never one that a writer has just created. Blocks of files are
small, so that one file is read quickly; trees are read in groups, so their blocks are larger.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence, Set
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from ramet.concurrency.fork import renew_after_fork
from ramet.core.errors import RametError
from ramet.store.crypto.codec import as_encrypted, frame_codec
from ramet.store.model.ids import kind_of
from ramet.store.objects.compression import OBJECT_BYTES, DamagedFrame
from ramet.store.objects.objects import Objects
from ramet.store.packs import catalog as catalogs
from ramet.store.packs.index import Index, Location, MergedIndex
from ramet.store.packs.lazy_index import LazyIndexes
from ramet.store.packs.local_cache import ConsolidationLog, FrameCache, IndexCache

SMALL_PACK_OBJECTS: Final = 1024
"""Objects up to which a pack counts as small."""
LARGE_PACK_BYTES: Final = 1024 * 1024
"""Bytes from which on a pack never counts as small."""
REMOVED_INDEX_BYTES: Final = 1024 * 1024
"""Bytes of indexes that are remembered of removed small packs."""
UNMERGED_INDEXES: Final = 16
"""Indexes of large packs that are searched one by one; more are merged."""
LIST_RETRIES: Final = 8
"""Retries of a listing that overlaps with a consolidation or collection."""
INDEX_CACHE_MIN: Final = 32
"""Indexes from which on they are cached in one file."""
FRAME_CACHE_BYTES: Final = 64 * 1024 * 1024
WHOLE_PACK_BYTES: Final = 256 * 1024
"""Bytes up to which a remote pack is fetched whole, not block by block."""
CONCURRENT_REQUESTS: Final = 16
"""Concurrent requests to a remote store."""


class PackReader:
    """All packs of a store: finds objects by id, caches indexes and recent blocks.

    Thread-safe. Threads that need the same block share one fetch.
    """

    def __init__(self, objects: Objects, keep: int = FRAME_CACHE_BYTES) -> None:
        self._objects = objects
        self._indexes: dict[str, Index] = {}
        self._newest_first: list[Index] = []
        """The indexes of large packs, newest first."""
        self._searched: tuple[list[Index], MergedIndex] = ([], MergedIndex([]))
        """The newest large indexes, searched one by one, and all others merged; replaced as one value."""
        self._lock_indexes = threading.RLock()
        renew_after_fork(self, _lock_indexes=threading.RLock)
        """Held while the tables of packs change; never during I/O."""
        self._small_packs: dict[bytes, set[str]] = {}
        """Names of small packs by their encryption key."""
        self.unreadable: set[str] = set()
        """Damaged packs, which consolidation skips."""
        self._small: dict[bytes, Location] = {}
        """Objects of all small packs; frequent commits create many of those."""
        self._removed_indexes: dict[str, Index] = {}
        """Indexes of removed packs, to find the objects of a stale location again."""
        self.condemned: frozenset[str] = frozenset()
        """Packs that will be removed: readable, but nothing new may refer to them."""
        self._keys: dict[str, bytes] = {}
        """In an encrypted store, the key id of each pack."""
        self._shredded: set[str] = set()
        """Packs whose key was destroyed."""
        self._unopened = LazyIndexes()
        """In an encrypted store, indexes whose keys are not loaded yet."""
        self._opening_lock = threading.RLock()
        renew_after_fork(self, _opening_lock=threading.RLock)
        self._codec = frame_codec(objects)
        self._refreshed_at = -1e9
        self._frames: OrderedDict[tuple[str, int], bytes] = OrderedDict()
        self._checked: dict[tuple[str, int], set[bytes]] = {}
        """The objects of each cached block whose digests were compared."""
        self._in_flight: dict[tuple[str, int], Future[bytes]] = {}
        self._kept, self._keep = 0, keep
        self._lock = threading.Lock()
        renew_after_fork(self, _lock=threading.Lock)
        self.local: str | None = getattr(objects, "local", None)
        self.remote: bool = getattr(objects, "remote", False)
        """Whether reads use the network, so that an event loop must not wait for them."""
        sealed = as_encrypted(objects)
        self.plain_cache = sealed is None or sealed.plain_cache
        """Whether local caches may hold plain files."""
        self.low_memory = False
        """Whether writers make smaller packs to save memory."""
        self._frame_cache = FrameCache(self.local) if self.remote and self.local is not None else None
        self._catalog = IndexCache(self.local) if self.local is not None else None
        self._consolidations = ConsolidationLog(self.local) if self.local is not None else None
        self._cataloged: frozenset[str] = frozenset()
        """Packs known to be in the catalog of a remote store."""

    def refresh(self, older: float = 0.0) -> None:
        """Load packs that other processes have written, unless the last refresh is younger than `older` seconds."""
        now = time.monotonic()
        if now - self._refreshed_at < older:
            self._open_known_indexes()
            return
        for _ in range(LIST_RETRIES):
            if self._refresh_once():
                break
        self._refreshed_at = now
        self._open_known_indexes()

    def _refresh_once(self) -> bool:
        """Load the listed packs; False when one vanished before it was read: list again to find its content."""
        before = [*self._indexes, *self._unopened.names]  # a pack that is added during the listing is not gone
        wanted = {key[6:-4] for key in self._objects.list("packs/") if key.endswith(".idx")}
        gone = [name for name in before if name not in wanted]
        if gone:
            self._unopened.drop(gone)
            self._forget(gone)
        there = self._indexes.keys() | self._shredded | set(self._unopened.names)
        missing = [name for name in wanted if name not in there]
        whole = True
        if missing:
            here = self._catalog.load() if self._catalog is not None and len(missing) > INDEX_CACHE_MIN else {}
            kept = self._fetch_indexes(missing, here) if self.remote else here
            fetched: dict[str, bytes] = {}
            for name in missing:
                try:
                    fetched[name] = self.load(name, kept.get(name), later=True)
                except KeyError:
                    whole = False  # it was removed since it was listed
            if self._catalog is not None and len(missing) - len(here) > INDEX_CACHE_MIN:
                self._catalog.save({name: index for name, index in {**kept, **fetched}.items() if name in wanted})
        return whole

    def _fetch_indexes(self, missing: list[str], kept: dict[str, bytes]) -> dict[str, bytes]:
        """Fetch indexes of a remote store: from its catalog, the rest concurrently."""
        lacking = [name for name in missing if name not in kept]
        if len(lacking) > catalogs.SEPARATE_REQUESTS:
            sealed = as_encrypted(self._objects)
            found = catalogs.load(self._objects if sealed is None else sealed.common)
            self._cataloged = frozenset(found)
            kept = {**found, **kept}
            lacking = [name for name in lacking if name not in found]
        if len(lacking) < 2:
            return kept
        raw: Objects = getattr(self._objects, "raw", self._objects)

        def get(name: str) -> tuple[str, bytes]:
            try:
                return name, raw.get(f"packs/{name}.idx")
            except KeyError:
                return name, b""  # removed since it was listed; requested again later

        with ThreadPoolExecutor(CONCURRENT_REQUESTS, "ramet-indexes") as pool:
            return {**kept, **{name: data for name, data in pool.map(get, lacking) if data}}

    def publish(self, lacking: int = 1) -> None:
        """Rewrite the catalog of a remote store if at least `lacking` small indexes are missing from it.

        A store with few packs has no catalog.
        """
        if not self.remote:
            return
        there = [(name, index.data) for name, index in list(self._indexes.items())]
        small = {name: data for name, data in there if len(data) <= catalogs.INDEX_BYTES}
        if len(small) > catalogs.SEPARATE_REQUESTS and len(small.keys() - self._cataloged) >= lacking:
            sealed = as_encrypted(self._objects)
            if sealed is None:
                catalogs.save(self._objects, small)
            else:
                resealed = {name: sealed.index(name, data, self._keys[name]) for name, data in small.items()}
                catalogs.save(sealed.common, {**self._unopened.small(catalogs.INDEX_BYTES), **resealed})
            self._cataloged = frozenset(small)

    def _forget(self, gone: Iterable[str]) -> None:
        """Drop removed packs. Keeps the indexes of large ones, and of the last small ones."""
        with self._lock_indexes:
            for name in gone:
                index = self._indexes.pop(name, None)
                if index is not None:
                    self._removed_indexes[name] = index
                    self._small_packs.get(self._keys[name], set()).discard(name)
            room = REMOVED_INDEX_BYTES
            for name in reversed(list(self._removed_indexes)):
                if self._removed_indexes[name].count <= SMALL_PACK_OBJECTS:
                    room -= len(self._removed_indexes[name].data)
                    if room < 0:
                        del self._removed_indexes[name]
                        self._keys.pop(name, None)
            self._arrange()

    def _open_known_indexes(self) -> None:
        """Decrypt the indexes whose keys are loaded by now."""
        sealed = as_encrypted(self._objects)
        if sealed is not None and self._unopened:
            self._open_indexes(sealed.keychain.rings.known)

    def _open_indexes(self, keys: Set[bytes] | None = None) -> None:
        """Decrypt deferred indexes: all, or those with these keys. A damaged one does not stop the others."""
        failure: RametError | None = None
        with self._opening_lock:
            for name, data in self._unopened.take(keys):
                try:
                    self.load(name, data)
                except RametError as error:
                    failure = error
        if failure is not None:
            raise failure

    def load(self, name: str, data: bytes | None = None, *, later: bool = False) -> bytes:
        """Add a pack by its index, read from the store or from a cache; returns the stored bytes of the index.

        A pack whose key was destroyed is skipped. With `later`, an index whose key is not loaded is decrypted only when
        an object is found nowhere else.
        """
        key = f"packs/{name}.idx"
        sealed = as_encrypted(self._objects)
        if sealed is None:
            data = data or self._objects.get(key)
            self.add(name, data)
            return data
        data = data or sealed.raw.get(key)
        identity = sealed.keychain.sealer.key_of(data)
        if later and identity not in sealed.keychain.rings.known:
            self._unopened.put(name, identity, data)
            return data
        try:
            self.add(name, sealed.decrypt(key, data), identity)
        except RametError as error:
            if not error.context.get("shredded"):
                raise
            self._shredded.add(name)
        return data

    def add(self, name: str, index: bytes, sealed_with: bytes = b"") -> None:
        found = Index(name, index)
        table = found.table() if found.count <= SMALL_PACK_OBJECTS else {}
        with self._lock_indexes:
            self._keys[name] = sealed_with
            if table:
                self._small.update((key, Location(name, *where)) for key, where in table.items())
                if max(start + length for start, length, _, _ in table.values()) < LARGE_PACK_BYTES:
                    self._small_packs.setdefault(sealed_with, set()).add(name)
            else:
                self._newest_first = [found, *self._newest_first]
                self._searched = ([found, *self._searched[0]], self._searched[1])
            self._indexes[name] = found

    def condemn(self, names: frozenset[str]) -> None:
        """Set the packs that nothing new may refer to. Other copies of their objects are found first."""
        if names != self.condemned:
            self.condemned = names
            self._arrange()

    def _arrange(self) -> None:
        """Rebuild the search order: the last added pack is searched first."""
        with self._lock_indexes:
            order = sorted(self._indexes.values(), key=lambda index: index.pack not in self.condemned)
            small: dict[bytes, Location] = {}
            for index in order:
                if index.count <= SMALL_PACK_OBJECTS:
                    small.update((key, Location(index.pack, *where)) for key, where in index.table().items())
            self._small = small
            self._newest_first = [index for index in reversed(order) if index.count > SMALL_PACK_OBJECTS]
            self._searched = (self._newest_first, MergedIndex([]))

    def _merge(self) -> tuple[list[Index], MergedIndex]:
        """Merge many indexes: a busy server adds a pack for every few megabytes."""
        with self._lock_indexes:
            self._searched = ([], MergedIndex(self._newest_first))
            return self._searched

    def keeps(self, key: bytes, keys: frozenset[bytes] | None = None) -> bool:
        """Return whether a pack that stays has this object, with one of `keys` if given."""
        place = self.find(key)
        if self._unopened and (place is None or not self._usable(place.pack, keys)):
            self._open_indexes(keys)
            place = self.find(key)
        if place is None or self._usable(place.pack, keys):
            return place is not None
        return any(index.find(key) for name, index in list(self._indexes.items()) if self._usable(name, keys))

    def _usable(self, pack: str, keys: frozenset[bytes] | None) -> bool:
        return pack not in self.condemned and (keys is None or self._keys.get(pack) in keys)

    def packs(self) -> list[str]:
        """List all packs that can be decrypted."""
        if self._unopened:
            self._open_indexes()
        return sorted(self._indexes)

    def names(self) -> list[str]:
        """List the names of all packs, without decrypting any index."""
        return sorted([*self._indexes, *self._unopened.names])

    def opened(self) -> list[str]:
        """List the packs whose indexes are decrypted."""
        return sorted(self._indexes)

    def all_names(self) -> set[str]:
        """Return all packs with an index, readable or not."""
        return {*self._indexes, *self._unopened.names, *self._shredded}

    @property
    def most_small_packs(self) -> int:
        """The largest number of small packs with one key, which could be one pack."""
        return max(map(len, self._small_packs.values()), default=0)

    def small_packs(self) -> list[list[str]]:
        """List the small packs, grouped by key."""
        with self._lock_indexes:
            return [sorted(names) for names in self._small_packs.values()]

    def record_consolidation(self, gone: list[str], into: list[str]) -> None:
        """Record in the local cache that packs replaced others."""
        if self._consolidations is not None:
            self._consolidations.add(gone, into)

    def names_before_consolidation(self) -> set[str]:
        """Return the names of all packs, and of the packs that were consolidated into them."""
        names = set(self.names())
        return names if self._consolidations is None else self._consolidations.names_before_consolidation(names)

    def key_of(self, name: str) -> bytes:
        """Return the key id of a pack; empty in a plain store.

        Copies of an object under two keys count as two objects: a reader may have only one of the keys.
        """
        return self._keys[name]

    def index(self, name: str) -> Index:
        return self._indexes[name]

    def find(self, key: bytes) -> Location | None:
        place = self._small.get(key)
        if place is not None:
            return place
        newest, merged = self._searched
        if len(newest) > UNMERGED_INDEXES:
            newest, merged = self._merge()
        for index in newest:
            place = index.find(key)
            if place is not None:
                return place
        return merged.find(key)

    def place(self, key: bytes) -> Location:
        """Return the location of an object; `store_corrupt` when there is none."""
        found = self.find(key)
        if found is None and self._unopened:
            self._open_known_indexes()  # without a request
            found = self.find(key)
        for _ in range(2):  # a consolidation during the listing can hide both the old and the new packs
            if found is None:
                self.refresh()
                found = self.find(key)
        if found is None and self._unopened:
            self._open_indexes()
            found = self.find(key)
        if found is None:
            raise RametError("store_corrupt", f"object {key.hex()} is missing", "run verify to see what it affects")
        return found

    def has(self, key: bytes) -> bool:
        """Return whether an object exists, also in a pack whose index is not open yet."""
        if self.find(key) is None and self._unopened:
            self._open_indexes()
        return self.find(key) is not None

    def places(self, keys: set[bytes]) -> dict[bytes, Location]:
        """Return the locations of many objects."""
        found = {key: place for key in keys if (place := self._small.get(key)) is not None}
        left = keys - found.keys()
        for index in self._searched[0]:
            if left:
                found.update(index.find_all(left))
                left = left - found.keys()
        for key in left:
            found[key] = self.place(key)
        return found

    def known(self, keys: frozenset[bytes] | None = None) -> MergedIndex:
        """Return a merged index of all packs that stay (and have one of these keys), for many lookups."""
        if self._unopened:
            self._open_indexes(keys)
        return MergedIndex([index for name, index in list(self._indexes.items()) if self._usable(name, keys)])

    def read(self, key: bytes) -> bytes:
        place = self.place(key)
        try:
            frame = self.frame(place)
            if place.pack not in self._indexes:  # removed concurrently; objects in use have another location
                place = self.place(key)
                frame = self.frame(place)
        except RametError as error:
            raise _unreadable(key, error) from error
        return self._object(key, place, frame)

    def _object(self, key: bytes, place: Location, frame: bytes) -> bytes:
        """Return the object of a block; `store_corrupt` when its digest is wrong.

        Frames and indexes have no checksums, and a writer of the bucket may swap blocks: only the id tells. An object
        of a cached block is digested once.
        """
        data = frame[place.offset : place.offset + place.size]
        checked = self._checked.get((place.pack, place.start))
        if checked is None or key not in checked:
            if kind_of(key, data) is None:
                raise RametError("store_corrupt", f"object {key.hex()} has a wrong digest", "run verify, then repair")
            if checked is not None:
                checked.add(key)
        return data

    def stream(self, keys: Iterable[bytes]) -> Iterator[bytes]:
        """Yield objects in order without filling the cache, for large sequential reads."""
        last: tuple[str, int] | None = None
        frame = b""
        for key in keys:
            place = self.place(key)
            if (place.pack, place.start) != last:
                kept = self._frames.get((place.pack, place.start))
                try:
                    frame = self.fetch(place) if kept is None else kept
                except RametError as error:
                    raise _unreadable(key, error) from error
                last = place.pack, place.start
            if place.pack not in self._indexes:
                last = None
                yield self.read(key)
            else:
                yield self._object(key, place, frame)

    def limit_memory(self) -> None:
        """Use little memory, for servers that hold many stores."""
        self.low_memory, self._keep = True, 8 * 1024 * 1024

    def cached(self, key: bytes) -> bytes | None:
        """Return an object whose block is cached; None otherwise."""
        place = self.find(key)
        if place is None:
            return None
        frame = self._frames.get((place.pack, place.start))
        return None if frame is None else self._object(key, place, frame)

    def frame(self, place: Location) -> bytes:
        """Return the block of an object; cached, and fetched once for concurrent callers."""
        key = (place.pack, place.start)
        with self._lock:
            frame = self._frames.get(key)
            if frame is not None:
                self._frames.move_to_end(key)
                return frame
            coming = self._in_flight.get(key)
            mine = coming is None
            if coming is None:
                coming = self._in_flight[key] = Future()
        if not mine:
            return coming.result()
        try:
            found = self._whole_pack(place) if self.remote else {}
            frame = found.pop(place.start, None) or self.fetch(place)
        except BaseException as error:
            with self._lock:
                del self._in_flight[key]
            coming.set_exception(error)
            raise
        with self._lock:
            for start, block in [*found.items(), (place.start, frame)]:
                if (place.pack, start) not in self._frames:
                    self._frames[place.pack, start] = block
                    self._checked[place.pack, start] = set()
                    self._kept += len(block)
            while self._kept > self._keep and len(self._frames) > 1:
                evicted, oldest = self._frames.popitem(last=False)
                self._checked.pop(evicted, None)
                self._kept -= len(oldest)
            del self._in_flight[key]
        coming.set_result(frame)
        return frame

    def _whole_pack(self, place: Location) -> dict[int, bytes]:
        """Fetch all blocks of a small pack, by start: objects written together are mostly read together."""
        index, shelf = self._indexes.get(place.pack), self._frame_cache
        if index is None or index.count > SMALL_PACK_OBJECTS or (shelf is not None and shelf.has(_frame_name(place))):
            return {}
        ends: dict[tuple[int, int], int] = {}
        for start, length, offset, size in index.table().values():
            ends[start, length] = max(offset + size, ends.get((start, length), 0))
        spans = sorted(ends)
        if len(spans) < 2 or sum(spans[-1]) > WHOLE_PACK_BYTES:
            return {}
        blocks = {start: Location(place.pack, start, length, 0, ends[start, length]) for start, length in spans}
        try:
            raw = self._raw(list(blocks.values()))
            return {start: self._codec.unpack(frame, bound=blocks[start].block_bound) for start, frame in raw.items()}
        except (KeyError, DamagedFrame):
            return {}  # the fetch of the single block reports the error or finds the new location

    def prefetch(self, keys: Iterable[bytes]) -> None:
        """Fetch objects of a remote store into the cache concurrently."""
        places = [place for key in keys if (place := self.find(key)) is not None]
        wanted = {(p.pack, p.start): p for p in places if (p.pack, p.start) not in self._frames}
        if self.remote and wanted:
            with ThreadPoolExecutor(CONCURRENT_REQUESTS, "ramet-packs") as pool:
                list(pool.map(self.frame, wanted.values()))

    def fetch(self, place: Location, most: int | None = None) -> bytes:
        """Fetch the block of an object, or its first `most` bytes, without caching it."""
        shelf = self._frame_cache
        name = _frame_name(place)
        raw = shelf.get(name) if shelf is not None else None
        try:
            if max(place.length, place.block_bound) > 2 * OBJECT_BYTES:
                raise DamagedFrame("its index names more bytes than an object has")
            if raw is None:
                raw = self._objects.get_range(f"packs/{place.pack}.pack", place.start, place.length)
                if shelf is not None:
                    shelf.put(name, raw)
            return self._codec.unpack(raw, most, place.block_bound)
        except KeyError as error:
            moved = self._rebuilt_block(place)
            if moved is None:
                raise RametError("store_corrupt", f"pack {place.pack} is damaged or gone", "run verify") from error
            return moved
        except DamagedFrame as error:
            if shelf is not None:
                shelf.drop(name)
            raise RametError("store_corrupt", f"pack {place.pack} is damaged: {error}", "run verify") from error

    def fetch_run(self, run: Sequence[Location], enough: int) -> Iterator[bytes]:
        """Fetch adjacent blocks with one request, and unpack them one by one.

        A block of which less than `enough` is needed, by the size of its location, is unpacked only that far.
        """
        try:
            raw = self._raw(run) if len(run) > 1 else {}
        except KeyError:
            raw = {}  # the fetch of each block finds its new location or reports the error
        for place in run:
            most = place.size if place.size < enough else None
            found = raw.pop(place.start, None)
            try:
                block = self.fetch(place, most) if found is None else self._codec.unpack(found, most, place.block_bound)
            except DamagedFrame:
                block = self.fetch(place, most)
            yield block

    def _raw(self, run: Sequence[Location]) -> dict[int, bytes]:
        """Read frames of a pack by start, from the cache where possible."""
        shelf, found = self._frame_cache, dict[int, bytes]()
        names = {place.start: _frame_name(place) for place in run}
        if shelf is not None:
            found = {start: kept for start, name in names.items() if (kept := shelf.get(name)) is not None}
        lacking = [place for place in run if place.start not in found]
        if not lacking:
            return found
        begin, end = lacking[0].start, lacking[-1].start + lacking[-1].length
        whole = self._objects.get_range(f"packs/{run[0].pack}.pack", begin, end - begin)
        for place in lacking:
            raw = found[place.start] = whole[place.start - begin : place.start - begin + place.length]
            if shelf is not None:
                shelf.put(names[place.start], raw)
        return found

    def cache_frame(self, pack: str, start: int, frame: bytes) -> None:
        """Cache a frame that was just written to a remote store."""
        if self._frame_cache is not None:
            self._frame_cache.put(f"{pack}-{start}.frame", frame)

    def _rebuilt_block(self, place: Location) -> bytes | None:
        """Rebuild a block of a removed pack from other packs; unknown bytes are zeros.

        Readers of one object find it again by its id, and checkouts compare digests.
        """
        self.refresh()
        index = self._removed_indexes.get(place.pack)
        if index is None:
            return None
        block = bytearray()
        found = False
        for key, (start, _, offset, size) in index.table().items():
            if start == place.start:
                block.extend(bytes(max(0, offset + size - len(block))))
                if self.find(key) is not None:
                    block[offset : offset + size] = self.read(key)
                    found = True
        return bytes(block) if found else None


def _unreadable(key: bytes, error: RametError) -> RametError:
    """Add the name of the object to an error about its block."""
    if error.code != "store_corrupt" or key.hex() in error.cause:
        return error
    return RametError(error.code, f"object {key.hex()} cannot be read: {error.cause}", error.remediation, error.context)


def _frame_name(place: Location) -> str:
    """Return the cache name of a frame."""
    return f"{place.pack}-{place.start}.frame"
