"""A mail server that takes what it is given, on a real socket."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage


@dataclass
class Mailbox:
    """`refuse` says how many mails are turned away before one is taken."""

    port: int = 0
    refuse: int = 0
    mails: list[EmailMessage] = field(default_factory=list)
    to: list[str] = field(default_factory=list)
    tried: int = 0

    @property
    def url(self) -> str:
        return f"mailto://127.0.0.1:{self.port}?from=menus@shop.example&mode=insecure"

    def link(self, of: str, which: int = -1) -> str:
        """The path of the first link in a mail that ends so."""
        found = re.search(rf"http://menus\.example(\S*{of})\s", self.text(which))
        assert found, self.text(which)
        return found[1]

    def text(self, which: int = -1) -> str:
        body = self.mails[which].get_body(("plain",))
        assert body is not None
        return str(body.get_content())

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async def say(line: str) -> None:
            writer.write(line.encode() + b"\r\n")
            await writer.drain()

        await say("220 mailbox")
        while line := (await reader.readline()).decode("latin-1").strip():
            verb = line[:4].upper()
            if verb in ("EHLO", "HELO"):
                await say("250 mailbox")
            elif verb == "RCPT":
                self.tried += 1
                if self.tried <= self.refuse:
                    await say("451 later")
                    continue
                self.to.append(line.partition("<")[2].partition(">")[0])
                await say("250 ok")
            elif verb == "DATA":
                await say("354 go on")
                body = await reader.readuntil(b"\r\n.\r\n")
                self.mails.append(message_from_bytes(body[:-3], policy=policy.default))
                await say("250 taken")
            elif verb == "QUIT":
                await say("221 bye")
                break
            else:
                await say("250 ok")
        writer.close()


@asynccontextmanager
async def mailbox() -> AsyncIterator[Mailbox]:
    """A mailbox that is open for as long as the context lasts."""
    box = Mailbox()
    server = await asyncio.start_server(box.serve, "127.0.0.1", 0)
    box.port = server.sockets[0].getsockname()[1]
    async with server:
        yield box
