"""A Google Cloud Storage server on loopback: fake-gcs-server, which speaks the JSON API."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

from tests.s3.server import GO_TOOLS, build, free_port, wait_for

PROJECT = "nodescope-test"


@dataclass(frozen=True)
class Gcs:
    """A running server; `environment` is what a client needs."""

    address: str
    account: Path

    @property
    def environment(self) -> dict[str, str]:
        return {
            "CLOUD_STORAGE_EMULATOR_ENDPOINT": f"http://{self.address}",
            "GOOGLE_APPLICATION_CREDENTIALS": str(self.account),
        }

    def make_bucket(self, name: str) -> str:
        connection = HTTPConnection(self.address, timeout=10)
        content = json.dumps({"name": name})
        connection.request("POST", f"/storage/v1/b?project={PROJECT}", content)
        assert connection.getresponse().status == 200
        connection.close()
        return f"gs://{name}"


@contextmanager
def serve(place: Path) -> Iterator[Gcs]:
    program = build(GO_TOOLS, "gcs") / "fake-gcs-server"
    place.mkdir(parents=True, exist_ok=True)
    port = free_port()
    address = f"127.0.0.1:{port}"
    words = [str(program), "-backend", "memory", "-scheme", "http", "-host", "127.0.0.1", "-port", str(port)]
    words += ["-public-host", address, "-external-url", f"http://{address}", "-log-level", "error"]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(address, process)
        yield Gcs(address, write_account(place / "account.json"))
    finally:
        process.kill()
        process.wait()


def write_account(path: Path) -> Path:
    """
    A service account as Google hands it out, with a key made now.

    The client signs its own token with it and asks nobody; the server takes any.
    """
    words = ["openssl", "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"]
    text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    content = {
        "type": "service_account",
        "project_id": PROJECT,
        "private_key_id": "1",
        "private_key": text,
        "client_email": f"copier@{PROJECT}.iam.gserviceaccount.com",
        "client_id": "1",
        "token_uri": "http://127.0.0.1:9/token",
    }
    path.write_text(json.dumps(content))
    return path
