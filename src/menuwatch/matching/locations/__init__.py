"""Store identity: which menus and which licences are of the same shop at the same place.

`address` and `names` read what menus and registers write, `compare` weighs two records, `link` makes groups of them: all pure.
`engine` keeps the tables in step, `registers` imports licence registers, `service` has the lists and what people decide.
"""
