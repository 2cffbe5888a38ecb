"""`bind`: the commands, keys and settings of a line editor, as a script can ask for them.

Nobody types here: what is bound or set is checked, accepted, and has no effect, as in any script.
"""

from __future__ import annotations

from itertools import islice
from typing import Final

from ramet.core.paths import encode
from ramet.shell.interp.builtins.usage import bad_option
from ramet.shell.interp.run.maybe_async import Result, drive
from ramet.shell.interp.state.shell_state import Builtin, ShellState

_UNBOUND: Final = """
    alias-expand-line arrow-key-prefix backward-byte copy-backward-word copy-forward-word copy-region-as-kill
    dabbrev-expand delete-char-or-list do-lowercase-version dump-functions dump-macros dump-variables
    emacs-editing-mode fetch-history forward-backward-delete-char forward-byte history-and-alias-expand-line
    history-search-backward history-search-forward history-substring-search-backward
    history-substring-search-forward kill-region kill-whole-line magic-space menu-complete
    menu-complete-backward next-screen-line non-incremental-forward-search-history-again
    non-incremental-reverse-search-history-again old-menu-complete overwrite-mode previous-screen-line
    print-last-kbd-macro redraw-current-line self-insert shell-backward-kill-word skip-csi-sequence tab-insert
    tty-status universal-argument unix-filename-rubout vi-append-eol vi-append-mode vi-arg-digit vi-bWord
    vi-back-to-indent vi-backward-bigword vi-backward-word vi-bword vi-change-case vi-change-char vi-change-to
    vi-char-search vi-column vi-complete vi-delete vi-delete-to vi-eWord vi-edit-and-execute-command
    vi-editing-mode vi-end-bigword vi-end-word vi-eof-maybe vi-eword vi-fWord vi-fetch-history vi-first-print
    vi-forward-bigword vi-forward-word vi-fword vi-goto-mark vi-insert-beg vi-insertion-mode vi-match
    vi-movement-mode vi-next-word vi-overstrike vi-overstrike-delete vi-prev-word vi-put vi-redo vi-replace
    vi-rubout vi-search vi-search-again vi-set-mark vi-subst vi-tilde-expand vi-undo vi-unix-word-rubout
    vi-yank-arg vi-yank-pop vi-yank-to
"""
_BOUND: Final = r"""
    abort  \C-g  \C-x\C-g  \e\C-g
    accept-line  \C-j  \C-m
    backward-char  \C-b  \eOD  \e[D
    backward-delete-char  \C-h  \C-?
    backward-kill-line  \C-x\C-?
    backward-kill-word  \e\C-h  \e\C-?
    backward-word  \e[1;3D  \e[1;5D  \eb
    beginning-of-history  \e<
    beginning-of-line  \C-a  \eOH  \e[H
    bracketed-paste-begin  \e[200~
    call-last-kbd-macro  \C-xe
    capitalize-word  \ec
    character-search  \C-]
    character-search-backward  \e\C-]
    clear-display  \e\C-l
    clear-screen  \C-l
    complete  \C-i  \e\e
    complete-command  \e!
    complete-filename  \e/
    complete-hostname  \e@
    complete-into-braces  \e{
    complete-username  \e~
    complete-variable  \e$
    delete-char  \C-d
    delete-horizontal-space  \e\\
    digit-argument  \e-  \e0  \e1  \e2  \e3  \e4  \e5  \e6  \e7  \e8  \e9
    display-shell-version  \C-x\C-v
    downcase-word  \el
    dynamic-complete-history  \e\C-i
    edit-and-execute-command  \C-x\C-e
    end-kbd-macro  \C-x)
    end-of-history  \e>
    end-of-line  \C-e  \eOF  \e[F
    exchange-point-and-mark  \C-x\C-x
    forward-char  \C-f  \eOC  \e[C
    forward-search-history  \C-s
    forward-word  \e[1;3C  \e[1;5C  \ef
    glob-complete-word  \eg
    glob-expand-word  \C-x*
    glob-list-expansions  \C-xg
    history-expand-line  \e^
    insert-comment  \e#
    insert-completions  \e*
    insert-last-argument  \e.  \e_
    kill-line  \C-k
    kill-word  \e[3;5~  \ed
    next-history  \C-n  \eOB  \e[B
    non-incremental-forward-search-history  \en
    non-incremental-reverse-search-history  \ep
    operate-and-get-next  \C-o
    possible-command-completions  \C-x!
    possible-completions  \e=  \e?
    possible-filename-completions  \C-x/
    possible-hostname-completions  \C-x@
    possible-username-completions  \C-x~
    possible-variable-completions  \C-x$
    previous-history  \C-p  \eOA  \e[A
    quoted-insert  \C-q  \C-v
    re-read-init-file  \C-x\C-r
    reverse-search-history  \C-r
    revert-line  \e\C-r  \er
    set-mark  \C-@  \e\x20
    shell-backward-word  \e\C-b
    shell-expand-line  \e\C-e
    shell-forward-word  \e\C-f
    shell-kill-word  \e\C-d
    shell-transpose-words  \e\C-t
    spell-correct-word  \C-xs
    start-kbd-macro  \C-x(
    tilde-expand  \e&
    transpose-chars  \C-t
    transpose-words  \et
    undo  \C-x\C-u  \C-_
    unix-line-discard  \C-u
    unix-word-rubout  \C-w
    upcase-word  \eu
    yank  \C-y
    yank-last-arg  \e.  \e_
    yank-nth-arg  \e\C-y
    yank-pop  \ey
"""
_PRINTABLE: Final = [chr(code) for code in range(32, 127)]
_KEYS: Final = {
    **{name: [] for name in _UNBOUND.split()},
    **{name: [key.replace("\\x20", " ") for key in keys] for name, *keys in map(str.split, _BOUND.strip().split("\n"))},
    "self-insert": [{'"': '\\"', "\\": "\\\\"}.get(char, char) for char in _PRINTABLE],
    "do-lowercase-version": [f"\\{start}{chr(code)}" for start in ("C-x", "e") for code in range(65, 91)],
}
FUNCTIONS: Final = {name: _KEYS[name] for name in sorted(_KEYS)}
"""Commands of the line editor, and the keys that invoke them."""
_SETTINGS: Final = """
    bind-tty-special-chars=on blink-matching-paren=off byte-oriented=off colored-completion-prefix=off
    colored-stats=off completion-ignore-case=off completion-map-case=off convert-meta=off
    disable-completion=off echo-control-characters=on enable-active-region=off enable-bracketed-paste=off
    enable-keypad=off enable-meta-key=on expand-tilde=off history-preserve-point=off
    horizontal-scroll-mode=off input-meta=on mark-directories=on mark-modified-lines=off
    mark-symlinked-directories=off match-hidden-files=on menu-complete-display-prefix=off meta-flag=on
    output-meta=on page-completions=on prefer-visible-bell=on print-completions-horizontally=off
    revert-all-at-newline=off show-all-if-ambiguous=off show-all-if-unmodified=off show-mode-in-prompt=off
    skip-completed-text=off visible-stats=off bell-style=audible comment-begin=# completion-display-width=-1
    completion-prefix-display-length=0 completion-query-items=100 editing-mode=emacs emacs-mode-string=@
    history-size=0 keymap=emacs keyseq-timeout=500 vi-cmd-mode-string=(cmd) vi-ins-mode-string=(ins)
"""
SETTINGS: Final = dict(setting.split("=", 1) for setting in _SETTINGS.split())
_KEYMAPS: Final = (
    "emacs", "emacs-standard", "emacs-meta", "emacs-ctlx", "vi", "vi-move", "vi-command", "vi-insert",
)  # fmt: skip
_VALUED: Final = "mfqurx"
_SOME: Final = 5
"""Keys of a command that are shown."""


def bind(sh: ShellState, argv: list[str]) -> Result:
    if not sh.interactive:
        sh.complain("bind: warning: line editing not enabled")
    flags: list[tuple[str, str]] = []
    words = [str(word) for word in argv[1:]]
    while words and words[0].startswith("-") and len(words[0]) > 1:
        word = words.pop(0)
        if word == "--":
            break
        for place, letter in enumerate(islice(word, 1, None), 1):
            if letter in _VALUED:
                value = word[place + 1 :] or (words.pop(0) if words else None)
                if value is None:
                    return bad_option(sh, "bind", f"-{letter}", "option requires an argument")
                flags.append((letter, value))
                break
            if letter not in "lpsvPSVX":
                return bad_option(sh, "bind", f"-{letter}")
            flags.append((letter, ""))
    return drive(_bind(sh, dict(flags)))


async def _bind(sh: ShellState, flags: dict[str, str]) -> int:
    keymap = flags.get("m")
    if keymap is not None and keymap not in _KEYMAPS:
        return sh.error(f"bind: `{keymap}': invalid keymap name")
    text = ""
    if "l" in flags:
        text += "".join(f"{name}\n" for name in FUNCTIONS)
    if "p" in flags:
        text += "\n" + "".join(map(_reusable, FUNCTIONS))
    if "P" in flags:
        text += "\n" + "".join(_found(name, "can be found on", "") for name in FUNCTIONS)
    if "v" in flags:
        text += "".join(f"set {name} {value}\n" for name, value in SETTINGS.items())
    if "V" in flags:
        text += "".join(f"{name} is set to `{value}'\n" for name, value in SETTINGS.items())
    written = sh.out(encode(text), "bind")
    status = written if isinstance(written, int) else await written
    if "f" in flags and not await sh.shell.exists(sh.shell.fs.named(flags["f"], sh.cwd)):
        return sh.error(f"bind: {flags['f']}: cannot read: No such file or directory")
    for letter in "qu":
        name = flags.get(letter)
        if name is None:
            continue
        if name not in FUNCTIONS:
            return sh.error(f"bind: `{name}': unknown function name")
        if letter == "q":
            written = sh.out(encode(_found(name, "can be invoked via", ".")), "bind")
            status = status or (written if isinstance(written, int) else await written)
            status = status or int(not FUNCTIONS[name])
    return status


def _reusable(name: str) -> str:
    if not FUNCTIONS[name]:
        return f"# {name} (not bound)\n"
    return "".join(f'"{key}": {name}\n' for key in FUNCTIONS[name])


def _found(name: str, how: str, end: str) -> str:
    keys = FUNCTIONS[name]
    if not keys:
        return f"{name} is not bound to any keys{end}\n"
    shown = ", ".join(f'"{key}"' for key in keys[:_SOME])
    return f"{name} {how} {shown}{', ...' if len(keys) > _SOME else '.'}\n"


TABLE: Final[dict[str, Builtin]] = {"bind": bind}
