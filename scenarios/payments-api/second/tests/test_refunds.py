from decimal import Decimal

import pytest

from payments.charges import charge
from payments.refunds import TooMuch, describe, full_refund, partial_refund


def test_full_refund():
    assert full_refund(charge(1000)).net == 1000


def test_too_much():
    with pytest.raises(TooMuch):
        partial_refund(charge(1000), "10.01")


def test_partial_refund_keeps_cents():
    assert partial_refund(charge(1000), 4.5).net == 400


def test_partial_refund():
    net = partial_refund(charge(1000), Decimal("5.50")).net
    assert net == 500, f"{net} != 500"


def test_in_words():
    assert describe(full_refund(charge(1000))) == "10.00 EUR"
