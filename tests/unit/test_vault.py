"""Passwords at rest."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from dataclasses import replace

import pytest
from cryptography.fernet import Fernet
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from menuwatch.core.errors import Refused
from menuwatch.core.settings import Settings
from menuwatch.proxies.model import untried
from menuwatch.proxies.parse import parse_line
from menuwatch.proxies.vault import Locked, Vault, is_sealed, new_key

OLD, NEW = new_key(), new_key()


def test_what_is_sealed_is_opened_by_any_library_that_has_the_key() -> None:
    sealed = Vault([OLD]).seal("S3cret")
    assert sealed is not None
    assert is_sealed(sealed)
    assert "S3cret" not in sealed
    assert Fernet(OLD).decrypt(sealed.removeprefix("fernet:")) == b"S3cret"
    assert Vault([OLD]).seal("S3cret") != sealed, "the same password never looks the same"


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=80), st.sampled_from([(), (OLD,), (NEW, OLD)]))
def test_every_password_comes_back(password: str, keys: tuple[str, ...]) -> None:
    vault = Vault(keys)
    assert vault.open(vault.seal(password)) == password


@pytest.mark.parametrize("password", ["fernet:abc", "clear:abc", "clear:fernet:x", "fernet:"])
def test_a_password_that_looks_like_a_mark_is_taken_for_what_it_is(password: str) -> None:
    for vault in (Vault(), Vault([OLD])):
        assert vault.open(vault.seal(password)) == password
    assert not is_sealed(Vault().seal(password))


def test_no_password_stays_none() -> None:
    assert Vault([OLD]).seal(None) is None
    assert Vault([OLD]).open(None) is None
    assert Vault([OLD]).is_current(None)


def test_keys_are_changed_by_putting_the_new_one_in_front() -> None:
    old, both, new = Vault([OLD]), Vault([NEW, OLD]), Vault([NEW])
    sealed = old.seal("S3cret")
    assert both.open(sealed) == "S3cret"
    assert old.is_current(sealed)
    assert not both.is_current(sealed)
    assert both.is_current(both.seal("S3cret"))
    assert not both.is_current("S3cret")
    assert new.open(both.seal("S3cret")) == "S3cret"


def test_without_the_key_the_variable_is_named_and_nothing_shown() -> None:
    sealed = Vault([OLD]).seal("S3cret")
    with pytest.raises(Locked, match="SECRET_KEY is not set"):
        Vault().open(sealed)
    with pytest.raises(Locked, match="none of the keys in SECRET_KEY opens it") as caught:
        Vault([NEW]).open(sealed)
    assert NEW not in f"{caught.value!r} {Vault([NEW])!r}"
    with pytest.raises(Locked):
        Vault([NEW]).open("fernet:not even a token")
    with pytest.raises(Locked):
        Vault([NEW]).open("fernet:ü")


def test_who_is_at_work_goes_on_without_a_password_that_cannot_be_opened() -> None:
    proxy = replace(untried(parse_line("me:x@203.0.113.7:80")), password=Vault([OLD]).seal("S3cret"))
    assert Vault([NEW, OLD]).usable(proxy).password == "S3cret"
    with capture_logs() as logs:
        assert Vault([NEW]).usable(proxy).password is None
    assert [line["action"] for line in logs] == ["proxy_password_locked"]
    assert "S3cret" not in str(logs)


def _weak(raw: bytes) -> str:
    return urlsafe_b64encode(raw).decode()


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("hunter2", "it is no key: 32 random bytes"),
        (_weak(b"x" * 31), "it is no key"),
        (f"{NEW},hunter2", "key 2 of 2 is no key"),
        (NEW[:-2], "it is no key"),
        (_weak(b"\0" * 32), "too easy to guess"),
        (_weak(b"abcdabcd" * 4), "too easy to guess"),
        ("ключ" * 11, "it is no key"),
    ],
    # Keys are drawn anew in each process; the names of the tests must not be.
    ids=["a word", "31 bytes", "a word behind a key", "cut off", "all zero", "a pattern", "no ASCII"],
)
def test_a_weak_key_is_refused_with_the_command_that_makes_one(value: str, says: str) -> None:
    with pytest.raises(Refused, match="SECRET_KEY cannot be used") as caught:
        Settings.from_env({"SECRET_KEY": value})
    assert says in str(caught.value)
    assert "menuwatch proxies key" in str(caught.value)
    assert value not in str(caught.value)
    assert caught.value.__cause__ is None


def test_keys_are_read_from_the_settings_and_shown_nowhere() -> None:
    settings = Settings.from_env({"SECRET_KEY": f" {NEW} , {OLD}"})
    assert settings.secret_key == (NEW, OLD)
    assert NEW not in repr(settings)
    assert Vault.from_settings(settings).open(Vault([OLD]).seal("x")) == "x"
    assert not Vault.from_settings(Settings()).has_key
