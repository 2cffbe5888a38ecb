"""Send mail by SMTP: encrypted unless configured otherwise, once or not at all."""

from __future__ import annotations

import base64
import errno
import os
import smtplib
import ssl
from email import message_from_bytes
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import formatdate, make_msgid, parseaddr
from mimetypes import guess_type
from typing import NamedTuple

from ramet.core.errors import fail, unavailable
from ramet.core.paths import Path
from ramet.core.resource import Letter

SECONDS = 60


class Server(NamedTuple):
    host: str
    port: int | None
    tls: str
    ca_file: str | None
    username: str | None
    password_env: str | None
    token_env: str | None


def thread(header: bytes) -> tuple[str, ...]:
    """The ids that an answer to this message refers to, the message itself last."""
    found = message_from_bytes(header)
    known = str(found["references"] or found["in-reply-to"] or "").split()
    return (*known, str(found["message-id"] or "").strip())


def composed(letter: Letter, sender: str, answers: tuple[str, ...]) -> EmailMessage:
    """The message. An address or a subject that would smuggle in a header is refused by `email` (ValueError)."""
    message = EmailMessage()
    message["From"] = _address(sender)
    for name, people in (("To", letter.to), ("Cc", letter.cc)):
        if people:
            message[name] = [_address(person) for person in people]
    message["Subject"] = letter.subject
    message["Date"] = formatdate(localtime=False)
    message["Message-ID"] = make_msgid(domain=sender.rpartition("@")[2].rstrip(">") or "localhost")
    if answers and answers[-1]:
        message["In-Reply-To"] = answers[-1]
        message["References"] = " ".join(answers)
    message.set_content(letter.body.decode("utf-8", "replace"))
    for name, data in letter.attachments:
        kind = guess_type(name)[0] or "application/octet-stream"
        major, _, minor = kind.partition("/")
        message.add_attachment(data, maintype=major, subtype=minor, filename=name)
    if letter.bcc:
        message["Bcc"] = [_address(person) for person in letter.bcc]  # it tells whom to send to, and is not sent
    return message


def _address(text: str) -> Address:
    name, address = parseaddr(text)
    if "@" not in address or any(ord(character) < 32 for character in text):
        raise ValueError(f"{text!r} is not an address")
    return Address(name, addr_spec=address)


def sent(server: Server, message: EmailMessage, path: Path) -> None:
    """Blocks: runs in a thread."""
    context = None if server.tls == "off" else ssl.create_default_context(cafile=server.ca_file)
    try:
        if server.tls == "implicit":
            client: smtplib.SMTP = smtplib.SMTP_SSL(server.host, server.port or 465, timeout=SECONDS, context=context)
        else:
            client = smtplib.SMTP(server.host, server.port or 587, timeout=SECONDS)
    except ssl.SSLCertVerificationError as error:
        raise fail(errno.EACCES, path, f"{server.host}: {error.verify_message}") from None
    except (OSError, smtplib.SMTPException) as error:
        raise unavailable(path, f"{server.host} could not be reached: {type(error).__name__}") from None
    try:
        with client:
            if server.tls == "starttls":
                client.starttls(context=context)
            _log_in(client, server)
            refused = client.send_message(message)
    except smtplib.SMTPAuthenticationError:
        raise fail(errno.EACCES, path, f"Permission denied: {server.host} refuses these credentials") from None
    except smtplib.SMTPRecipientsRefused as error:
        raise fail(errno.EINVAL, path, f"not sent: {server.host} refuses {', '.join(error.recipients)}") from None
    except smtplib.SMTPResponseException as error:
        said = error.smtp_error.decode(errors="replace") if isinstance(error.smtp_error, bytes) else error.smtp_error
        raise fail(errno.EIO, path, f"not sent: {server.host} says {error.smtp_code} {said}") from None
    except (smtplib.SMTPException, OSError) as error:
        # Not `unavailable`: whether it left is not known, and that would be sent again.
        why = f"{server.host} broke off ({type(error).__name__}); the letter may have been sent"
        raise fail(errno.EIO, path, why) from None
    if refused:
        raise fail(errno.EINVAL, path, f"sent, but not to {', '.join(refused)}: {server.host} refuses them")


def _log_in(client: smtplib.SMTP, server: Server) -> None:
    if server.username is None:
        return
    if server.token_env is not None:
        words = f"user={server.username}\1auth=Bearer {os.environ.get(server.token_env, '')}\1\1"
        code, said = client.docmd("AUTH", "XOAUTH2 " + base64.b64encode(words.encode()).decode())
        if code != 235:
            raise smtplib.SMTPAuthenticationError(code, said)
    else:
        client.login(server.username, os.environ.get(server.password_env or "", ""))
