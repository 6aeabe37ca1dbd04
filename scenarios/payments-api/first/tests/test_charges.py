import pytest

from payments.charges import Charge, charge, fee


def test_a_charge_keeps_its_cents():
    assert charge(1000).cents == 1000


def test_a_charge_is_in_euros():
    assert charge(1).currency == "EUR"


def test_another_currency():
    assert charge(1, "SEK").currency == "SEK"


@pytest.mark.parametrize("cents", [0, -1])
def test_nothing_is_no_charge(cents):
    with pytest.raises(ValueError):
        charge(cents)


def test_an_unknown_currency():
    with pytest.raises(ValueError):
        charge(1, "euro")


def test_what_is_left():
    assert Charge(1000, refunded=400).left() == 600


def test_the_fee():
    assert (fee(charge(1000)), fee(charge(20))) == (50, 10)
