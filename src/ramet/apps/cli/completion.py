"""Shell completion for bash, zsh and fish: the scripts, and the answers to them.

A script runs `ramet` with `_RAMET_COMPLETE=SHELL` and `_RAMET_LINE`, the line up to the cursor. It prints the words
that may stand there, in the form that the shell wants; where it knows none, the shell completes files.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from ramet.apps.cli.errors import complain
from ramet.apps.cli.main import BEFORE, COMPLETION, split
from ramet.apps.cli.parser import UsageError
from ramet.apps.cli.parser import split as split_options
from ramet.apps.cli.stores import HOME
from ramet.apps.cli.verb_table import VERBS, Verb, find
from ramet.core.errors import RametError

SCRIPTS: Final = {
    "bash": """\
_ramet_completion() {
    local IFS=$'\\n'
    COMPREPLY=( $( env _RAMET_COMPLETE=bash _RAMET_LINE="${COMP_LINE:0:COMP_POINT}" "$1" ) )
    return 0
}

complete -o default -F _ramet_completion ramet
""",
    "zsh": """\
#compdef ramet

_ramet_completion() {
  eval $(env _RAMET_COMPLETE=zsh _RAMET_LINE="${words[1,$CURRENT]}" ramet)
}

compdef _ramet_completion ramet
""",
    "fish": """\
complete --command ramet --no-files \
--arguments "(env _RAMET_COMPLETE=fish _RAMET_LINE=(commandline -cp) ramet)" \
--condition "env _RAMET_COMPLETE=fish _RAMET_LINE=(commandline -cp) ramet > /dev/null"
""",
}
PLACES: Final = {
    "bash": ".bash_completions/ramet.sh",
    "zsh": ".zfunc/_ramet",
    "fish": ".config/fish/completions/ramet.fish",
}
"""Where the scripts go, below the home directory."""
STARTUP: Final = {
    "bash": (".bashrc", "source '{place}'"),
    "zsh": (".zshrc", "fpath+=~/.zfunc; autoload -Uz compinit; compinit"),
}
"""What a shell has to read when it starts; fish finds its script by itself."""

Candidate = tuple[str, str]
"""A word, and what it means."""


def run_option(words: list[str]) -> int:
    """`ramet --show-completion [SHELL]` and `ramet --install-completion [SHELL]`."""
    option, _, value = words[0].partition("=")
    shell = value or (words[1] if len(words) > 1 else current_shell())
    if shell not in SCRIPTS:
        complain(f"there is no completion for {shell or 'this shell'}", f"write ramet {option} bash, zsh or fish",
                 as_json=False)  # fmt: skip
        return 1
    if option == "--show-completion":
        print(SCRIPTS[shell], end="")
        return 0
    print(f"{shell} completion installed in {install(shell)}")
    print("Completion will take effect once you restart the terminal")
    return 0


def install(shell: str) -> Path:
    """Write the script, and see to it that the shell reads it; where it is."""
    place = Path.home() / PLACES[shell]
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(SCRIPTS[shell])
    if shell in STARTUP:
        name, line = STARTUP[shell]
        file, line = Path.home() / name, line.format(place=place)
        text = file.read_text() if file.is_file() else ""
        if line not in text:
            file.write_text(f"{text.rstrip()}\n{line}\n".lstrip("\n"))
    return place


def current_shell() -> str:
    """The shell that started this process, directly or not; the login shell where that cannot be seen."""
    process = os.getppid()
    while process > 1:
        try:
            stat = Path(f"/proc/{process}/stat").read_text()
        except OSError:
            break
        name = stat[stat.index("(") + 1 : stat.rindex(")")].lstrip("-")
        if name in SCRIPTS:
            return name
        process = int(stat[stat.rindex(")") + 1 :].split()[1])
    return os.path.basename(os.environ.get("SHELL", ""))


def answer(shell: str, line: str) -> int:
    """Print what may stand at the end of a line; the status is 1 when that is nothing that is known."""
    found = candidates(line)
    if shell == "zsh":
        rows = "\n".join(f'"{_escaped(word)}"' + (f':"{_escaped(text)}"' if text else "") for word, text in found)
        print(f"_arguments '*: :(({rows}))'" if found else "_files")
        return 0
    for word, text in found:
        print(f"{word}\t{text}" if text and shell == "fish" else word)
    return 0 if found else 1


def candidates(line: str) -> list[Candidate]:
    """The words that may stand at the end of a line."""
    words = _words(line)[1:]
    prefix = words.pop() if words and not line[-1].isspace() else ""
    invocation = split(words)
    words = invocation.words
    if words[:1] == ["help"]:
        words = words[1:]
    if not words:
        if prefix.startswith("-"):
            return _beginning([(name, "") for name in (*BEFORE, *COMPLETION, "--help", "--version")], prefix)
        return _beginning([(verb.name, verb.summary) for verbs in VERBS.values() for verb in verbs], prefix)
    verb = find(words[0])
    if verb is None:
        return []
    words, path = words[1:], "ramet"
    if verb.verbs:
        if not words:
            return _beginning([(one.name, one.summary) for one in verb.verbs], prefix)
        path = f"ramet {verb.name}"
        verb = next((one for one in verb.verbs if one.name == words[0]), None)
        words = words[1:]
    try:
        store = invocation.before().get("store") or os.environ.get("RAMET_HOME") or HOME
        return [] if verb is None else _behind(verb, path, words, prefix, store)
    except (UsageError, RametError):
        return []


def _behind(verb: Verb, path: str, words: list[str], prefix: str, store: str) -> list[Candidate]:
    command = verb.command(path)
    options, places = split_options(command, words)
    if prefix.startswith("-") and "--" not in words:
        rows = [
            (name, one.help)
            for one in command.options
            if one.many or one.name not in options
            for name in (*one.flags, *one.negative)
        ]
        return _beginning([*rows, ("--help", "Show this help.")], prefix)
    arguments = command.arguments
    if not arguments or (len(places) >= len(arguments) and not arguments[-1].many):
        return []
    complete = getattr(arguments[min(len(places), len(arguments) - 1)].declared, "complete", None)
    return [] if complete is None else [(name, "") for name in complete(prefix, options.get("store") or store)]


def _beginning(rows: list[Candidate], prefix: str) -> list[Candidate]:
    return [row for row in rows if row[0].startswith(prefix)]


def _words(line: str) -> list[str]:
    """The words of a line that may end inside of quotes."""
    import shlex

    lexer = shlex.shlex(line, posix=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    words: list[str] = []
    try:
        words.extend(lexer)  # keeps what it had before an error
    except ValueError:
        words.append(lexer.token)
    return words


def _escaped(text: str) -> str:
    """For zsh, which evaluates what is printed."""
    for letter, spelled in (('"', '""'), ("'", "''"), ("$", "\\$"), ("`", "\\`"), (":", "\\\\:")):
        text = text.replace(letter, spelled)
    return text
