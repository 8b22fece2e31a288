"""Pages from templates: escaped by default, a missing name an error, every address below the prefix."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import CodeType
from typing import Any

import msgspec
from jinja2 import BytecodeCache, Environment, FileSystemLoader, StrictUndefined, pass_context
from jinja2.bccache import Bucket
from jinja2.runtime import Context
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse

from menuwatch.core import format as text_format
from menuwatch.geo import units
from menuwatch.web.assets import HERE, Assets

FRAGMENT = "X-Fragment"
"""Request header of a page that reloads its content: the response is the content without the frame."""


def _url(root: str) -> Callable[[str], str]:
    def address(path: str = "/") -> str:
        return root + path

    return address


@pass_context
def _time_tag(context: Context, value: datetime | None) -> Markup:
    """A `<time>` with the age, and the full time on hover or focus; times.js keeps the text current."""
    if value is None:
        return Markup('<span class="none">never</span>')
    return Markup('<time datetime="{}" title="{}" data-ago>{}</time>').format(
        value.astimezone(UTC).isoformat(timespec="seconds"),
        text_format.timestamp(value),
        text_format.ago(value, context["now"]),
    )


def stamp_tag(value: datetime | None) -> Markup:
    """A `<time>` with the full time; times.js shows it in the zone that the user chose."""
    if value is None:
        return Markup('<span class="none">never</span>')
    return Markup('<time datetime="{}" data-time="stamp">{}</time>').format(
        value.astimezone(UTC).isoformat(timespec="seconds"), text_format.timestamp(value)
    )


@pass_context
def _ago(context: Context, value: datetime | None) -> str:
    return text_format.ago(value, context["now"])


def _code_spans(text: str) -> Markup:
    """Text in which what stands between backticks is code, as messages for the command line have it."""
    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(Markup.escape(text))))  # noqa: S704 - escaped before


def _script_json(value: Any) -> Markup:
    """JSON that may stand inside a `<script type="application/json">`: nothing in it can end the element."""
    text = json.dumps(value, default=str, ensure_ascii=False, separators=(",", ":"))
    for char, escape in (
        ("<", "\\u003c"),
        (">", "\\u003e"),
        ("&", "\\u0026"),
        ("\u2028", "\\u2028"),
        ("\u2029", "\\u2029"),
    ):
        text = text.replace(char, escape)
    return Markup(text)  # noqa: S704  # every character that could end the element is escaped just above


class _Compiled(BytecodeCache):
    """Code of templates, shared by all `Pages` of a process: compiling a page takes longer than rendering it."""

    def __init__(self) -> None:
        self._code: dict[tuple[str, str], CodeType] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        bucket.code = self._code.get((bucket.key, bucket.checksum))

    def dump_bytecode(self, bucket: Bucket) -> None:
        if bucket.code is not None:
            self._code[bucket.key, bucket.checksum] = bucket.code


_COMPILED = _Compiled()


class Pages:
    """The templates of one face."""

    def __init__(
        self,
        folders: Sequence[Path],
        assets: Assets,
        *,
        filters: Mapping[str, Callable[..., Any]] | None = None,
        **more: Any,
    ) -> None:
        """`folders` of templates, in order of precedence; the shared ones (web/templates) come last. `filters` take precedence
        over the shared ones; `more`: globals of every template."""
        self.assets = assets
        self._env = Environment(
            loader=FileSystemLoader([*folders, HERE / "templates"]),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
            bytecode_cache=_COMPILED,
        )
        self._env.globals.update(pluralize=text_format.pluralize, **more)
        self._env.filters.update(
            number=text_format.number,
            money=text_format.money,
            currency=units.currency,
            distance=units.distance_of_miles,
            percent=text_format.percent,
            size=text_format.size,
            timestamp=text_format.timestamp,
            stamp=stamp_tag,
            duration=text_format.duration,
            approx_duration=text_format.approx_duration,
            age=text_format.age,
            time_tag=_time_tag,
            ago=_ago,
            script_json=_script_json,
            plain_json=lambda value: msgspec.json.encode(value).decode(),
            code_spans=_code_spans,
        )
        self._env.filters.update(filters or {})

    def render(
        self,
        request: Request,
        template: str,
        context: Mapping[str, Any] | None = None,
        *,
        status: int = 200,
        **headers: str,
    ) -> HTMLResponse:
        """The page. Templates have `request`, `url(path)` for addresses of this face, `home(path)` for those of the whole server,
        `asset(name)`, `now`, `fragment` (only the content is wanted) and the context."""
        root: str = request.scope.get("root_path", "")
        prefix: str = request.scope.get("prefix", "")
        given = {
            "request": request,
            "url": _url(root),
            "home": _url(prefix),
            "asset": lambda name: root + self.assets.path(name),
            "now": datetime.now(UTC),
            "fragment": FRAGMENT in request.headers,
            **(context or {}),
        }
        body = self._env.get_template(template).render(given)
        # A page and its content have one address: a cache must not give one for the other.
        return HTMLResponse(
            body, status_code=status, headers={"Vary": FRAGMENT, "Cache-Control": "private, no-store", **headers}
        )
