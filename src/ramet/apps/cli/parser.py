"""Parse the words behind a verb into the values of its parameters.

Rules:
- `--name value`, `--name=value`, `-n value`, `-nvalue`, `-abc` for switches; options may stand anywhere before `--`.
- An option given twice has its last value; one whose type is a list has all of them.
- A value comes from the command line, else from what stood before the verb, else from the option's variable, else
  from the default.
- Errors appear in the order of the command line: options, then arguments, then what is missing, then what is too much.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ramet.apps.cli.parameters import Command, Given, Option, Parameter


class UsageError(Exception):
    """A command line that is wrong: the cause and what to write instead."""

    def __init__(self, cause: str, remedy: str) -> None:
        super().__init__(cause)
        self.cause, self.remedy = cause, remedy


class Words(NamedTuple):
    """A command line split into options, in the order of their first appearance, and arguments."""

    options: dict[str, Any]
    arguments: list[str]


def parse(command: Command, words: list[str], before: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, Any]:
    """The keyword arguments for the verb's function. `before` has the values that stood before the verb."""
    found = split(command, words)
    values: dict[str, Any] = {}
    given = set(found.options)
    for name, text in found.options.items():
        parameter = next(one for one in command.options if one.name == name)
        values[name] = _converted(command, parameter, text)
    rest = list(found.arguments)
    for parameter in command.arguments:
        if not rest:
            values[parameter.name] = _default(command, parameter)
            continue
        given.add(parameter.name)
        if parameter.many:
            values[parameter.name], rest = rest, []
        else:
            values[parameter.name] = rest.pop(0)
    for parameter in command.options:
        if parameter.name in values:
            continue
        text = before.get(parameter.name) or (environ.get(parameter.envvar) if parameter.envvar else None)
        if text:
            given.add(parameter.name)
            values[parameter.name] = _converted(command, parameter, text)
        else:
            values[parameter.name] = _default(command, parameter)
    if rest:
        raise _wrong(command, f"this is too much: ({' '.join(rest)})")
    if command.wants_given is not None:
        values[command.wants_given] = Given(given)
    return values


def split(command: Command, words: list[str]) -> Words:
    """Tell options and arguments apart."""
    known = {flag: (one, True) for one in command.options for flag in one.flags}
    known |= {flag: (one, False) for one in command.options for flag in one.negative}
    options: dict[str, Any] = {}
    arguments: list[str] = []
    rest = list(reversed(words))

    def take(flag: str, value: str | None) -> bool:
        """Note an option; whether it took the value."""
        if flag not in known:
            raise _unknown(command, flag)
        parameter, positive = known[flag]
        if parameter.is_switch:
            options[parameter.name] = positive
            return False
        if value is None:
            if not rest:
                raise _wrong(command, f"option {flag!r} requires an argument")
            value = rest.pop()
        if parameter.many:
            options.setdefault(parameter.name, []).append(value)
        else:
            options[parameter.name] = value
        return True

    while rest:
        word = rest.pop()
        if word == "--":
            arguments += reversed(rest)
            break
        if len(word) < 2 or word[0] != "-":
            arguments.append(word)
        elif word.startswith("--"):
            flag, equals, value = word.partition("=")
            if not take(flag, value if equals else None) and equals:
                raise _wrong(command, f"option {flag!r} does not take a value")
        else:
            for at, letter in enumerate(word[1:], 2):
                if take(f"-{letter}", word[at:] or None):
                    break
    return Words(options, arguments)


def _default(command: Command, parameter: Parameter) -> Any:
    if parameter.required:
        raise UsageError(
            f"{_verb(command)}: {parameter.label} is missing", f"write {command.usage}; {more(command.path)}"
        )
    return parameter.default


def _converted(command: Command, parameter: Parameter, text: Any) -> Any:
    if parameter.kind not in (int, float):
        return text
    try:
        value = parameter.kind(text)
    except ValueError:
        noun = "integer" if parameter.kind is int else "number"
        raise _invalid(command, parameter, f"input should be a valid {noun}") from None
    least = parameter.declared.minimum if isinstance(parameter.declared, Option) else None
    if least is not None and value < least:
        raise _invalid(command, parameter, f"input should be greater than or equal to {least}")
    return value


def _verb(command: Command) -> str:
    return command.path.removeprefix("ramet ")


def _wrong(command: Command, cause: str) -> UsageError:
    return UsageError(f"{_verb(command)}: {cause}", f"write {command.usage}; {more(command.path)}")


def _invalid(command: Command, parameter: Parameter, cause: str) -> UsageError:
    return UsageError(f"{_verb(command)}: {parameter.label}: {cause}", more(command.path))


def _unknown(command: Command, flag: str) -> UsageError:
    known = [name for one in command.options for name in (*one.flags, *one.negative) if name.startswith("--")]
    return UsageError(f"{_verb(command)} has no option {flag}", nearest(flag, known) or more(command.path))


def more(path: str) -> str:
    return f"`{path} --help` tells more"


def nearest(name: str, known: list[str]) -> str:
    """`did you mean NAME?`, when a known name is near."""
    from difflib import get_close_matches

    near = get_close_matches(name, known, 1, 0.6)
    return f"did you mean {near[0]}?" if near else ""
