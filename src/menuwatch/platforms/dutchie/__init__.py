"""Dutchie: menus served by a GraphQL endpoint.

    client ─asks→ page ─says what came→ paging ─decides what next→ Menu            (network half)
    page.split → normalize (options, stock, potency, specials, times, text; repair for what does not fit)   (pure half)

`normalize` holds the table of rules; `paging` the table of what each page leads to.
"""
