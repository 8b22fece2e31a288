"""Platforms that the simulator serves besides Dutchie: a module or package each, with a `PLATFORM`
(`menuwatch.sim.platform`), found by its name."""
