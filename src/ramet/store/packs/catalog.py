"""The catalog of a remote store: the small indexes of its packs in one object, so that whoever opens it asks once.

Rules that this file keeps:
- It is a copy. An index is taken from it only for a pack that the store lists; a catalog that is damaged, missing or
  old costs requests and nothing else. Whoever writes last wins.
- It holds indexes of up to `EACH` bytes, and no more than `MOST` in all.
- In an encrypted store each index in it is sealed as in the store, with the key of its own pack: a workspace whose key
  is destroyed takes its part of the catalog along.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ramet.core.errors import RametError
from ramet.store.objects.objects import Objects
from ramet.store.packs.local_cache import decode_indexes, encode_indexes

KEY: Final = "catalog/packs"
MOST: Final = 2 * 1024 * 1024
EACH: Final = 128 * 1024
"""Bytes of an index that is worth being in it: that of one commit, or of a few hundred whose packs were joined."""
FEW: Final = 4
"""Indexes that are rather asked for one by one."""
OFTEN: Final = 32
"""Packs after which a writer that goes on writing makes the catalog anew."""


def load(objects: Objects) -> dict[str, bytes]:
    """Indexes by the names of their packs; none when there is nothing to trust."""
    try:
        return decode_indexes(objects.get(KEY))
    except (KeyError, RametError):
        return {}


def save(objects: Objects, indexes: Mapping[str, bytes]) -> None:
    """Write the catalog anew; where not all indexes fit, with the smallest."""
    room = MOST
    chosen: dict[str, bytes] = {}
    for name, index in sorted(indexes.items(), key=lambda pair: (len(pair[1]), pair[0])):
        room -= len(index)
        if room < 0:
            break
        chosen[name] = index
    objects.put(KEY, encode_indexes(chosen))
