"""The engine: runs tasks. It knows handlers only by their protocol, and writes what they return.

    Worker ── Listener ──wakes──► Producer ──claims──► Executor ── handler ──► Outcome ─┬─► JobCompleter ──► one transaction
          │                          ▲                                                  │     (fence, writes, state, follow-ups)
          │                          └── PendingCompletions ◄── done, no writes of its own
          │                              (written with others, in the round trip of the next claim)
          ├── ClaimGate: closed by an operator (CommandLoop) or by an overloaded machine (ResourceMonitor)
          ├── HeartbeatLoop: this worker lives; attempts that it has lost are cancelled
          ├── RunningMarker: marks attempts that take longer as running
          ├── Reaper: recovers stale tasks; keeps the queue's partitions; raises the priority of old tasks
          └── Notifier: notifies other workers of follow-ups, outside the hot transactions

An attempt: claimed ──► handler runs ──► completing ──► completed
                           │                 └── the claim was lost: nothing is written
                           ├── lost (cancelled, declared stale): the handler is cancelled, nothing is written
                           └── stop: after the grace time the handler is cancelled and the task goes back to pending

Every loop is a `Loop`: one class, one `step()`.
"""
