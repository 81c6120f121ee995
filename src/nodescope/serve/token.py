"""The bearer token: read from a file, again when it changed, or made for one run; compared in constant time."""

import hmac
import secrets
from pathlib import Path

from nodescope.base.errors import SettingsRejected
from nodescope.base.log import Log

log = Log("token")

SECRET_BYTES = 24


def make_secret() -> str:
    """For one run; it can stand in an address."""
    return secrets.token_urlsafe(SECRET_BYTES)


def is_admitted(authorization: str, secret: bytes) -> bool:
    """Whether a header carries the secret, compared in constant time."""
    scheme, _, given = authorization.partition(" ")
    right = hmac.compare_digest(given.strip().encode("utf-8", "replace"), secret)
    return right and scheme.lower() == "bearer"


class Token:
    """A secret that may be rotated while we run."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp_ns = -1
        self._secret = b""
        self._read()
        if not self._secret:
            raise SettingsRejected(f"token_file {path}: the file is empty; it must hold the token")

    def _read(self) -> None:
        try:
            stamp_ns = self._path.stat().st_mtime_ns
            if stamp_ns != self._stamp_ns:
                secret = self._path.read_bytes().strip()
                self._stamp_ns = stamp_ns
                self._secret = secret or self._secret
        except OSError as error:
            if not self._secret:
                raise SettingsRejected(f"token_file {self._path}: {error.strerror}") from error
            # While a secret is replaced its file is briefly missing: the old one stays valid.
            log.warning("token file not readable, the last token holds", error=str(error))

    def admits(self, authorization: str) -> bool:
        self._read()
        return is_admitted(authorization, self._secret)
