"""Tags of proxies: labels that operators set, such as a provider or a pool."""

from __future__ import annotations

import re
from collections.abc import Iterable

from menuwatch.core.errors import InvalidField
from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.db.query import fetch_all

_q = sql.load(__package__)

MOST_TAGS = 10
_TAG = re.compile(r"[a-z0-9][a-z0-9._:-]{0,39}")


def parse_tag(text: str) -> str:
    """The tag in normal form, lower case; raises InvalidField for the field `tag`."""
    tag = text.strip().lower()
    if not _TAG.fullmatch(tag):
        raise InvalidField(
            "tag", f"invalid tag {text[:60]!r}: use up to 40 letters, digits, '.', '_', ':' or '-', e.g. provider-a"
        )
    return tag


def parse_tags(texts: Iterable[str]) -> list[str]:
    """The tags in normal form, sorted; raises InvalidField for the field `tags`."""
    try:
        tags = sorted({parse_tag(text) for text in texts})
    except InvalidField as error:
        raise InvalidField("tags", str(error)) from None
    if len(tags) > MOST_TAGS:
        raise InvalidField("tags", f"{len(tags)} tags: a proxy has at most {MOST_TAGS}")
    return tags


def split_tags(text: str) -> list[str]:
    """The words of a text field, separated by commas or spaces."""
    return text.replace(",", " ").split()


async def count_tags(conn: Connection) -> dict[str, int]:
    """Number of proxies with each tag, by tag."""
    return {row["tag"]: row["proxies"] for row in await fetch_all(conn, _q.count_tags, {})}
