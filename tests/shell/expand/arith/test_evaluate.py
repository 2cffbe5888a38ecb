"""Arithmetic: values, side effects and errors, walked and compiled alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ramet.shell.expand.arith import evaluate as arith
from ramet.shell.expand.arith.evaluate import Unbound, evaluate, prepare, template
from ramet.shell.expand.arith.parser import ArithFailure


class Array(dict[Any, str]):
    """Values of variables must be hashable."""

    __hash__ = object.__hash__  # type: ignore[assignment]


class Variables:
    """Variables as arithmetic sees them: texts, and dicts for arrays."""

    def __init__(self, **values: Any) -> None:
        self.values: dict[str, Any] = values
        self.attrs: dict[str, int] = {}
        self.key_of: Callable[[str], str] = lambda text: text.strip("'\"")
        self.host: Any = None
        self.stored: list[str] = []

    def get(self, name: str) -> str | None:
        value = self.values.get(name)
        return value.get(0) if isinstance(value, dict) else value

    def set(self, name: str, value: str) -> None:
        self.stored.append(name)
        self.values[name] = value

    def is_assoc(self, name: str) -> bool:
        value = self.values.get(name)
        return isinstance(value, dict) and any(isinstance(key, str) for key in value)

    def item(self, name: str, key: int | str) -> str | None:
        value = self.values.get(name)
        found: str | None = value.get(key) if isinstance(value, dict) else value if key == 0 else None
        return found

    def elements(self, name: str) -> list[str]:
        value = self.values.get(name)
        return list(value.values()) if isinstance(value, dict) else [] if value is None else [value]

    def has_value(self, name: str) -> bool:
        return name in self.values

    def set_item(self, name: str, key: int | str, value: str) -> None:
        self.values.setdefault(name, {})[key] = value


def fresh() -> Variables:
    return Variables(x="3", y="-2", e="", b="x+1", s=" 7 ", o="010", a=Array({0: "4", 1: "5", 2: "x"}), m=Array(k="7"))


def both(text: str) -> tuple[int, Variables]:
    """Evaluates in both ways, which must agree."""
    walked, compiled = fresh(), fresh()
    arith._trees.pop(text, None)
    value = evaluate(text, walked)
    assert prepare(text)(compiled) == value
    assert walked.values == compiled.values
    return value, walked


VALUES = {
    "": 0, " ": 0, "1+2*3": 7, "(1+2)*3": 9, "2**3**2": 512, "-2**2": 4, "!0": 1, "!5": 0, "~5": -6, "- -3": 3,
    "1?2:3": 2, "0?2:3": 3, "1?0?4:5:6": 5, "1,2,3": 3, "0x1F": 31, "010": 8, "2#1011": 11, "36#z": 35, "64#_": 63,
    "64#@": 62, "62#Z": 61, "16#Ff": 255, "5>3>1": 0, "1||1/0": 1, "0&&1/0": 0, "1<<63": -(1 << 63), "1<<64": 1,
    "9223372036854775807+1": -(1 << 63), "-7/2": -3, "-7%2": -1, "7%-2": 1, "18446744073709551616": 0,
    "(-9223372036854775807-1)/-1": -(1 << 63), "(-9223372036854775807-1)%-1": 0, "x": 3, "y": -2, "e": 0, "nope": 0,
    "b": 4, "b*2": 8, "s": 7, "o": 8, "a[1]": 5, "a[2]": 3, "a[x-2]+1": 6, "a": 4, "m[k]": 7, "m['k']": 7, "m[z]": 0,
    "x+y": 1, "x==3": 1, "x!=3": 0, "x<=3&&x>=3": 1, "6&3|8^1": 11, "5>>1": 2, "x*-1": -3, "+x": 3, "--5": 5, "++5": 5,
    "5--3": 8, "5++3": 8, "1\n+\n2": 3, "x ? y : 0": -2, "2**62": 1 << 62, "2**64": 0, "0**0": 1, "7/2*2": 6,
    "a[0]?a[1]:9": 5, "(x)": 3, "0||0": 0, "1&&2": 1, "12345678901234567890": -6101065172474983726,
}  # fmt: skip


@pytest.mark.parametrize(("text", "value"), VALUES.items())
def test_values(text: str, value: int) -> None:
    assert both(text)[0] == value


EFFECTS: dict[str, tuple[int, dict[str, Any]]] = {
    "x=5": (5, {"x": "5"}),
    "x+=2": (5, {"x": "5"}),
    "x-=1,x*=4": (8, {"x": "8"}),
    "x/=2": (1, {"x": "1"}),
    "x%=2": (1, {"x": "1"}),
    "x<<=2": (12, {"x": "12"}),
    "x>>=1": (1, {"x": "1"}),
    "x&=1": (1, {"x": "1"}),
    "x|=4": (7, {"x": "7"}),
    "x^=1": (2, {"x": "2"}),
    "x++": (3, {"x": "4"}),
    "++x": (4, {"x": "4"}),
    "x--": (3, {"x": "2"}),
    "-- x": (2, {"x": "2"}),
    "x+++x": (7, {"x": "4"}),
    "n=m2=4": (4, {"n": "4", "m2": "4"}),
    "a[1]=9": (9, {"a": {0: "4", 1: "9", 2: "x"}}),
    "a[1]+=2": (7, {"a": {0: "4", 1: "7", 2: "x"}}),
    "a[0]++": (4, {"a": {0: "5", 1: "5", 2: "x"}}),
    "++a[0]": (5, {"a": {0: "5", 1: "5", 2: "x"}}),
    "m[k]=1": (1, {"m": {"k": "1"}}),
    "0 && (x=9)": (0, {"x": "3"}),
    "1 ? (x=1) : (x=2)": (1, {"x": "1"}),
    "x++ + ++x": (8, {"x": "5"}),
    "x = y = 0, x": (0, {"x": "0", "y": "0"}),
    "!x++": (0, {"x": "4"}),
}


@pytest.mark.parametrize("text", EFFECTS)
def test_effects(text: str) -> None:
    value, changed = EFFECTS[text]
    found, variables = both(text)
    assert found == value
    for name, expected in changed.items():
        assert variables.values[name] == expected


ERRORS = {
    "1/0": 'division by 0 (error token is "0")',
    "5/x%0+1": 'division by 0 (error token is "0+1")',
    "2**-1": 'exponent less than 0 (error token is "1")',
    "1+": 'syntax error: operand expected (error token is "+")',
    "1 + ": 'syntax error: operand expected (error token is "+ ")',
    "*3": 'syntax error: operand expected (error token is "*3")',
    "(1": "missing `)' (error token is \"1\")",
    "1)": 'syntax error in expression (error token is ")")',
    "1 2": 'syntax error in expression (error token is "2")',
    "5=3": 'attempted assignment to non-variable (error token is "=3")',
    "(x)=3": 'attempted assignment to non-variable (error token is "=3")',
    "1.5": 'syntax error: invalid arithmetic operator (error token is ".5")',
    "@": 'syntax error: operand expected (error token is "@")',
    "1?2": "`:' expected for conditional expression (error token is \"2\")",
    "1?:3": 'expression expected (error token is ":3")',
    "1?2:": 'expression expected (error token is ":")',
    "++": 'syntax error: operand expected (error token is "+")',
    "x[1": 'bad array subscript (error token is "x[1")',
    "a[1 2]": None,
    "5--x": 'syntax error in expression (error token is "--x")',
}  # fmt: skip


@pytest.mark.parametrize("text", ERRORS)
def test_errors(text: str) -> None:
    for run in (evaluate, lambda text, variables: prepare(text)(variables)):
        for _ in range(2):
            with pytest.raises(ArithFailure) as caught:
                run(text, fresh())
            if ERRORS[text] is not None:
                assert caught.value.message == f"{text}: {ERRORS[text]}"


NUMBERS = {
    "08": ("08", "value too great for base"),
    "1+09*2": ("1+09", "value too great for base"),
    "3#5": ("3#5", "value too great for base"),
    "65#1": ("65#1", "invalid arithmetic base"),
    "1#1": ("1#1", "invalid arithmetic base"),
    "16#": ("16#", "invalid integer constant"),
    "0xg": ("0xg", "value too great for base"),
}


@pytest.mark.parametrize("text", NUMBERS)
def test_bad_numbers_are_shown_up_to_themselves(text: str) -> None:
    with pytest.raises(ArithFailure) as caught:
        evaluate(text, fresh())
    assert (caught.value.text, caught.value.reason) == NUMBERS[text]


def test_what_was_read_before_an_error_has_happened() -> None:
    variables = fresh()
    with pytest.raises(ArithFailure):
        evaluate("x = 9 9", variables)
    assert variables.values["x"] == "9"
    assert template(["x = ", " 9"]) is None


def test_attributes_go_through_the_store() -> None:
    variables = fresh()
    variables.attrs["x"] = 1
    prepare("x = 4")(variables)
    prepare("a = 4")(variables)
    assert variables.stored == ["x", "a"]


def test_unset_variables() -> None:
    class Strict:
        nounset = True

    for text in ("nope", "nope + 1", "nope[9]", "nope++"):
        variables = fresh()
        variables.host = Strict()
        with pytest.raises(Unbound):
            evaluate(text, variables)
        with pytest.raises(Unbound):
            prepare(text)(variables)
    variables = fresh()
    variables.host = Strict()
    assert evaluate("a[9]", variables) == 0  # of an array that has others


@pytest.mark.parametrize("length", [65_535, 65_536, 65_537, 200_000])
def test_numbers_and_names_of_any_length_are_one_token(length: int) -> None:
    name = "n" * length
    variables = Variables(**{name: "5"})
    assert evaluate("0" * length + "17 + 1", variables) == 16
    assert evaluate("16#" + "f" * length + "0", variables) == -16
    assert evaluate(f"{name} + 2", variables) == 7
    with pytest.raises(ArithFailure, match="value too great for base"):
        evaluate("0" * length + "9", variables)


def test_recursion_ends() -> None:
    with pytest.raises(ArithFailure, match="recursion level exceeded"):
        evaluate("r", Variables(r="r"))
    with pytest.raises(ArithFailure, match="recursion level exceeded"):
        evaluate("r", Variables(r="q+1", q="r+1"))
    assert evaluate("(" * 5_000 + "1" + ")" * 5_000, fresh()) == 1
    with pytest.raises(ArithFailure, match="recursion level exceeded"):
        evaluate("(" * 20_000 + "1" + ")" * 20_000, fresh())
    assert evaluate("a[" * 1023 + "0" + "]" * 1023, fresh()) is not None
    with pytest.raises(ArithFailure, match=r"^a\[0\]: expression recursion level exceeded"):
        evaluate("a[" * 1024 + "0" + "]" * 1024, fresh())


def test_length_costs_no_depth() -> None:
    assert both("+".join(["1"] * 3000))[0] == 3000
    assert both("&&".join(["1"] * 3000))[0] == 1
    assert both(",".join(["1"] * 3000))[0] == 1
    deep = "1" + "?(1" * 60 + "?7:0" + "):0" * 60
    assert both(deep)[0] == 7


def test_repeated_texts_are_compiled() -> None:
    variables = fresh()
    for _ in range(5):
        evaluate("x += 1", variables)
    assert variables.values["x"] == "8"
    assert arith._trees["x += 1"][2] is not None


TEMPLATES: list[tuple[list[str], list[str], int | None]] = [
    (["", " + 1"], ["5"], 6),
    (["", " + ", ""], ["5", "-7"], -2),
    (["a[", "]"], ["1"], 5),
    (["2-", ""], ["-1"], None),
    (["2 * ", ""], ["1+1"], None),
    (["2 * ", ""], [""], None),
    (["2 * ", ""], ["010"], None),
    (["m[", "]"], ["1"], None),
    (["x = ", ""], ["4"], 4),
    (["", " ? x : ", ""], ["0", "9"], 9),
]


@pytest.mark.parametrize(("texts", "values", "expected"), TEMPLATES)
def test_templates(texts: list[str], values: list[str], expected: int | None) -> None:
    run = template(texts)
    assert run is not None and template(texts) is run
    assert run(fresh(), values) == expected


def test_holes_that_are_not_numbers_of_their_own() -> None:
    for texts in (["x", ""], ["", "x"], ["16#", ""], ["", "", ""], ["(", ""], ["'", "'"]):
        assert template(texts) is None


def test_the_stores_stay_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arith, "_KEPT", 2)
    for k in range(5):
        evaluate(f"{k}+x", fresh())
        prepare(f"{k}+x+1")
        template(["", f"+{k}"])
    assert len(arith._trees) <= 2 and len(arith._codes) <= 2 and len(arith._templates) <= 2
