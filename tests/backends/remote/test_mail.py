"""MailResource shows a real mailbox (Dovecot) as a tree, and letters leave by the command that sends them."""

from __future__ import annotations

import asyncio
import base64
import errno
import imaplib
import json
import quopri
import shutil
import ssl
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("aiosmtpd")
if not any(shutil.which("dovecot", path=place) for place in ("/usr/sbin:/usr/local/sbin", None)):
    pytest.skip("dovecot is not installed", allow_module_level=True)

from tests.support.servers import MailServers, dovecot, smtp_sink

from ramet import Workspace
from ramet.backends.remote import imap
from ramet.backends.remote.mail import MailConfig, MailResource
from ramet.backends.remote.mail_message import Decoder
from ramet.core import ops
from ramet.core.errors import Unavailable
from ramet.core.paths import parse
from ramet.layers.stack import Policy, build
from ramet.testing import READING, Check, run_check

P = parse
PDF = b"%PDF-1.4 invoice\n" + bytes(range(256)) * 900


def letters() -> list[tuple[str, str, bytes]]:
    """Folder, day and content of what lies in the mailbox."""
    plain = EmailMessage()
    plain["From"], plain["To"] = "Ada Lovelace <ada@example.com>", "grace@example.com, Böb <bob@example.com>"
    plain["Subject"], plain["Message-ID"] = "Re: Übung 1/2 $(rm) 'quoted'", "<one@example.com>"
    plain.set_content("The engine weaves algebraical patterns.\nGrüße, Ada\n")
    attached = EmailMessage()
    attached["From"], attached["Subject"] = "shop@example.com", "Your order"
    attached.set_content("See the attachment, zanzibar.\n")
    attached.add_alternative("<p>See the <b>attachment</b></p>", subtype="html")
    attached.add_attachment(PDF, maintype="application", subtype="pdf", filename="Rechnung März/1.pdf")
    attached.add_attachment(b"one,two\n1,2\n", maintype="text", subtype="csv", filename="list.csv")
    attached.add_attachment(plain)
    html = EmailMessage()
    html["Subject"] = "x" * 300
    html.set_content("<h1>only</h1>", subtype="html", cte="base64")
    return [
        ("INBOX", "02-Jan-2026", plain.as_bytes(policy=policy.SMTP)),
        ("INBOX", "02-Jan-2026", attached.as_bytes(policy=policy.SMTP)),
        ("INBOX", "03-Jan-2026", html.as_bytes(policy=policy.SMTP)),
        ("INBOX", "04-Jan-2026", b"no header at all\r\n\r\nSubject-less body\xff\r\n"),
        ("Work/&AMQ-rger/2026-01-01", "05-Jan-2026", b"Subject: =?bad?X?y?=\r\n\r\nkept\r\n"),
    ]


LETTERS = letters()


@pytest.fixture(scope="module")
def server() -> Iterator[MailServers]:
    with dovecot() as running:
        client = connect(running)
        client.create('"Work/&AMQ-rger/2026-01-01"')
        for folder, day, data in LETTERS:
            status, _ = client.append(f'"{folder}"', "", f'"{day} 10:00:00 +0000"', data)
            assert status == "OK"
        client.logout()
        yield running


@pytest.fixture(autouse=True)
def password(server: MailServers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_MAIL_PASSWORD", server.password)


def connect(server: MailServers) -> imaplib.IMAP4_SSL:
    context = ssl.create_default_context(cafile=server.certificate)
    client = imaplib.IMAP4_SSL("127.0.0.1", server.imap_port, ssl_context=context)
    client.login(server.username, server.password)
    return client


def config(server: MailServers, **changes: Any) -> MailConfig:
    plain: dict[str, Any] = {
        "host": "127.0.0.1", "port": server.imap_port, "username": server.username, "ca_file": server.certificate,
        "password_env": "TEST_MAIL_PASSWORD", "smtp_host": "127.0.0.1", "smtp_port": server.smtp_port,
        "sender": "Ada <ada@example.com>",
    }  # fmt: skip
    return MailConfig(**{**plain, **changes})


def run(act: Callable[[MailResource], Awaitable[None]], server: MailServers, **changes: Any) -> None:
    async def both() -> None:
        tree = MailResource(config(server, **changes))
        try:
            await act(tree)
        finally:
            await tree.close()

    asyncio.run(both())


@pytest.mark.parametrize("check", READING, ids=lambda check: check.name)
@pytest.mark.parametrize("mounted", [False, True])
def test_contract(check: Check, mounted: bool, server: MailServers) -> None:
    def make() -> Any:
        tree = MailResource(config(server))
        return build(tree, Policy()) if mounted else tree

    run_check(check, make)


def test_the_tree(server: MailServers) -> None:
    async def act(tree: MailResource) -> None:
        found = [str(path) async for path, _ in ops.walk(tree, P("/INBOX"))]
        day = "/INBOX/2026-01-02"
        assert found[:9] == [
            day, f"{day}/Re_Übung_1_2_rm_quoted__1.eml", f"{day}/Re_Übung_1_2_rm_quoted__1.json",
            f"{day}/Your_order__2", f"{day}/Your_order__2/Rechnung März%2F1.pdf", f"{day}/Your_order__2/list.csv",
            f"{day}/Your_order__2/part-4.eml", f"{day}/Your_order__2.eml", f"{day}/Your_order__2.json",
        ]  # fmt: skip
        assert [path.rsplit("/", 1)[1] for path in found[9:]] == [
            "2026-01-03", "x" * 160 + "__3.eml", "x" * 160 + "__3.json", "2026-01-04", "no_subject__4.eml",
            "no_subject__4.json",
        ]  # fmt: skip
        odd = [str(path) async for path, _ in ops.walk(tree, P("/Work"))]
        assert odd[:3] == ["/Work/Ärger", "/Work/Ärger/%32026-01-01", "/Work/Ärger/%32026-01-01/2026-01-05"]
        for wrong in ("Other__1.eml", "Re_Übung_1_2_rm_quoted__2.eml", "Your_order__2.txt", "Your_order__9.eml"):
            with pytest.raises(FileNotFoundError):
                await tree.stat(P(day) / wrong)

    run(act, server)


def test_contents(server: MailServers) -> None:
    async def act(tree: MailResource) -> None:
        day = P("/INBOX/2026-01-02")
        for number, (folder, _, data) in enumerate(LETTERS, 1):
            if folder == "INBOX":
                [path] = [path async for path, _ in ops.walk(tree, P("/INBOX")) if path.endswith(f"__{number}.eml")]
                assert await ops.read_bytes(tree, path) == data and (await tree.stat(path)).size == len(data)
        one = json.loads(await ops.read_bytes(tree, day / "Re_Übung_1_2_rm_quoted__1.json"))
        assert one["subject"] == "Re: Übung 1/2 $(rm) 'quoted'" and one["flags"] == []
        assert one["from"] == [{"name": "Ada Lovelace", "address": "ada@example.com"}]
        assert one["to"][1] == {"name": "Böb", "address": "bob@example.com"}
        assert one["text"] == "The engine weaves algebraical patterns.\nGrüße, Ada\n"
        assert one["message_id"] == "<one@example.com>" and one["folder"] == "INBOX" and one["uid"] == 1
        two = json.loads(await ops.read_bytes(tree, day / "Your_order__2.json"))
        assert two["text"] == "See the attachment, zanzibar.\n" and "html" not in two
        assert [file["file"] for file in two["attachments"]] == ["Rechnung März%2F1.pdf", "list.csv", "part-4.eml"]
        files = day / "Your_order__2"
        assert await ops.read_bytes(tree, files / "Rechnung März%2F1.pdf") == PDF
        assert await ops.read_bytes(tree, files / "list.csv") == b"one,two\n1,2\n"
        inner = message_from_bytes(await ops.read_bytes(tree, files / "part-4.eml"), policy=policy.default)
        assert inner["message-id"] == "<one@example.com>"
        three = json.loads(await ops.read_bytes(tree, P("/INBOX/2026-01-03") / ("x" * 160 + "__3.json")))
        assert three["html"] == "<h1>only</h1>\n" and three["subject"] == "x" * 300

    run(act, server)


def test_ranges_are_partial_fetches(server: MailServers, monkeypatch: pytest.MonkeyPatch) -> None:
    async def act(tree: MailResource) -> None:
        path = P("/INBOX/2026-01-02/Your_order__2.eml")
        await tree.stat(path)
        received = 0
        plain = imap.Imap._answer

        async def counted(self: imap.Imap) -> list[Any]:
            nonlocal received
            answer = await plain(self)
            received += len(repr(answer))
            return answer

        monkeypatch.setattr(imap.Imap, "_answer", counted)
        got = b"".join([block async for block in tree.read(path, 100_000, 100_100)])
        assert got == LETTERS[1][2][100_000:100_100] and received < 2_000

    run(act, server)


def test_looking_changes_nothing(server: MailServers) -> None:
    async def act(tree: MailResource) -> None:
        async for path, stat in ops.walk(tree, P("/")):
            if stat.is_file:
                await ops.read_bytes(tree, path)

    run(act, server)
    client = connect(server)
    client.select("INBOX", readonly=True)
    assert client.search(None, "SEEN") == ("OK", [b""])
    client.logout()


def test_grep_asks_the_server(server: MailServers, monkeypatch: pytest.MonkeyPatch) -> None:
    async def act() -> None:
        tree = MailResource(config(server, ttl=0))
        ws = Workspace({"/mail": tree})
        read: list[str] = []
        plain = tree.read

        def noted(path: Any, start: int = 0, stop: int | None = None) -> Any:
            read.append(path.name)
            return plain(path, start, stop)

        monkeypatch.setattr(tree, "read", noted)
        result = await ws.execute("cd /mail/INBOX; grep -rl algebraical --include='*.json' . ; grep -rlw zanzibar .")
        assert result.text.split() == [
            "./2026-01-02/Re_Übung_1_2_rm_quoted__1.json", "./2026-01-02/Your_order__2.eml",
            "./2026-01-02/Your_order__2.json",
        ]  # fmt: skip
        assert not any("__3" in name or "__4" in name for name in read)
        read.clear()
        assert "__1.json" in (await ws.execute("grep -rl Grüße /mail/INBOX/2026-01-02 --include='*.json'")).text
        assert set(read) == {"Re_Übung_1_2_rm_quoted__1.json", "Your_order__2.json"}  # the latter has it attached
        read.clear()
        assert (await ws.execute("rg -il ZANZI /mail/INBOX -g '*.json'")).text.endswith("Your_order__2.json\n")
        assert "Re_Übung_1_2_rm_quoted__1.json" not in read
        read.clear()
        for pattern in ("message_id", "base64", "INBOX", "2026", "Seen", "ORDER"):  # of these the server knows less
            mounted = (await ws.execute(f"grep -rl {pattern} /mail/INBOX | sort")).text
            each = (await ws.execute(f"find /mail/INBOX -type f -exec grep -l {pattern} {{}} + | sort")).text
            assert mounted == each, pattern
        await ws.close()

    asyncio.run(act())


def test_new_and_removed_messages_are_seen(server: MailServers) -> None:
    async def act(tree: MailResource) -> None:
        async def names() -> list[str]:
            return [path.name async for path, stat in ops.walk(tree, P("/Fresh")) if path.endswith(".eml")]

        client = connect(server)
        client.create("Fresh")
        assert await names() == []
        for number in range(3):
            client.append(
                "Fresh", "", imaplib.Time2Internaldate(datetime.now(UTC)), b"Subject: n%d\r\n\r\nx\r\n" % number
            )
        assert await names() == ["n0__1.eml", "n1__2.eml", "n2__3.eml"]
        client.select("Fresh")
        client.store("2", "+FLAGS", "\\Deleted")
        client.expunge()
        assert await names() == ["n0__1.eml", "n2__3.eml"]
        [old] = [stat.version async for path, stat in ops.walk(tree, P("/Fresh")) if path.endswith("__3.eml")]
        client.close()
        client.delete("Fresh")
        client.create("Fresh")
        client.append("Fresh", "", imaplib.Time2Internaldate(datetime.now(UTC)), b"Subject: n2\r\n\r\nanother\r\n")
        assert await names() == ["n2__1.eml"]
        [new] = [stat.version async for path, stat in ops.walk(tree, P("/Fresh")) if path.endswith("__1.eml")]
        assert old is not None and new is not None and old.split(".")[0] != new.split(".")[0]
        client.delete("Fresh")
        client.logout()

    run(act, server, ttl=0)


def test_sending_is_a_command_that_policy_can_ask_about(server: MailServers, tmp_path: Path) -> None:
    asked: list[str] = []

    async def act() -> None:
        ws = Workspace(
            {"/mail": MailResource(config(server)), "/look": (MailResource(config(server)), "read")},
            policy={"ask": [{"command": "mail send*"}]},
        )
        assert ws.policy is not None
        refused = await ws.execute("mail send /mail -s Hi -m text bob@example.com")
        assert refused.exit_code == 126 and "Permission denied" in refused.stderr.decode() and not taken

        async def answer(request: Any) -> bool:
            asked.append(request.subject)
            return True

        ws.policy.answer = answer
        script = (
            "echo data > '/tmp/ä b.txt'; echo 'Hello Böb' | mail send /mail -s 'Größe: 1' -c cc@example.com "
            "-b hidden@example.com -a '/tmp/ä b.txt' 'Bob <bob@example.com>'"
        )
        result = await ws.execute(script)
        assert result.exit_code == 0 and result.text.startswith("sent <"), result.stderr
        assert asked == [
            "mail send /mail -s Größe: 1 -c cc@example.com -b hidden@example.com -a /tmp/ä b.txt Bob <bob@example.com>"
        ]
        sender, to, data = taken.pop()
        message = message_from_bytes(data, policy=policy.default)
        assert sender == "ada@example.com" and sorted(to) == ["bob@example.com", "cc@example.com", "hidden@example.com"]
        assert message["subject"] == "Größe: 1" and "hidden" not in str(message)
        assert isinstance(message, EmailMessage)
        body = message.get_body()
        assert body is not None and body.get_content() == "Hello Böb\r\n"
        assert [part.get_filename() for part in message.iter_attachments()] == ["ä b.txt"]
        await ws.execute("mail send /mail/INBOX/2026-01-02/Re*__1.eml -s 'Re: it' -m yes bob@example.com")
        message = message_from_bytes(taken.pop()[2], policy=policy.default)
        assert message["in-reply-to"] == "<one@example.com>" == message["references"]
        for words, why in (
            ("/look -s x -m y b@example.com", "Read-only file system"),
            ("/tmp -s x -m y b@example.com", "not on a mount that sends mail"),
            ("/mail -s $'a\\nBcc: evil@example.com' -m y b@example.com", "linefeed"),
            ("/mail -m y $'b@example.com\\nX: y'", "is not an address"),
            ("/mail -m y nobody", "is not an address"),
            ("/mail -m y refused@example.com", "refuses refused@example.com"),
            ("/mail -m y", "missing ADDRESS"),
        ):
            result = await ws.execute(f"mail send {words}")
            assert result.exit_code == 1 and why in result.stderr.decode(), (words, result.stderr)
        assert not taken
        await ws.close()

    with smtp_sink(server) as taken:
        asyncio.run(act())


def test_what_was_sent_can_be_kept(server: MailServers) -> None:
    async def act() -> None:
        ws = Workspace({"/mail": MailResource(config(server, sent_folder="Sent", ttl=60))})
        client = connect(server)
        client.create("Sent")
        assert (await ws.execute("ls /mail/Sent")).text == ""
        assert (await ws.execute("mail send /mail -s Kept -m body bob@example.com")).exit_code == 0
        assert "body" in (await ws.execute("cat /mail/Sent/*/Kept__1.json | jq -r .text")).text
        await ws.close()
        client.delete("Sent")
        client.logout()

    with smtp_sink(server):
        asyncio.run(act())


def test_a_letter_that_may_have_left_is_not_sent_again(server: MailServers) -> None:
    async def act() -> None:
        ws = Workspace({"/mail": MailResource(config(server))})
        result = await ws.execute("mail send /mail -s x -m y broken@example.com")
        assert result.exit_code == 1 and "the letter may have been sent" in result.stderr.decode()
        result = await ws.execute("mail send /mail -s x -m y bob@example.com")
        assert len(taken) == 1
        await ws.close()

    with smtp_sink(server) as taken:
        asyncio.run(act())


def test_tls_can_begin_later(server: MailServers) -> None:
    async def act(tree: MailResource) -> None:
        assert (await tree.stat(P("/INBOX/2026-01-02"))).is_dir

    run(act, server, tls="starttls", port=server.plain_port)


@pytest.mark.parametrize(
    ("changes", "number", "why"),
    [
        ({"tls": "starttls", "port": "plain", "ca_file": None}, errno.EACCES, "certificate"),
        ({"ca_file": None}, errno.EACCES, "certificate"),
        ({"password_env": "NOT_SET"}, errno.EACCES, "NOT_SET is not set"),
        ({"password_env": "HOME"}, errno.EACCES, "refuses these credentials"),
        ({"port": 1}, errno.EIO, "could not be reached"),
    ],
)
def test_errors(changes: dict[str, Any], number: int, why: str, server: MailServers) -> None:
    async def act(tree: MailResource) -> None:
        with pytest.raises(OSError, match=why) as raised:
            await tree.stat(P("/INBOX"))
        assert raised.value.errno == number and isinstance(raised.value, Unavailable) == (number == errno.EIO)

    run(act, server, **{name: server.plain_port if value == "plain" else value for name, value in changes.items()})


def test_a_connection_that_was_closed_is_made_again(server: MailServers) -> None:
    async def act() -> None:
        tree = MailResource(config(server, ttl=0))
        mounted = build(tree, Policy())
        path = P("/INBOX/2026-01-02/Your_order__2.eml")
        whole = await ops.read_bytes(mounted, path)
        for client in tree._idle[asyncio.get_running_loop()]:
            client.drop()
        assert await ops.read_bytes(mounted, path) == whole
        await mounted.close()

    asyncio.run(act())


def test_a_snapshot_names_variables_and_no_password(server: MailServers, tmp_path: Path) -> None:
    async def act() -> None:
        ws = Workspace({"/mail": MailResource(config(server))})
        await ws.execute("cat /mail/INBOX/2026-01-02/*.json")
        ws.snapshot(tmp_path / "snap.tar")
        assert server.password.encode() not in (tmp_path / "snap.tar").read_bytes()
        with pytest.raises(ValueError, match="must include overrides for: \\['/mail'\\]"):
            Workspace.load(tmp_path / "snap.tar")
        again = Workspace.load(tmp_path / "snap.tar", resources={"/mail": MailResource(config(server))})
        look = "find /mail -type f | wc -l"
        assert (await again.execute(look)).text == (await ws.execute(look)).text != "0\n"
        await ws.close()
        await again.close()

    asyncio.run(act())


@pytest.mark.parametrize(
    ("raw", "shown"),
    [(b"INBOX", "INBOX"), (b"&AMQ-rger", "Ärger"), (b"R&-D", "R&D"), (b"&U,BTFw-", "台北"), (b"&!!-", "&!!-")],
)
def test_folder_names(raw: bytes, shown: str) -> None:
    assert imap.folder_text(raw) == shown


@pytest.mark.parametrize("encoding", ["base64", "quoted-printable", "8bit"])
def test_parts_are_decoded_piece_by_piece(encoding: str) -> None:
    data = bytes(range(256)) * 20 + b"\r\nplain = text\r\n"
    raw = {"base64": base64.encodebytes(data), "quoted-printable": quopri.encodestring(data), "8bit": data}[encoding]
    for size in (1, 3, 77, len(raw)):
        decoder = Decoder(encoding)
        pieces = [decoder.feed(raw[at : at + size]) for at in range(0, len(raw), size)]
        whole = quopri.decodestring(raw) if encoding == "quoted-printable" else data
        assert b"".join(pieces) + decoder.finish() == whole, size
    assert Decoder("base64").feed(b"!!aGVsbG8=\r\n") == b"hel"


def test_sets_of_messages_are_short() -> None:
    assert imap.uid_set([5, 1, 2, 3, 9, 10]) == "1:3,5,9:10"


def test_answers_are_parsed() -> None:
    line = [
        b"1 FETCH (UID 7 BODY[HEADER.FIELDS (SUBJECT)]<0> ",
        imap.Literal(b") x"),
        b' FLAGS (\\Seen) X "a \\" b" NIL)',
    ]
    assert imap.parsed(line) == [
        b"1", b"FETCH",
        [b"UID", b"7", b"BODY[HEADER.FIELDS (SUBJECT)]<0>", b") x", b"FLAGS", [b"\\Seen"], b"X", b'a " b', None],
    ]  # fmt: skip
