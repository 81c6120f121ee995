"""The bearer token: rotated without a restart, never lost in between."""

import os
from pathlib import Path

import pytest

from nodescope.base.errors import SettingsRejected
from nodescope.serve.token import Token


def write(path: Path, secret: str, at_ns: int) -> None:
    path.write_text(secret)
    os.utime(path, ns=(at_ns, at_ns))


def test_only_the_token_is_admitted(tmp_path: Path) -> None:
    write(tmp_path / "token", "s3cret\n", 1)
    token = Token(tmp_path / "token")
    assert token.admits("Bearer s3cret")
    assert token.admits("bearer  s3cret ")
    for wrong in ("", "s3cret", "Bearer", "Bearer ", "Bearer s3cre", "Basic s3cret", "Bearer s3cret\u00e9"):
        assert not token.admits(wrong)


def test_a_rotated_token_needs_no_restart(tmp_path: Path) -> None:
    path = tmp_path / "token"
    write(path, "old", 1)
    token = Token(path)
    write(path, "new", 2)
    assert token.admits("Bearer new")
    assert not token.admits("Bearer old")


def test_the_last_token_holds_while_its_file_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "token"
    write(path, "old", 1)
    token = Token(path)
    path.unlink()
    assert token.admits("Bearer old")
    write(path, "", 2)
    assert token.admits("Bearer old")
    write(path, "new", 3)
    assert token.admits("Bearer new")


@pytest.mark.parametrize("content", [None, "", " \n"])
def test_a_file_without_a_token_is_refused_at_the_start(tmp_path: Path, content: str | None) -> None:
    """An empty token would admit everybody."""
    path = tmp_path / "token"
    if content is not None:
        path.write_text(content)
    with pytest.raises(SettingsRejected, match="token_file"):
        Token(path)
