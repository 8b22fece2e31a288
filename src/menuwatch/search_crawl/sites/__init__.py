"""Shops with a keyword search: their URLs and page parsers. No I/O; `search_crawl.protocols.Site` has the interface."""
