"""Platform adapters: how each platform serves menus, and how its items become canonical products.

A platform is a package with

- `payload`: the types of an item, as far as it is read, and the use of each of its fields (`FIELDS`);
- `normalize`: an item as a product; `products` has the rules that all platforms share, `items.ItemReader` reads and repairs items;
- `adapter`: a subclass of `base.Platform` that declares both and reads the platform's pages; with `menu_page`, `store_page` and
  `resolve` if the platform is requested, not only replayed. `paging`, `retry` and `store_records` serve all of them.

`registry` lists the adapters.
"""
