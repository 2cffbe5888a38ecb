"""post: send a message to a service through its mount: a comment, an issue, a chat message."""

from __future__ import annotations

from dataclasses import dataclass

from ramet.commands.framework.command import Command, UsageError, several, value
from ramet.commands.framework.inputs import slurp
from ramet.core import ops
from ramet.core.fs import Lending
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.core.resource import Letter, Posting


@dataclass(frozen=True, slots=True)
class PostOptions:
    title: str = value("-t", "--title", metavar="TEXT", default="", help="the title of what is made")
    message: str | None = value("-m", "--message", metavar="TEXT", help="the text; else it is read from standard input")
    attached: tuple[str, ...] = several("-a", "--attach", metavar="FILE", help="attach FILE")


async def post(proc: Proc, o: PostOptions, operands: list[str]) -> int:
    if len(operands) > 1:
        raise UsageError(f"extra operand '{operands[1]}'")
    place, path = operands[0], proc.path(operands[0])
    body = encode(o.message) if o.message is not None else await slurp(proc, "-")
    attachments = [(name.rsplit("/", 1)[-1], await ops.read_bytes(proc.fs, proc.path(name))) for name in o.attached]
    if not (body.strip() or o.title or attachments):
        proc.complain("the message is empty; nothing was posted")
        return 1
    found = None
    if isinstance(proc.fs, Lending):
        found = await proc.fs.power(path, Posting, write=True)  # type: ignore[type-abstract]
    if found is None:
        proc.complain(f"{place}: not on a mount that takes messages")
        return 1
    power, inner = found
    try:
        number = await power.post(Letter(o.title, (), body, attachments=tuple(attachments), place=inner))
    except ValueError as error:
        proc.complain(str(error))
        return 1
    except OSError as error:
        proc.complain(f"{place}: {error.strerror}")
        return 1
    finally:
        if isinstance(proc.fs, Lending):
            proc.fs.changed(path)
    await proc.emit(encode(f"posted {number}\n"))
    return 0


COMMANDS = [
    Command(
        "post",
        post,
        PostOptions,
        summary="Post a message to a service.",
        usage="PATH [OPTION]...",
        details="""
    PATH is a place of a mounted service that takes messages: a channel, a thread, an issue. The README.md of the mount
    lists them. The text is read from standard input unless -m gives it. The mount and its configuration must be
    writable. A message is sent once: if the answer is lost, the error says that it may have been posted.
""",
        examples=(
            ("post /gh/issues/42 -m 'Fixed in #57'", "a comment"),
            ("post /gh/issues -t 'Flaky test' < report.md", "a new issue"),
            ("post /slack/channels/ops -m Graph -a graph.png", "a message with a file"),
        ),
        min_operands=1,
    ),
]
