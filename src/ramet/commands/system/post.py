"""post: send a message to a service through its mount: a comment, an issue, a chat message."""

from __future__ import annotations

from dataclasses import dataclass

from ramet.commands.framework.command import Command, UsageError, several, value
from ramet.commands.system.outbox import content_of, outbox_of, send
from ramet.core.proc import Proc
from ramet.core.resource import Letter


@dataclass(frozen=True, slots=True)
class PostOptions:
    title: str = value("-t", "--title", metavar="TEXT", default="", help="the title of what is made")
    message: str | None = value("-m", "--message", metavar="TEXT", help="the text; else it is read from standard input")
    attached: tuple[str, ...] = several("-a", "--attach", metavar="FILE", help="attach FILE")


async def post(proc: Proc, o: PostOptions, operands: list[str]) -> int:
    if len(operands) > 1:
        raise UsageError(f"extra operand '{operands[1]}'")
    body, attachments = await content_of(proc, o.message, o.attached)
    if not (body.strip() or o.title or attachments):
        proc.complain("the message is empty; nothing was posted")
        return 1
    outbox = await outbox_of(proc, operands[0], "not on a mount that takes messages")
    if outbox is None:
        return 1
    return await send(proc, outbox, Letter(o.title, (), body, attachments=attachments, place=outbox.inner), "posted")


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
