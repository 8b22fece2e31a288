"""Images: which product or brand uses which, downloading them, and serving them resized.

    downloaded bytes ─ sniff ─ header ─ decode ─→ original (WebP, full resolution) ─→ a file below storage/images
    GET /img/… ─ path ─ parameters ─ (cache) ─ decode ─ resize ─ encode ─→ a response

Bytes are decoded only if their type is one of five and their header declares an acceptable number of pixels.
"""
