"""Folders and stores as people name them: a path, or the address that copies are sent to."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from nodescope.base.errors import SettingsRejected

STORES = ("s3", "gs", "gcs", "abfs", "abfss")


def is_store(text: str) -> bool:
    """An address of an object store, and no folder of this machine."""
    return "://" in text and urlsplit(text).scheme in STORES


def find_folder(text: str) -> Path:
    """The path that is meant; addresses that are no folder are refused, with the way that there is."""
    if "://" not in text:
        return Path(text)
    parts = urlsplit(text)
    if parts.scheme == "file" and not parts.netloc and parts.path:
        return Path(unquote(parts.path))
    # Not repeated: an address may have a secret in it.
    if parts.scheme in {"http", "https"}:
        raise SettingsRejected(
            "an address of a server is not accepted as PATH; accepted: --viewer NODE=URL for another viewer, "
            "--agent URL for an agent"
        )
    raise SettingsRejected(
        "this address is not accepted as PATH; accepted: a folder, file:///FOLDER, or s3://, gs://, abfs:// of a store"
    )
