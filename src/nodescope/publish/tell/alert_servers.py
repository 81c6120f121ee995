"""The Alertmanagers that settings name: address, authority and credentials."""

import base64
import ssl
from collections.abc import Mapping
from pathlib import Path

from nodescope.base.clock import Clock
from nodescope.base.errors import HttpFailed, SettingsRejected
from nodescope.base.settings import Settings
from nodescope.publish.tell.alert_form import AlertForm
from nodescope.publish.tell.alert_sender import ANSWER_BYTES, ANSWER_SECONDS, AlertCounters, AlertSender
from nodescope.serve.http_client import Endpoint, HttpClient, parse_endpoint
from nodescope.watch.finding_store import FindingStore

FORM = "http://HOST:9093, or https://HOST/PATH where it is behind a gateway"


def check_alertmanager(settings: Settings) -> None:
    """Refuses at the start what could never work."""
    if settings.alertmanager_url and not settings.watch:
        raise SettingsRejected("alertmanager_url is told what the watcher finds: it needs watch = true")
    if settings.alertmanager_token_file and settings.alertmanager_basic_file:
        raise SettingsRejected("alertmanager_token_file and alertmanager_basic_file: one of them, not both")
    for name in ("alertmanager_token_file", "alertmanager_basic_file", "alertmanager_ca"):
        if getattr(settings, name) and not settings.alertmanager_url:
            raise SettingsRejected(f"{name} goes with alertmanager_url, which is not set")
    for address in settings.alertmanager_url:
        open_endpoint(address, settings.alertmanager_ca)
    # A file that is not there at the start is a mistake; one that is replaced later is not.
    read_credentials(settings)


def open_endpoint(address: str, authority: Path | None) -> Endpoint:
    try:
        tls = ssl.create_default_context(cafile=str(authority)) if authority else None
        return parse_endpoint(address.rstrip("/"), tls)
    except HttpFailed as error:
        raise SettingsRejected(f"alertmanager_url = {address!r} is not accepted; accepted: {FORM}") from error
    except (OSError, ValueError) as error:
        raise SettingsRejected(
            f"alertmanager_ca {authority}: no certificates can be read: {error}"
        ) from error


def read_credentials(settings: Settings) -> dict[str, str]:
    """The header, from the file as it is now; none where no file is named."""
    try:
        if settings.alertmanager_token_file:
            return {"Authorization": f"Bearer {settings.alertmanager_token_file.read_text().strip()}"}
        if settings.alertmanager_basic_file:
            pair = settings.alertmanager_basic_file.read_text().strip()
            if ":" not in pair:
                raise SettingsRejected(
                    "alertmanager_basic_file has no colon; accepted: one line user:password"
                )
            return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
    except OSError as error:
        raise SettingsRejected(f"{error.filename}: {error.strerror}") from error
    return {}


def build_alert_senders(settings: Settings, store: FindingStore, clock: Clock) -> tuple[AlertSender, ...]:
    form = AlertForm(settings.cluster)
    return tuple(build_sender(settings, address, store, clock, form) for address in settings.alertmanager_url)


def build_sender(
    settings: Settings, address: str, store: FindingStore, clock: Clock, form: AlertForm
) -> AlertSender:
    endpoint = open_endpoint(address, settings.alertmanager_ca)
    counters = AlertCounters(endpoint.render())

    def read_headers() -> Mapping[str, str]:
        try:
            return read_credentials(settings)
        except SettingsRejected as error:
            # A secret being replaced is briefly not there.
            raise HttpFailed(counters.address, str(error)) from error

    client = HttpClient(endpoint, ANSWER_SECONDS, ANSWER_BYTES)
    return AlertSender(
        client, store, clock, counters, form, settings.alertmanager_resend_seconds, read_headers
    )
