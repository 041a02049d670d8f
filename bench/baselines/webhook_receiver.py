"""A receiver that does as little as HTTP allows: every POST gets 200 and an empty body. Run by bench.webhooks.

Prints its port. GET returns the number of posts.
"""

from __future__ import annotations

import asyncio

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


class Connection(asyncio.Protocol):
    """One connection, its requests one after the other."""

    posts = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.buffer = b""

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while True:
            head, blank, rest = self.buffer.partition(b"\r\n\r\n")
            if not blank:
                return
            length = content_length(head)
            if len(rest) < length:
                return
            self.buffer = rest[length:]
            self.answer(head)

    def answer(self, head: bytes) -> None:
        if head.startswith(b"POST "):
            Connection.posts += 1
            self.transport.write(ANSWER)
        else:
            text = str(Connection.posts).encode()
            self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(text), text))


def content_length(head: bytes) -> int:
    _, found, rest = head.lower().partition(b"\r\ncontent-length:")
    return int(rest.partition(b"\r\n")[0]) if found else 0


async def main() -> None:
    server = await asyncio.get_running_loop().create_server(Connection, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
