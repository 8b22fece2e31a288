"""Product and store identity: which listings are the same product, and which menus are of the same shop.

Names are parsed into signatures (`names`), and the signatures of a block are compared and grouped (`groups`): both are pure.
`engine` keeps the tables in step with the catalog.
"""
