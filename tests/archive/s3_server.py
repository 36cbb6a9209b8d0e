"""An S3-compatible server on loopback, with one bucket."""

import http.client
from collections.abc import Generator
from contextlib import contextmanager

import pytest
from moto.server import ThreadedMotoServer  # pyright: ignore[reportMissingTypeStubs] - has none

BUCKET = "archive"


@contextmanager
def running_s3(environment: pytest.MonkeyPatch) -> Generator[str]:
    """Yields the address of a folder in the bucket, for `archive.url`."""
    environment.setenv("AWS_ACCESS_KEY_ID", "test")
    environment.setenv("AWS_SECRET_ACCESS_KEY", "test")
    environment.setenv("AWS_EC2_METADATA_DISABLED", "true")
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        connection = http.client.HTTPConnection(host, port)
        connection.request("PUT", f"/{BUCKET}")
        assert connection.getresponse().status == 200
        connection.close()
        options = f"endpoint_override={host}:{port}&scheme=http&region=us-east-1"
        yield f"s3://{BUCKET}/tollhouse?{options}"
    finally:
        server.stop()
