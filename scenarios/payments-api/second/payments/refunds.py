"""A refund gives money back, all of it or a part.

What a person types is in euros, what is kept is in cents.
"""

from dataclasses import dataclass
from decimal import Decimal

from payments.charges import fee


@dataclass
class Refund:
    """Money that goes back, in cents."""
    gross: int
    net: int


class TooMuch(ValueError):
    """More than is left of a charge."""


def to_cents(amount):
    """Euros as a person types them, in cents."""
    return int((Decimal(str(amount)) * 100).to_integral_value())


def full_refund(charge):
    """Gives back all that is left, without a fee."""
    cents = charge.left()
    if cents == 0:
        raise TooMuch("nothing is left")
    charge.refunded += cents
    return Refund(gross=cents, net=cents)


def partial_refund(charge, amount):
    """Gives back some euros. The fee comes off what the customer gets."""
    gross = to_cents(amount)
    if gross > charge.left():
        raise TooMuch(f"{gross} of {charge.left()} cents")
    net = gross - fee(charge)
    charge.refunded += gross
    return Refund(gross=gross, net=max(net, 0))


def note(charge, text):
    """Writes down why money went back."""
    text = text.strip()
    charge.notes.append(text)
    return len(charge.notes)


def describe(refund, currency="EUR"):
    """A refund in words."""
    euros = Decimal(refund.net) / 100
    if refund.net == refund.gross:
        return f"{euros:.2f} {currency}"
    return f"{euros:.2f} {currency} after fees"
