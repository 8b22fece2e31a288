"""The engine: runs tasks. It knows handlers only by their protocol, and writes what they return.

    Worker ── Listener ──wakes──► Producer ──claims──► Executor ── handler ──► Outcome ──► Settler ──► one transaction
          ├── Heartbeat: this worker lives; what it has lost is cancelled          (fence, writes, state, follow-ups)
          ├── Reaper: takes back what silent workers left; keeps the queue's partitions
          └── Waker: tells other workers of follow-ups, outside the hot transactions

An attempt: claimed ──► handler runs ──► settling ──► settled
                           │                 └── the claim was lost: nothing is written
                           ├── lost (cancelled, declared stale): the handler is cancelled, nothing is written
                           └── stop: after the grace time the handler is cancelled and the task goes back to pending

Every loop is a `Loop`: one class, one file, one `step()`.
"""
