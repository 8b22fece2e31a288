"""All limits on images: what is downloaded, decoded, made and kept waiting."""

from __future__ import annotations

# Downloads
MAX_URL_BYTES = 2000
MAX_DOWNLOAD_BYTES = 30_000_000

# Decoding
MAX_PIXELS = 50_000_000
"""Maximum decoded pixels of all frames together; the same as imgproxy's. Also the maximum of a result."""
MAX_SOURCE_SIDE = 32_768
"""Longest side that is decoded: libvips holds many whole lines, so an image of one line would need 20 bytes a pixel. No shop has half
of it."""
ONE_AT_A_TIME_PIXELS = 12_000_000
"""Images from this size on are decoded one at a time, so that several of them do not fill the memory together."""

# Results
MAX_SIDE = 16_383
"""Longest side of a WebP (its specification: 14 bits)."""
MAX_REQUESTED_SIDE = 4000
MIN_BLUR, MAX_BLUR = 0.3, 1000.0
MAX_UNSIGNED_SOURCE_PIXELS = 8_000_000
"""Maximum pixels of the stored image for URLs that are neither signed nor presets: decoding takes about 0.3 s."""
MAX_UNSIGNED_RESULT_PIXELS = 1_000_000
"""Maximum pixels of the result, likewise: scaling and encoding takes about 0.3 s in the slowest format."""

# Requests
MAX_PENDING = 100
"""Results in progress or waiting; further requests are refused until there are fewer."""
MAX_UNSIGNED_PENDING = 20
"""Of these, results of URLs that are neither signed nor presets, so that images of our own pages wait behind few of them."""
