"""How a command finds its server: the address, the workflow there, the token and the certificates to trust."""

import os
import re
from typing import NamedTuple

from eligo.client.owner import Owner, split_address
from eligo.errors import InputError

SERVER = ("http://", "https://")
URL = "ELIGO_URL"
ID = re.compile(r"w-[0-9a-f]+")


def is_on_server(text: str | None) -> bool:
    """Whether this names a server, or a workflow there; an id does so where ELIGO_URL names the server.

    >>> is_on_server("http://127.0.0.1:8750/w-1a"), is_on_server("mosaic.run"), is_on_server(None)
    (True, False, False)
    """
    if text is None or text.startswith(SERVER):
        return text is not None
    return bool(ID.fullmatch(text) and os.environ.get(URL)) and not os.path.exists(text)


def full_address(text: str | None) -> str:
    """The address that is meant by URL, URL/ID, ID or nothing: ELIGO_URL says what is left out."""
    if text is not None and text.startswith(SERVER):
        return text
    if text is not None and ID.fullmatch(text) is None:
        raise InputError(
            f"{text!r} is neither a server's URL (http://... or https://...) nor the id of a workflow;"
            " the URL comes before FILE"
        )
    server = os.environ.get(URL)
    if not server:
        raise InputError(f"unknown server: give its URL{'/' + text if text else ''}, or set {URL}")
    server = split_address(server)[0]
    return server if text is None else f"{server}/{text}"


def usual_place(text: str | None) -> str | None:
    """What RUN names, where nothing is given the server of ELIGO_URL; None where there is none."""
    return text if text is not None else os.environ.get(URL) or None


class ServerDoor(NamedTuple):
    """The way to a server."""

    url: str
    token: str | None = None
    ca: str | None = None

    def owner(self) -> Owner:
        """Somebody who can call it."""
        return Owner(self.server, self.token, self.ca)

    @property
    def server(self) -> str:
        """The address of the server itself."""
        return split_address(self.url)[0]

    @property
    def workflow(self) -> str:
        """The workflow that the address names."""
        workflow = split_address(self.url)[1]
        if workflow is None:
            raise InputError(f"missing workflow id: give {self.url.rstrip('/')}/ID")
        return workflow
