"""Elements of charts. They have classes and presentation attributes only: the content security policy allows no inline styles."""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup, escape


def rect(kind: str, x: float, y: float, width: float, height: float, title: str = "", *, round_by: int = 0) -> Markup:
    """A rectangle. `kind` is a class name of ours and not escaped: there may be thousands of rectangles on a page."""
    corners = f' rx="{round_by}"' if round_by else ""
    box = f'<rect class="{kind}" x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}"{corners}'
    return Markup(f"{box}><title>{escape(title)}</title></rect>" if title else f"{box}/>")  # noqa: S704


def line(kind: str, x1: float, y1: float, x2: float, y2: float) -> Markup:
    return Markup('<line class="{}" x1="{}" y1="{}" x2="{}" y2="{}"/>').format(kind, _n(x1), _n(y1), _n(x2), _n(y2))


def text(x: float, y: float, content: str, kind: str = "", anchor: str = "start") -> Markup:
    return Markup('<text class="{}" x="{}" y="{}" text-anchor="{}">{}</text>').format(
        kind, _n(x), _n(y), anchor, content
    )


def titled(title: str, parts: Markup) -> Markup:
    """A group with a tooltip; empty without parts."""
    return Markup("<g><title>{}</title>{}</g>").format(title, parts) if parts else parts


def join(parts: Iterable[Markup]) -> Markup:
    return Markup("").join(parts)


def svg(
    kind: str,
    width: float,
    height: float,
    label: str,
    parts: Iterable[Markup],
    *,
    stretch: bool = True,
    role: str = "img",
    shown_height: float | None = None,
) -> Markup:
    """The chart. `label` is its text alternative. With `stretch` it fills its box in both directions; `shown_height` in pixels."""
    return Markup('<svg class="{}" viewBox="0 0 {} {}"{}{} role="{}" aria-label="{}">{}</svg>').format(
        kind,
        _n(width),
        _n(height),
        Markup(' height="{}"').format(_n(shown_height)) if shown_height is not None else "",
        Markup(' preserveAspectRatio="none"') if stretch else "",
        role,
        label,
        join(parts),
    )


def _n(value: float) -> str:
    return f"{round(value, 1):g}"
