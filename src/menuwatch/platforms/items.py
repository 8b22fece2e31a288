"""Reads items one by one, as an adapter declares their types. Pure: a bad item causes a warning and does not affect others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from menuwatch.catalog.model import Product, ProductWarning
from menuwatch.catalog.taxonomy.limits import MAX_ID_LENGTH, shorten_id
from menuwatch.platforms.json_repair import JsonRepairer, has_unusable_text, read_leniently, storable
from menuwatch.platforms.model import Normalized
from menuwatch.platforms.plausibility import plausible

MAX_ITEM_BYTES = 500_000
"""Maximum bytes of an item, whose decoded form can be many times larger. Real ones have some 20,000 at most."""


class Identified(Protocol):
    """A Struct of the fields of an item that identify its product."""

    def product_id(self) -> str | None:
        """The product id, None without a usable one. The fields may have any type, because of leniently parsed items."""
        ...


class Owned(Protocol):
    """A Struct of the field of an item that names its store."""

    def store_id(self) -> str | None:
        """The platform's id of the store, None without one."""
        ...


T = TypeVar("T", bound=msgspec.Struct)
I = TypeVar("I", bound=Identified)  # noqa: E741


class UnusableItem(Exception):
    """The item cannot be a product: (field, what is wrong)."""


def oversized(raw: msgspec.Raw) -> bool:
    """Whether an item or a store record is too large to decode."""
    return memoryview(raw).nbytes > MAX_ITEM_BYTES


def usable_id(product_id: str | None) -> str:
    """The id; raises UnusableItem if it is missing or too long."""
    if not product_id:
        raise UnusableItem("id", "is missing")
    if len(product_id) > MAX_ID_LENGTH:
        raise UnusableItem("id", f"has {len(product_id):,} characters, more than {MAX_ID_LENGTH}")
    return product_id


class ItemReader(Generic[T]):
    """Reads the items of one platform.

    `item` is their type and `ids` that of the fields that identify them. `product` makes a product of an item and appends warnings;
    it may raise UnusableItem, ArithmeticError and RecursionError for its one item. `essential` and `judged` are those of
    `JsonRepairer`, `store_id` gives the platform's id of an item's store; `owner` may be the type of that field alone,
    which is faster.
    """

    def __init__(
        self,
        item: type[T],
        ids: type[I],
        product: Callable[[T, list[ProductWarning]], Product],
        *,
        essential: Iterable[str],
        judged: Iterable[str],
        store_id: Callable[[T], str | None] | None = None,
        owner: type[Owned] | None = None,
    ) -> None:
        def product_id_in(plain: dict[str, Any]) -> str | None:
            """The product id of a leniently parsed item."""
            return ids(**{name: storable(plain.get(key)) for name, key in id_fields}).product_id()

        id_fields = tuple(zip(ids.__struct_fields__, ids.__struct_encode_fields__, strict=True))  # type: ignore[attr-defined]
        self._decoder = msgspec.json.Decoder(item)
        self._ids = msgspec.json.Decoder(ids)
        self._product = product
        self._product_id_in = product_id_in
        self._repairer = JsonRepairer(item, essential=essential, judged=judged, identity=product_id_in)
        self.store_id: Callable[[T], str | None] = store_id or (lambda _: None)
        self._names_stores = store_id is not None
        self._owner = msgspec.json.Decoder(owner) if owner is not None else None

    def decode(self, raw: msgspec.Raw) -> T | None:
        """The item, None if it does not fit its types or is too large."""
        if oversized(raw):
            return None
        try:
            return self._decoder.decode(raw)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None

    def identity(self, raw: msgspec.Raw) -> str | None:
        """The product id of a raw item, None without a readable one."""
        try:
            return self._ids.decode(raw).product_id()
        except (msgspec.MsgspecError, UnicodeDecodeError):
            pass
        except RecursionError:
            return None
        if oversized(raw):
            return None
        try:
            plain = read_leniently(bytes(raw))
            return self._product_id_in(plain) if isinstance(plain, dict) else None
        except (ValueError, RecursionError):
            return None

    def store_of(self, items: Iterable[msgspec.Raw]) -> str | None:
        """The store of the first item that names one."""
        for raw in items:
            item = self.decode(raw)
            if item is not None and (store := self.store_id(item)):
                return store
        return None

    def stores_of(self, items: Iterable[msgspec.Raw]) -> dict[str, int]:
        """The stores that the items name, in order of first occurrence, each with the number of its items."""
        found: dict[str, int] = {}
        if not self._names_stores:
            return found
        for raw in items:
            if store := self._store_id(raw):
                found[store] = found.get(store, 0) + 1
        return found

    def _store_id(self, raw: msgspec.Raw) -> str | None:
        if self._owner is None:
            item = self.decode(raw)
            return self.store_id(item) if item is not None else None
        try:
            return self._owner.decode(raw).store_id()
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None

    def normalize(self, items: Iterable[msgspec.Raw]) -> Normalized:
        """Products in the order of their items; of several items with one id the last wins and takes the position of the first."""
        products: dict[str, Product] = {}
        warnings: list[ProductWarning] = []
        for raw in items:
            known = len(warnings)
            try:
                product = self._read(raw, warnings)
            except (UnusableItem, ArithmeticError, RecursionError) as error:
                # Its other warnings are irrelevant then.
                del warnings[known:]
                if isinstance(error, UnusableItem):
                    field, message = error.args
                elif isinstance(error, RecursionError):
                    field, message = "", "is nested too deeply to be read"
                else:
                    field, message = "", f"contains numbers that are out of range: {type(error).__name__}"
                warnings.append(ProductWarning(shorten_id(self.identity(raw)), field, message, fatal=True))
            else:
                if product is not None:
                    products[product.provider_product_id] = plausible(product, warnings)
        return Normalized(products=tuple(products.values()), warnings=tuple(warnings))

    def _read(self, raw: msgspec.Raw, warnings: list[ProductWarning]) -> Product | None:
        """An item that does not fit its types, has NUL in a text (PostgreSQL refuses it, failing the whole menu) or a number out of
        bounds is repaired first; it gives no product if nothing usable is left, and a warning why.
        """
        known = len(warnings)
        if oversized(raw):
            raise UnusableItem("", f"has more than {MAX_ITEM_BYTES:,} bytes")
        try:
            item = self._decoder.decode(raw)
            if not has_unusable_text(bytes(raw)):
                return self._product(item, warnings)
        except (msgspec.MsgspecError, UnicodeDecodeError, ArithmeticError):
            del warnings[known:]  # the repaired item repeats them
        repaired, faults = self._repairer.repair(bytes(raw))
        warnings.extend(faults)
        if repaired is None:
            return None
        product = self._product(repaired, warnings)
        if product.provider_product_id != self.identity(raw):
            # A repaired number (1.25e16) may be another text than the item's: menus are compared by `identity`.
            raise UnusableItem("id", "is neither a whole number nor a text")
        return product
