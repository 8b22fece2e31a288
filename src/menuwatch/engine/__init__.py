"""The engine: runs tasks. It knows handlers only by their protocol, and writes what they return.

    Worker ── Listener ──wakes──► Producer ──claims──► Executor ── handler ──► Outcome ─┬─► Settler ──► one transaction
          │                          ▲                                                  │      (fence, writes, state, follow-ups)
          │                          └── Outbox ◄── worked, and wrote nothing itself ───┘
          │                              (ends with others, in the round trip of the next claim)
          ├── Gate: may it claim now? closed by an operator (Commands) or by the machine (Watch)
          ├── Heartbeat: this worker lives; what it has lost is cancelled
          ├── Marker: shows what takes longer as running
          ├── Reaper: takes back what silent workers left; keeps the queue's partitions; lets old work rise
          └── Waker: tells other workers of follow-ups, outside the hot transactions

An attempt: claimed ──► handler runs ──► settling ──► settled
                           │                 └── the claim was lost: nothing is written
                           ├── lost (cancelled, declared stale): the handler is cancelled, nothing is written
                           └── stop: after the grace time the handler is cancelled and the task goes back to pending

Every loop is a `Loop`: one class, one file, one `step()`.
"""
