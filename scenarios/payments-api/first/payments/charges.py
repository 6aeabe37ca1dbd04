"""A charge is money that a customer has paid."""

from dataclasses import dataclass, field


@dataclass
class Charge:
    """Money that was paid, in cents, and what of it went back."""

    cents: int
    currency: str = "EUR"
    refunded: int = 0
    notes: list = field(default_factory=list)

    def left(self):
        """What can still be refunded."""
        return self.cents - self.refunded


def charge(cents, currency="EUR"):
    """Takes money."""
    if cents <= 0:
        raise ValueError("a charge is more than nothing")
    if len(currency) != 3 or not currency.isupper():
        raise ValueError(f"{currency!r} is no currency")
    return Charge(cents, currency)


def fee(paid):
    """What a refund costs: five of a hundred, at least ten cents."""
    return max(paid.cents * 5 // 100, 10)
