"""
A certificate, its key and the authority of the clients, as a Secret mounts them.

cert-manager and people replace such certificates while a server runs: the files
are looked at now and then, and connections made afterwards use the new ones.
"""

import asyncio
import ssl
from dataclasses import dataclass, replace
from pathlib import Path

from nodescope.base.errors import SettingsRejected
from nodescope.base.log import Log
from nodescope.base.settings import Settings
from nodescope.serve.certificate_end import read_end
from nodescope.serve.prometheus_text import MetricFamily, build_single

log = Log("server")

LOOK_SECONDS = 30.0
NAMES = ("tls.crt", "tls.key", "ca.crt")


@dataclass(frozen=True, slots=True)
class TlsFolder:
    """tls.crt, tls.key and, where clients must show certificates, ca.crt in one folder."""

    folder: Path
    has_authority: bool = True
    """Whether ca.crt is the authority of clients; else it is not looked at."""

    @property
    def names(self) -> tuple[str, ...]:
        return NAMES if self.has_authority else NAMES[:2]

    def guard(self, settings: Settings) -> Settings:
        """The same settings for a server with this certificate, which asks clients for theirs."""
        for name in self.names:
            if not (self.folder / name).is_file():
                raise SettingsRejected(
                    f"{self.folder}: no {name} in it; accepted: a folder with {', '.join(self.names)}"
                )
        certificate, key, authority = (self.folder / name for name in NAMES)
        clients = authority if self.has_authority else None
        return replace(settings, tls_cert=certificate, tls_key=key, tls_client_ca=clients, token_file=None)

    def read_version(self) -> tuple[int, ...]:
        return tuple((self.folder / name).stat().st_mtime_ns for name in self.names)

    def read_end(self) -> float | None:
        """When the certificate ends, in seconds since 1970; None where that cannot be read."""
        try:
            return read_end((self.folder / NAMES[0]).read_bytes())
        except OSError:
            return None

    def families(self) -> list[MetricFamily]:
        """For /metrics; none where the end is not known."""
        end = self.read_end()
        if end is None:
            return []
        return [
            build_single(
                "nodescope_certificate_end_timestamp_seconds",
                "When the certificate that this server shows ends.",
                end,
            )
        ]

    def load(self, context: ssl.SSLContext) -> None:
        """For connections that are made from now on; an authority that was known stays known."""
        certificate, key, authority = (self.folder / name for name in NAMES)
        context.load_cert_chain(certificate, key)
        if self.has_authority:
            context.load_verify_locations(authority)

    async def keep_loaded(self, context: ssl.SSLContext, look_seconds: float = LOOK_SECONDS) -> None:
        """Until it is cancelled."""
        loaded = self.read_version()
        while True:
            await asyncio.sleep(look_seconds)
            try:
                found = self.read_version()
                if found != loaded:
                    self.load(context)
                    loaded = found
                    log.info("certificate renewed", folder=str(self.folder))
            except (OSError, ssl.SSLError) as error:
                log.warning("certificate not renewed", folder=str(self.folder), reason=str(error))
