"""Who we are to the API server: the pod's own account, a kubeconfig, and what is refused."""

import base64
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support import NODES, TurnableClock

from nodescope.base.errors import SettingsRejected
from nodescope.base.settings_load import load_settings
from nodescope.kube.account import find_account
from nodescope.wiring import build_parts


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate of its own authority, and its key."""
    folder = tmp_path_factory.mktemp("pki")
    certificate, key = folder / "tls.crt", folder / "tls.key"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    subprocess.run(
        [*command, "-subj", "/CN=test", "-keyout", key, "-out", certificate], check=True, capture_output=True
    )
    return certificate, key


def write_kubeconfig(folder: Path, user: dict[str, Any], name: str = "config", **cluster: Any) -> str:
    content = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://api.example:6443", **cluster}}],
        "users": [{"name": "u", "user": user}],
    }
    path = folder / name
    path.write_text(yaml.safe_dump(content))
    return str(path)


def test_without_cluster_and_kubeconfig_there_is_no_account() -> None:
    assert find_account("", {}) is None


def test_a_pod_has_its_own_account_and_its_token_is_read_again(
    tmp_path: Path, certificate: tuple[Path, Path]
) -> None:
    """The kubelet replaces the token about once an hour."""
    (tmp_path / "token").write_text("one\n")
    (tmp_path / "ca.crt").write_bytes(certificate[0].read_bytes())
    environment = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    account = find_account("", environment, tmp_path)
    assert account is not None
    assert (account.endpoint.host, account.endpoint.port, account.read_token()) == ("10.0.0.1", 443, "one")
    (tmp_path / "token").write_text("two\n")
    assert account.read_token() == "two"


def test_a_token_and_an_authority_in_place(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    data = base64.b64encode(certificate[0].read_bytes()).decode()
    path = write_kubeconfig(tmp_path, {"token": "t"}, **{"certificate-authority-data": data})
    account = find_account(path, {})
    assert account is not None
    assert (account.endpoint.host, account.endpoint.port, account.read_token()) == ("api.example", 6443, "t")
    assert account.endpoint.tls is not None
    assert account.endpoint.tls.check_hostname


def test_a_client_certificate_from_files_beside_the_kubeconfig(
    tmp_path: Path, certificate: tuple[Path, Path]
) -> None:
    """Relative paths are relative to the kubeconfig, not to where we run."""
    for file in certificate:
        (tmp_path / file.name).write_bytes(file.read_bytes())
    user = {"client-certificate": "tls.crt", "client-key": "tls.key"}
    path = write_kubeconfig(tmp_path, user, **{"certificate-authority": "tls.crt"})
    assert find_account(path, {}) is not None


def test_a_client_certificate_in_place_leaves_no_file_behind(
    tmp_path: Path, certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    one, two = (base64.b64encode(file.read_bytes()).decode() for file in certificate)
    path = write_kubeconfig(tmp_path, {"client-certificate-data": one, "client-key-data": two})
    assert find_account(path, {}) is not None
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize(
    ("user", "word"),
    [
        ({"exec": {"command": "aws"}}, r"exec \(aws\)"),
        ({"auth-provider": {"name": "gcp"}}, r"auth-provider \(gcp\)"),
        ({"client-certificate-data": "!"}, "base64"),
        ({"client-certificate": "gone.crt"}, "go together"),
        ({"client-certificate": "gone.crt", "client-key": "gone.key"}, "client certificate"),
    ],
)
def test_what_we_do_not_do_is_said(tmp_path: Path, user: dict[str, Any], word: str) -> None:
    """An agent on every node runs no programs that a file names."""
    with pytest.raises(SettingsRejected, match=word):
        find_account(write_kubeconfig(tmp_path, user), {})


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("{", "not YAML"),
        ("- 1", "not a kubeconfig"),
        ("current-context: x", "no context 'x'; there are: none"),
        ("!!python/object/apply:os.system [x]", "not YAML"),
        ("\0", "not YAML"),
    ],
)
def test_what_is_no_kubeconfig_is_said(tmp_path: Path, text: str, word: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(SettingsRejected, match=word):
        find_account(str(path), {})


def test_several_files_are_laid_over_each_other(tmp_path: Path) -> None:
    """As kubectl does: of one name the first counts."""
    first = write_kubeconfig(tmp_path, {"token": "first"}, "first")
    second = write_kubeconfig(tmp_path, {"token": "second"}, "second")
    account = find_account(f"{first}:{second}", {})
    assert account is not None
    assert account.read_token() == "first"


def test_a_kubeconfig_of_the_shell_that_we_cannot_use_does_not_stop_the_agent(tmp_path: Path) -> None:
    """Asked for by name it is refused; lying in KUBECONFIG it is a reason for absence."""
    path = write_kubeconfig(tmp_path, {"exec": {"command": "gke-auth"}})
    root = str(NODES / "bare" / "t0")
    parts = build_parts(load_settings({"root": root}, {"KUBECONFIG": path}, {}), TurnableClock())
    assert parts.context.kubernetes.account is None
    assert "gke-auth" in parts.context.kubernetes.absent
    with pytest.raises(SettingsRejected, match="gke-auth"):
        build_parts(load_settings({"root": root, "kubeconfig": path}, {}, {}), TurnableClock())


def test_yaml_is_not_loaded_without_a_kubeconfig() -> None:
    """Its 3 MiB are paid by who needs it."""
    code = "import sys, nodescope.wiring; print('yaml' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "False\n"
