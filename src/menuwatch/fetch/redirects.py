"""Where a request leads: redirects are followed to hosts that may be asked, and nowhere else. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import urljoin, urlsplit

from menuwatch.core.errors import Permanent
from menuwatch.core.http import Response
from menuwatch.fetch.transport import Method, with_params
from menuwatch.hosts.model import host_of

HOPS = 5
"""Redirects that are followed for one request."""


class Journey:
    """One request's way from address to address. `method`, `url`, `params` and `json` are what is to be asked next."""

    def __init__(
        self, method: Method, url: str, *, params: Mapping[str, str] | None, json: Any | None, hosts: Collection[str]
    ) -> None:
        """`hosts` are those that it may lead to, besides its own."""
        self.method: Method = method
        self.url = url
        self.params = params
        self.json = json
        self._origin = host_of(url)
        self._allowed = {self._origin, *hosts}
        self._hops = 0

    @property
    def address(self) -> str:
        """What is to be asked next, with its parameters."""
        return with_params(self.url, self.params)

    def leads_on(self, answer: Response) -> bool:
        """Whether the answer sends on to another address, which is then the next. Raises Permanent where it may not be followed."""
        target = _target(answer)
        if target is None:
            return False
        self._check(answer.url, target)
        if answer.status == 303 or (answer.status in (301, 302) and self.method == "POST"):
            self.method, self.json = "GET", None
        self.url, self.params = target, None
        self._hops += 1
        if self._hops > HOPS:
            raise Permanent(f"{self._origin} redirects more than {HOPS} times in a row, at last to {target}")
        return True

    def _check(self, source: str, target: str) -> None:
        """Raises Permanent for a redirect that leads where nobody was sent to."""
        parts = urlsplit(target)
        if parts.scheme not in ("http", "https") or (parts.scheme == "http" and source.startswith("https:")):
            raise Permanent(
                f"{host_of(source)} redirects to {parts.scheme}: only https, or http from http, is followed"
            )
        if host_of(target) not in self._allowed:
            allowed = ", ".join(sorted(self._allowed))
            raise Permanent(f"{host_of(source)} redirects to {host_of(target)}, which may not be asked: only {allowed}")
        if parts.username is not None:
            raise Permanent(f"{host_of(source)} redirects to {host_of(target)} with a login, which is not followed")


def _target(answer: Response) -> str | None:
    """Where an answer sends on to, None where it does not. Raises Permanent for what is no address."""
    location = answer.headers.get("location")
    if answer.status not in (301, 302, 303, 307, 308) or not location:
        return None
    try:
        target = urljoin(answer.url, location)
        urlsplit(target)
    except ValueError as error:
        raise Permanent(f"{host_of(answer.url)} redirects to an address that is none: {location[:200]!r}") from error
    return target
