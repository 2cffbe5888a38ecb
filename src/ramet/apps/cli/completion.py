"""Shell completion for bash, zsh and fish: the scripts, and the candidates they ask for.

A script runs `ramet` with `_RAMET_COMPLETE=SHELL` and `_RAMET_LINE`, the line up to the cursor. `ramet` prints the
candidates in the shell's own format. If there are none, the shell completes file names.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from ramet.apps.cli.errors import complain
from ramet.apps.cli.main import BEFORE, COMPLETION, split
from ramet.apps.cli.parameters import Parameter
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
    [[ ${COMPREPLY-} != *[/=] ]] || compopt -o nospace
    return 0
}

complete -o default -F _ramet_completion ramet
""",
    "zsh": """\
#compdef ramet

_ramet_completion() {
  local word text found=1
  local -a open done shown
  while IFS=$'\t' read -r word text; do
    if [[ $word == *[/=] ]]; then
      open+=("$word")
    else
      done+=("$word")
      shown+=("$word${text:+  -- $text}")
    fi
  done < <(env _RAMET_COMPLETE=zsh _RAMET_LINE="${words[1,$CURRENT]}" ramet)
  if (( ! $#open && ! $#done )); then
    _files
    return
  fi
  compadd -S '' -a open && found=0
  if [[ ${shown[1]} == *'  -- '* ]]; then
    compadd -l -d shown -a done && found=0
  else
    compadd -a done && found=0
  fi
  return found
}

compdef _ramet_completion ramet
""",
    "fish": """\
function _ramet_completion
    set -g _ramet_found (env _RAMET_COMPLETE=fish _RAMET_LINE=(commandline -cp) ramet)
end

complete --command ramet --no-files --condition _ramet_completion --arguments '$_ramet_found'
""",
}
PLACES: Final = {
    "bash": ".bash_completions/ramet.sh",
    "zsh": ".zfunc/_ramet",
    "fish": ".config/fish/completions/ramet.fish",
}
"""Paths of the scripts, relative to the home directory."""
STARTUP: Final = {
    "bash": (".bashrc", "source '{place}'"),
    "zsh": (".zshrc", "fpath+=~/.zfunc; autoload -Uz compinit; compinit"),
}
"""Startup file of each shell and the line it needs; fish finds its script by itself."""

_PIECE: Final = re.compile(r"^.*[@:=]")
_QUOTED: Final = re.compile(r"[\s'\"\\$`&|;<>()*?!#\[\]{}]")
"""Characters that bash takes for something else than a part of a word."""
Candidate = tuple[str, str]
"""A word and its description."""


def run_option(words: list[str]) -> int:
    """`ramet --show-completion [SHELL]` and `ramet --install-completion [SHELL]`."""
    option, _, value = words[0].partition("=")
    shell = value or (words[1] if len(words) > 1 else current_shell())
    if shell not in SCRIPTS:
        complain(f"no completion for {shell or 'this shell'}", f"write ramet {option} bash, zsh or fish",
                 as_json=False)  # fmt: skip
        return 1
    if option == "--show-completion":
        print(SCRIPTS[shell], end="")
        return 0
    print(f"{shell} completion installed in {install(shell)}")
    print("Completion will take effect once you restart the terminal")
    return 0


def install(shell: str) -> Path:
    """Write the script, make the shell load it, and return its path."""
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
    """Find the shell among the parent processes; fall back to the login shell."""
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
    """Print the candidates for the end of a line; the status is 1 if there are none."""
    found = candidates(line)
    for word, text in found:
        print(_bash_piece(line, word) if shell == "bash" else f"{word}\t{text}" if text else word)
    return 0 if found else 1


def _bash_piece(line: str, word: str) -> str:
    """What bash inserts: it has split the line at `@:=` as well, and it quotes nothing."""
    typed = "" if line[-1:].isspace() else _words(line)[-1]
    piece = word[len(typed) - len(_PIECE.sub("", typed)) :]
    return piece if _has_open_quote(line) else _QUOTED.sub(r"\\\g<0>", piece)


def candidates(line: str) -> list[Candidate]:
    """List the words that can complete the end of a line, each with what describes it."""
    words = _words(line)[1:]
    prefix = words.pop() if words and not line[-1].isspace() else ""
    invocation = split(words)
    words = invocation.words
    if words[:1] == ["help"]:
        words = words[1:]
    if not words:
        if prefix.startswith("-"):
            return _with_prefix([(name, "") for name in (*BEFORE, *COMPLETION, "--help", "--version")], prefix)
        return _with_prefix([(verb.name, verb.summary) for verbs in VERBS.values() for verb in verbs], prefix)
    verb = find(words[0])
    if verb is None:
        return []
    words, path = words[1:], "ramet"
    if verb.verbs:
        if not words:
            return _with_prefix([(one.name, one.summary) for one in verb.verbs], prefix)
        path = f"ramet {verb.name}"
        verb = next((one for one in verb.verbs if one.name == words[0]), None)
        words = words[1:]
    try:
        store = invocation.before().get("store") or os.environ.get("RAMET_HOME") or HOME
        return [] if verb is None else _after_verb(verb, path, words, prefix, store)
    except (UsageError, OSError, RametError):
        return []


def _after_verb(verb: Verb, path: str, words: list[str], prefix: str, store: str) -> list[Candidate]:
    command = verb.command(path)
    waiting = next((one for one in command.options if words and words[-1] in one.flags and not one.is_switch), None)
    if waiting is not None and "--" not in words:
        words = words[:-1]
    options, places, after = split_options(command, words)
    store = options.get("store") or store
    if waiting is not None and after is None:
        return _values(waiting, prefix, store, places)
    if prefix.startswith("-") and "--" not in words:
        rows = [
            (name, one.help)
            for one in command.options
            if one.many or one.name not in options
            for name in (*one.flags, *one.negative)
        ]
        return _with_prefix([*rows, ("--help", "Show this help.")], prefix)
    arguments = command.arguments
    if not arguments or (len(places) >= len(arguments) and not arguments[-1].many):
        return []
    behind = after is not None and arguments[-1].declared.dashes
    return _values(arguments[-1 if behind else min(len(places), len(arguments) - 1)], prefix, store, places)


def _values(parameter: Parameter, prefix: str, store: str, places: list[str]) -> list[Candidate]:
    """List the values of an argument or an option, as it declares them."""
    complete = parameter.declared.complete
    return [] if complete is None else _with_prefix([(name, "") for name in complete(prefix, store, places)], prefix)


def _with_prefix(rows: list[Candidate], prefix: str) -> list[Candidate]:
    return [row for row in rows if row[0].startswith(prefix)]


def _words(line: str) -> list[str]:
    """Split a line into words; the last quote may still be open."""
    import shlex

    lexer = shlex.shlex(line, posix=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    words: list[str] = []
    try:
        words.extend(lexer)  # keeps the words before an error
    except ValueError:
        words.append(lexer.token)
    return words


def _has_open_quote(line: str) -> bool:
    import shlex

    try:
        shlex.split(line)
    except ValueError:
        return True
    return False
