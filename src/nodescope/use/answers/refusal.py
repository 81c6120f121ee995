"""Questions that are not answered: what was wrong, what is accepted, and the HTTP status a server gives it."""

from functools import partial

from nodescope.base.errors import RequestRejected


class Refused(RequestRejected):
    """A question that is not answered, in the words of the answer."""

    def __init__(self, status: int, error: str, detail: str, hint: str = "") -> None:
        super().__init__(detail)
        self.status = status
        self.error = error
        self.hint = hint


bad_request = partial(Refused, 400, "not accepted")
not_found = partial(Refused, 404, "not found")
too_much = partial(Refused, 413, "too much")
nothing_yet = partial(Refused, 503, "nothing yet")
