"""The names and defaults of `set -o` options and `shopt` options."""

from __future__ import annotations

from typing import Final

LETTERS: Final = {
    "a": "allexport",
    "b": "notify",
    "e": "errexit",
    "f": "noglob",
    "h": "hashall",
    "k": "keyword",
    "m": "monitor",
    "n": "noexec",
    "p": "privileged",
    "t": "onecmd",
    "u": "nounset",
    "v": "verbose",
    "x": "xtrace",
    "B": "braceexpand",
    "C": "noclobber",
    "E": "errtrace",
    "H": "histexpand",
    "P": "physical",
    "T": "functrace",
}
LETTER_OF: Final = {name: letter for letter, name in LETTERS.items()}

OPTIONS: Final = tuple(
    sorted(
        (*LETTERS.values(), "emacs", "history", "ignoreeof", "interactive-comments", "nolog", "pipefail", "posix", "vi")
    )
)
OPTIONS_ON: Final = frozenset(("braceexpand", "hashall", "interactive-comments"))

HOT_OPTIONS: Final = frozenset(
    (
        "allexport",
        "errexit",
        "noglob",
        "noexec",
        "nounset",
        "xtrace",
        "noclobber",
        "errtrace",
        "functrace",
        "pipefail",
        "posix",
    )
)
"""Options that are also attributes of the session, because they are asked for at every command."""

SHOPTS: Final = [
    "autocd",
    "assoc_expand_once",
    "cdable_vars",
    "cdspell",
    "checkhash",
    "checkjobs",
    "checkwinsize",
    "cmdhist",
    "compat31",
    "compat32",
    "compat40",
    "compat41",
    "compat42",
    "compat43",
    "compat44",
    "complete_fullquote",
    "direxpand",
    "dirspell",
    "dotglob",
    "execfail",
    "expand_aliases",
    "extdebug",
    "extglob",
    "extquote",
    "failglob",
    "force_fignore",
    "globasciiranges",
    "globskipdots",
    "globstar",
    "gnu_errfmt",
    "histappend",
    "histreedit",
    "histverify",
    "hostcomplete",
    "huponexit",
    "inherit_errexit",
    "interactive_comments",
    "lastpipe",
    "lithist",
    "localvar_inherit",
    "localvar_unset",
    "login_shell",
    "mailwarn",
    "no_empty_cmd_completion",
    "nocaseglob",
    "nocasematch",
    "noexpand_translation",
    "nullglob",
    "patsub_replacement",
    "progcomp",
    "progcomp_alias",
    "promptvars",
    "restricted_shell",
    "shift_verbose",
    "sourcepath",
    "varredir_close",
    "xpg_echo",
]
SHOPTS_ON: Final = frozenset(
    [
        "checkwinsize",
        "cmdhist",
        "complete_fullquote",
        "extquote",
        "force_fignore",
        "globasciiranges",
        "globskipdots",
        "hostcomplete",
        "interactive_comments",
        "patsub_replacement",
        "progcomp",
        "promptvars",
        "sourcepath",
    ]
)
