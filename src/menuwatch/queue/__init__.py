"""Tasks: `worker_tasks`, the queue for every kind of work.

    pending ──claim──► claimed ──► running ──► completed | failed | cancelled
       ▲                  │           │
       └── retry, postpone, release, recovery

`pending` covers three live states: ready, scheduled (not due yet) and parked (due, but another task of the same role and store is
ready or active). The head of the schema's 06_tasks.sql has the diagram of these states and the invariants that
hold under any concurrency; the files up to 11 implement them. `store` calls its functions; `cycle` combines all that a worker does in
one round trip; `ending` flattens a handler's outcome for them.

First in, first out applies among the due tasks of one priority. A task that backs off after a failure is not due, so it
does not hold up the ones behind it.
"""
