"""The server's process makes full passes over its objects between requests."""

from __future__ import annotations

import gc

import pytest

from ramet.concurrency.collector import IdleCollector, idle_collection


def test_the_process_is_left_as_it_was() -> None:
    usual = gc.get_threshold()
    with pytest.raises(KeyError), idle_collection():
        assert gc.get_freeze_count()
        assert gc.get_threshold()[:2] == usual[:2]
        assert gc.get_threshold()[2] > usual[2]
        raise KeyError
    assert gc.get_threshold() == usual
    assert not gc.get_freeze_count()


def test_full_passes_are_made_when_nothing_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    passes: list[int] = []
    young = 3

    monkeypatch.setattr(gc, "get_count", lambda: (0, 0, young))
    monkeypatch.setattr(gc, "collect", lambda: passes.append(young))
    one = IdleCollector()
    one.tick(busy=False)
    assert passes == []  # not worth it yet
    young = 10
    one.tick(busy=True)
    assert passes == []
    one.tick(busy=False)
    assert passes == [10]
    for _ in range(599):
        one.tick(busy=True)
    assert passes == [10]
    one.tick(busy=True)  # a stream of events lasts for days
    assert passes == [10, 10]
