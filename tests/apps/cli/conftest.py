"""Fixtures of the command line: `ramet` on a store of the test's own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.apps.cli.runner import invoke

Ramet = Callable[..., str]


@pytest.fixture
def ramet(tmp_path: Path) -> Ramet:
    def run(*words: str, status: int = 0, stdin: str | None = None, **env: str) -> str:
        result = invoke(list(words), stdin or "", {"RAMET_HOME": str(tmp_path / "home"), **env})
        assert result.exit_code == status, result.output
        return result.output

    return run
