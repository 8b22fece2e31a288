"""Search crawls: jobs, their queue, what was delivered, and the products found. Migration 0023 has the tables; `base` has what sites
and fetching services are, `rules` when what happens, `store` the rows.

    pending --submitted--> submitted --delivered--> completed
       ^                       |
       +-- retry, three times -+-- the fourth failure --> failed --retry of a person--> pending
"""
