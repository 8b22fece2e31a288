"""Which passwords a person may choose."""

from __future__ import annotations

import time

import pytest

from menuwatch.accounts import passwords, secrets
from menuwatch.core.errors import Refused

GUESSED = (
    "123456789012",
    "password1234",
    "passwordpassword",
    "P@ssw0rd1234",
    "aaaaaaaaaaaa",
    "qwertyuiop12",
    "abcdefghijkl",
    "letmeinletmein",
    "Summer2026!!",
    "menuwatch1234",
    "menuwatchmenuwatch",
    "anna.kovacs1",
    "annaannaanna",
    "kovacskovacs1985",
    "KOVACS-kovacs",
    "anna.kovacs-xk4tq9zm",
    "Menuwatch-xk4tq9z",
    "administratoradministratoradministrator",
    "a" * 200,
    "\ud800" * 12,
)


@pytest.mark.parametrize("password", GUESSED)
def test_what_is_soon_guessed_is_refused(password: str) -> None:
    with pytest.raises(Refused) as refused:
        passwords.check(password, name="anna.kovacs")
    assert password not in str(refused.value)
    assert "four uncommon words" in str(refused.value)


@pytest.mark.parametrize("length", [0, 11, 201])
def test_length_is_bounded(length: int) -> None:
    with pytest.raises(Refused, match=f"has {length}$"):
        passwords.check(("x7Kd9fQm2Lp" * 19)[:length], name="a")


@pytest.mark.parametrize(
    "password",
    ["quite another one", "x7Kd9fQm2Lp8", "blue table lamp", "größer als ein Baum", "猫と犬が公園で走っています"],
)
def test_what_is_hard_to_guess_is_accepted(password: str) -> None:
    passwords.check(password, name="anna.kovacs")


def test_what_we_make_ourselves_is_accepted() -> None:
    for _ in range(20):
        passwords.check(secrets.one_time_password(), name="anna")


def test_no_text_takes_long() -> None:
    """Every letter that can stand for another multiplies the readings that are tried: 200 of them would take a second and more."""
    slow = "4@8({[<369!1|7$5%0+2" * 10
    passwords.check("warm up the word lists", name="a")
    begun = time.thread_time()
    passwords.check(slow, name="a")
    assert time.thread_time() - begun < 0.5
