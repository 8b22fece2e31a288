"""Passwords at rest."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from dataclasses import replace

import pytest
from cryptography.fernet import Fernet
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from menuwatch.config.settings import Settings
from menuwatch.core.encryption import DecryptionError, SecretBox, is_encrypted, new_key
from menuwatch.core.errors import Refused
from menuwatch.proxies.model import untried
from menuwatch.proxies.parse import parse_line
from menuwatch.proxies.passwords import decrypt_password_or_drop

OLD, NEW = new_key(), new_key()


def test_what_is_sealed_is_opened_by_any_library_that_has_the_key() -> None:
    sealed = SecretBox([OLD]).encrypt("S3cret")
    assert sealed is not None
    assert is_encrypted(sealed)
    assert "S3cret" not in sealed
    assert Fernet(OLD).decrypt(sealed.removeprefix("fernet:")) == b"S3cret"
    assert SecretBox([OLD]).encrypt("S3cret") != sealed, "the same password never looks the same"


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=80), st.sampled_from([(), (OLD,), (NEW, OLD)]))
def test_every_password_comes_back(password: str, keys: tuple[str, ...]) -> None:
    secret_box = SecretBox(keys)
    assert secret_box.decrypt(secret_box.encrypt(password)) == password


@pytest.mark.parametrize("password", ["fernet:abc", "clear:abc", "clear:fernet:x", "fernet:"])
def test_a_password_that_looks_like_a_mark_is_taken_for_what_it_is(password: str) -> None:
    for secret_box in (SecretBox(), SecretBox([OLD])):
        assert secret_box.decrypt(secret_box.encrypt(password)) == password
    assert not is_encrypted(SecretBox().encrypt(password))


def test_no_password_stays_none() -> None:
    assert SecretBox([OLD]).encrypt(None) is None
    assert SecretBox([OLD]).decrypt(None) is None
    assert SecretBox([OLD]).is_current(None)


def test_keys_are_changed_by_putting_the_new_one_in_front() -> None:
    old, both, new = SecretBox([OLD]), SecretBox([NEW, OLD]), SecretBox([NEW])
    sealed = old.encrypt("S3cret")
    assert both.decrypt(sealed) == "S3cret"
    assert old.is_current(sealed)
    assert not both.is_current(sealed)
    assert both.is_current(both.encrypt("S3cret"))
    assert not both.is_current("S3cret")
    assert new.decrypt(both.encrypt("S3cret")) == "S3cret"


def test_without_the_key_the_variable_is_named_and_nothing_shown() -> None:
    sealed = SecretBox([OLD]).encrypt("S3cret")
    with pytest.raises(DecryptionError, match="SECRET_KEY is not set"):
        SecretBox().decrypt(sealed)
    with pytest.raises(DecryptionError, match="no key in SECRET_KEY decrypts it") as caught:
        SecretBox([NEW]).decrypt(sealed)
    assert NEW not in f"{caught.value!r} {SecretBox([NEW])!r}"
    with pytest.raises(DecryptionError):
        SecretBox([NEW]).decrypt("fernet:not even a token")
    with pytest.raises(DecryptionError):
        SecretBox([NEW]).decrypt("fernet:ü")


def test_who_is_at_work_goes_on_without_a_password_that_cannot_be_opened() -> None:
    proxy = replace(untried(parse_line("me:x@203.0.113.7:80")), password=SecretBox([OLD]).encrypt("S3cret"))
    assert decrypt_password_or_drop(SecretBox([NEW, OLD]), proxy).password == "S3cret"
    with capture_logs() as logs:
        assert decrypt_password_or_drop(SecretBox([NEW]), proxy).password is None
    assert [line["action"] for line in logs] == ["proxy_password_locked"]
    assert "S3cret" not in str(logs)


def _weak(raw: bytes) -> str:
    return urlsafe_b64encode(raw).decode()


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("hunter2", "it is not a key (32 random bytes"),
        (_weak(b"x" * 31), "it is not a key"),
        (f"{NEW},hunter2", "key 2 of 2 is not a key"),
        (NEW[:-2], "it is not a key"),
        (_weak(b"\0" * 32), "too easy to guess"),
        (_weak(b"abcdabcd" * 4), "too easy to guess"),
        ("ключ" * 11, "it is not a key"),
    ],
    # Keys are drawn anew in each process; the names of the tests must not be.
    ids=["a word", "31 bytes", "a word behind a key", "cut off", "all zero", "a pattern", "no ASCII"],
)
def test_a_weak_key_is_refused_with_the_command_that_makes_one(value: str, says: str) -> None:
    with pytest.raises(Refused, match="invalid SECRET_KEY") as caught:
        Settings.from_env({"SECRET_KEY": value})
    assert says in str(caught.value)
    assert "menuwatch proxies key" in str(caught.value)
    assert value not in str(caught.value)
    assert caught.value.__cause__ is None


def test_keys_are_read_from_the_settings_and_shown_nowhere() -> None:
    settings = Settings.from_env({"SECRET_KEY": f" {NEW} , {OLD}"})
    assert settings.secret_key == (NEW, OLD)
    assert NEW not in repr(settings)
    assert SecretBox(settings.secret_key).decrypt(SecretBox([OLD]).encrypt("x")) == "x"
    assert not SecretBox(Settings().secret_key).has_key
