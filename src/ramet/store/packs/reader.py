"""Packs: many chunks and trees in one object, joined into blocks that are compressed together, with an index beside it.

    packs/<id>.pack   "RAMETPK1", then zstd frames, one per block of about 64 KiB, of trees 256 KiB
                      ("RAMETPS1" and sealed ones where the store is encrypted)
    packs/<id>.idx    "RAMETIX1", count (4), then sorted records:
                      id (32), start of the frame (8), size of the frame (4), offset in the block (4), size (4)

The id of a pack is the BLAKE3 of its bytes. A pack begins with an object of a few random bytes, so that no two have
the same name: one that was condemned and is removed cannot be one that a writer has just made. Blocks of files are
small enough that one file alone is had soon, and large enough to compress; whoever reads trees reads many of them.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence, Set
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from ramet.core.errors import RametError
from ramet.store.crypto.codec import as_encrypted, frame_codec
from ramet.store.model.ids import chunk_id, tree_id
from ramet.store.objects.compression import DamagedFrame
from ramet.store.objects.objects import Objects
from ramet.store.packs import catalog as catalogs
from ramet.store.packs.index import Index, Location, MergedIndex
from ramet.store.packs.lazy_index import LazyIndexes
from ramet.store.packs.local_cache import ConsolidationLog, FrameCache, IndexCache

SMALL: Final = 1024
"""Objects up to which a pack is small."""
LARGE: Final = 1024 * 1024
"""Bytes from which on a pack is not small however few objects it has."""
DEPARTED: Final = 1024 * 1024
"""Bytes of the indexes of small packs that are remembered when the packs are gone."""
SEVERAL: Final = 16
"""Indexes of packs that are not small which are searched one by one."""
OVERTAKEN: Final = 8
"""Times that packs are listed again because some of them were joined or collected meanwhile."""
CATALOG: Final = 32
"""Indexes that are worth one file of them all."""
KEPT_FRAMES: Final = 64 * 1024 * 1024
NEAR: Final = 256 * 1024
"""Bytes up to which a pack of a remote store is rather fetched as a whole than block by block."""
AT_ONCE: Final = 16
"""Requests that a remote store is asked at a time."""


class PackReader:
    """All packs of a store: finds objects by id, keeps indexes and the last frames.

    Any thread may read. Several that need the same frame at once fetch it once.
    """

    def __init__(self, objects: Objects, keep: int = KEPT_FRAMES) -> None:
        self._objects = objects
        self._indexes: dict[str, Index] = {}
        self._newest_first: list[Index] = []
        """The indexes of packs that are not small."""
        self._searched: tuple[list[Index], MergedIndex] = ([], MergedIndex([]))
        """The newest of them, which are searched one by one, and the others at once; exchanged as one value."""
        self._lock_indexes = threading.RLock()
        """Held by whoever changes what is known of packs, which takes no time."""
        self._small_packs: dict[bytes, set[str]] = {}
        """The small packs by the key that they are sealed with."""
        self.unreadable: set[str] = set()
        """Packs that could not be joined with others because they are damaged."""
        self._small: dict[bytes, Location] = {}
        """What small packs hold: a store that is committed to often has very many of them."""
        self._removed_indexes: dict[str, Index] = {}
        """Indexes of packs that were here and are gone: whoever still has a place in one is told where it is now."""
        self.condemned: frozenset[str] = frozenset()
        """Packs that will be removed: they are read, but nothing new may rely on them."""
        self._keys: dict[str, bytes] = {}
        """In an encrypted store, the id of the key that a pack is sealed with."""
        self._shredded: set[str] = set()
        """Packs whose key was destroyed."""
        self._unopened = LazyIndexes()
        """In an encrypted store, packs of workspaces that nobody has asked for yet."""
        self._opening_lock = threading.RLock()
        self._codec = frame_codec(objects)
        self._refreshed_at = -1e9
        self._frames: OrderedDict[tuple[str, int], bytes] = OrderedDict()
        self._in_flight: dict[tuple[str, int], Future[bytes]] = {}
        self._kept, self._keep = 0, keep
        self._lock = threading.Lock()
        self.local: str | None = getattr(objects, "local", None)
        self.remote: bool = getattr(objects, "remote", False)
        """Whether a read may take long, so that an event loop must not wait for it."""
        sealed = as_encrypted(objects)
        self._sealed = sealed is not None
        self.plain_cache = sealed is None or sealed.plain_cache
        """Whether whole files may be kept on this machine as they are."""
        self.low_memory = False
        """Whether whoever writes here would rather have smaller packs than use more memory."""
        self._frame_cache = FrameCache(self.local) if self.remote and self.local is not None else None
        self._catalog = IndexCache(self.local) if self.local is not None else None
        self._consolidations = ConsolidationLog(self.local) if self.local is not None else None
        self._cataloged: frozenset[str] = frozenset()
        """Packs whose indexes the catalog of a remote store has, as far as is known."""

    def refresh(self, older: float = 0.0) -> None:
        """Learn of packs that others have written, if the last look is `older` than this many seconds."""
        now = time.monotonic()
        if now - self._refreshed_at < older:
            self._open_known_indexes()
            return
        for _ in range(OVERTAKEN):
            if self._refresh_once():
                break
        self._refreshed_at = now
        self._open_known_indexes()

    def _refresh_once(self) -> bool:
        """Learn of the packs that are listed; False if one was gone before it was read: it was joined with others, and
        where its content is now only another listing tells."""
        before = [*self._indexes, *self._unopened.names]  # what is added while this lists is not gone
        wanted = {key[6:-4] for key in self._objects.list("packs/") if key.endswith(".idx")}
        gone = [name for name in before if name not in wanted]
        if gone:
            self._unopened.drop(gone)
            self._forget(gone)
        there = self._indexes.keys() | self._shredded | set(self._unopened.names)
        missing = [name for name in wanted if name not in there]
        whole = True
        if missing:
            here = self._catalog.load() if self._catalog is not None and len(missing) > CATALOG else {}
            kept = self._fetch_indexes(missing, here) if self.remote else here
            fetched: dict[str, bytes] = {}
            for name in missing:
                try:
                    fetched[name] = self.load(name, kept.get(name), later=True)
                except KeyError:
                    whole = False  # it was removed since it was listed
            if self._catalog is not None and len(missing) - len(here) > CATALOG:
                self._catalog.save({name: index for name, index in {**kept, **fetched}.items() if name in wanted})
        return whole

    def _fetch_indexes(self, missing: list[str], kept: dict[str, bytes]) -> dict[str, bytes]:
        """Indexes as they lie in a remote store: those of its catalog at once, and of the others several at a time."""
        lacking = [name for name in missing if name not in kept]
        if len(lacking) > catalogs.FEW:
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
                return name, b""  # it was removed since it was listed, and will be asked for again

        with ThreadPoolExecutor(AT_ONCE, "ramet-indexes") as pool:
            return {**kept, **{name: data for name, data in pool.map(get, lacking) if data}}

    def publish(self, lacking: int = 1) -> None:
        """Write the catalog of a remote store anew if it lacks so many small indexes; for those who write to it.

        A store with few packs needs none.
        """
        if not self.remote:
            return
        there = [(name, index.data) for name, index in list(self._indexes.items())]
        small = {name: data for name, data in there if len(data) <= catalogs.EACH}
        if len(small) > catalogs.FEW and len(small.keys() - self._cataloged) >= lacking:
            sealed = as_encrypted(self._objects)
            if sealed is None:
                catalogs.save(self._objects, small)
            else:
                resealed = {name: sealed.index(name, data, self._keys[name]) for name, data in small.items()}
                catalogs.save(sealed.common, {**self._unopened.small(catalogs.EACH), **resealed})
            self._cataloged = frozenset(small)

    def _forget(self, gone: Iterable[str]) -> None:
        """Packs are gone. Of large ones the indexes are remembered, of small ones the last."""
        with self._lock_indexes:
            for name in gone:
                index = self._indexes.pop(name, None)
                if index is not None:
                    self._removed_indexes[name] = index
                    self._small_packs.get(self._keys[name], set()).discard(name)
            room = DEPARTED
            for name in reversed(list(self._removed_indexes)):
                if self._removed_indexes[name].count <= SMALL:
                    room -= len(self._removed_indexes[name].data)
                    if room < 0:
                        del self._removed_indexes[name]
                        self._keys.pop(name, None)
            self._arrange()

    def _open_known_indexes(self) -> None:
        """Open the indexes of workspaces that were asked for by now."""
        sealed = as_encrypted(self._objects)
        if sealed is not None and self._unopened:
            self._open_indexes(sealed.keychain.rings.known)

    def _open_indexes(self, keys: Set[bytes] | None = None) -> None:
        """Open indexes that were left for later: all, or those with these keys. A damaged one stops no other."""
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
        """Add a pack by its index, as it lies in the store or was kept of it; gives the index as it lies there.

        A pack whose key was destroyed is left out: nobody can say what was in it. With `later`, one whose key nobody
        has asked for is opened when something is looked for that is not found elsewhere.
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
            self.add(name, sealed.opened(key, data), identity)
        except RametError as error:
            if not error.context.get("shredded"):
                raise
            self._shredded.add(name)
        return data

    def add(self, name: str, index: bytes, sealed_with: bytes = b"") -> None:
        found = Index(name, index)
        table = found.table() if found.count <= SMALL else {}
        with self._lock_indexes:
            self._keys[name] = sealed_with
            if table:
                self._small.update((key, Location(name, *where)) for key, where in table.items())
                if max(start + length for start, length, _, _ in table.values()) < LARGE:
                    self._small_packs.setdefault(sealed_with, set()).add(name)
            else:
                self._newest_first = [found, *self._newest_first]
                self._searched = ([found, *self._searched[0]], self._searched[1])
            self._indexes[name] = found

    def condemn(self, names: frozenset[str]) -> None:
        """Say which packs nothing new may rely on. Where an object has another copy, that one is found first."""
        if names != self.condemned:
            self.condemned = names
            self._arrange()

    def _arrange(self) -> None:
        """Put what is searched in order: the last that is added is found first."""
        with self._lock_indexes:
            order = sorted(self._indexes.values(), key=lambda index: index.pack not in self.condemned)
            small: dict[bytes, Location] = {}
            for index in order:
                if index.count <= SMALL:
                    small.update((key, Location(index.pack, *where)) for key, where in index.table().items())
            self._small = small
            self._newest_first = [index for index in reversed(order) if index.count > SMALL]
            self._searched = (self._newest_first, MergedIndex([]))

    def _merge(self) -> tuple[list[Index], MergedIndex]:
        """Let very many indexes be one: a store that a server writes to has a pack for every few megabytes."""
        with self._lock_indexes:
            self._searched = ([], MergedIndex(self._newest_first))
            return self._searched

    def keeps(self, key: bytes, keys: frozenset[bytes] | None = None) -> bool:
        """Whether the store has an object in a pack that stays, sealed with one of these keys if some are given."""
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
        """All packs that can be opened."""
        if self._unopened:
            self._open_indexes()
        return sorted(self._indexes)

    def names(self) -> list[str]:
        """The names of all packs, without opening any."""
        return sorted([*self._indexes, *self._unopened.names])

    def opened(self) -> list[str]:
        """The packs whose indexes are open."""
        return sorted(self._indexes)

    def all_names(self) -> set[str]:
        """All packs that have an index, whether or not anybody can open it."""
        return {*self._indexes, *self._unopened.names, *self._shredded}

    @property
    def most_small_packs(self) -> int:
        """How many small packs there are that could be one."""
        return max(map(len, self._small_packs.values()), default=0)

    def small_packs(self) -> list[list[str]]:
        """The small packs, those with the same key together."""
        with self._lock_indexes:
            return [sorted(names) for names in self._small_packs.values()]

    def record_consolidation(self, gone: list[str], into: list[str]) -> None:
        """Remember on this machine that what was in some packs is in others now."""
        if self._consolidations is not None:
            self._consolidations.add(gone, into)

    def names_before_consolidation(self) -> set[str]:
        """The names of all packs, and of those that were joined into them: what was there then is there now."""
        names = set(self.names())
        return names if self._consolidations is None else self._consolidations.names_before_consolidation(names)

    def key_of(self, name: str) -> bytes:
        """The id of the key that a pack is sealed with; empty in a store that is not encrypted.

        Copies of an object under two keys are two objects to whoever removes packs: those who have one key may not have
        the other.
        """
        return self._keys[name]

    def index(self, name: str) -> Index:
        return self._indexes[name]

    def find(self, key: bytes) -> Location | None:
        place = self._small.get(key)
        if place is not None:
            return place
        newest, merged = self._searched
        if len(newest) > SEVERAL:
            newest, merged = self._merge()
        for index in newest:
            place = index.find(key)
            if place is not None:
                return place
        return merged.find(key)

    def place(self, key: bytes) -> Location:
        """Where an object is; `store_corrupt` when the store has no such object."""
        found = self.find(key)
        if found is None and self._unopened:
            self._open_known_indexes()  # which asks the store for nothing
            found = self.find(key)
        for _ in range(2):  # packs may be joined while they are listed, and neither the old nor the new ones be seen
            if found is None:
                self.refresh()
                found = self.find(key)
        if found is None and self._unopened:
            self._open_indexes()
            found = self.find(key)
        if found is None:
            raise RametError("store_corrupt", f"object {key.hex()} is missing", "run verify to see what it affects")
        return found

    def places(self, keys: set[bytes]) -> dict[bytes, Location]:
        """Where many objects are."""
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
        """All packs that stay (and have one of these keys) at once, for a commit that asks often."""
        if self._unopened:
            self._open_indexes(keys)
        return MergedIndex([index for name, index in list(self._indexes.items()) if self._usable(name, keys)])

    def read(self, key: bytes) -> bytes:
        place = self.place(key)
        frame = self.frame(place)
        if place.pack not in self._indexes:  # it was removed meanwhile; what is still needed has another place
            place = self.place(key)
            frame = self.frame(place)
        return self._checked(key, frame[place.offset : place.offset + place.size])

    def _checked(self, key: bytes, data: bytes) -> bytes:
        """An object; in an encrypted store only with its digest: who can write to the bucket may exchange blocks."""
        if self._sealed and chunk_id(data) != key and tree_id(data) != key:
            raise RametError("store_corrupt", f"object {key.hex()} does not have its digest", "run verify, then repair")
        return data

    def stream(self, keys: Iterable[bytes]) -> Iterator[bytes]:
        """Objects one after the other, for those who read much and all of it once: only what was kept stays kept."""
        last: tuple[str, int] | None = None
        frame = b""
        for key in keys:
            place = self.place(key)
            if (place.pack, place.start) != last:
                kept = self._frames.get((place.pack, place.start))
                frame = self.fetch(place) if kept is None else kept
                last = place.pack, place.start
            if place.pack not in self._indexes:
                last = None
                yield self.read(key)
            else:
                yield self._checked(key, frame[place.offset : place.offset + place.size])

    def limit_memory(self) -> None:
        """Use little memory: for a process that serves many and has to stay small."""
        self.low_memory, self._keep = True, 8 * 1024 * 1024

    def cached(self, key: bytes) -> bytes | None:
        """An object that can be had without waiting for anybody."""
        place = self.find(key)
        if place is None:
            return None
        frame = self._frames.get((place.pack, place.start))
        return None if frame is None else self._checked(key, frame[place.offset : place.offset + place.size])

    def frame(self, place: Location) -> bytes:
        """The block that an object is in; kept for a while, fetched once however many ask."""
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
                    self._kept += len(block)
            while self._kept > self._keep and len(self._frames) > 1:
                _, oldest = self._frames.popitem(last=False)
                self._kept -= len(oldest)
            del self._in_flight[key]
        coming.set_result(frame)
        return frame

    def _whole_pack(self, place: Location) -> dict[int, bytes]:
        """All blocks of a small pack by where they start: what was written together is mostly read together."""
        index, shelf = self._indexes.get(place.pack), self._frame_cache
        if index is None or index.count > SMALL or (shelf is not None and shelf.has(_frame_name(place))):
            return {}
        spans = sorted({(start, length) for start, length, _, _ in index.table().values()})
        if len(spans) < 2 or sum(spans[-1]) > NEAR:
            return {}
        try:
            raw = self._raw([Location(place.pack, start, length, 0, 0) for start, length in spans])
            return {start: self._codec.unpack(frame) for start, frame in raw.items()}
        except (KeyError, DamagedFrame):
            return {}  # whoever asks for the one is told what is wrong, or where it is now

    def prefetch(self, keys: Iterable[bytes]) -> None:
        """Have objects of a remote store at hand, asking for several at a time."""
        places = [place for key in keys if (place := self.find(key)) is not None]
        wanted = {(p.pack, p.start): p for p in places if (p.pack, p.start) not in self._frames}
        if self.remote and wanted:
            with ThreadPoolExecutor(AT_ONCE, "ramet-packs") as pool:
                list(pool.map(self.frame, wanted.values()))

    def fetch(self, place: Location, most: int | None = None) -> bytes:
        """The block that an object is in, or its beginning, without keeping it: for those who read everything once."""
        shelf = self._frame_cache
        name = _frame_name(place)
        raw = shelf.get(name) if shelf is not None else None
        try:
            if raw is None:
                raw = self._objects.get_range(f"packs/{place.pack}.pack", place.start, place.length)
                if shelf is not None:
                    shelf.put(name, raw)
            return self._codec.unpack(raw, most)
        except KeyError as error:
            moved = self._rebuilt_block(place)
            if moved is None:
                raise RametError("store_corrupt", f"pack {place.pack} is damaged or gone", "run verify") from error
            return moved
        except DamagedFrame as error:
            if shelf is not None:
                shelf.drop(name)
            raise RametError("store_corrupt", f"pack {place.pack} is damaged or gone", "run verify") from error

    def fetch_run(self, run: Sequence[Location], enough: int) -> Iterator[bytes]:
        """Blocks that lie one after the other, asked for at once, and unpacked one by one.

        A block of which less than `enough` is wanted, as the size of its place says, is unpacked that far.
        """
        try:
            raw = self._raw(run) if len(run) > 1 else {}
        except KeyError:
            raw = {}  # whoever asks for one is told where it is now, or what is wrong
        for place in run:
            most = place.size if place.size < enough else None
            found = raw.pop(place.start, None)
            try:
                block = self.fetch(place, most) if found is None else self._codec.unpack(found, most)
            except DamagedFrame:
                block = self.fetch(place, most)
            yield block

    def _raw(self, run: Sequence[Location]) -> dict[int, bytes]:
        """Frames as they lie in a pack, by where they start; those that are at hand are not asked for."""
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
        """Keep a frame of a remote store at hand that was just written there."""
        if self._frame_cache is not None:
            self._frame_cache.put(f"{pack}-{start}.frame", frame)

    def _rebuilt_block(self, place: Location) -> bytes | None:
        """A block of a pack that was removed, made of what other packs hold of it; the rest is zeros.

        Those who asked for one object find it again by its id, and those who write files check digests.
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


def _frame_name(place: Location) -> str:
    """What a block of a remote store is called on this machine."""
    return f"{place.pack}-{place.start}.frame"
