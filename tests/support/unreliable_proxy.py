"""A proxy before a server of HTTP that asks clients to slow down, or answers nobody."""

from __future__ import annotations

import http.client
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_SLOW_DOWN = (
    b'<?xml version="1.0" encoding="UTF-8"?>'
    b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
)


class UnreliableProxy:
    """Hands requests on, but for those that it refuses.

    Parameters
    ----------
    port : int
        Of the loopback interface, to listen on.
    server : int
        Port of the server.
    """

    def __init__(self, port: int, server: int) -> None:
        self.server = server
        self.requests = self.refused = 0
        self.refuse_every = 0
        """Every so many requests are answered with 503; 0 refuses none."""
        self.dead = False
        """Whether each connection is closed without an answer."""
        self._lock = threading.Lock()
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # An answer is one packet: the client's system would wait to acknowledge the first.
            wbufsize = 1 << 20
            disable_nagle_algorithm = True

            def handle_one_request(self) -> None:
                self.raw_requestline = self.rfile.readline(65_537)
                if not self.raw_requestline or not self.parse_request() or proxy.dead:
                    self.close_connection = True
                    return
                proxy.hand_on(self)
                self.wfile.flush()

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._listener = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._listener.daemon_threads = True
        threading.Thread(target=self._listener.serve_forever, daemon=True).start()

    def hand_on(self, request: BaseHTTPRequestHandler) -> None:
        """Answer a request as the server does, or refuse it."""
        if request.headers.get("Expect", "").lower() == "100-continue":
            request.send_response_only(100)
            request.end_headers()
            request.wfile.flush()
        body = request.rfile.read(int(request.headers.get("Content-Length", 0)))
        with self._lock:
            self.requests += 1
            refused = self.refuse_every and not self.requests % self.refuse_every
            self.refused += bool(refused)
        if refused:
            request.send_response_only(503)
            request.send_header("Content-Length", str(len(_SLOW_DOWN)))
            request.end_headers()
            request.wfile.write(b"" if request.command == "HEAD" else _SLOW_DOWN)
            return
        connection = http.client.HTTPConnection("127.0.0.1", self.server)
        headers = {name: value for name, value in request.headers.items() if name != "Expect"}
        connection.request(request.command, request.path, body, headers)
        answer = connection.getresponse()
        content = answer.read()
        request.send_response_only(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in {"transfer-encoding", "content-length", "connection"}:
                request.send_header(name, value)
        length = answer.getheader("Content-Length") if request.command == "HEAD" else None
        request.send_header("Content-Length", length or str(len(content)))
        request.end_headers()
        request.wfile.write(content)
        connection.close()
