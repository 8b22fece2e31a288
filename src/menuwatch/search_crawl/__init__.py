"""Search crawls: jobs, their queue, deliveries, and the products found. `protocols` has the interfaces of sites and fetching services,
`rules` the decisions, `store` the rows.

    pending --submitted--> submitted --delivered--> completed
       ^                       |
       +-- retry, three times -+-- the fourth failure --> failed --retry by a user--> pending
"""
