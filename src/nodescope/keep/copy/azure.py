"""
An Azure account with the credentials that the vendor's own tools read.

Arrow takes a service principal or an identity from the environment by itself.
An account's key, its connection string and a SAS token it would only take from
the address, where they would be in every log: these are read here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, urlsplit

from nodescope.base.errors import RequestRejected

SCHEMES = ("abfs", "abfss")
CONNECTION = "AZURE_STORAGE_CONNECTION_STRING"
ACCOUNT, KEY, SAS = "AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN"


@dataclass(frozen=True, slots=True)
class AzurePlace:
    """What an address names: abfs://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH."""

    account: str
    container: str
    path: str


@dataclass(frozen=True, slots=True)
class AzureAccount:
    """A secret of an account, and where it answers when that is not Azure's own place."""

    name: str
    """Empty: whichever account the address names."""
    source: str
    key: str = ""
    sas: str = ""
    endpoint: str = ""


def parse_place(url: str) -> AzurePlace:
    parts = urlsplit(url)
    container, _, host = parts.netloc.rpartition("@")
    account = host.partition(".")[0]
    if not container or not account:
        raise RequestRejected(
            f"{parts.scheme}:// needs a container and an account; accepted: "
            "abfs://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH"
        )
    return AzurePlace(account, container, parts.path.strip("/"))


def read_account(environment: Mapping[str, str]) -> AzureAccount | None:
    """None: no secret of an account is there; Arrow looks for an identity."""
    if text := environment.get(CONNECTION):
        return parse_connection(text)
    name, key, sas = (environment.get(word, "") for word in (ACCOUNT, KEY, SAS))
    if key:
        return AzureAccount(name, KEY, key=key)
    if sas:
        return AzureAccount(name, SAS, sas=sas)
    return None


def parse_connection(text: str) -> AzureAccount:
    """`Name=value;...`; never repeated in an error, for it is a secret."""
    words = dict(part.split("=", 1) for part in text.split(";") if "=" in part)
    account = AzureAccount(
        words.get("AccountName", ""),
        CONNECTION,
        words.get("AccountKey", ""),
        words.get("SharedAccessSignature", ""),
        words.get("BlobEndpoint", ""),
    )
    if not account.name or not (account.key or account.sas):
        raise RequestRejected(
            f"{CONNECTION} has no AccountName, or neither AccountKey nor SharedAccessSignature"
        )
    return account


def file_system_arguments(place: AzurePlace, account: AzureAccount) -> dict[str, Any]:
    """For Arrow's AzureFileSystem."""
    if account.name and account.name != place.account:
        raise RequestRejected(
            f'{account.source} is for the account "{account.name}"; the address names "{place.account}"'
        )
    found: dict[str, Any] = {"account_name": place.account}
    if account.key:
        found["account_key"] = account.key
    else:
        found["sas_token"] = account.sas
    if account.endpoint:
        found |= endpoint_arguments(urlsplit(account.endpoint), place.account)
    return found


def endpoint_arguments(endpoint: SplitResult, account: str) -> dict[str, str]:
    """
    An emulator's or a private cloud's: account.host/, or host:port/account.

    Arrow asks the second form when the authority does not begin with a dot.
    """
    host = endpoint.netloc
    authority = host.removeprefix(account) if host.startswith(f"{account}.") else host
    return {
        "blob_storage_authority": authority,
        "blob_storage_scheme": endpoint.scheme,
        "dfs_storage_authority": authority.replace(".blob.", ".dfs.", 1),
        "dfs_storage_scheme": endpoint.scheme,
    }
