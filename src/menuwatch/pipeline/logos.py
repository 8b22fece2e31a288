"""Logos of brands, as menus name them: Dutchie's items hold the brand with its `imageUrl`. Others have none."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from menuwatch.imaging.files import slug


class _Brand(msgspec.Struct):
    name: str | None = None
    imageUrl: str | None = None  # noqa: N815 - the platform's name


class _Item(msgspec.Struct):
    brandName: str | None = None  # noqa: N815
    brand: _Brand | None = None


_decode = msgspec.json.Decoder(_Item).decode


def logos(items: Iterable[msgspec.Raw]) -> dict[str, str]:
    """Brand, as its folder is called → address of its logo; the first one that is named. What cannot be read names none."""
    found: dict[str, str] = {}
    for raw in items:
        try:
            item = _decode(raw)
        except (msgspec.DecodeError, RecursionError):
            continue
        brand = item.brand
        name = item.brandName or (brand.name if brand is not None else None)
        if brand is not None and brand.imageUrl and name and name.strip() and "\0" not in brand.imageUrl:
            found.setdefault(slug(name), brand.imageUrl)
    return found
