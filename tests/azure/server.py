"""An Azure Blob server on loopback: Azurite, Microsoft's own."""

import base64
import os
import secrets
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow.fs as pafs
from tests.s3.server import build, free_port, wait_for

BUILD = Path(__file__).parent / "build"
ACCOUNT = "nodescopetest"


@dataclass(frozen=True)
class Azure:
    """A running server; `environment` is what a client needs."""

    address: str
    key: str

    @property
    def environment(self) -> dict[str, str]:
        return {
            "AZURE_STORAGE_CONNECTION_STRING": (
                f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={self.key};"
                f"BlobEndpoint=http://{self.address}/{ACCOUNT};"
            )
        }

    def make_bucket(self, name: str) -> str:
        files = pafs.AzureFileSystem(
            ACCOUNT,
            account_key=self.key,
            blob_storage_authority=self.address,
            blob_storage_scheme="http",
            dfs_storage_authority=self.address,
            dfs_storage_scheme="http",
        )
        files.create_dir(name)
        return f"abfs://{name}@{ACCOUNT}.dfs.core.windows.net"


@contextmanager
def serve(place: Path) -> Iterator[Azure]:
    script = build(BUILD)
    place.mkdir(parents=True, exist_ok=True)
    key = base64.b64encode(secrets.token_bytes(64)).decode()
    port = free_port()
    words = ["node", str(script), "--silent", "--inMemoryPersistence", "--skipApiVersionCheck"]
    words += ["--disableTelemetry", "--blobHost", "127.0.0.1", "--blobPort", str(port)]
    process = subprocess.Popen(
        words,
        cwd=place,
        env={"AZURITE_ACCOUNTS": f"{ACCOUNT}:{key}", "PATH": os.environ["PATH"]},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for(f"127.0.0.1:{port}", process)
        yield Azure(f"127.0.0.1:{port}", key)
    finally:
        process.kill()
        process.wait()
