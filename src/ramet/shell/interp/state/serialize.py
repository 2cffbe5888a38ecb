"""Serialize a shell session to JSON data and back.

- `dump` returns JSON types only; `load` restores them into a fresh session and returns the problems as texts.
- Nothing in the data runs: functions are parsed from their definitions, traps stay texts until they fire.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ramet.core import paths
from ramet.shell.expand.values import Assoc, Dynamic, Indexed, NameRef, Value
from ramet.shell.history.entries import Entry
from ramet.shell.interp.state.function_table import define_again, set_flags
from ramet.shell.interp.state.function_table import flags as function_flags
from ramet.shell.interp.state.options import OPTIONS, SHOPTS
from ramet.shell.interp.state.shell_state import ShellState
from ramet.shell.interp.state.special_variables import DYNAMIC, OWN_ATTRIBUTES, own_variables
from ramet.shell.syntax.positions import lines_of
from ramet.shell.syntax.printer import function_text

_HOST: Final = frozenset(("BASH_VERSINFO", "PPID", "UID", "EUID"))
"""Variables that say where a shell runs, and that no script can change."""


def dump(sh: ShellState) -> dict[str, Any]:
    return {
        "variables": {
            name: [_dumped(value), sh.variables.attrs.get(name, 0)]
            for name, value in _own_values(sh)
            if name not in _HOST
        },
        "functions": {name: function_text(function.node) for name, function in sh.functions.items()},
        "function_places": {
            name: {"source": function.source, "lines": lines_of(function.node)}
            for name, function in sh.functions.items()
        },
        "aliases": dict(sh.aliases),
        "params": list(sh.params),
        **_rest(sh),
    }


def copy(sh: ShellState, twin: ShellState) -> None:
    """Copy a session into a fresh one, as `dump` and `load` do, but share immutable values.

    Arrays are shared until one of the two writes to them, as with a subshell.
    """
    twin.functions.update(sh.functions)
    load(twin, _rest(sh))
    attrs, own = sh.variables.attrs, twin.variables.attrs
    shared = {name: value for name, value in _own_values(sh) if name not in _HOST}
    for name, value in shared.items():
        if isinstance(value, Indexed | Assoc):
            value.owner = None
        if name in attrs:
            own[name] = attrs[name]
        elif name in own:
            del own[name]
    twin.variables.values.update(shared)
    twin.variables.bytes_held.invalidate()
    twin.aliases.update(sh.aliases)
    twin.params = sh.params


def _own_values(sh: ShellState) -> Iterator[tuple[str, Value]]:
    """Variables that a fresh session does not have, or has otherwise."""
    values, attrs, own = sh.variables.values, sh.variables.attrs, own_variables(sh)
    for name, value in values.items():
        if not isinstance(value, Dynamic) and not (
            name in own and own[name] == value and attrs.get(name, 0) == OWN_ATTRIBUTES.get(name, 0)
        ):
            yield name, value


def _rest(sh: ShellState) -> dict[str, Any]:
    """What is little, whatever the session did."""
    values, attrs, own = sh.variables.values, sh.variables.attrs, own_variables(sh)
    return {
        "unset": [name for name in (*DYNAMIC, *own, "PWD") if name not in values],
        "computed_attributes": {
            name: attrs.get(name, 0)
            for name in DYNAMIC
            if isinstance(values.get(name), Dynamic) and attrs.get(name, 0) != OWN_ATTRIBUTES.get(name, 0)
        },
        "function_attributes": {name: found for name in sh.functions if (found := function_flags(sh, name))},
        "options": sorted(sh.options),
        "shopts": sorted(sh.shopts),
        "traps": dict(sh.traps),
        "trap_depths": dict(sh.trap_depth),
        "cwd": str(sh.cwd),
        "pwd": sh.pwd,
        "dirs": list(sh.dirs),
        "umask": sh.umask,
        "ulimits": {letter: list(limits) for letter, limits in sh.ulimits.items()},
        "name": [sh.arg0, sh.name],
        "status": sh.status,
        "pipe_status": sh.pipe_statuses,
        "last_arg": str(sh.last_arg),
        "trace_lost": sh.trace_fd_invalid,
        "condition_open": sh.condition_open,
        "arguments": sh.arguments,
        "unmourned": sh.deferred_chld,
        "background": sh.background,
        "ended": [[pid, status] for pid, status in sh.jobs.reaped.items()],
        "jobs": [list(job) for job in sh.jobs.ended_data()],
        "getopts": list(sh.variables.option_place),
        "disabled": sorted(sh.disabled),
        "hashed": {name: list(place) for name, place in sh.hashed.items()},
        "completions": dict(sh.completions),
        "random": [] if sh.random is None else [sh.random.state, sh.random.last],
        "began": sh.seconds_base,
        "history": [entry.text for entry in _entries(sh)],
        "history_times": [entry.at for entry in _entries(sh)],
        "history_place": _place(sh),
    }


MOST_HISTORY: Final = 1000
"""History entries in the data: twice the default of HISTSIZE. Every commit of a session writes them."""
_PLACE: Final = [1, 0, 0, 0, 0, 0]


def _entries(sh: ShellState) -> list[Entry]:
    """The newest entries of the history; what runs now is among the records of its call, without its secrets."""
    kept = sh.history
    return kept.entries[-MOST_HISTORY : len(kept.entries) - kept.provisional]


def _place(sh: ShellState) -> list[int]:
    kept = sh.history
    base = kept.base + max(len(kept.entries) - MOST_HISTORY, 0)
    # What runs now comes back from its record, so it is not in the list before that.
    return [base, kept.mark, kept.new, kept.in_file, int(kept.loaded), kept.ahead - (kept.provisional > 0)]


def _load_history(sh: ShellState, data: dict[str, Any]) -> None:
    texts = _strings(data, "history", [])
    times = data.get("history_times", [])
    if not isinstance(times, list) or not all(at is None or type(at) is int for at in times):
        raise ValueError("'history_times' of a session is not a list of numbers")
    place = data.get("history_place", _PLACE)
    if not (isinstance(place, list) and len(place) in (5, 6) and all(type(item) is int for item in place)):
        raise ValueError("'history_place' of a session is not six numbers")
    times = [*times, *[None] * len(texts)]
    sh.history.entries = [Entry(text, at) for text, at in zip(texts, times, strict=False)]
    kept = sh.history
    kept.base, kept.mark, kept.new, kept.in_file = place[:4]
    kept.loaded, kept.ahead = bool(place[4]), max(place[5], 0) if len(place) > 5 else 0


def _dumped(value: Value) -> Any:
    if isinstance(value, Indexed | Assoc) and value.blank and not len(value):
        return {"blank": "assoc" if isinstance(value, Assoc) else "indexed"}
    if isinstance(value, Indexed) and (row := value.whole) is not None:
        return {"row": list(row)}
    if isinstance(value, Indexed):
        return {"indexed": [[index, text] for index, text in value.pairs()]}
    if isinstance(value, Assoc):
        return {"assoc": dict(value.items)}
    if isinstance(value, NameRef):
        return {"nameref": value.target}
    return value


def load(sh: ShellState, data: dict[str, Any], *, partial: bool = False) -> list[str]:
    """Put dumped data into a fresh session; `partial` data leaves variables alone that it does not name.

    Malformed data is a ValueError.
    """
    problems: list[str] = []
    _load_variables(sh, data, partial)
    places = _mapping(data, "function_places")
    for name, text in _mapping(data, "functions").items():
        place = _mapping(places, name)
        source = _text(place["source"]) if "source" in place else None
        if define_again(sh, name, _text(text), source, _numbers(place, "lines")) is None:
            problems.append(f"function {name} could not be restored")
    for name, flags in _mapping(data, "function_attributes").items():
        if name in sh.functions and type(flags) is int:
            set_flags(sh, name, flags, 0)
    _load_options(sh, data)
    _load_rest(sh, data)  # after the functions: a definition is a command, with a status
    sh.update_instrumented()
    return problems


def _load_variables(sh: ShellState, data: dict[str, Any], partial: bool) -> None:
    values, attrs = sh.variables.values, sh.variables.attrs
    sh.variables.bytes_held.invalidate()
    variables, own = _mapping(data, "variables"), own_variables(sh)
    for name, pair in variables.items():
        if name in _HOST:
            continue
        if not (isinstance(pair, list) and len(pair) == 2 and type(pair[1]) is int):
            raise ValueError(f"variable {name!r} is not [value, attributes]")
        values[name] = _loaded(sh, name, pair[0])
        _set_attributes(sh, name, pair[1])
    gone = set(_strings(data, "unset", []))
    if not partial:
        gone |= values.keys() - variables.keys() - own.keys() - DYNAMIC.keys() - {"PWD"}
    for name in gone - _HOST - variables.keys():
        values.pop(name, None)
        attrs.pop(name, None)
    for name, flags in _mapping(data, "computed_attributes").items():
        if name in DYNAMIC and type(flags) is int:
            _set_attributes(sh, name, flags)


def _set_attributes(sh: ShellState, name: str, flags: int) -> None:
    if flags:
        sh.variables.attrs[name] = flags
    else:
        sh.variables.attrs.pop(name, None)


def _loaded(sh: ShellState, name: str, value: Any) -> Value:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, dict) and len(value) == 1:
        (kind, content), *_ = value.items()
        if kind == "blank":
            empty = Assoc({}, sh.variables.token) if content == "assoc" else Indexed((), sh.variables.token)
            empty.blank = True
            return empty
        if kind == "row" and isinstance(content, list):
            return Indexed(tuple(_all_texts(content)), sh.variables.token)
        if kind == "indexed" and isinstance(content, list):
            array = Indexed((), sh.variables.token)
            for item in content:
                if not (isinstance(item, list) and len(item) == 2 and type(item[0]) is int):
                    raise ValueError(f"variable {name!r} is not an array")
                array.set(item[0], _text(item[1]))
            return array
        if kind == "assoc" and isinstance(content, dict):
            return Assoc({key: _text(text) for key, text in content.items()}, sh.variables.token)
        if kind == "nameref":
            return NameRef(_text(content))
    raise ValueError(f"variable {name!r} has a value that no shell variable can have")


def _load_options(sh: ShellState, data: dict[str, Any]) -> None:
    wanted = set(_strings(data, "options", sorted(sh.options))) & set(OPTIONS)
    for option in set(OPTIONS) & (wanted ^ sh.options):
        sh.set_option(option, option in wanted)
    sh.shopts = set(_strings(data, "shopts", sorted(sh.shopts))) & set(SHOPTS)


def _load_rest(sh: ShellState, data: dict[str, Any]) -> None:
    cwd = data.get("cwd")
    if isinstance(cwd, str) and cwd.startswith("/"):
        sh.cwd = paths.parse(cwd)
        name = data.get("pwd")
        sh.logical_cwd = (sh.cwd, name) if isinstance(name, str) and name.startswith("/") else None
        if "PWD" not in _mapping(data, "variables") and "PWD" in sh.variables.values:
            sh.variables.values["PWD"] = sh.pwd
    sh.dirs = _strings(data, "dirs", [])
    sh.params = _strings(data, "params", [])
    if data.get("arguments") is not None:
        sh.arguments = _strings(data, "arguments", [])
    sh.deferred_chld = _number(data, "unmourned", 0)
    if data.get("background") is not None:
        sh.background = _number(data, "background", 0)
    ended = data.get("ended", [])
    if not isinstance(ended, list) or not all(_is_pair(pair) for pair in ended):
        raise ValueError("'ended' of a session is not made of pairs of numbers")
    sh.jobs.reaped.update((pid, status & 255) for pid, status in ended)
    jobs = data.get("jobs", [])
    if not isinstance(jobs, list) or not all(isinstance(job, list) and list(map(type, job)) == _JOB for job in jobs):
        raise ValueError("'jobs' of a session are malformed")
    for job in jobs:
        sh.jobs.restore(sh, *job)
    sh.shell.pids.reserve(max((sh.background or 0, *sh.jobs.reaped)))
    _load_history(sh, data)
    sh.disabled = set(_strings(data, "disabled", []))
    sh.aliases.update(_texts(data, "aliases"))
    sh.completions.update(_texts(data, "completions"))
    sh.traps.update(_texts(data, "traps"))
    sh.trap_depth = {name: depth for name, depth in _mapping(data, "trap_depths").items() if type(depth) is int}
    sh.umask = _number(data, "umask", 0o022) & 0o777
    sh.ulimits = {letter: (_text(soft), _text(hard)) for letter, (soft, hard) in _pairs(data, "ulimits")}
    sh.hashed = {name: (_text(path), int(hits)) for name, (path, hits) in _pairs(data, "hashed")}
    sh.arg0, sh.name = map(_text, data.get("name", (sh.arg0, sh.name)))
    sh.status = _number(data, "status", 0) & 255
    sh.pipe_statuses = None if data.get("pipe_status") is None else _numbers(data, "pipe_status")
    sh.last_arg = _text(data.get("last_arg", ""))
    sh.trace_fd_invalid = data.get("trace_lost") is True
    sh.condition_open = data.get("condition_open") is True
    place = _numbers(data, "getopts")
    if len(place) == 2:
        sh.variables.option_place = (place[0], place[1])
    dice = _numbers(data, "random")
    if len(dice) == 2:
        sh.dice().seed(dice[0])
        sh.dice().last = dice[1]
    began = data.get("began")
    if isinstance(began, int | float):
        sh.seconds_base = began


_JOB: Final = [int, int, str, int, int, bool]


def _is_pair(item: object) -> bool:
    return isinstance(item, list) and len(item) == 2 and all(type(number) is int for number in item)


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


def _texts(data: dict[str, Any], key: str) -> dict[str, str]:
    return {name: _text(value) for name, value in _mapping(data, key).items()}


def _pairs(data: dict[str, Any], key: str) -> list[tuple[str, list[Any]]]:
    found = _mapping(data, key)
    if not all(isinstance(pair, list) and len(pair) == 2 for pair in found.values()):
        raise ValueError(f"{key!r} of a session is not made of pairs")
    return list(found.items())


def _numbers(data: dict[str, Any], key: str) -> list[int]:
    found = data.get(key, [])
    if not isinstance(found, list) or not all(type(item) is int for item in found):
        raise ValueError(f"{key!r} of a session is not a list of numbers")
    return found


def _number(data: dict[str, Any], key: str, default: int) -> int:
    found = data.get(key, default)
    if type(found) is not int:
        raise ValueError(f"{key!r} of a session is not a number")
    return found


def _all_texts(values: list[Any]) -> list[str]:
    if set(map(type, values)) - {str}:
        raise ValueError("a text of a session is not text")
    return values


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("a text of a session is not text")
    return value
