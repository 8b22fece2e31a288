"""Price watches of shoppers, by mail or feed.

    created ──(a mail is confirmed, a feed at once)──► active ──► fires, again and again ──► deleted
       └──(not confirmed within two days)──► deleted

A watch is evaluated when a store that may have its item was indexed, in that transaction: each event is sent once, however often the
mail is tried. A mail whose sender died is sent again.
"""
