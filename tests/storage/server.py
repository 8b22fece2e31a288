"""A real S3 server (`rclone serve s3`), and a TCP proxy that makes it slow, dead or busy."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from menuwatch.storage.s3 import S3Storage

KEY, SECRET = "menuwatch-tests", "a-secret-of-the-tests"
BUCKET = "menus"
RCLONE = Path(sys.executable).with_name("rclone")


@dataclass
class S3Server:
    """rclone on a random port of the loopback; objects are files below `data`."""

    data: Path
    port: int = 0
    process: subprocess.Popen[bytes] | None = None

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environ(self) -> dict[str, str]:
        """The settings of a process that uses it."""
        return {
            "STORAGE_DRIVER": "s3",
            "S3_ENDPOINT": self.endpoint,
            "S3_BUCKET": BUCKET,
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
        }

    def storage(self, endpoint: str | None = None, **options: Any) -> S3Storage:
        given = {"access_key_id": KEY, "secret_access_key": SECRET, "region": "us-east-1"} | options
        return S3Storage(BUCKET, endpoint=endpoint or self.endpoint, prefix="one/two", **given)

    def start(self) -> None:
        (self.data / BUCKET).mkdir(parents=True, exist_ok=True)
        if not self.port:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                self.port = free.getsockname()[1]
        self.process = subprocess.Popen(
            [RCLONE, "serve", "s3", self.data, "--addr", f"127.0.0.1:{self.port}", "--auth-key", f"{KEY},{SECRET}",
             "--config", "/dev/null", "--no-cleanup"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        deadline = time.monotonic() + 20
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            assert time.monotonic() < deadline, "rclone does not listen"
            time.sleep(0.02)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait(10)
            self.process = None

    def objects(self) -> set[str]:
        """Every path below the prefix that holds something. What rclone had received of an object when it was killed lies beside
        them under a name of its own; a server of this kind keeps such parts elsewhere."""
        root = self.data / BUCKET / "one/two"
        return {
            file.relative_to(root).as_posix()
            for file in root.rglob("*")
            if file.is_file() and not file.name.startswith(".rclone_temp_put_")
        }


@contextlib.contextmanager
def running(data: Path) -> Iterator[S3Server]:
    server = S3Server(data)
    server.start()
    try:
        yield server
    finally:
        server.kill()


_BUSY = b"HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


@dataclass
class Proxy:
    """Passes bytes on to a server. `busy`: that many connections get a 503; `delay`: seconds before each answer; `cut_after`: bytes
    of a request after which `on_cut` is called and the connection closed; `ranges`: parts are answered with status 206, as other
    servers do. `deletes`: requests that removed objects, one or many."""

    target: int
    busy: int = 0
    delay: float = 0.0
    cut_after: int | None = None
    on_cut: Any = None
    ranges: bool = False
    parts: int = 0
    refused: int = 0
    deletes: int = 0
    _socket: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0)))

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def serve(self) -> None:
        while True:
            try:
                client, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._pass, args=(client,), daemon=True).start()

    def _pass(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            if self.busy:
                self.busy -= 1
                self.refused += 1
                client.recv(65536)
                client.sendall(_BUSY)
                return
            with socket.create_connection(("127.0.0.1", self.target)) as server:
                threading.Thread(target=self._answers, args=(server, client), daemon=True).start()
                passed = 0
                while data := client.recv(65536):
                    self.deletes += data.startswith(b"DELETE ") or b"?delete" in data.partition(b"\r\n")[0]
                    server.sendall(data)
                    passed += len(data)
                    if self.cut_after is not None and passed >= self.cut_after:
                        self.cut_after = None
                        self.on_cut()
                        return

    def _answers(self, server: socket.socket, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(65536):
                time.sleep(self.delay)
                if self.ranges and b"\r\nContent-Range: " in data.partition(b"\r\n\r\n")[0]:
                    data = data.replace(b"HTTP/1.1 200 OK", b"HTTP/1.1 206 Partial Content", 1)
                    self.parts += 1
                client.sendall(data)
            client.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._socket.close()


@contextlib.contextmanager
def proxied(server: S3Server, **faults: Any) -> Iterator[Proxy]:
    proxy = Proxy(server.port, **faults)
    threading.Thread(target=proxy.serve, daemon=True).start()
    try:
        yield proxy
    finally:
        proxy.close()
