"""A revision is accepted wherever one is meant: as an object, tag, name, number or id."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.store.verbs.test_verbs import make, refused

from ramet import Store
from ramet.store.model.revisions import Revision
from ramet.store.objects.objects import MemoryObjects
from ramet.workspace.stored.reference import StoredWorkspaceRef

FORMS: dict[str, Callable[[StoredWorkspaceRef, Revision], Any]] = {
    "object": lambda ref, found: found,
    "name": lambda ref, found: found.name,
    "tag object": lambda ref, found: next(tag for tag in ref.tags() if tag.name == "one"),
    "tag": lambda ref, found: "one",
    "number": lambda ref, found: found.seq,
    "number as text": lambda ref, found: str(found.seq),
    "id": lambda ref, found: found.id,
    "id as text": lambda ref, found: found.id.hex(),
    "steps": lambda ref, found: "head~1",
}
CALLS: dict[str, Callable[[StoredWorkspaceRef, Any], Any]] = {
    "find": lambda ref, spec: ref.find(spec).name,
    "log": lambda ref, spec: [one.name for one in ref.log(spec)],
    "show": lambda ref, spec: b"".join(ref.show("/f", spec)),
    "diff": lambda ref, spec: [one.what for one in ref.diff(spec, "head")],
    "diff of one": lambda ref, spec: [one.path for one in ref.diff(spec)],
    "blame": lambda ref, spec: [line.text for line in ref.blame("/f", spec)],
    "history": lambda ref, spec: len(ref.history(spec)),
    "mounts": lambda ref, spec: ref.mounts(spec),
    "fork": lambda ref, spec: ref.fork(spec, "other").lineage,
    "tag": lambda ref, spec: ref.tag("new", spec) and ref.find("new").name,
    "pin": lambda ref, spec: ref.find(ref.pin(spec).target).name,
    "revert": lambda ref, spec: ref.revert(spec).lineage,
}


@pytest.mark.parametrize("call", CALLS)
def test_every_call_takes_every_form(call: str) -> None:
    answers = {}
    for form, spec_of in FORMS.items():
        ref = make(MemoryObjects(), "echo 1 > /f", "echo 2 > /f")["w"]
        ref.tag("one", "1")
        answers[form] = CALLS[call](ref, spec_of(ref, ref.find("1")))
    assert all(answer == answers["name"] for answer in answers.values()), answers


def test_diff_goes_from_the_older_to_the_newer() -> None:
    ref = make(MemoryObjects(), "echo 1 > /f", "echo 2 > /g")["w"]
    first, second = ref.find(1), ref.find(2)
    assert [(one.path, one.what) for one in ref.diff(first, second)] == [("/g", "added")]
    assert [(one.path, one.what) for one in ref.diff(second, first)] == [("/g", "removed")]
    assert [(one.path, one.what) for one in ref.diff(newer=second)] == [("/g", "added")]


def test_what_is_known_of_a_history_follows_its_head() -> None:
    objects = MemoryObjects()
    store = make(objects, "echo 1 > /f", "echo 2 > /f")
    ref, base = store["w"], store["w"].find("w-1")
    assert ref.find(base.id.hex()).name == ref.find("1").name == "w-1", "known from here on"
    ref.fork(base, "v")
    make(objects, "echo 3 > /g", store=store, name="v")
    theirs = store["v"].find()
    assert refused(lambda: ref.find(theirs.name)) == "revision_not_found"
    assert refused(lambda: ref.find(theirs.id.hex())) == "revision_workspace_mismatch"
    assert ref.log(without="v@head") == [ref.find()] and store["v"].log(without="w@head")[0] == theirs
    ref.merge(theirs)
    assert ref.find(theirs.id.hex()) == ref.find(theirs.name) == theirs, "a merge brings its own revisions"
    assert [one.seq for one in ref.log(without=theirs)] == [3, 2] and ref.log(without="w@head") == []
    store.rm("w")
    make(objects, "echo 4 > /f", store=store)
    assert store["w"].find("w-1").message == "echo 4 > /f", "another workspace of this name"
    assert refused(lambda: store["w"].find(base.id.hex())) == "revision_workspace_mismatch"
    assert refused(lambda: store["w"].find("2")) == "revision_not_found"


def test_revisions_of_other_workspaces_are_read_and_merged_but_not_reverted_to() -> None:
    store = make(MemoryObjects(), "echo 1 > /f")
    store["w"].fork(None, "v")
    make(MemoryObjects(), "echo 2 > /g", store=store, name="v")
    theirs = store["v"].find()
    assert [one.path for one in store["w"].diff("head", theirs)] == ["/g"]
    assert store["v"].find(store["w"].find()).name == "w-1", "a parent's revision is in the history of its fork"
    assert refused(lambda: store["w"].revert(theirs)) == "revision_workspace_mismatch"
    assert store["w"].merge(theirs).ok and b"".join(store["w"].show("/g")) == b"2\n"


@pytest.mark.parametrize("wrong", [3.5, True, ["1"], {"name": "1"}])
def test_another_type_is_refused_by_name(wrong: Any) -> None:
    assert refused(lambda: make(MemoryObjects(), "echo 1 > /f")["w"].find(wrong)) == "invalid_argument"


def test_an_object_proves_no_access() -> None:
    place = MemoryObjects()
    store = make(place, "echo secret > /f")
    store["w"].grant("ann", "readwrite")
    found = Store(place, principal="ann")["w"].find()
    store.create("v")
    bob = Store(place, principal="bob")
    assert refused(lambda: b"".join(bob["v"].show("/f", found))) == "permission_denied"
