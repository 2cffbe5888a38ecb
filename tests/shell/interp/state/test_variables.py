"""The variable store: attributes, scopes, references, and copies that do not see each other."""

from __future__ import annotations

import pytest

from ramet.shell.expand.errors import LineError, Readonly
from ramet.shell.expand.values import EXPORT, INTEGER, READONLY, UPPER, Assoc, Indexed
from ramet.shell.interp.state.variables import Variables


def test_plain_and_array_values_read_as_text() -> None:
    store = Variables()
    store.set("x", "1")
    store.set_list("a", ["p", "q"])
    assert (store.get("x"), store.get("a"), store.get("nope")) == ("1", "p", None)
    assert store.elements("a") == ["p", "q"]
    assert store.item("a", -1) == "q"


def test_attributes_change_and_refuse_values() -> None:
    store = Variables()
    store.number = lambda text: sum(map(int, text.split("+")))
    store.flag("n", INTEGER)
    store.set("n", "2+3")
    store.set("n", "4", append=True)
    store.flag("u", UPPER)
    store.set("u", "abc")
    assert (store.get("n"), store.get("u")) == ("9", "ABC")
    store.flag("n", READONLY)
    with pytest.raises(Readonly):
        store.set("n", "1")


def test_indexed_arrays_are_sparse_and_ordered() -> None:
    store = Variables()
    for index in (5, 1, 3):
        store.set_item("a", index, str(index))
    assert store.keys("a") == ["1", "3", "5"]
    store.unset_item("a", -1)
    assert store.elements("a") == ["1", "3"]
    with pytest.raises(LineError, match="bad array subscript"):
        store.set_item("a", -9, "x")


def test_local_variables_come_and_go_with_their_scope() -> None:
    store = Variables()
    store.set("x", "outer")
    store.push()
    store.local("x")
    assert store.get("x") is None
    store.set("x", "inner")
    store.push()
    store.unset("x")  # unsets the caller's local: the outer value shows
    assert store.get("x") == "outer"
    store.pop()
    store.pop()
    assert store.get("x") == "outer"
    assert not store.scopes


def test_references_lead_to_variables_and_elements() -> None:
    store = Variables()
    store.set_list("a", ["p", "q"])
    store.bind("r", "a[1]")
    store.arith = int
    assert store.get("r") == "q"
    store.set("r", "new")
    assert store.elements("a") == ["p", "new"]
    store.bind("s", "t")
    store.set("s", "v")
    assert store.get("t") == "v"


@pytest.mark.parametrize("borrow", [True, False])
def test_a_fork_writes_to_its_own_arrays(borrow: bool) -> None:
    store = Variables()
    store.set_list("a", ["1"])
    store.make_assoc("m").set("k", "v")
    twin = store.fork(borrow)
    twin.set_item("a", 0, "2")
    twin.set_item("m", "k", "w")
    twin.set("x", "only here")
    assert (store.get("a"), store.item("m", "k"), store.get("x")) == ("1", "v", None)
    assert (twin.get("a"), twin.item("m", "k")) == ("2", "w")


def test_only_exported_plain_values_reach_a_command() -> None:
    store = Variables()
    store.set("x", "1")
    store.set("y", "2")
    store.set_list("a", ["z"])
    for name in ("x", "a"):
        store.flag(name, EXPORT)
    assert store.exported() == {"x": "1"}


def test_associative_arrays_are_read_in_the_order_of_bash() -> None:
    keys = ["one", "two", "three", "four", "five", "six"]
    array = Assoc({key: key for key in keys})
    assert array.keys() == ["four", "two", "three", "six", "one", "five"]
    assert list(Indexed(["a"]).pairs()) == [(0, "a")]


def test_a_job_of_a_subshell_keeps_its_arrays_while_the_first_shell_writes_on() -> None:
    first = Variables()
    first.set_list("a", ["1", "2"])
    first.push()
    first.local("a")
    first.set_list("a", ["x"])
    job = first.fork(borrow=True).fork(borrow=False)
    first.set_item("a", 0, "y")
    first.pop()
    first.set_item("a", 0, "3")
    assert (first.elements("a"), job.elements("a")) == (["3", "2"], ["x"])
    job.pop()
    assert job.elements("a") == ["1", "2"]


def test_an_array_before_a_command_and_one_that_a_function_inherits_are_copies() -> None:
    store = Variables()
    store.set_list("a", ["1"])
    store.push(temporary=True)
    store.save("a")
    store.set_item("a", 0, "2")
    store.pop()
    assert store.elements("a") == ["1"]
    store.push()
    store.local("a", inherit=True)
    store.set_item("a", 0, "3")
    store.pop()
    assert store.elements("a") == ["1"]
