"""Web push: messages to a browser that a shopper allowed to show them. Encrypted for the browser alone (RFC 8291), and signed with the
key of this installation (RFC 8292), which is made when it is first needed.
"""

from __future__ import annotations

import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec
from psycopg import AsyncConnection

from menuwatch.alerts import ssrf_guard
from menuwatch.core.encryption import SecretBox
from menuwatch.core.errors import Refused
from menuwatch.storefront.watches import store

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

KEPT_SECONDS = 2 * 86_400
"""How long a push service keeps a message for a browser that is not running."""
_SIGNED_FOR = timedelta(hours=12)
_RECORD_BYTES = 4_096
_JWT_HEADER = b'{"typ":"JWT","alg":"ES256"}'


class _Keys(msgspec.Struct, frozen=True):
    p256dh: str
    auth: str


class Subscription(msgspec.Struct, frozen=True):
    """What a browser gives to be notified (PushSubscription.toJSON): the address of its push service and its keys."""

    endpoint: str
    keys: _Keys

    @classmethod
    def parse(cls, text: str) -> Subscription:
        """Raises Refused for anything but a usable subscription."""
        try:
            found = msgspec.json.decode(text, type=cls)
            point, secret = _bytes(found.keys.p256dh), _bytes(found.keys.auth)
            _public(point)
        except (msgspec.MsgspecError, ValueError):
            raise Refused("The browser sent no usable subscription. Try again, or choose another way.") from None
        scheme, _, _ = ssrf_guard.check_url(found.endpoint)
        if scheme != "https" or len(secret) != 16 or len(found.endpoint) > 1_000:
            raise Refused("The browser’s push service is not usable. Choose another way.")
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Push:
    """A message ready to be posted to the endpoint."""

    url: str
    body: bytes
    headers: dict[str, str]


class PushKey:
    """The key pair of this installation."""

    def __init__(self, key: EllipticCurvePrivateKey) -> None:
        self._key = key

    @property
    def public(self) -> str:
        """What a browser subscribes with (`applicationServerKey`), in Base64 for URLs."""
        return _text(_point(self._key.public_key()))

    def push(self, to: Subscription, message: Any, *, now: datetime, contact: str | None) -> Push:
        """The message, as JSON of at most 3,993 bytes, for one browser. `contact` is a URL that a push service may complain at."""
        return Push(
            url=to.endpoint,
            body=_encrypt(msgspec.json.encode(message), _bytes(to.keys.p256dh), _bytes(to.keys.auth)),
            headers={
                "Authorization": f"vapid t={self._token(to.endpoint, now, contact)}, k={self.public}",
                "Content-Encoding": "aes128gcm",
                "Content-Type": "application/octet-stream",
                "TTL": str(KEPT_SECONDS),
            },
        )

    def _token(self, endpoint: str, now: datetime, contact: str | None) -> str:
        """A signed statement for the push service that the message is ours (JWT, ES256)."""
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec, utils

        parts = urlsplit(endpoint)
        claims = {"aud": f"{parts.scheme}://{parts.netloc}", "exp": int((now + _SIGNED_FOR).timestamp())}
        if contact is not None:
            claims["sub"] = contact
        content = f"{_text(_JWT_HEADER)}.{_text(msgspec.json.encode(claims))}"
        r, s = utils.decode_dss_signature(self._key.sign(content.encode(), ec.ECDSA(hashes.SHA256())))
        return f"{content}.{_text(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"


async def push_key(conn: AsyncConnection[Any], secret_box: SecretBox) -> PushKey:
    """The key of this installation, made if there is none. Raises DecryptionError."""
    from cryptography.hazmat.primitives.asymmetric import ec

    stored = await store.push_key(conn)
    if stored is None:
        made = ec.generate_private_key(ec.SECP256R1()).private_numbers().private_value
        encrypted = secret_box.encrypt(_text(made.to_bytes(32, "big")))
        assert encrypted is not None, "a key is not None"
        await store.put_push_key(conn, encrypted)
        stored = await store.push_key(conn)
    text = secret_box.decrypt(stored)
    assert text is not None, "it was just stored"
    return PushKey(ec.derive_private_key(int.from_bytes(_bytes(text), "big"), ec.SECP256R1()))


def _encrypt(content: bytes, point: bytes, secret: bytes) -> bytes:
    """RFC 8291: a key that only the browser can derive, and one record of aes128gcm (RFC 8188)."""
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    def derive(salt: bytes, key: bytes, info: bytes, length: int) -> bytes:
        return HKDF(algorithm=hashes.SHA256(), length=length, salt=salt, info=info).derive(key)

    own = ec.generate_private_key(ec.SECP256R1())
    sender = _point(own.public_key())
    shared = own.exchange(ec.ECDH(), _public(point))
    key = derive(secret, shared, b"WebPush: info\0" + point + sender, 32)
    salt = secrets.token_bytes(16)
    cipher = AESGCM(derive(salt, key, b"Content-Encoding: aes128gcm\0", 16))
    nonce = derive(salt, key, b"Content-Encoding: nonce\0", 12)
    header = salt + _RECORD_BYTES.to_bytes(4, "big") + len(sender).to_bytes(1, "big") + sender
    return header + cipher.encrypt(nonce, content + b"\x02", None)


def _public(point: bytes) -> Any:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)


def _point(key: Any) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return bytes(key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint))


def _text(content: bytes) -> str:
    return urlsafe_b64encode(content).rstrip(b"=").decode("ascii")


def _bytes(text: str) -> bytes:
    return urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
