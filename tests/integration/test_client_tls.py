"""Viewers with certificates are asked: one that signs for itself, and one that wants to see ours."""

import argparse
import http.server
import json
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from nodescope.base.errors import SettingsRejected
from nodescope.commands.shared.client_tls import build_client_tls
from nodescope.commands.shared.node_options import add_nodes, read_access
from nodescope.use.nodes.viewer_client import NodeAway, ViewerClient, parse_address

pytestmark = pytest.mark.real


class Viewer(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = json.dumps({"nodes": ["a"]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: object) -> None: ...


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As a Secret of kubernetes.io/tls is mounted; made out to a name, as no pod's address is."""
    folder = tmp_path_factory.mktemp("tls")
    words = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1"]
    names = ["-subj", "/CN=viewers", "-addext", "subjectAltName=DNS:127.0.0.1"]
    files = ["-keyout", str(folder / "tls.key"), "-out", str(folder / "tls.crt")]
    subprocess.run(["openssl", *words, *names, *files], check=True, capture_output=True)
    return folder


@contextmanager
def serving(folder: Path, *, wants_certificate: bool) -> Iterator[str]:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    if wants_certificate:
        tls.verify_mode = ssl.CERT_REQUIRED
        tls.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        tls.load_verify_locations(folder / "tls.crt")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Viewer)
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"https://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def ask(url: str, *words: str) -> object:
    parser = argparse.ArgumentParser()
    add_nodes(parser)
    access = read_access(parser.parse_args(words), 30.0)
    if access.tls is not None:
        # As for pods, whose addresses are in no certificate.
        access.tls.check_hostname = False
    client = ViewerClient("a", parse_address(url, access.tls), access)
    try:
        return client.ask("/api/instance", {})
    finally:
        client.close()


def test_a_certificate_that_signs_for_itself_is_trusted_where_it_is_named(folder: Path) -> None:
    with serving(folder, wants_certificate=False) as url:
        assert ask(url, "--viewer-ca", str(folder / "tls.crt")) == {"nodes": ["a"]}
        with pytest.raises(NodeAway, match="certificate"):
            ask(url)


def test_a_viewer_that_wants_a_certificate_is_shown_ours(folder: Path) -> None:
    trusted = ("--viewer-ca", str(folder / "tls.crt"))
    with serving(folder, wants_certificate=True) as url:
        assert ask(url, *trusted, "--viewer-cert", str(folder)) == {"nodes": ["a"]}
        with pytest.raises(NodeAway):
            ask(url, *trusted)


def test_what_cannot_be_used_is_refused_by_its_option(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(SettingsRejected, match="--viewer-cert goes with --viewer-ca"):
        build_client_tls("viewer", None, folder)
    with pytest.raises(SettingsRejected, match=r"--viewer-ca .*No such file"):
        build_client_tls("viewer", tmp_path / "none", None)
    with pytest.raises(SettingsRejected, match=r"--viewer-cert .*No such file"):
        build_client_tls("viewer", folder / "tls.crt", tmp_path)
