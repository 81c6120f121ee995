"""Questions that are not answered: what was wrong, what is accepted, and the HTTP status a server gives it."""

from nodescope.base.errors import RequestRejected


class Refused(RequestRejected):
    """A question that is not answered, in the words of the answer."""

    def __init__(self, status: int, error: str, detail: str, hint: str = "") -> None:
        super().__init__(detail)
        self.status = status
        self.error = error
        self.hint = hint


def bad_request(detail: str, hint: str = "") -> Refused:
    return Refused(400, "not accepted", detail, hint)


def not_found(detail: str, hint: str = "") -> Refused:
    return Refused(404, "not found", detail, hint)


def too_much(detail: str, hint: str = "") -> Refused:
    return Refused(413, "too much", detail, hint)


def nothing_yet(detail: str, hint: str = "") -> Refused:
    return Refused(503, "nothing yet", detail, hint)
