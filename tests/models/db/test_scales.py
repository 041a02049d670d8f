"""Refuses at the start a catalogue that would misread stored amounts."""

from __future__ import annotations

import pytest

from core.catalogue.catalogue import load_catalogue
from models.db import scales
from models.db.base import rows

pytestmark = pytest.mark.usefixtures("database")
NOW = load_catalogue("production").ledger_scales()


def test_scales_are_stored_once_and_new_coins_are_added() -> None:
    scales.keep({"USDT": 18})
    scales.keep(NOW)
    scales.keep(NOW)

    assert dict(rows("SELECT currency, scale FROM ledger_scales")) == dict(NOW)


def test_a_scale_other_than_the_stored_one_is_refused() -> None:
    scales.keep(NOW)

    with pytest.raises(scales.ScaleChangedError, match="USDC"):
        scales.keep({**NOW, "USDC": 6})
