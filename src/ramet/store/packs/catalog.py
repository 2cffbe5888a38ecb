"""Pack catalog of a remote store: the small indexes of its packs in one object, read with one request.

- The catalog is a copy. An index from it is used only for a pack that the store lists; a damaged, missing or old
  catalog costs requests and nothing else. The last writer wins.
- It holds indexes of up to `INDEX_BYTES` bytes, and `CATALOG_BYTES` bytes in total.
- In an encrypted store each index in it has the key of its pack: shredding a workspace shreds its part.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ramet.core.errors import RametError
from ramet.store.objects.objects import Objects
from ramet.store.packs.local_cache import decode_indexes, encode_indexes

KEY: Final = "catalog/packs"
CATALOG_BYTES: Final = 2 * 1024 * 1024
INDEX_BYTES: Final = 128 * 1024
"""Bytes up to which an index is in the catalog: that of one commit, or of a few hundred consolidated packs."""
SEPARATE_REQUESTS: Final = 4
"""Indexes up to which separate requests are cheaper than the catalog."""
REWRITE_AFTER: Final = 32
"""Packs after which a writer rewrites the catalog."""


def load(objects: Objects) -> dict[str, bytes]:
    """Return the indexes by pack name; empty when the catalog is missing or damaged."""
    try:
        return decode_indexes(objects.get(KEY))
    except (KeyError, RametError):
        return {}


def save(objects: Objects, indexes: Mapping[str, bytes]) -> None:
    """Write the catalog; where not all indexes fit, with the smallest."""
    room = CATALOG_BYTES
    chosen: dict[str, bytes] = {}
    for name, index in sorted(indexes.items(), key=lambda pair: (len(pair[1]), pair[0])):
        room -= len(index)
        if room < 0:
            break
        chosen[name] = index
    objects.put(KEY, encode_indexes(chosen))
