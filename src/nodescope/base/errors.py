"""
Everything this package raises on purpose:

* NodescopeError
  + SourceAbsent        this node does not offer the data; not a fault
  + SourceFailed        the data should be there and could not be had
    - ParseError        the bytes were read and were not what we know
  + SettingsRejected    names the key, the value, and what is accepted
  + RequestRejected     a question that cannot be answered as asked
    - NothingYet        asked before the first sample
  + HttpFailed          a server gave no answer, or another than was needed
  + KubernetesAway      the API server cannot be reached, or says: later
  + KubernetesRefused   the API server says no
  + ArchiveBusy         another agent writes to the data folder
  + ArchiveRefused      the file is not one of ours, or newer than us
    - ArchiveTruncated  ours, but its end is missing
    - ArchiveDamaged    ours, but its bytes are not those that were written
"""


class NodescopeError(Exception):
    """The root of the tree; its text is one line a person can act on."""


class SourceAbsent(NodescopeError):
    """This node does not offer the data; not a fault."""


class SourceFailed(NodescopeError):
    """The data should be there and could not be had."""


class ParseError(SourceFailed):
    """The bytes were read and were not what we know."""


class SettingsRejected(NodescopeError):
    """A key or value that we do not know; says what is accepted."""


class RequestRejected(NodescopeError):
    """A question that cannot be answered as asked; says what is accepted."""

    status = 400
    """With which an HTTP server refuses it, under this title and with this hint."""
    title = "not accepted"
    hint = ""


class NothingYet(RequestRejected):
    """Asked before the first sample was taken."""

    status, title, hint = 503, "nothing yet", "ask again in a second"


class HttpFailed(NodescopeError):
    """A server gave no answer that can be used."""

    def __init__(self, address: str, reason: str, status: int = 0, *, timed_out: bool = False) -> None:
        super().__init__(f"{address}: {reason}")
        self.address = address
        self.reason = reason
        self.status = status
        """Of the answer; 0 where there is none."""
        self.timed_out = timed_out


class KubernetesAway(NodescopeError):
    """The API server cannot be reached, or is too busy; try again later."""

    def __init__(self, sentence: str, retry_after_seconds: float | None = None) -> None:
        super().__init__(sentence)
        self.retry_after_seconds = retry_after_seconds


class KubernetesRefused(NodescopeError):
    """The API server says no: asking again the same way will not help."""

    def __init__(self, sentence: str, status: int) -> None:
        super().__init__(sentence)
        self.status = status


class ArchiveBusy(NodescopeError):
    """Another agent writes to the data folder; says which."""


class ArchiveRefused(NodescopeError):
    """The file is not one of ours, or it is newer than us."""


class ArchiveTruncated(ArchiveRefused):
    """Ours, but its end is missing."""

    def __init__(self, sentence: str, offset: int = 0) -> None:
        super().__init__(sentence)
        self.offset = offset
        """Where the first record begins that is not whole, in a stream of records."""


class ArchiveDamaged(ArchiveRefused):
    """Ours, but its bytes are not those that were written."""
