"""Which picture is whose: who wants one, where from, what came of it. The files themselves are `imaging`'s."""
