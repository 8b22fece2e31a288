"""Dutchie: menus served by a GraphQL endpoint.

    adapter ─requests→ answers ─PageInfo→ paging ─next page or end→ Menu            (network half)
    answers.read → normalize (options, lab results, specials; repair for what does not fit)   (pure half)

`normalize` holds the table of rules; `paging` the table of what each page leads to.
"""
