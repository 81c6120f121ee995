"""Folders as people name them: a path, or the file:// address that copies are sent to."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from nodescope.base.errors import SettingsRejected

STORES = ("s3", "gs", "abfs", "abfss")


def find_folder(text: str) -> Path:
    """The path that is meant; addresses that are no folder are refused, with the way that there is."""
    if "://" not in text:
        return Path(text)
    parts = urlsplit(text)
    if parts.scheme == "file" and not parts.netloc and parts.path:
        return Path(unquote(parts.path))
    # Not repeated: an address may have a secret in it.
    if parts.scheme in STORES:
        raise SettingsRejected(
            f"addresses with {parts.scheme}:// are not accepted: the page reads folders; copy the days that you want to "
            "a folder (dt=... as they are) or mount the store, and name that; nodescope fleet asks a store itself"
        )
    if parts.scheme in {"http", "https"}:
        raise SettingsRejected(
            "an address of a server is not accepted as PATH; accepted: --viewer NODE=URL for another viewer, "
            "--agent URL for an agent"
        )
    raise SettingsRejected("an address is not accepted as PATH; accepted: a folder, or file:///FOLDER")
