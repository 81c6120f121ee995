"""How a server of ours that asks others over HTTPS trusts them, and what it shows them."""

import ssl
from pathlib import Path

from nodescope.base.errors import SettingsRejected


def build_client_tls(whom: str, authority: Path | None, own: Path | None) -> ssl.SSLContext | None:
    """From --WHOM-ca and --WHOM-cert, a folder with tls.crt and tls.key; None where neither is given."""
    if authority is None:
        if own is not None:
            raise SettingsRejected(f"--{whom}-cert goes with --{whom}-ca")
        return None
    try:
        context = ssl.create_default_context(cafile=str(authority))
        # Their own certificate may be what is trusted, whoever signed it.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    except (OSError, ssl.SSLError) as error:
        raise SettingsRejected(f"--{whom}-ca {authority}: {error.strerror or error}") from error
    try:
        if own is not None:
            context.load_cert_chain(own / "tls.crt", own / "tls.key")
    except (OSError, ssl.SSLError) as error:
        raise SettingsRejected(f"--{whom}-cert {own}: {error.strerror or error}") from error
    return context
