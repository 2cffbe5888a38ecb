"""Dependencies below 1.0 that are part of a format or of I/O have upper bounds, and the environment is within them."""

from __future__ import annotations

import importlib.metadata
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]


def needed() -> dict[str, Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = map(Requirement, project["dependencies"])
    return {requirement.name: requirement for requirement in found}


@pytest.mark.parametrize("name", ["msgspec", "obstore", "pyfastcdc"])
def test_what_is_part_of_a_format_is_bounded(name: str) -> None:
    requirement = needed()[name]
    assert {one.operator for one in requirement.specifier} & {"<", "=="}, "a new minor version may change bytes"
    assert requirement.specifier.contains(importlib.metadata.version(name))
