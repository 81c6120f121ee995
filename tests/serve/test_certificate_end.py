"""When a certificate ends, by what openssl says of the same file."""

import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import examples

from nodescope.serve.certificate_end import parse_time, read_end
from nodescope.serve.tls_folder import TlsFolder

PEM = """-----BEGIN CERTIFICATE-----
{}
-----END CERTIFICATE-----
"""


@pytest.mark.parametrize("days", [1, 3650, 20000])
@pytest.mark.parametrize("algorithm", ["rsa:2048", "ec"])
def test_the_end_is_what_openssl_says(tmp_path: Path, days: int, algorithm: str) -> None:
    """Twenty thousand days are beyond 2049, where times are written in another form."""
    curve = ("-pkeyopt", "ec_paramgen_curve:P-256") if algorithm == "ec" else ()
    key, certificate = tmp_path / "tls.key", tmp_path / "tls.crt"
    command = ["openssl", "req", "-x509", "-newkey", algorithm, *curve, "-nodes", "-subj", "/CN=x"]
    command += ["-days", str(days), "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    said = subprocess.run(
        ["openssl", "x509", "-in", certificate, "-noout", "-enddate"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    wanted = datetime.strptime(said, "notAfter=%b %d %H:%M:%S %Y GMT").replace(tzinfo=UTC)
    assert read_end(certificate.read_bytes()) == wanted.timestamp()
    (family,) = TlsFolder(tmp_path).families()
    assert family.name == "nodescope_certificate_end_timestamp_seconds"


@examples(100)
@given(st.binary(max_size=300))
def test_garbage_has_no_end(content: bytes) -> None:
    """forall bytes, as they are and as a certificate's: None, and no failure."""
    import base64

    assert read_end(content) is None
    read_end(PEM.format(base64.b64encode(content).decode()).encode())


def test_a_file_that_is_not_there_has_no_figure(tmp_path: Path) -> None:
    assert TlsFolder(tmp_path).families() == []


def test_years_of_two_digits() -> None:
    assert parse_time(0x17, b"491231235959Z") > parse_time(0x17, b"500101000000Z")
