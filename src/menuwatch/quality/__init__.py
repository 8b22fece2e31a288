"""Data quality monitors: whether a menu says as much, and the same kind of things, as its store's menus usually do.

- `measures`: what is measured of each menu, and how much a measure may move (pure).
- `bands`: what is usual for a store, learned from its own past and that of its platform (pure).
- `attribution`: whether findings that appear together are of a store, a chain, a platform, or of a release of ours (pure).
- `check`: measures new menus, compares them with their bands and keeps the findings.
- `audit`: traces a sample of values back to the bytes of their payload.
- `score`: the quality score of a store (pure).
- `service`: reads findings, stores and rules.
"""
