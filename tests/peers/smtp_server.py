"""A mail server for tests: keeps the messages, offers TLS on request, and fails in the way that a test wants."""

from __future__ import annotations

import email
import email.policy
import ipaddress
import socket
import socketserver
import ssl
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from pathlib import Path
from typing import Any, Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass
class SmtpServer:
    """Listens on 127.0.0.1 while it is entered. tls: a context; it is offered by STARTTLS, or there from the start."""

    tls: ssl.SSLContext | None = None
    is_tls_from_start: bool = False
    # The answer to a command, by its verb, in place of the usual one; b"" hangs up.
    answers: dict[str, bytes] = field(default_factory=dict)
    messages: list[EmailMessage] = field(default_factory=list)
    recipients: list[str] = field(default_factory=list)
    logins: int = 0
    sessions: int = 0
    secured: int = 0

    def __enter__(self) -> Self:
        peer = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                Session(peer, self.request).run()

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            allow_reuse_address = True

            def handle_error(self, request: Any, client_address: Any) -> None:
                """A client that refuses our certificate hangs up: that is not for the log of a test."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"{'smtps' if self.is_tls_from_start else 'smtp'}://127.0.0.1:{self.port}"


class Session:
    """One client."""

    def __init__(self, peer: SmtpServer, connection: socket.socket) -> None:
        self._peer, self._socket = peer, connection
        self._is_secure = False

    def run(self) -> None:
        self._peer.sessions += 1
        if self._peer.is_tls_from_start:
            self._secure()
        self._file = self._socket.makefile("rb")
        self._say(b"220 mail.test ESMTP")
        try:
            while (line := self._file.readline()) and self._answer(line.strip()):
                pass
        finally:
            self._file.close()
            self._socket.close()

    def _answer(self, line: bytes) -> bool:
        verb = line.split(b" ")[0].split(b":")[0].upper().decode()
        if verb in self._peer.answers:
            answer = self._peer.answers[verb]
            if answer:
                self._say(answer)
            return bool(answer)
        return bool(getattr(self, f"_on_{verb.lower()}", self._on_other)(line))

    def _on_ehlo(self, _: bytes) -> bool:
        offers = [b"mail.test", b"8BITMIME", b"AUTH PLAIN"]
        if self._peer.tls is not None and not self._is_secure:
            offers.append(b"STARTTLS")
        self._say(*(b"250-" + offer for offer in offers[:-1]), b"250 " + offers[-1])
        return True

    def _on_starttls(self, _: bytes) -> bool:
        self._say(b"220 go ahead")
        self._secure()
        self._file = self._socket.makefile("rb")
        return True

    def _on_auth(self, _: bytes) -> bool:
        self._peer.logins += 1
        self._say(b"235 welcome")
        return True

    def _on_rcpt(self, line: bytes) -> bool:
        self._peer.recipients.append(line.partition(b"<")[2].partition(b">")[0].decode())
        self._say(b"250 ok")
        return True

    def _on_data(self, _: bytes) -> bool:
        self._say(b"354 end with a dot")
        lines = []
        while (line := self._file.readline()) not in {b".\r\n", b""}:
            lines.append(line.removeprefix(b".") if line.startswith(b"..") else line)
        if answer := self._peer.answers.get("."):
            self._say(answer)
            return True
        message = email.message_from_bytes(b"".join(lines), policy=email.policy.default)
        self._peer.messages.append(message)
        self._say(b"250 kept")
        return True

    def _on_quit(self, _: bytes) -> bool:
        self._say(b"221 bye")
        return False

    def _on_other(self, _: bytes) -> bool:
        self._say(b"250 ok")
        return True

    def _secure(self) -> None:
        assert self._peer.tls is not None
        self._socket = self._peer.tls.wrap_socket(self._socket, server_side=True)
        self._is_secure = True
        self._peer.secured += 1

    def _say(self, *lines: bytes) -> None:
        self._socket.sendall(b"".join(line + b"\r\n" for line in lines))


def certify(folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return a server's context with a certificate for 127.0.0.1, and a client's that believes in it alone."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "mail.test")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "server.pem").write_bytes(pem + private)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "server.pem")
    return server, ssl.create_default_context(cadata=pem.decode())
