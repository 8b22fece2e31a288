"""Pictures as bytes and files: what may be decoded, how it is stored, what is made of it for whoever asks.

    downloaded bytes ─ sniff ─ header ─ decode ─→ master (webp, full resolution) ─→ a file below storage/images
    GET /img/… ─ path ─ parameters ─ (cache) ─ decode ─ resize ─ encode ─→ an answer

Nobody's bytes are decoded before their kind is one of five, and before their header says that they are not too many pixels.
"""
