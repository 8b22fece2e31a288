"""Rendered products, kept while they do not change, so that a page is a join of bytes that are there already."""

from __future__ import annotations

from collections import OrderedDict

from menuwatch.sim import menu_item, product
from menuwatch.sim.market import Market
from menuwatch.sim.model import Shelf, SimStore, below_threshold

_RENDER = {"dutchie": product.render, "weedmaps": menu_item.render}

_KEPT_BYTES = 256 * 1024 * 1024


class Menus:
    """The menu of each store at the tick last asked for, rendered. The stores not asked for longest are dropped first."""

    def __init__(self, market: Market) -> None:
        self.market = market
        self._rendered: OrderedDict[int, dict[str, tuple[Shelf, bytes]]] = OrderedDict()
        self._lists: dict[int, tuple[int, list[tuple[Shelf, bytes]]]] = {}
        self._bytes = 0

    def menu(self, store: SimStore, tick: int) -> list[tuple[Shelf, bytes]]:
        """Products in the order served, each with its bytes."""
        listed = self._lists.get(store.index)
        if listed is not None and listed[0] == tick:
            self._rendered.move_to_end(store.index)
            return listed[1]
        before = self._rendered.pop(store.index, {})
        self._bytes -= sum(len(body) for _, body in before.values())
        render = _RENDER[store.platform]
        rows = []
        for shelf in self.market.menu(store, tick):
            known = before.get(shelf.good.id)
            # Shelves that nothing moved are the same object from tick to tick.
            rows.append(known if known is not None and known[0] is shelf else (shelf, render(shelf, store)))
        self._rendered[store.index] = {shelf.good.id: (shelf, body) for shelf, body in rows}
        self._lists[store.index] = (tick, rows)
        self._bytes += sum(len(body) for _, body in rows)
        while self._bytes > _KEPT_BYTES and len(self._rendered) > 1:
            index, dropped = self._rendered.popitem(last=False)
            del self._lists[index]
            self._bytes -= sum(len(body) for _, body in dropped.values())
        return rows


def is_hidden(shelf: Shelf, store: SimStore) -> bool:
    """Whether a site that hides what is below the threshold would leave the product out: all of its options are."""
    below = below_threshold(shelf, store)
    return bool(below) and len(below) == len(shelf.good.options)
