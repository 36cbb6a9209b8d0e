"""A collector of spans on loopback, which keeps what it is sent."""

import gzip
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass
class Collector:
    """What was sent to it. `answer` is the status that it gives."""

    answer: int = 200
    received: list[ExportTraceServiceRequest] = field(
        default_factory=list[ExportTraceServiceRequest]
    )
    url: str = ""

    def spans(self) -> list[Any]:
        return [
            found
            for request in self.received
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for found in scope.spans
        ]


@contextmanager
def collecting(collector: Collector) -> Generator[Collector]:
    """A receiver of OTLP over HTTP on loopback."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            assert self.path == "/v1/traces"
            assert self.headers["content-type"] == "application/x-protobuf"
            collector.received.append(ExportTraceServiceRequest.FromString(gzip.decompress(body)))
            self.send_response(collector.answer)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as it is inherited
            """Tests read what they need from the collector."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    collector.url = f"http://127.0.0.1:{server.server_address[1]}/v1/traces"
    try:
        yield collector
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
