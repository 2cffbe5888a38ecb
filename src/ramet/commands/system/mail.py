"""mail: send a message through a mount that can send mail."""

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
    found = None
    path = proc.path(place)
    if isinstance(proc.fs, Lending):
        found = await proc.fs.power(path, Posting, write=True)  # type: ignore[type-abstract]
    if found is None:
        proc.complain(f"{place}: not on a mount that sends mail, or on a branch of one")
        return 1
    power, inner = found
    is_message = not (await proc.fs.stat(path, follow=True)).is_dir
    body = encode(o.message) if o.message is not None else await slurp(proc, "-")
    attachments = [(name.rsplit("/", 1)[-1], await ops.read_bytes(proc.fs, proc.path(name))) for name in o.attached]
    letter = Letter(o.subject, tuple(to), body, o.cc, o.bcc, tuple(attachments), inner if is_message else None)
    try:
        number = await power.post(letter)
    except ValueError as error:
        proc.complain(str(error))
        return 1
    except OSError as error:
        proc.complain(f"{place}: {error.strerror}")
        return 1
    finally:
        if isinstance(proc.fs, Lending):
            proc.fs.changed(path)
    await proc.emit(encode(f"sent {number}\n"))
    return 0


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
