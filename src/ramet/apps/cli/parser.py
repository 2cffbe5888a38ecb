"""Parse the words after a verb into the values of its parameters.

Rules:
- `--name value`, `--name=value`, `-n value`, `-nvalue`, `-abc` for switches; options may appear anywhere before `--`.
- An option given twice has its last value; one whose type is a list has all of them.
- Words after `--` are arguments; for an argument declared with `dashes`, all of them are its values.
- A value comes from the command line, else from an option before the verb, else from the option's environment
  variable, else from the default.
- Errors appear in this order: options, arguments, missing arguments, extra arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from ramet.apps.cli.parameters import Command, Given, Option, Parameter

TEXT: Final = "text"
"""Value of a variable that asks for what happens without it."""


class UsageError(Exception):
    """A usage error: the cause and what to write instead."""

    def __init__(self, cause: str, remedy: str) -> None:
        super().__init__(cause)
        self.cause, self.remedy = cause, remedy


class Words(NamedTuple):
    """A command line split into options, in the order of their first appearance, and arguments."""

    options: dict[str, Any]
    arguments: list[str]
    after: int | None = None
    """Where in `arguments` the words after `--` begin."""


def parse(command: Command, words: list[str], before: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the keyword arguments for the verb's function. `before` has the values given before the verb."""
    found = split(command, words)
    values: dict[str, Any] = {}
    given = set(found.options)
    for name, text in found.options.items():
        parameter = next(one for one in command.options if one.name == name)
        values[name] = _convert(command, parameter, text)
    rest = list(found.arguments)
    behind: list[str] | None = None
    if found.after is not None and command.arguments and command.arguments[-1].declared.dashes:
        rest, behind = rest[: found.after], rest[found.after :]
    for parameter in command.arguments:
        if behind is not None and parameter.many:
            rest = [*rest, *behind]
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
        text = before.get(parameter.name) or _from_environ(command, parameter, environ)
        if text:
            given.add(parameter.name)
            values[parameter.name] = _convert(command, parameter, text)
        else:
            values[parameter.name] = _default(command, parameter)
    if rest:
        raise _usage_error(command, f"extra arguments: {' '.join(rest)}")
    if command.wants_given is not None:
        values[command.wants_given] = Given(given)
    return values


def _from_environ(command: Command, parameter: Parameter, environ: Mapping[str, str]) -> Any:
    variable, _, value = parameter.envvar.partition("=")
    text = environ.get(variable)
    if not value:
        return text
    if text not in (None, "", TEXT, value):
        raise UsageError(
            f"{_verb(command)}: ${variable} is {text!r}", f"set it to {value} or {TEXT}; {more(command.path)}"
        )
    return text == value


def split(command: Command, words: list[str]) -> Words:
    """Separate options from arguments."""
    known = {flag: (one, True) for one in command.options for flag in one.flags}
    known |= {flag: (one, False) for one in command.options for flag in one.negative}
    options: dict[str, Any] = {}
    arguments: list[str] = []
    rest = list(reversed(words))

    def take(flag: str, value: str | None) -> bool:
        """Record an option; return whether it consumed the value."""
        if flag not in known:
            raise _unknown(command, flag)
        parameter, positive = known[flag]
        if parameter.is_switch:
            options[parameter.name] = positive
            return False
        if value is None:
            if not rest:
                raise _usage_error(command, f"option {flag!r} requires an argument")
            value = rest.pop()
        if parameter.many:
            options.setdefault(parameter.name, []).append(value)
        else:
            options[parameter.name] = value
        return True

    after = None
    while rest:
        word = rest.pop()
        if word == "--":
            after = len(arguments)
            arguments += reversed(rest)
            break
        if len(word) < 2 or word[0] != "-":
            arguments.append(word)
        elif word.startswith("--"):
            flag, equals, value = word.partition("=")
            if not take(flag, value if equals else None) and equals:
                raise _usage_error(command, f"option {flag!r} does not take a value")
        else:
            for at, letter in enumerate(word[1:], 2):
                if take(f"-{letter}", word[at:] or None):
                    break
    return Words(options, arguments, after)


def _default(command: Command, parameter: Parameter) -> Any:
    if parameter.required:
        raise UsageError(
            f"{_verb(command)}: missing argument {parameter.label}", f"write {command.usage}; {more(command.path)}"
        )
    return parameter.default


def _convert(command: Command, parameter: Parameter, text: Any) -> Any:
    if parameter.kind not in (int, float):
        return text
    try:
        value = parameter.kind(text)
    except ValueError:
        noun = "whole number" if parameter.kind is int else "number"
        raise _value_error(command, parameter, f"{text!r} is not a {noun}") from None
    least = parameter.declared.minimum if isinstance(parameter.declared, Option) else None
    if least is not None and value < least:
        raise _value_error(command, parameter, f"{text} is below {least}")
    return value


def _verb(command: Command) -> str:
    return command.path.removeprefix("ramet ")


def _usage_error(command: Command, cause: str) -> UsageError:
    return UsageError(f"{_verb(command)}: {cause}", f"write {command.usage}; {more(command.path)}")


def _value_error(command: Command, parameter: Parameter, cause: str) -> UsageError:
    name = "/".join(sorted(parameter.flags, key=len)) or parameter.label
    return UsageError(f"{_verb(command)}: {name}: {cause}", more(command.path))


def _unknown(command: Command, flag: str) -> UsageError:
    known = [name for one in command.options for name in (*one.flags, *one.negative) if name.startswith("--")]
    remedy = nearest(flag, known) or more(command.path)
    if not nearest(flag, known) and any(one.name == "command" and one.many for one in command.arguments):
        remedy = f"write `--` before a command that has options; {more(command.path)}"
    return UsageError(f"{_verb(command)} has no option {flag}", remedy)


def more(path: str) -> str:
    return f"see `{path} --help`"


def nearest(name: str, known: list[str]) -> str:
    """Return `did you mean NAME?` if a known name is close."""
    from difflib import get_close_matches

    words = {one.lstrip("-"): one for one in known}
    near = get_close_matches(name.lstrip("-"), words, 1, 0.65)
    return f"did you mean {words[near[0]]}?" if near else ""
