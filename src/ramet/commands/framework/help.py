"""What people read about a command: its help and version, made from its declaration and nothing else."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from ramet.commands.framework.options import Spec

VERSION = "0.1.0"


class Rows(Protocol):
    """The options of a command, as far as help tells them."""

    @property
    def specs(self) -> tuple[Spec, ...]: ...


class Described(Protocol):
    """What a declaration says for people."""

    @property
    def name(self) -> str: ...
    @property
    def usage(self) -> str: ...
    @property
    def summary(self) -> str: ...
    @property
    def details(self) -> str: ...
    @property
    def examples(self) -> Sequence[tuple[str, str]]: ...
    @property
    def raw(self) -> bool: ...
    @property
    def table(self) -> Rows: ...


def help_text(command: Described) -> str:
    """The `--help` of a command, made from its declaration."""
    lines = [f"Usage: {command.name} {command.usage}", command.summary]
    if command.details:
        lines += ["", textwrap.dedent(command.details).strip()]
    rows = list(_option_rows(command))
    if rows:
        lines.append("")
        width = min(28, max(len(left) for left, _ in rows) + 2)
        for left, right in rows:
            wrapped = textwrap.wrap(right, 79 - width) or [""]
            if len(left) + 2 > width:
                lines.append(left)
            else:
                lines.append(left.ljust(width) + wrapped.pop(0))
            lines += [" " * width + text for text in wrapped]
    if command.examples:
        lines += ["", "Examples:"]
        for text, meaning in command.examples:
            lines.append(f"  {text.ljust(34)} {meaning}".rstrip())
    return "\n".join(lines) + "\n"


def _option_rows(command: Described) -> Iterable[tuple[str, str]]:
    if command.raw:
        return
    for spec in command.table.specs:
        short = [n for n in spec.names if not n.startswith("--")]
        long = [n for n in spec.names if n.startswith("--")]
        argument = "" if spec.takes == "none" else spec.metavar
        if argument:
            attached = f"[={argument}]" if spec.takes == "optional" else f"={argument}"
            long = [f"{n}{attached}" for n in long]
            if short and not long:
                short[-1] += f"[{argument}]" if spec.takes == "optional" else f" {argument}"
        left = "  " + ", ".join(short + long) if short else "      " + ", ".join(long)
        text = f"(not supported) {spec.help}" if spec.store == "refuse" else spec.help
        yield left, text
    yield "      --help", "display this help and exit"
    yield "      --version", "output version information and exit"


def version_text(command: Described) -> str:
    """Whose program this does the work of, for scripts that look for it; then who does it."""
    if command.name == "jq":
        return "jq-1.7.1\n"
    if command.name in ORIGINALS:
        product, _, number = ORIGINALS[command.name].rpartition(" ")
        return f"{command.name} (like {product}) {number}\nramet {VERSION}\n"
    return f"{command.name} (ramet) {VERSION}\n"


ORIGINALS: Final = {
    name: product
    for product, names in {
        "GNU coreutils 9.1": "[ arch b2sum base32 base64 basename basenc cat chgrp chmod chown cksum comm cp csplit "
        "cut date dd df dir dircolors dirname du echo env expand expr factor false fmt fold groups head hostid id "
        "install join link ln logname ls md5sum mkdir mkfifo mknod mktemp mv nice nl nohup nproc numfmt od paste "
        "pathchk printenv printf readlink realpath rm rmdir seq sha1sum sha224sum sha256sum sha384sum sha512sum "
        "shred shuf sleep sort split stat stdbuf stty sum sync tac tail tee test timeout touch tr true truncate tsort "
        "tty uname unexpand uniq unlink users vdir wc who whoami yes",
        "GNU grep 3.8": "grep egrep fgrep",
        "GNU sed 4.9": "sed",
        "GNU Awk 5.2.1": "awk gawk",
        "GNU findutils 4.9.0": "find xargs",
        "GNU diffutils 3.8": "diff cmp",
        "GNU patch 2.7.6": "patch",
        "GNU tar 1.34": "tar",
    }.items()
    for name in names.split()
}
"""The programs that commands do the same as."""
