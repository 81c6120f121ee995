"""An account's secret comes from where the vendor's tools look for it, and is never told."""

from collections.abc import Mapping
from typing import Any

import pytest

from nodescope.base.errors import RequestRejected
from nodescope.keep.copy.azure import file_system_arguments, parse_place, read_account

URL = "abfs://box@acme.dfs.core.windows.net/archive/nodes"


def arguments(environment: Mapping[str, str]) -> dict[str, Any]:
    account = read_account(environment)
    assert account
    return file_system_arguments(parse_place(URL), account)


def test_a_key_or_a_token_is_taken_for_the_account_of_the_address() -> None:
    assert arguments({"AZURE_STORAGE_KEY": "SECRET"}) == {"account_name": "acme", "account_key": "SECRET"}
    assert arguments({"AZURE_STORAGE_SAS_TOKEN": "sv=1"}) == {"account_name": "acme", "sas_token": "sv=1"}
    assert parse_place(URL).container == "box"
    assert parse_place(URL).path == "archive/nodes"


@pytest.mark.parametrize(
    ("endpoint", "blob", "dfs"),
    [
        ("http://127.0.0.1:10000/acme", "127.0.0.1:10000", "127.0.0.1:10000"),
        (
            "https://acme.blob.core.chinacloudapi.cn",
            ".blob.core.chinacloudapi.cn",
            ".dfs.core.chinacloudapi.cn",
        ),
    ],
)
def test_a_connection_string_names_its_endpoint(endpoint: str, blob: str, dfs: str) -> None:
    text = f"AccountName=acme;AccountKey=a+b/c==;BlobEndpoint={endpoint};"
    found = arguments({"AZURE_STORAGE_CONNECTION_STRING": text})
    assert found["account_key"] == "a+b/c=="
    assert (found["blob_storage_authority"], found["dfs_storage_authority"]) == (blob, dfs)
    assert found["blob_storage_scheme"] == endpoint.partition(":")[0]


def test_without_any_arrow_looks_for_an_identity() -> None:
    assert read_account({"AZURE_CLIENT_ID": "x", "AZURE_STORAGE_ACCOUNT": "acme"}) is None


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        ({"AZURE_STORAGE_KEY": "SECRET", "AZURE_STORAGE_ACCOUNT": "other"}, 'for the account "other"'),
        ({"AZURE_STORAGE_CONNECTION_STRING": "AccountKey=SECRET"}, "has no AccountName"),
        ({"AZURE_STORAGE_CONNECTION_STRING": "SECRET"}, "has no AccountName"),
    ],
)
def test_what_does_not_fit_is_told_without_the_secret(environment: Mapping[str, str], told: str) -> None:
    with pytest.raises(RequestRejected, match=told) as refusal:
        arguments(environment)
    assert "SECRET" not in str(refusal.value)


@pytest.mark.parametrize("url", ["abfs://acme.dfs.core.windows.net/x", "abfs://box@/x"])
def test_an_address_without_container_or_account_is_refused(url: str) -> None:
    with pytest.raises(RequestRejected, match="CONTAINER@ACCOUNT"):
        parse_place(url)
