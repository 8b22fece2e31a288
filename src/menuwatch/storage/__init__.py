"""Where payloads, images and packed history are kept: a local folder or an S3-compatible object store, under the same paths."""
