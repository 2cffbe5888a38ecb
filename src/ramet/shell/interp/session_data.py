"""A session as plain data and back: what a snapshot keeps of a shell, and how a copy begins.

`dump` gives only what JSON holds. `load` restores exactly that into a fresh session and returns, as texts, what it
could not.
Nothing in the data can run: functions come back by parsing their definition, traps stay texts until they fire.
"""

from __future__ import annotations

from typing import Any, Final

from ramet.core import paths
from ramet.shell.expand.values import Assoc, Dynamic, Indexed, NameRef, Value
from ramet.shell.interp.function_table import define, set_flags
from ramet.shell.interp.function_table import flags as function_flags
from ramet.shell.interp.options import OPTIONS, SHOPTS
from ramet.shell.interp.session import Session
from ramet.shell.interp.specials import DYNAMIC
from ramet.shell.syntax.printer import function_text

_OWN: Final = frozenset(("BASH", "BASH_VERSION", "BASH_VERSINFO", "HOSTNAME", "HOSTTYPE", "MACHTYPE", "OSTYPE", "PPID",
                         "UID", "EUID", "PWD", *DYNAMIC))  # fmt: skip
"""Variables that every session makes for itself."""


def dump(sh: Session) -> dict[str, Any]:
    return {
        "variables": {
            name: [_dumped(value), sh.store.attrs.get(name, 0)]
            for name, value in sh.store.values.items()
            if name not in _OWN and not isinstance(value, Dynamic)
        },
        "functions": {name: function_text(function.node) for name, function in sh.functions.items()},
        "function_attributes": {name: found for name in sh.functions if (found := function_flags(sh, name))},
        "aliases": dict(sh.aliases),
        "options": sorted(sh.options),
        "shopts": sorted(sh.shopts),
        "traps": dict(sh.traps),
        "cwd": str(sh.cwd),
        "pwd": sh.pwd,
        "dirs": list(sh.dirs),
        "umask": sh.umask,
        "params": list(sh.params),
        "status": sh.status,
        "last_arg": sh.last_arg,
        "getopts": list(sh.store.option_place),
        "disabled": sorted(sh.disabled),
        "history": list(sh.history[-1000:]),
    }


def _dumped(value: Value) -> Any:
    if isinstance(value, Indexed):
        return {"indexed": [[index, text] for index, text in value.pairs()]}
    if isinstance(value, Assoc):
        return {"assoc": dict(value.items)}
    if isinstance(value, NameRef):
        return {"nameref": value.target}
    return value


def load(sh: Session, data: dict[str, Any], *, partial: bool = False) -> list[str]:
    """Put dumped data into a fresh session; `partial` data leaves variables alone that it does not name.

    Malformed data is a ValueError.
    """
    problems: list[str] = []
    for name, pair in _mapping(data, "variables").items():
        if name in _OWN:
            continue
        if not (isinstance(pair, list) and len(pair) == 2 and type(pair[1]) is int):
            raise ValueError(f"variable {name!r} is not [value, attributes]")
        sh.store.values[name] = _loaded(sh, name, pair[0])
        if pair[1]:
            sh.store.attrs[name] = pair[1]
        else:
            sh.store.attrs.pop(name, None)
    for name in (
        [] if partial else [n for n in sh.store.values if n not in _OWN and n not in _mapping(data, "variables")]
    ):
        if not isinstance(sh.store.values[name], Dynamic):
            del sh.store.values[name]
            sh.store.attrs.pop(name, None)
    for name, text in _mapping(data, "functions").items():
        if define(sh, name, _text(text)) is None:
            problems.append(f"function {name} could not be restored")
    for name, flags in _mapping(data, "function_attributes").items():
        if name in sh.functions and type(flags) is int:
            set_flags(sh, name, flags, 0)
    sh.aliases.update({name: _text(value) for name, value in _mapping(data, "aliases").items()})
    _load_options(sh, data)
    sh.traps.update({name: _text(value) for name, value in _mapping(data, "traps").items()})
    _load_rest(sh, data)
    sh.rewatch()
    return problems


def _loaded(sh: Session, name: str, value: Any) -> Value:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, dict) and len(value) == 1:
        (kind, content), *_ = value.items()
        if kind == "indexed" and isinstance(content, list):
            array = Indexed((), sh.store.token)
            for item in content:
                if not (isinstance(item, list) and len(item) == 2 and type(item[0]) is int):
                    raise ValueError(f"variable {name!r} is not an array")
                array.set(item[0], _text(item[1]))
            return array
        if kind == "assoc" and isinstance(content, dict):
            return Assoc({key: _text(text) for key, text in content.items()}, sh.store.token)
        if kind == "nameref":
            return NameRef(_text(content))
    raise ValueError(f"variable {name!r} has a value that no shell variable can have")


def _load_options(sh: Session, data: dict[str, Any]) -> None:
    wanted = set(_strings(data, "options", sorted(sh.options))) & set(OPTIONS)
    for option in set(OPTIONS) & (wanted ^ sh.options):
        sh.set_option(option, option in wanted)
    sh.shopts = set(_strings(data, "shopts", sorted(sh.shopts))) & set(SHOPTS)


def _load_rest(sh: Session, data: dict[str, Any]) -> None:
    cwd = data.get("cwd")
    if isinstance(cwd, str) and cwd.startswith("/"):
        sh.cwd = paths.parse(cwd)
        name = data.get("pwd")
        sh.called = (sh.cwd, name) if isinstance(name, str) and name.startswith("/") else None
        sh.store.values["PWD"] = sh.pwd
    sh.dirs = _strings(data, "dirs", [])
    sh.params = _strings(data, "params", [])
    sh.history = _strings(data, "history", [])
    sh.disabled = set(_strings(data, "disabled", []))
    sh.umask = _number(data, "umask", 0o022) & 0o777
    sh.status = _number(data, "status", 0) & 255
    sh.last_arg = _text(data.get("last_arg", ""))
    place = data.get("getopts", [1, 0])
    if isinstance(place, list) and len(place) == 2 and all(type(item) is int for item in place):
        sh.store.option_place = (place[0], place[1])


def _mapping(data: dict[str, Any], key: str) -> dict[str, Any]:
    found = data.get(key, {})
    if not isinstance(found, dict):
        raise ValueError(f"{key!r} of a session is not an object")
    return found


def _strings(data: dict[str, Any], key: str, default: list[str]) -> list[str]:
    found = data.get(key, default)
    if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
        raise ValueError(f"{key!r} of a session is not a list of texts")
    return list(found)


def _number(data: dict[str, Any], key: str, default: int) -> int:
    found = data.get(key, default)
    if type(found) is not int:
        raise ValueError(f"{key!r} of a session is not a number")
    return found


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("a text of a session is not text")
    return value
