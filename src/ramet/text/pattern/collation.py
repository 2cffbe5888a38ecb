"""The names of characters that POSIX gives them for `[[.name.]]`, as bash knows them."""

from __future__ import annotations

from typing import Final

_CONTROLS: Final = (
    "NUL SOH STX ETX EOT ENQ ACK alert BS HT LF VT FF CR SO SI DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EM SUB ESC"
    " IS4 IS3 IS2 IS1"
)
_SIGNS: Final = (
    "space exclamation-mark quotation-mark number-sign dollar-sign percent-sign ampersand apostrophe left-parenthesis"
    " right-parenthesis asterisk plus-sign comma hyphen period slash zero one two three four five six seven eight nine"
    " colon semicolon less-than-sign equals-sign greater-than-sign question-mark commercial-at"
)
_OTHERS: Final = {
    "backspace": 8, "tab": 9, "newline": 10, "vertical-tab": 11, "form-feed": 12, "carriage-return": 13,
    "FS": 28, "GS": 29, "RS": 30, "US": 31, "minus": 45, "hyphen-minus": 45, "dash": 45, "full-stop": 46, "solidus": 47,
    "left-square-bracket": 91, "backslash": 92, "reverse-solidus": 92, "right-square-bracket": 93, "circumflex": 94,
    "circumflex-accent": 94, "underscore": 95, "grave-accent": 96, "left-brace": 123, "left-curly-bracket": 123,
    "vertical-line": 124, "right-brace": 125, "right-curly-bracket": 125, "tilde": 126, "DEL": 127,
}  # fmt: skip
COLLATING: Final = {
    **{name: chr(code) for code, name in enumerate(f"{_CONTROLS} {_SIGNS}".split())},
    **{name: chr(code) for name, code in _OTHERS.items()},
}
