"""A mail server on loopback: STARTTLS, a login, and every message that it accepts."""

import asyncio
import base64
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage

from tests.support.certificates import Certificates


@dataclass
class MailReceiver:
    tls: ssl.SSLContext
    port: int = 0
    refused: set[str] = field(default_factory=set[str])
    """Recipients that do not exist."""
    is_busy: bool = False
    is_slow: bool = False
    """Whether the answer about a recipient never ends."""
    abandoned: asyncio.Event = field(default_factory=asyncio.Event)
    messages: list[EmailMessage] = field(default_factory=list[EmailMessage])
    recipients: list[list[str]] = field(default_factory=list[list[str]])
    logins: list[str] = field(default_factory=list[str])
    """The user and password of each login, and whether the connection was encrypted."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        envelope: list[str] = []
        writer.write(b"220 mail.example\r\n")
        while line := (await reader.readline()).decode().strip():
            verb = line.partition(" ")[0].upper()
            is_encrypted = writer.get_extra_info("sslcontext") is not None
            match verb:
                case "EHLO":
                    offered = "250 AUTH PLAIN" if is_encrypted else "250 STARTTLS"
                    answer = f"250-mail.example\r\n{offered}"
                case "STARTTLS":
                    writer.write(b"220 go on\r\n")
                    await writer.start_tls(self.tls)
                    continue
                case "AUTH":
                    login = base64.b64decode(line.split()[2]).decode().split("\0")
                    self.logins.append(f"{login[1]} {login[2]} {is_encrypted}")
                    answer = "235 welcome"
                case "MAIL":
                    answer = "451 busy, come again" if self.is_busy else "250 ok"
                case "RCPT":
                    if self.is_slow:
                        await self._answer_slowly(reader, writer)
                        return
                    envelope.append(line.partition("<")[2].partition(">")[0])
                    answer = "550 no such user" if self.refused.issuperset(envelope) else "250 ok"
                case "DATA":
                    writer.write(b"354 go on\r\n")
                    content = await reader.readuntil(b"\r\n.\r\n")
                    message = message_from_bytes(content[:-5], policy=policy.default)
                    assert isinstance(message, EmailMessage)
                    self.messages.append(message)
                    self.recipients.append(envelope)
                    answer = "250 stored"
                case "QUIT":
                    writer.write(b"221 bye\r\n")
                    break
                case _:
                    answer = "250 ok"
            writer.write(f"{answer}\r\n".encode())
        writer.close()

    async def _answer_slowly(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Go on with one answer until the client has closed the connection."""
        is_open = True
        while is_open:
            writer.write(b"250-ok so far\r\n")
            with suppress(TimeoutError):
                is_open = bool(await asyncio.wait_for(reader.read(1), 0.1))
        self.abandoned.set()
        writer.close()


@asynccontextmanager
async def running_mail_server(certificates: Certificates) -> AsyncGenerator[MailReceiver]:
    receiver = MailReceiver(certificates.server_context())
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0)
    receiver.port = server.sockets[0].getsockname()[1]
    # An address that the certificate does not name.
    unnamed = await asyncio.start_server(receiver.serve, "127.0.0.2", receiver.port)
    try:
        yield receiver
    finally:
        server.close()
        unnamed.close()
