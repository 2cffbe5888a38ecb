"""Convert snapshots of mirage-ai (format versions 2 to 5); unsupported parts are reported.

Only data is converted: class names in manifests are ignored, and every value passes the checks of a native snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from ramet.shell.expand.values import ATTRIBUTE_LETTERS, EXPORT
from ramet.workspace.session import DEFAULT_SESSION_ID
from ramet.workspace.snapshot.archive import VERSION

VERSIONS: Final = (2, 3, 4, 5)
_FLAGS: Final = dict(ATTRIBUTE_LETTERS)
_UNMAPPED: Final = ("clis", "fingerprints", "profiles", "command_limits", "jobs")


def is_mirage(manifest: Mapping[str, Any]) -> bool:
    """Return whether mirage-ai wrote this manifest in a supported version."""
    if "format" in manifest:  # a native manifest has a format
        return False
    return manifest.get("version") in VERSIONS and ("mirage_version" in manifest or "sessions" in manifest)


def migrate(manifest: Mapping[str, Any], report: Callable[[str], None]) -> dict[str, Any]:
    """Convert a manifest to the native format."""
    for key in _UNMAPPED:
        if manifest.get(key):
            report(f"not taken over: {key}")
    default = manifest.get("default_session_id")
    return {
        "format": "ramet",
        "version": VERSION,
        "mounts": [_mount(mount, report) for mount in _list(manifest, "mounts")],
        "sessions": [_session(session, default) for session in _list(manifest, "sessions")],
        "cache": {"entries": []},
        "history": {"records": _records(_list(manifest, "history"), default)},
        "jobs": [],
    }


def _mount(mount: dict[str, Any], report: Callable[[str], None]) -> dict[str, Any]:
    state = mount.get("vfs_state") or mount.get("resource_state") or {}
    if not isinstance(state, dict):
        raise ValueError("a mount of the manifest has no state")
    prefix = str(mount.get("prefix", ""))
    kind = state.get("type")
    ours: dict[str, Any] = {
        "prefix": prefix.rstrip("/") or "/",
        "mode": "read" if mount.get("mode") == "read" else "write",
        "type": kind,
        "needs_override": bool(state.get("needs_override")) or kind not in ("ram", "disk"),
    }
    if kind not in ("ram", "disk"):
        return ours
    files = _mapping(state, "files")
    ours["files"] = {_absolute(path): reference for path, reference in files.items()}
    ours["dirs"] = [_absolute(path) for path in state.get("dirs", []) if isinstance(path, str) and path.strip("/")]
    ours["links"] = {_absolute(path): target for path, target in _mapping(state, "links").items()}
    ours["attrs"] = _attrs(state, ours["files"])
    if state.get("attrs"):
        report(f"{prefix}: extended attributes were not taken over")
    return ours


def _attrs(state: dict[str, Any], files: Mapping[str, Any]) -> dict[str, list[int]]:
    modes = {_absolute(path): mode for path, mode in _mapping(state, "modes").items()}
    times = {_absolute(path): _nanoseconds(text) for path, text in _mapping(state, "modified").items()}
    attrs: dict[str, list[int]] = {}
    for path in {*modes, *times}:
        mode = modes.get(path, 0o644 if path in files else 0o755)
        if type(mode) is int:
            attrs[path] = [mode & 0o7777, times.get(path, 0)]
    return attrs


def _nanoseconds(text: object) -> int:
    if not isinstance(text, str):
        return 0
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1_000_000) * 1000
    except ValueError:
        return 0


def _session(session: dict[str, Any], default: object) -> dict[str, Any]:
    letters = _mapping(session, "var_attrs")
    variables = {
        name: [value, _flags(letters.get(name))]
        for name, value in _mapping(session, "env").items()
        if isinstance(value, str)
    }
    session_id = session.get("session_id")
    cwd = session.get("cwd", "/")
    return {
        "session_id": DEFAULT_SESSION_ID if session_id == default else session_id,
        "cwd": cwd,
        "env": {},
        "partial": True,
        "shell": {"variables": variables, "functions": _mapping(session, "functions"), "cwd": cwd},
    }


def _flags(letters: object) -> int:
    if not isinstance(letters, str):
        return EXPORT
    flags = 0
    for letter in letters:
        flags |= _FLAGS.get(letter, 0)
    return flags


def _records(rows: list[dict[str, Any]], default: object) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = []
    for row in rows:
        if row.get("type", "command") != "command" or not isinstance(row.get("command"), str):
            continue
        stamp = row.get("timestamp", 0)
        at = stamp / 1000 if isinstance(stamp, int | float) else 0.0
        stdout = row.get("stdout")
        text = stdout if isinstance(stdout, str) else ""
        session = row.get("session")
        records.append(
            {
                "number": len(records) + 1,
                "session_id": DEFAULT_SESSION_ID if session == default else str(session),
                "agent_id": str(row.get("agent", "default")),
                "command": row["command"],
                "started_at": at,
                "ended_at": at,
                "exit_code": row.get("exit_code", 0),
                "stdout": text,
                "stdout_bytes": len(text.encode("utf-8", "surrogateescape")),
                "cwd": str(row.get("cwd", "/")),
            }
        )
    return records


def _absolute(path: object) -> str:
    if not isinstance(path, str):
        raise ValueError("a path of the manifest is not text")
    return "/" + path.strip("/")


def _mapping(plain: Mapping[str, Any], key: str) -> dict[str, Any]:
    found = plain.get(key) or {}
    if not isinstance(found, dict):
        raise ValueError(f"{key!r} of the manifest is not an object")
    return found


def _list(plain: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    found = plain.get(key) or []
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise ValueError(f"{key!r} of the manifest is not a list of objects")
    return found
