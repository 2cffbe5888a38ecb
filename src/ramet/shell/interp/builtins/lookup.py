"""What a name means: type, command, builtin, hash, enable, alias, help, and completion basics."""

from __future__ import annotations

from typing import Final

from ramet.core.paths import encode
from ramet.shell.expand import quote
from ramet.shell.expand.fields import split_plain
from ramet.shell.expand.patterns import compile_pattern
from ramet.shell.interp.drive import Result, drive
from ramet.shell.interp.external import search, search_path
from ramet.shell.interp.options import OPTIONS, SHOPTS
from ramet.shell.interp.session import Builtin, Session
from ramet.shell.syntax.printer import function_text

KEYWORDS: Final = [
    "if",
    "then",
    "else",
    "elif",
    "fi",
    "case",
    "esac",
    "for",
    "select",
    "while",
    "until",
    "do",
    "done",
    "in",
    "function",
    "time",
    "{",
    "}",
    "!",
    "[[",
    "]]",
    "coproc",
]
SPECIAL: Final = frozenset(
    [
        ".",
        ":",
        "break",
        "continue",
        "eval",
        "exec",
        "exit",
        "export",
        "readonly",
        "return",
        "set",
        "shift",
        "source",
        "times",
        "trap",
        "unset",
    ]
)


def _table() -> dict[str, Builtin]:
    from ramet.shell.interp.builtins import BUILTINS

    return BUILTINS


def _shown(path: str) -> str:
    return path.lstrip("\0")


async def _everywhere(sh: Session, name: str) -> list[str]:
    """All places on PATH that have the name."""
    found: list[str] = []
    for directory in (sh.store.get("PATH") or "").split(":"):
        hit = await search_path(sh, name, directory or ".")
        if hit is not None and _shown(hit) not in found:
            found.append(_shown(hit))
    return found


async def _file(sh: Session, name: str) -> str | None:
    """The program behind a name, by PATH or as a path."""
    if "/" in name:
        from ramet.core import paths
        from ramet.shell.interp.external import BIN, in_table

        try:
            stat = await sh.shell.fs.stat(paths.parse(name, sh.cwd), follow=True)
        except OSError:
            base = name[name.rfind("/") + 1 :]
            return name if name[: name.rfind("/")] in BIN and in_table(sh, base) else None
        return name if stat.is_file and (stat.mode is None or stat.mode & 0o111) else None
    known = sh.hashed.get(name)
    hit = known[0] if known is not None else await search_path(sh, name, sh.store.get("PATH") or "")
    return None if hit is None else _shown(hit)


def type_(sh: Session, argv: list[str]) -> Result:
    flags = ""
    i = 1
    while i < len(argv) and argv[i].startswith("-") and len(argv[i]) > 1:
        if argv[i] == "--":
            i += 1
            break
        for letter in argv[i][1:]:
            if letter not in "aftpP":
                sh.complain(f"type: -{letter}: invalid option")
                sh.err("type: usage: type [-afptP] name [name ...]\n")
                return 2
        flags += argv[i][1:]
        i += 1
    return drive(_type(sh, flags, [str(word) for word in argv[i:]]))


async def _type(sh: Session, flags: str, names: list[str]) -> int:
    status = 0
    for name in names:
        found = await _describe(sh, name, flags)
        if not found:
            status = 1
            if not set("tpP") & set(flags):
                sh.complain(f"type: {name}: not found")
            continue
        written = sh.out(encode("".join(f"{line}\n" for line in found)), "type")
        if not isinstance(written, int):
            written = await written
        status = status or written
    return status


async def _describe(sh: Session, name: str, flags: str) -> list[str]:
    every, kind = "a" in flags, "t" in flags
    lines: list[str] = []
    if "P" not in flags:
        if name in sh.aliases and "expand_aliases" in sh.shopts:
            lines.append("alias" if kind else f"{name} is aliased to `{sh.aliases[name]}'")
        if name in KEYWORDS:
            lines.append("keyword" if kind else f"{name} is a shell keyword")
        if name in sh.functions and "f" not in flags:
            lines.append("function" if kind else f"{name} is a function\n{function_text(sh.functions[name].node)}")
        if name in _table() and name not in sh.disabled:
            special = "special " if sh.posix and name in SPECIAL else ""
            lines.append("builtin" if kind else f"{name} is a {special}shell builtin")
        if "p" in flags and lines and not every:
            return _QUIET
        if "p" in flags and lines:
            lines = _Quiet()
    if lines and not every:
        return lines[:1]
    if every and "/" not in name:
        files = await _everywhere(sh, name)
    else:
        hashed = name in sh.hashed and not every
        file = await _file(sh, name)
        files = [] if file is None else [file]
        if hashed and files and not set("tpP") & set(flags):
            return [f"{name} is hashed ({files[0]})"]
    if kind:
        lines += ["file"] * len(files)
    elif set("pP") & set(flags):
        return _Quiet(files) if lines or files else []
    else:
        lines += [f"{name} is {file}" for file in files]
    return lines if every else lines[:1]


class _Quiet(list[str]):
    """Found, and nothing to print."""

    def __bool__(self) -> bool:
        return True


_QUIET: Final = _Quiet()


def command(sh: Session, argv: list[str]) -> Result:
    i = 1
    mode = ""
    standard = False
    while i < len(argv) and argv[i].startswith("-") and len(argv[i]) > 1:
        word = argv[i]
        i += 1
        if word == "--":
            break
        for letter in word[1:]:
            if letter not in "pvV":
                sh.complain(f"command: -{letter}: invalid option")
                sh.err("command: usage: command [-pVv] command [arg ...]\n")
                return 2
            mode = letter if letter in "vV" else mode
            standard = standard or letter == "p"
    words = argv[i:]
    if not words:
        return 0
    if mode == "V":
        return drive(_command_verbose(sh, [str(word) for word in words]))
    if mode == "v":
        return drive(_command_v(sh, [str(word) for word in words]))
    if standard and words[0] not in _table():
        return drive(_standard(sh, words))
    return drive(sh.shell.invoke(sh, words, functions=False))


async def _standard(sh: Session, words: list[str]) -> int:
    """`command -p`: the program where programs live, whatever PATH says."""
    from ramet.shell.interp.external import BIN, run_external

    found = await search_path(sh, words[0], ":".join(BIN))
    return await run_external(sh, words if found is None else [_shown(found), *words[1:]])


async def _command_verbose(sh: Session, names: list[str]) -> int:
    lines: list[str] = []
    missing = False
    for name in names:
        found = await _describe(sh, name, "")
        if not found:
            missing = True
            sh.complain(f"command: {name}: not found")
        lines += found
    written = sh.out(encode("".join(f"{line}\n" for line in lines)), "command")
    if not isinstance(written, int):
        written = await written
    return 1 if missing else written


async def _command_v(sh: Session, names: list[str]) -> int:
    lines: list[str] = []
    for name in names:
        if name in sh.aliases and "expand_aliases" in sh.shopts:
            lines.append(f"alias {name}={quote.single(sh.aliases[name])}")
        elif name in KEYWORDS or name in sh.functions or (name in _table() and name not in sh.disabled):
            lines.append(name)
        else:
            file = await _file(sh, name)
            if file is not None:
                lines.append(file)
    written = sh.out(encode("".join(f"{line}\n" for line in lines)), "command")
    if not isinstance(written, int):
        written = await written
    return 0 if len(lines) == len(names) else (1 if not lines else written)


def builtin(sh: Session, argv: list[str]) -> Result:
    words = argv[2:] if len(argv) > 1 and argv[1] == "--" else argv[1:]
    if not words:
        return 0
    found = _table().get(words[0])
    if found is None or words[0] in sh.disabled:
        return sh.error(f"builtin: {words[0]}: not a shell builtin")
    return found(sh, words)


def hash_(sh: Session, argv: list[str]) -> Result:
    words = argv[1:]
    flags = ""
    while words and words[0].startswith("-") and len(words[0]) > 1:
        flags += words[0][1:]
        words = words[1:]
    if "r" in flags:
        sh.hashed.clear()
    if "d" in flags:
        for word in words:
            if sh.hashed.pop(word, None) is None:
                return sh.error(f"hash: {word}: not found")
        return 0
    if "p" in flags and len(words) > 1:
        sh.hashed[words[1]] = (words[0], 0)
        return 0
    if "t" in flags:
        return drive(_hash_shown(sh, words))
    if not words:
        if "r" in flags:
            return 0
        if not sh.hashed:
            return sh.out(b"hash: hash table empty\n", "hash")
        if "l" in flags:
            lines = "".join(f"builtin hash -p {_shown(path)} {name}\n" for name, (path, _) in sh.hashed.items())
        else:
            lines = "hits\tcommand\n" + "".join(f"{hits:4d}\t{_shown(path)}\n" for path, hits in sh.hashed.values())
        return sh.out(encode(lines), "hash")
    return drive(_hash(sh, words))


async def _hash_shown(sh: Session, words: list[str]) -> int:
    for word in words:
        if word not in sh.hashed:
            return sh.error(f"hash: {word}: not found")
        written = sh.out(encode(f"{_shown(sh.hashed[word][0])}\n"), "hash")
        if not isinstance(written, int):
            await written
    return 0


async def _hash(sh: Session, words: list[str]) -> int:
    status = 0
    for word in words:
        if word in _table() or word in sh.functions:
            continue
        sh.hashed.pop(word, None)
        found = await search(sh, word)
        if found is None:
            status = sh.error(f"hash: {word}: not found")
        else:
            sh.hashed[word] = (found, 0)
    return status


def enable(sh: Session, argv: list[str]) -> Result:
    off = False
    words = argv[1:]
    flags = ""
    while words and words[0].startswith("-") and len(words[0]) > 1:
        flags += words[0][1:]
        words = words[1:]
    off = "n" in flags
    if not words or "p" in flags:
        names = sorted(_table())
        lines: list[str] = []
        for name in names:
            disabled = name in sh.disabled
            if "a" in flags or disabled is off:
                lines.append(f"enable {'-n ' if disabled else ''}{name}\n")
        return sh.out(encode("".join(lines)), "enable")
    status = 0
    for word in words:
        if word not in _table():
            status = sh.error(f"enable: {word}: not a shell builtin")
        elif off:
            sh.disabled.add(word)
        else:
            sh.disabled.discard(word)
    return status


def alias(sh: Session, argv: list[str]) -> Result:
    words = [word for word in argv[1:] if word != "-p"]
    lines: list[str] = []
    status = 0
    if len(argv) > 1 and not words and argv[1] != "-p":
        words = argv[1:]
    if not words:
        lines = [f"alias {name}={quote.single(value)}\n" for name, value in sorted(sh.aliases.items())]
    for word in words:
        name, equals, value = str(word).partition("=")
        if equals and name:
            if any(char in name for char in " \t\n/$`=\"'\\|&;()<>"):
                status = sh.error(f"alias: `{name}': invalid alias name")
            else:
                sh.aliases[name] = value
        elif name in sh.aliases:
            lines.append(f"alias {name}={quote.single(sh.aliases[name])}\n")
        else:
            status = sh.error(f"alias: {word}: not found")
    written = sh.out(encode("".join(lines)), "alias")
    return status or written


def unalias(sh: Session, argv: list[str]) -> Result:
    words = argv[1:]
    if words[:1] == ["-a"]:
        sh.aliases.clear()
        return 0
    if words[:1] == ["--"]:
        words = words[1:]
    if not words:
        sh.err("unalias: usage: unalias [-a] name [name ...]\n")
        return 2
    status = 0
    for word in words:
        if sh.aliases.pop(word, None) is None:
            status = sh.error(f"unalias: {word}: not found")
    return status


def help_(sh: Session, argv: list[str]) -> Result:
    words = [word for word in argv[1:] if not word.startswith("-")]
    if not words:
        return sh.out(
            encode("These shell commands are defined internally:\n " + "\n ".join(sorted(_table())) + "\n"), "help"
        )
    known = {*_table(), *KEYWORDS}
    out: list[str] = []
    status = 0
    for word in words:
        pattern = compile_pattern(word)
        names = sorted(name for name in known if pattern.matches(name))
        if not names:
            status = sh.error(
                f"help: no help topics match `{word}'.  Try `help help' or `man -k {word}' or `info {word}'."
            )
        out += [f"{name}: {name}\n    A shell {'keyword' if name in KEYWORDS else 'builtin'}.\n" for name in names]
    written = sh.out(encode("".join(out)), "help")
    return status or written


# -------------------------------------------------------------------------------------------------- completion


def compgen(sh: Session, argv: list[str]) -> Result:
    """The generators that need no terminal."""
    flags: list[tuple[str, str]] = []
    i = 1
    word = ""
    while i < len(argv):
        item = str(argv[i])
        i += 1
        if item == "--":
            word = str(argv[i]) if i < len(argv) else ""
            break
        if not item.startswith("-"):
            word = item
            continue
        letter = item[1:2]
        if letter in "AFCGWXPSo":
            value = item[2:]
            if not value and i < len(argv):
                value = str(argv[i])
                i += 1
            flags.append((letter, value))
        else:
            flags += [(one, "") for one in item[1:]]
    return drive(_compgen(sh, flags, word))


_ACTIONS: Final = {
    "alias": "a",
    "builtin": "b",
    "command": "c",
    "directory": "d",
    "export": "e",
    "file": "f",
    "function": "FUNCTION",
    "keyword": "k",
    "variable": "v",
    "job": "j",
    "setopt": "SETOPT",
    "shopt": "SHOPT",
    "user": "u",
    "group": "g",
}


async def _compgen(sh: Session, flags: list[tuple[str, str]], word: str) -> int:
    names: list[str] = []
    prefix = suffix = exclude = ""
    for letter, value in flags:
        kind = _ACTIONS.get(value, "") if letter == "A" else letter
        if letter == "A" and not kind:
            return sh.error(f"compgen: {value}: invalid action name")
        if kind == "P":
            prefix = value
        elif kind == "S":
            suffix = value
        elif kind == "X":
            exclude = value
        elif kind == "W":
            names += await _word_list(sh, value)
        elif kind == "F":
            names += await _by_function(sh, value, word)
        elif kind == "G":
            names += await _globbed(sh, value)
        else:
            names += await _generate(sh, kind, word)
    found = [name for name in names if name.startswith(word)]
    if exclude:
        negate = exclude.startswith("!")
        pattern = compile_pattern(exclude[negate:].replace("&", word), "extglob" in sh.shopts)
        found = [name for name in found if pattern.matches(name) is negate]
    written = sh.out(encode("".join(f"{prefix}{name}{suffix}\n" for name in found)), "compgen")
    if not isinstance(written, int):
        written = await written
    return written if found else 1


async def _word_list(sh: Session, text: str) -> list[str]:
    from ramet.shell.interp.prompt import expand_text

    return split_plain(expand_text(sh, text), sh.ifs)


async def _by_function(sh: Session, name: str, word: str) -> list[str]:
    function = sh.functions.get(name)
    if function is None:
        return []
    from ramet.shell.interp.functions import call_function

    result = call_function(sh, function, [name, "", word, ""])
    if not isinstance(result, int):
        await result
    return list(sh.store.elements("COMPREPLY"))


async def _globbed(sh: Session, pattern: str) -> list[str]:
    from ramet.shell.expand.fields import GlobWord

    field = GlobWord(pattern)
    field.pattern = pattern
    return await sh.shell.globbed(sh, [field])


async def _generate(sh: Session, kind: str, word: str) -> list[str]:
    if kind == "a":
        return sorted(sh.aliases)
    if kind == "b":
        return sorted(_table())
    if kind == "c":
        return sorted({*sh.aliases, *sh.functions, *_table(), *KEYWORDS, *sh.shell.commands})
    if kind == "e":
        return sorted(sh.store.exported())
    if kind == "FUNCTION":
        return sorted(sh.functions)
    if kind == "k":
        return list(KEYWORDS)
    if kind == "v":
        return sh.store.names()
    if kind == "SETOPT":
        return list(OPTIONS)
    if kind == "SHOPT":
        return list(SHOPTS)
    if kind == "u":
        return [sh.shell.user.name]
    if kind == "g":
        return [sh.shell.user.group]
    if kind in "fd":
        found = await _globbed(sh, word.replace("*", "\\*") + "*")
        found = [name for name in found if not name.endswith("*")]
        if kind == "d":
            from ramet.shell.interp.cond import file_test

            found = [name for name in found if await file_test(sh, "-d", name)]
        return found
    return []


def complete(sh: Session, argv: list[str]) -> Result:
    """Remembers specifications and shows them; nothing here completes."""
    words = [str(word) for word in argv[1:]]
    if not words or words == ["-p"]:
        lines = "".join(f"complete {spec} {name}\n" for name, spec in sh.completions.items())
        return sh.out(encode(lines), "complete")
    if words[0] == "-r":
        for name in words[1:]:
            sh.completions.pop(name, None)
        if len(words) == 1:
            sh.completions.clear()
        return 0
    if words[0] == "-p":
        status = 0
        lines = ""
        for name in words[1:]:
            if name not in sh.completions:
                status = sh.error(f"complete: {name}: no completion specification")
            else:
                lines += f"complete {sh.completions[name]} {name}\n"
        return status or sh.out(encode(lines), "complete")
    sh.completions[words[-1]] = " ".join(quote.word(word) for word in words[:-1])
    return 0


def compopt(sh: Session, argv: list[str]) -> Result:
    return sh.error("compopt: not currently executing completion function")


TABLE: Final[dict[str, Builtin]] = {
    "type": type_,
    "command": command,
    "builtin": builtin,
    "hash": hash_,
    "enable": enable,
    "alias": alias,
    "unalias": unalias,
    "help": help_,
    "compgen": compgen,
    "complete": complete,
    "compopt": compopt,
}
