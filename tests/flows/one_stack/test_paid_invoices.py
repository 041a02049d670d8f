"""Many invoices, really paid, each credited once and each announced once, in peace."""

from __future__ import annotations

import pytest

from tests.flows.stack import Stack
from tests.flows.test_paid_invoices import assert_census, pay_all, wait_until_paid
from tests.peers.receiver import Receiver


@pytest.mark.timeout(400)
def test_a_hundred_invoices_are_paid_credited_once_and_announced_once(stack: Stack) -> None:
    with Receiver() as receiver:
        secret, invoices = pay_all(stack, receiver, 100)
        wait_until_paid(stack, invoices)
        assert_census(stack, receiver, secret, invoices)
