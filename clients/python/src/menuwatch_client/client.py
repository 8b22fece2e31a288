"""The clients."""

from __future__ import annotations

from menuwatch_client.async_methods import AsyncMethods
from menuwatch_client.sync_methods import SyncMethods


class Client(SyncMethods):
    """The API of one server.

    with Client("https://menus.example.org", "mw_…") as client:
        for product in client.list_products(state=["NM"], category_canon=["flower"]):
            print(product.name, product.price)
    """


class AsyncClient(AsyncMethods):
    """The API of one server, for asyncio.

    async with AsyncClient("https://menus.example.org", "mw_…") as client:
        async for product in client.list_products(state=["NM"]):
            print(product.name, product.price)
    """
