"""Real servers for real protocols, started by the test session itself on loopback ports that are free."""

from __future__ import annotations

import fcntl
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO


@dataclass(frozen=True)
class S3Server:
    """A running S3-compatible server with one empty bucket."""

    endpoint: str
    bucket: str = "bucket"
    key: str = "test-key"
    secret: str = "test-secret"
    region: str = "us-east-1"
    pid: int = 0
    """Its process, for who wants to know what it spends."""


def free_ports(count: int) -> list[int]:
    """Ports nobody listens on, below 32768 - 10000 since SeaweedFS adds 10000 to each for its own use.

    Nobody else gets them here while this process lives: between the look and the server that listens, time passes.
    """
    found: list[int] = []
    candidate = 20_000 + (hash((time.time_ns(), id(found))) % 2_000)
    while len(found) < count:
        candidate += 1
        with socket.socket() as one, socket.socket() as other:
            try:
                one.bind(("127.0.0.1", candidate))
                other.bind(("127.0.0.1", candidate + 10_000))
            except OSError:
                continue
            if _reserved(candidate):
                found.append(candidate)
    return found


_RESERVED: list[IO[bytes]] = []


def _reserved(port: int) -> bool:
    """Lock a port against other processes that run tests."""
    try:
        file = open(Path(tempfile.gettempdir(), f"ramet-test-port-{port}"), "wb")
    except PermissionError:  # of another user
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return False
    _RESERVED.append(file)
    return True


@contextmanager
def seaweed(folder: Path) -> Iterator[S3Server]:
    """SeaweedFS from its wheel: master, volume, filer and S3 gateway in one process."""
    weed = shutil.which("weed", path=str(Path(sys.executable).parent)) or shutil.which("weed")
    if weed is None:
        raise RuntimeError("the `weed` program is missing; `make test` installs it with the development packages")
    master, volume, filer, s3 = free_ports(4)
    server = S3Server(f"http://127.0.0.1:{s3}")
    identity = {"name": "test", "credentials": [{"accessKey": server.key, "secretKey": server.secret}],
                "actions": ["Admin", "Read", "Write", "List", "Tagging"]}  # fmt: skip
    (folder / "s3.json").write_text(json.dumps({"identities": [identity]}))
    command = [
        weed, "server", f"-dir={folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-master.port={master}",
        f"-volume.port={volume}", "-filer", f"-filer.port={filer}", "-s3", f"-s3.port={s3}",
        f"-s3.config={folder}/s3.json", "-s3.port.iceberg=0", "-s3.port.lance=0", "-master.volumeSizeLimitMB=64",
        "-volume.max=30",
    ]  # fmt: skip
    with open(folder / "weed.log", "wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        until_ready(lambda: _answers(f"http://127.0.0.1:{filer}/"), process)
        bucket = urllib.request.Request(f"http://127.0.0.1:{filer}/buckets/{server.bucket}/", method="POST")
        until_ready(lambda: _answers(bucket), process)
        until_ready(lambda: _answers(server.endpoint + "/status"), process)
        yield replace(server, pid=process.pid)
    finally:
        process.kill()  # it takes long over an orderly end, and nothing of it is kept
        process.wait()


def postgres_programs() -> Path | None:
    """Where `initdb` and `postgres` are: on the path, or where Debian puts them. None when they are not installed."""
    found = shutil.which("initdb")
    folders = [Path(found).resolve().parent] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    return next((folder for folder in reversed(folders) if (folder / "postgres").exists()), None)


@contextmanager
def postgres() -> Iterator[str]:
    """A PostgreSQL server on a Unix socket in a temporary directory, as a user that is not root; gives its address."""
    programs = postgres_programs()
    if programs is None:
        raise RuntimeError("PostgreSQL is missing; `make test` installs it where it may")
    # Short, since the path of a socket is; and open to the server's user, who cannot enter the folder of a test.
    folder = Path(tempfile.mkdtemp(prefix="ramet-pg-", dir="/tmp"))
    user: list[str] = []
    if os.geteuid() == 0:
        account = pwd.getpwnam("postgres")
        os.chown(folder, account.pw_uid, account.pw_gid)
        user = ["setpriv", f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups"]
    data = folder / "data"
    try:
        make = [*user, str(programs / "initdb"), "-D", str(data), "-U", "ramet", "--auth=trust", "--no-sync"]
        subprocess.run(make, check=True, stdout=subprocess.DEVNULL, cwd="/")
        command = [
            *user, str(programs / "postgres"), "-D", str(data), "-k", str(folder), "-h", "", "-F",
        ]  # fmt: skip
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/")
        try:
            until_ready(lambda: subprocess.run(
                [str(programs / "pg_isready"), "-q", "-h", str(folder), "-U", "ramet"], check=False
            ).returncode == 0, process)  # fmt: skip
            yield f"postgresql://ramet@/postgres?host={folder}"
        finally:
            process.send_signal(signal.SIGQUIT)  # at once: nothing of it is kept
            process.wait()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _answers(request: str | urllib.request.Request) -> bool:
    try:
        with urllib.request.urlopen(request, timeout=20):
            return True
    except urllib.error.HTTPError as error:
        return error.code < 500
    except OSError:
        return False


def until_ready(ready: object, process: subprocess.Popen[bytes], seconds: float = 200) -> None:
    """Poll until the server answers; a server that died or never answers is an error."""
    deadline = time.monotonic() + seconds
    while not ready():  # type: ignore[operator]
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError("the test server did not start")
        time.sleep(0.05)


@contextmanager
def redis_server(folder: Path) -> Iterator[str]:
    """A Redis that listens on a socket in a folder, and nowhere else. Yields its URL."""
    program = shutil.which("redis-server")
    if program is None:
        raise RuntimeError("redis-server is missing; `make test` installs it where it can")
    place = Path(tempfile.mkdtemp(prefix="ramet-redis-"))  # a socket's path must be short
    socket_path = place / "redis.sock"
    words = [program, "--port", "0", "--unixsocket", str(socket_path), "--dir", str(folder), "--save", ""]
    process = subprocess.Popen([*words, "--appendonly", "no"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until_ready(lambda: _listens(socket_path), process)
        yield f"unix://{socket_path}"
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(place, ignore_errors=True)


def _listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


@dataclass(frozen=True)
class SSHServer:
    """A running OpenSSH server on loopback that lets one key in."""

    port: int
    username: str
    key: str
    known_hosts: str


@contextmanager
def ssh_server(folder: Path) -> Iterator[SSHServer]:
    program = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin") or shutil.which("sshd")
    if program is None:
        raise RuntimeError("sshd is missing; `make test` installs it where it can")
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    (folder / "authorized").write_text((folder / "user.pub").read_text())
    port = free_ports(1)[0]
    host_key = " ".join((folder / "host.pub").read_text().split()[:2])
    (folder / "known").write_text(f"[127.0.0.1]:{port} {host_key}\n")
    if os.geteuid() == 0:
        os.makedirs("/run/sshd", exist_ok=True)  # where the server gives up its rights
    (folder / "config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/authorized\n"
        f"PidFile none\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nSubsystem sftp internal-sftp\n"
        "MaxStartups 100\n"
    )
    with open(folder / "sshd.log", "wb") as log:
        process = subprocess.Popen([program, "-D", "-e", "-f", str(folder / "config")], stdout=log, stderr=log)
    try:
        until_ready(lambda: open_port(port), process)
        user = pwd.getpwuid(os.geteuid()).pw_name
        yield SSHServer(port, user, str(folder / "user"), str(folder / "known"))
    finally:
        process.terminate()
        process.wait()


def open_port(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@dataclass(frozen=True)
class MailServers:
    """A running IMAP server whose one user has an empty mailbox, and a server that takes whatever is sent to it."""

    imap_port: int
    plain_port: int
    """IMAP without TLS, where STARTTLS comes before everything else."""
    smtp_port: int
    certificate: str
    username: str = "ada"
    password: str = "hunter2-imap"


def certificate(folder: Path) -> Path:
    """A certificate for 127.0.0.1 that signs itself, and its key beside it (`.key`)."""
    from datetime import UTC, datetime, timedelta
    from ipaddress import ip_address

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    made = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(x509.random_serial_number()).not_valid_before(datetime.now(UTC) - timedelta(days=1))
        .not_valid_after(datetime.now(UTC) + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    path = folder / "cert.pem"
    path.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    path.with_suffix(".key").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    )
    return path


@contextmanager
def dovecot() -> Iterator[MailServers]:
    """Dovecot with everything it needs in a temporary directory; TLS only. The SMTP port is free, nobody listens."""
    program = shutil.which("dovecot", path="/usr/sbin:/usr/local/sbin") or shutil.which("dovecot")
    if program is None:
        raise RuntimeError("dovecot is missing; `make test` installs it where it can")
    folder = Path(tempfile.mkdtemp(prefix="ramet-imap-", dir="/tmp"))  # a socket's path must be short
    port, plain, smtp = free_ports(3)
    cert = certificate(folder)
    server = MailServers(port, plain, smtp, str(cert))
    root = os.geteuid() == 0
    owner = pwd.getpwnam("nobody") if root else pwd.getpwuid(os.geteuid())
    login = "" if root else f"default_internal_user = {owner.pw_name}\ndefault_login_user = {owner.pw_name}\n"
    (folder / "home").mkdir()
    if root:
        os.chmod(folder, 0o755)
        os.chown(folder / "home", owner.pw_uid, owner.pw_gid)
    (folder / "dovecot.conf").write_text(
        f"base_dir = {folder}/run\nstate_dir = {folder}/state\nlog_path = {folder}/log\nprotocols = imap\n"
        f"listen = 127.0.0.1\n{login}ssl = required\nssl_cert = <{cert}\nssl_key = <{cert.with_suffix('.key')}\n"
        "ssl_min_protocol = TLSv1.2\n"
        f"mail_location = maildir:~/Maildir:LAYOUT=fs\nmail_home = {folder}/home/%u\nfirst_valid_uid = 1\n"
        "namespace inbox {\n  inbox = yes\n  separator = /\n}\n"
        f"passdb {{\n  driver = static\n  args = password={server.password}\n}}\n"
        f"userdb {{\n  driver = static\n  args = uid={owner.pw_uid} gid={owner.pw_gid}\n}}\n"
        f"service imap-login {{\n  chroot =\n  inet_listener imap {{\n    port = {plain}\n  }}\n"
        f"  inet_listener imaps {{\n    port = {port}\n    ssl = yes\n  }}\n}}\nservice anvil {{\n  chroot =\n}}\n"
        "mail_max_userip_connections = 100\nauth_failure_delay = 0\n"
    )
    process = subprocess.Popen(
        [program, "-F", "-c", str(folder / "dovecot.conf")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        until_ready(lambda: open_port(port), process)
        yield server
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def smtp_sink(server: MailServers) -> Iterator[list[tuple[str, list[str], bytes]]]:
    """An SMTP server over TLS that asks for the password and keeps what it gets: sender, recipients, message.

    It refuses `refused@...` and hangs up in the middle of a message to `broken@...`.
    """
    import ssl

    from aiosmtpd.controller import Controller
    from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

    taken: list[tuple[str, list[str], bytes]] = []

    class Handler:
        async def handle_RCPT(  # noqa: N802
            self, protocol: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
        ) -> str:
            if not session.authenticated:
                return "530 log in first"
            if address.startswith("refused@"):
                return "550 nobody of that name"
            envelope.rcpt_tos.append(address)
            return "250 OK"

        async def handle_DATA(self, protocol: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
            content = envelope.content or b""
            if any(address.startswith("broken@") for address in envelope.rcpt_tos):
                assert protocol.transport is not None
                protocol.transport.abort()  # type: ignore[attr-defined]
            else:
                taken.append((envelope.mail_from or "", envelope.rcpt_tos, bytes(content)))  # type: ignore[arg-type]
            return "250 OK"

    def authenticate(protocol: SMTP, session: Session, envelope: Envelope, how: str, what: object) -> AuthResult:
        good = isinstance(what, LoginPassword) and what.password == server.password.encode()
        return AuthResult(success=good)

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(server.certificate, Path(server.certificate).with_suffix(".key"))
    controller = Controller(
        Handler(), hostname="127.0.0.1", port=server.smtp_port, ssl_context=context, authenticator=authenticate,
        auth_require_tls=False,
    )  # fmt: skip
    controller.start()
    try:
        yield taken
    finally:
        controller.stop()


@contextmanager
def nginx(folder: Path, files: Path) -> Iterator[str]:
    """A web server on loopback that lists and serves `files`. Yields its address."""
    program = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        raise RuntimeError("nginx is missing; `make test` installs it where it can")
    port = free_ports(1)[0]
    own = "".join(
        f"{name}_temp_path {folder}/{name};\n" for name in ("client_body", "fastcgi", "proxy", "scgi", "uwsgi")
    )
    user = f"user {pwd.getpwuid(os.geteuid()).pw_name};\n" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(
        f"{user}daemon off;\nerror_log {folder}/error.log;\npid {folder}/nginx.pid;\nworker_processes 1;\n"
        f"events {{}}\nhttp {{\naccess_log off;\n{own}server {{\nlisten 127.0.0.1:{port};\n"
        f"location / {{ root {files}; autoindex on; }}\n"
        f"location = /moved.txt {{ return 302 /a.txt; }}\n"
        f"location = /elsewhere.txt {{ return 302 http://localhost:{port}/a.txt; }}\n"
        f"location = /round.txt {{ return 302 /round.txt; }}\nlocation = /busy.txt {{ return 503; }}\n"
        f"location = /secret.txt {{ if ($http_authorization != 'Bearer hunter2') {{ return 403; }} root {files}; }}\n"
        "}\n}\n"
    )
    process = subprocess.Popen([program, "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")])
    try:
        until_ready(lambda: open_port(port), process)
        yield f"http://127.0.0.1:{port}/"
    finally:
        process.terminate()
        process.wait()
