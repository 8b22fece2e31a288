"""Signatures of webhooks: the values were computed with `openssl dgst -sha256 -mac HMAC`."""

from __future__ import annotations

import pytest

from menuwatch.alerts.webhook import sign, signing_key
from menuwatch.core.errors import Refused

MESSAGE_ID, TIMESTAMP, BODY = "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}'


@pytest.mark.parametrize(
    ("secret", "signature"),
    [
        # The first one is also the example that the libraries of the specification are tested with.
        ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="),
        ("a raw secret of my own", "v1,j95vzzVWO8ktt9+Qvk9G8YTg0xGX8i+T4k8JwZV8nRA="),
    ],
)
def test_signature_is_as_openssl_computes_it(secret: str, signature: str) -> None:
    assert sign(signing_key(secret), MESSAGE_ID, TIMESTAMP, BODY) == signature


@pytest.mark.parametrize(
    ("secret", "reason"),
    [
        ("", "at least 16"),
        ("short", "at least 16"),
        ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLa$w", "Base64"),
        ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS", "Base64"),
        ("whsec_TWVudXdhdGNo", "at least 16"),
    ],
)
def test_unusable_secret_is_refused(secret: str, reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        signing_key(secret)
