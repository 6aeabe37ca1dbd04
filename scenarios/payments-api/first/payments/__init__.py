"""Charges and refunds."""
