"""Errors of ours: one base class, hashable, and the same after pickling."""

from __future__ import annotations

import pickle

import pytest

from ramet import CommandFailed, IOResult, LimitExceeded, RametError
from ramet.core.errors import wrong_type

ERRORS = [
    RametError("not_found", "cannot find it", "Look elsewhere.", {"path": "/a"}),
    LimitExceeded("output_bytes", 5, "cat"),
    CommandFailed(IOResult(stderr=b"no\n", exit_code=3)),
    wrong_type("a command", 5, "Pass text."),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_is_hashable_and_survives_pickling(error: RametError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and again.as_dict() == error.as_dict() and str(again) == str(error)
    assert len({error, again}) == 2


def test_a_wrong_type_is_still_a_type_error() -> None:
    with pytest.raises(TypeError, match="cannot use a int as a command"):
        raise wrong_type("a command", 5, "Pass text.")
