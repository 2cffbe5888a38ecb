"""The descent of a revision is what the revision says, whatever else is in it."""

from __future__ import annotations

import pytest

from ramet.store.model.graph import descent_of
from ramet.store.model.ids import RevisionId
from ramet.store.model.revisions import Revision

ABOVE = RevisionId(b"x" * 32)


@pytest.mark.parametrize(
    "revision",
    [
        Revision("w", 3, (ABOVE,), "fromClaim:vm", (), message="é日😀", time=5.0),
        Revision("w", 3, (ABOVE, RevisionId(b"y" * 32)), "merge:v-1", (), time=5, ops={"first": 7, "last": 9}),
        Revision("w", 1, (), "root", (), message="a name that is not UTF-8: \udcff", diff={"added": ["/\udcff"]}),
    ],
)
def test_a_descent_is_read_from_the_bytes_of_a_revision(revision: Revision) -> None:
    found = descent_of(revision.id, revision.encode())
    assert found == descent_of(revision.id, revision)
    assert found == (
        revision.id,
        revision.parents,
        revision.time,
        revision.seq,
        f"w-{revision.seq}",
        "w",
        *((7, 9) if revision.ops else (0, 0)),
    )
