"""What shoppers asked to be told of.

    asked ──(a mail is confirmed, a feed at once)──► watched ──► told, again and again ──► ended (the row is deleted)
      └──(not confirmed within two days)──► deleted

A watch is judged when a store that may have its item was taken onto the shelf, in that very transaction: what is found there is told
once, however often the mail is tried. A mail that was sent while we died is sent again.
"""
