"""Tasks: `worker_tasks`, the queue that every kind of work goes through.

    pending ──claim──► claimed ──► running ──► completed | failed | cancelled
       ▲                  │           │
       └── retry, postpone, release, recovery

`pending` covers three live states: ready, scheduled (not due yet) and parked (due, but another task of the same role and store is
ready or active). The diagram of those and the invariants that hold under any concurrency are at the head of migration
0002_tasks.sql, which implements them; `store` calls it, and `cycle` for all that a worker's round trip does at once; `ending`
flattens a handler's outcome for it.

First in, first out holds among the due tasks of one priority. A task that backs off after a failure is not due, so it
does not hold up the ones behind it.
"""
