"""mail: send a message through a mount that can send mail."""

from __future__ import annotations

from dataclasses import dataclass

from ramet.commands.framework.command import Command, UsageError, several, value
from ramet.commands.system.outbox import content_of, outbox_of, send
from ramet.core.proc import Proc
from ramet.core.resource import Letter


@dataclass(frozen=True, slots=True)
class MailOptions:
    subject: str = value("-s", "--subject", metavar="TEXT", default="", help="what it is about")
    cc: tuple[str, ...] = several("-c", "--cc", metavar="ADDRESS", help="send a copy to ADDRESS")
    bcc: tuple[str, ...] = several("-b", "--bcc", metavar="ADDRESS", help="send a blind copy")
    attached: tuple[str, ...] = several("-a", "--attach", metavar="FILE", help="attach FILE")
    message: str | None = value("-m", "--message", metavar="TEXT", help="the text; else it is read from standard input")


async def mail(proc: Proc, o: MailOptions, operands: list[str]) -> int:
    verb, place, *to = [*operands, "", ""][:2] + operands[2:]
    if verb != "send":
        raise UsageError(f"unknown action '{verb}'" if verb else "missing action")
    if not place:
        raise UsageError("missing PATH of a mount that sends mail")
    if not to:
        raise UsageError("missing ADDRESS")
    outbox = await outbox_of(proc, place, "not on a mount that sends mail, or on a branch of one")
    if outbox is None:
        return 1
    is_message = not (await proc.fs.stat(outbox.path, follow=True)).is_dir
    body, attachments = await content_of(proc, o.message, o.attached)
    answers = outbox.inner if is_message else None
    return await send(proc, outbox, Letter(o.subject, tuple(to), body, o.cc, o.bcc, attachments, answers), "sent")


COMMANDS = [
    Command(
        "mail",
        mail,
        MailOptions,
        summary="Send a letter through a mount of a mailbox.",
        usage="send [OPTION]... PATH ADDRESS...",
        details="""
    PATH lies on the mount of the mailbox to send from; where it is a message, the letter is an answer to it. The text
    is read from standard input unless -m gives it. The mount must be writable and configured to send.
""",
        examples=(
            ("echo 'See you at 9.' | mail send /mail -s Tomorrow ada@example.com", "a short letter"),
            ("mail send /mail/INBOX/2026-01-02/Plan__7.eml -s 'Re: Plan' -m Agreed ada@example.com", "an answer"),
        ),
    ),
]
