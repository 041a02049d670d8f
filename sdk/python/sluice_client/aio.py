"""Every call of the API as a coroutine. Each waits in a thread of its own, on connections that all share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any, Literal

from sluice_client import types
from sluice_client.operations import Sluice


class AsyncSluice:
    """As Sluice, for asyncio; the arguments are the same."""

    def __init__(self, url: str, public_id: str, secret: str, **options: Any) -> None:
        self._calls = Sluice(url, public_id, secret, **options)

    def __repr__(self) -> str:
        """Name the gateway and the key, never the secret."""
        return repr(self._calls).replace("Sluice", "AsyncSluice", 1)

    async def close(self) -> None:
        """Close the connections that are open and idle."""
        await asyncio.to_thread(self._calls.close)

    async def create_payment(
        self,
        *,
        amount: str,
        currency: str,
        order_id: str | None = None,
        network: str | None = None,
        to_currency: str | None = None,
        lifetime: int | None = None,
        subtract: int | None = None,
        accuracy_payment_percent: float | None = None,
        url_callback: str | None = None,
        url_return: str | None = None,
        url_success: str | None = None,
        additional_data: str | None = None,
        payer_email: str | None = None,
        theme: Literal["", "dark", "light"] | None = None,
        is_payment_multiple: bool | None = None,
        is_refresh: bool | None = None,
        idempotency_key: str | None = None,
    ) -> types.Payment:
        """Create a payment: see Sluice.create_payment."""
        return await asyncio.to_thread(
            self._calls.create_payment,
            amount=amount,
            currency=currency,
            order_id=order_id,
            network=network,
            to_currency=to_currency,
            lifetime=lifetime,
            subtract=subtract,
            accuracy_payment_percent=accuracy_payment_percent,
            url_callback=url_callback,
            url_return=url_return,
            url_success=url_success,
            additional_data=additional_data,
            payer_email=payer_email,
            theme=theme,
            is_payment_multiple=is_payment_multiple,
            is_refresh=is_refresh,
            idempotency_key=idempotency_key,
        )

    async def get_payment(self, *, uuid: str | None = None, order_id: str | None = None) -> types.PaymentInfo:
        """Read a payment: see Sluice.get_payment."""
        return await asyncio.to_thread(self._calls.get_payment, uuid=uuid, order_id=order_id)

    async def list_payments(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        status: Literal["", "check", "expired", "paid", "paid_over", "select", "wrong_amount"] | None = None,
        currency: str | None = None,
        network: str | None = None,
        order_id: str | None = None,
        date_from: str | None = None,
        date_to: str | None = None,
    ) -> types.PaymentPage:
        """List payments: see Sluice.list_payments."""
        return await asyncio.to_thread(
            self._calls.list_payments,
            limit=limit,
            cursor=cursor,
            status=status,
            currency=currency,
            network=network,
            order_id=order_id,
            date_from=date_from,
            date_to=date_to,
        )

    async def iter_payments(
        self,
        *,
        limit: int | None = None,
        status: Literal["", "check", "expired", "paid", "paid_over", "select", "wrong_amount"] | None = None,
        currency: str | None = None,
        network: str | None = None,
        order_id: str | None = None,
        date_from: str | None = None,
        date_to: str | None = None,
    ) -> AsyncIterator[types.Payment]:
        """List payments, all pages; `limit` is the size of one."""
        cursor: str | None = None
        while True:
            page = await self.list_payments(
                limit=limit,
                status=status,
                currency=currency,
                network=network,
                order_id=order_id,
                date_from=date_from,
                date_to=date_to,
                cursor=cursor,
            )
            for item in page["items"]:
                yield item
            cursor = page["next_cursor"]
            if not cursor:
                return

    async def get_payment_qr(self, *, uuid: str | None = None, order_id: str | None = None) -> types.Image:
        """Render a payment's QR code: see Sluice.get_payment_qr."""
        return await asyncio.to_thread(self._calls.get_payment_qr, uuid=uuid, order_id=order_id)

    async def list_payment_methods(self) -> types.PaymentServices:
        """List payment methods: see Sluice.list_payment_methods."""
        return await asyncio.to_thread(self._calls.list_payment_methods)

    async def resolve_payment(
        self,
        *,
        action: types.ResolvePaymentAction,
        uuid: str | None = None,
        order_id: str | None = None,
        txid: str | None = None,
        address: str | None = None,
        network: str | None = None,
    ) -> types.ResolvedPayment:
        """Resolve a payment: see Sluice.resolve_payment."""
        return await asyncio.to_thread(
            self._calls.resolve_payment,
            uuid=uuid,
            order_id=order_id,
            action=action,
            txid=txid,
            address=address,
            network=network,
        )

    async def resend_payment(self, *, uuid: str | None = None, order_id: str | None = None) -> types.Resent:
        """Send a payment's webhooks again: see Sluice.resend_payment."""
        return await asyncio.to_thread(self._calls.resend_payment, uuid=uuid, order_id=order_id)

    async def send_payment_email(
        self, *, uuid: str | None = None, order_id: str | None = None, email: str | None = None
    ) -> types.QueuedEmail:
        """E-mail a payment's receipt or page: see Sluice.send_payment_email."""
        return await asyncio.to_thread(self._calls.send_payment_email, uuid=uuid, order_id=order_id, email=email)

    async def set_accepted_methods(
        self, *, accepted: Sequence[types.MethodName] | None = None
    ) -> types.AcceptedMethods:
        """Read or set the accepted methods: see Sluice.set_accepted_methods."""
        return await asyncio.to_thread(self._calls.set_accepted_methods, accepted=accepted)

    async def set_discount(
        self, *, currency: str | None = None, network: str | None = None, discount_percent: float | None = None
    ) -> types.Discounts:
        """Read or set discounts: see Sluice.set_discount."""
        return await asyncio.to_thread(
            self._calls.set_discount, currency=currency, network=network, discount_percent=discount_percent
        )

    async def set_accuracy(
        self, *, enabled: bool | None = None, accuracy_percent: float | None = None
    ) -> types.Accuracy:
        """Read or set the tolerance: see Sluice.set_accuracy."""
        return await asyncio.to_thread(self._calls.set_accuracy, enabled=enabled, accuracy_percent=accuracy_percent)

    async def get_payment_timeline(self, *, uuid: str | None = None, order_id: str | None = None) -> types.Timeline:
        """Read the history of a payment: see Sluice.get_payment_timeline."""
        return await asyncio.to_thread(self._calls.get_payment_timeline, uuid=uuid, order_id=order_id)

    async def get_public_payment(self, invoice_id: str) -> types.PublicPayment:
        """Read a payment as its buyer: see Sluice.get_public_payment."""
        return await asyncio.to_thread(self._calls.get_public_payment, invoice_id)

    async def select_method(self, invoice_id: str, *, currency: str, network: str | None = None) -> types.PublicPayment:
        """Choose coin and network: see Sluice.select_method."""
        return await asyncio.to_thread(self._calls.select_method, invoice_id, currency=currency, network=network)

    async def create_payment_link(
        self,
        *,
        amount_mode: types.CreatePaymentLinkAmountMode,
        currency: str,
        amount_fixed: str | None = None,
        amount_min: str | None = None,
        amount_max: str | None = None,
        pinned_currency: str | None = None,
        pinned_network: str | None = None,
        title: str | None = None,
        description: str | None = None,
        expires_in: int | None = None,
        idempotency_key: str | None = None,
    ) -> types.CreatedPaymentLink:
        """Create a payment link: see Sluice.create_payment_link."""
        return await asyncio.to_thread(
            self._calls.create_payment_link,
            amount_mode=amount_mode,
            currency=currency,
            amount_fixed=amount_fixed,
            amount_min=amount_min,
            amount_max=amount_max,
            pinned_currency=pinned_currency,
            pinned_network=pinned_network,
            title=title,
            description=description,
            expires_in=expires_in,
            idempotency_key=idempotency_key,
        )

    async def list_payment_links(self, *, limit: int | None = None, offset: int | None = None) -> types.PaymentLinks:
        """List payment links: see Sluice.list_payment_links."""
        return await asyncio.to_thread(self._calls.list_payment_links, limit=limit, offset=offset)

    async def get_payment_link(
        self, *, link_id: str, limit: int | None = None, offset: int | None = None
    ) -> types.PaymentLinkWithPayments:
        """Read a payment link: see Sluice.get_payment_link."""
        return await asyncio.to_thread(self._calls.get_payment_link, link_id=link_id, limit=limit, offset=offset)

    async def toggle_payment_link(self, *, link_id: str, active: bool) -> types.ToggledPaymentLink:
        """Switch a payment link on or off: see Sluice.toggle_payment_link."""
        return await asyncio.to_thread(self._calls.toggle_payment_link, link_id=link_id, active=active)

    async def get_link(self, link_id: str) -> types.PublicPaymentLink:
        """Read a payment link as a buyer: see Sluice.get_link."""
        return await asyncio.to_thread(self._calls.get_link, link_id)

    async def check_out_link(
        self,
        link_id: str,
        *,
        amount: str | None = None,
        currency: str | None = None,
        network: str | None = None,
        payer_email: str | None = None,
    ) -> types.PublicPayment:
        """Check a payment link out: see Sluice.check_out_link."""
        return await asyncio.to_thread(
            self._calls.check_out_link,
            link_id,
            amount=amount,
            currency=currency,
            network=network,
            payer_email=payer_email,
        )

    async def list_currencies(self) -> types.Currencies:
        """List coins, networks and pricing currencies: see Sluice.list_currencies."""
        return await asyncio.to_thread(self._calls.list_currencies)

    async def list_exchange_rates(self, *, currency_from: str | None = None) -> list[types.ExchangeRate]:
        """Read exchange rates: see Sluice.list_exchange_rates."""
        return await asyncio.to_thread(self._calls.list_exchange_rates, currency_from=currency_from)

    async def refund_payment(
        self,
        *,
        uuid: str | None = None,
        order_id: str | None = None,
        amount: str | None = None,
        address: str | None = None,
        network: str | None = None,
        idempotency_key: str | None = None,
    ) -> types.PaymentRefund:
        """Refund a payment: see Sluice.refund_payment."""
        return await asyncio.to_thread(
            self._calls.refund_payment,
            uuid=uuid,
            order_id=order_id,
            amount=amount,
            address=address,
            network=network,
            idempotency_key=idempotency_key,
        )

    async def refund_blocked_wallet(
        self,
        *,
        refund_address: str,
        uuid: str | None = None,
        address: str | None = None,
        idempotency_key: str | None = None,
    ) -> types.WalletRefunds:
        """Refund the deposits of a blocked wallet: see Sluice.refund_blocked_wallet."""
        return await asyncio.to_thread(
            self._calls.refund_blocked_wallet,
            uuid=uuid,
            address=address,
            refund_address=refund_address,
            idempotency_key=idempotency_key,
        )

    async def get_balance(self) -> types.Balance:
        """Read the balance: see Sluice.get_balance."""
        return await asyncio.to_thread(self._calls.get_balance)

    async def transfer_to_personal(
        self, *, amount: str, currency: str, order_id: str | None = None, idempotency_key: str | None = None
    ) -> types.Transferred:
        """Transfer to the personal wallet: see Sluice.transfer_to_personal."""
        return await asyncio.to_thread(
            self._calls.transfer_to_personal,
            amount=amount,
            currency=currency,
            order_id=order_id,
            idempotency_key=idempotency_key,
        )

    async def create_payout(
        self,
        *,
        order_id: str,
        amount: str,
        currency: str,
        address: str,
        network: str | None = None,
        memo: str | None = None,
        is_subtract: bool | None = None,
        from_currency: str | None = None,
        priority: Literal["", "high", "normal"] | None = None,
        source: types.CreatePayoutSource | None = None,
        url_callback: str | None = None,
        idempotency_key: str | None = None,
    ) -> types.CreatedPayout:
        """Create a payout: see Sluice.create_payout."""
        return await asyncio.to_thread(
            self._calls.create_payout,
            order_id=order_id,
            amount=amount,
            currency=currency,
            network=network,
            address=address,
            memo=memo,
            is_subtract=is_subtract,
            from_currency=from_currency,
            priority=priority,
            source=source,
            url_callback=url_callback,
            idempotency_key=idempotency_key,
        )

    async def calculate_payout(
        self, *, amount: str, currency: str, network: str | None = None, is_subtract: bool | None = None
    ) -> types.PayoutQuote:
        """Calculate a payout: see Sluice.calculate_payout."""
        return await asyncio.to_thread(
            self._calls.calculate_payout, amount=amount, currency=currency, network=network, is_subtract=is_subtract
        )

    async def create_payouts(
        self,
        *,
        payouts: Sequence[types.CreatePayout],
        source: types.CreatePayoutSource | None = None,
        idempotency_key: str | None = None,
    ) -> types.MassResult:
        """Create up to 100 payouts: see Sluice.create_payouts."""
        return await asyncio.to_thread(
            self._calls.create_payouts, payouts=payouts, source=source, idempotency_key=idempotency_key
        )

    async def set_payout_fees(self, *, is_subtract: bool | None = None) -> types.PayoutFees:
        """Choose who bears the network fee: see Sluice.set_payout_fees."""
        return await asyncio.to_thread(self._calls.set_payout_fees, is_subtract=is_subtract)

    async def get_payout(self, *, uuid: str | None = None, order_id: str | None = None) -> types.Payout:
        """Read a payout: see Sluice.get_payout."""
        return await asyncio.to_thread(self._calls.get_payout, uuid=uuid, order_id=order_id)

    async def list_payouts(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        status: Literal["", "awaiting_cosign", "cancel", "check", "fail", "paid", "process"] | None = None,
        currency: str | None = None,
        network: str | None = None,
        order_id: str | None = None,
        date_from: str | None = None,
        date_to: str | None = None,
    ) -> types.PayoutPage:
        """List payouts: see Sluice.list_payouts."""
        return await asyncio.to_thread(
            self._calls.list_payouts,
            limit=limit,
            cursor=cursor,
            status=status,
            currency=currency,
            network=network,
            order_id=order_id,
            date_from=date_from,
            date_to=date_to,
        )

    async def iter_payouts(
        self,
        *,
        limit: int | None = None,
        status: Literal["", "awaiting_cosign", "cancel", "check", "fail", "paid", "process"] | None = None,
        currency: str | None = None,
        network: str | None = None,
        order_id: str | None = None,
        date_from: str | None = None,
        date_to: str | None = None,
    ) -> AsyncIterator[types.Payout]:
        """List payouts, all pages; `limit` is the size of one."""
        cursor: str | None = None
        while True:
            page = await self.list_payouts(
                limit=limit,
                status=status,
                currency=currency,
                network=network,
                order_id=order_id,
                date_from=date_from,
                date_to=date_to,
                cursor=cursor,
            )
            for item in page["items"]:
                yield item
            cursor = page["next_cursor"]
            if not cursor:
                return

    async def list_payout_methods(self) -> types.PayoutServices:
        """List payout methods: see Sluice.list_payout_methods."""
        return await asyncio.to_thread(self._calls.list_payout_methods)

    async def approve_payout(self, *, uuid: str | None = None, order_id: str | None = None) -> types.Payout:
        """Approve a payout: see Sluice.approve_payout."""
        return await asyncio.to_thread(self._calls.approve_payout, uuid=uuid, order_id=order_id)

    async def cancel_payout(self, *, uuid: str | None = None, order_id: str | None = None) -> types.Payout:
        """Cancel a payout: see Sluice.cancel_payout."""
        return await asyncio.to_thread(self._calls.cancel_payout, uuid=uuid, order_id=order_id)

    async def set_auto_withdraw(
        self,
        *,
        currency: str | None = None,
        network: str | None = None,
        address: str | None = None,
        threshold: str | None = None,
        enabled: bool | None = None,
    ) -> types.AutoWithdraw:
        """Set up automatic withdrawals: see Sluice.set_auto_withdraw."""
        return await asyncio.to_thread(
            self._calls.set_auto_withdraw,
            currency=currency,
            network=network,
            address=address,
            threshold=threshold,
            enabled=enabled,
        )

    async def create_payout_link(
        self,
        *,
        currency: str,
        amount: str,
        network: str | None = None,
        reference: str | None = None,
        title: str | None = None,
        note: str | None = None,
        email: str | None = None,
        expires_in_hours: int | None = None,
    ) -> types.CreatedPayoutLink:
        """Create a payout link: see Sluice.create_payout_link."""
        return await asyncio.to_thread(
            self._calls.create_payout_link,
            currency=currency,
            amount=amount,
            network=network,
            reference=reference,
            title=title,
            note=note,
            email=email,
            expires_in_hours=expires_in_hours,
        )

    async def create_payout_links(self, *, links: Sequence[types.CreatePayoutLink]) -> types.PayoutLinkBatch:
        """Create several payout links: see Sluice.create_payout_links."""
        return await asyncio.to_thread(self._calls.create_payout_links, links=links)

    async def list_payout_links(self, *, limit: int | None = None, offset: int | None = None) -> types.PayoutLinks:
        """List payout links: see Sluice.list_payout_links."""
        return await asyncio.to_thread(self._calls.list_payout_links, limit=limit, offset=offset)

    async def get_payout_link(self, *, link_id: str) -> types.PayoutLink:
        """Read a payout link: see Sluice.get_payout_link."""
        return await asyncio.to_thread(self._calls.get_payout_link, link_id=link_id)

    async def cancel_payout_link(self, *, link_id: str) -> types.PayoutLink:
        """Cancel a payout link: see Sluice.cancel_payout_link."""
        return await asyncio.to_thread(self._calls.cancel_payout_link, link_id=link_id)

    async def get_claim(self, token: str) -> types.PublicPayoutLink:
        """Read a payout link as its recipient: see Sluice.get_claim."""
        return await asyncio.to_thread(self._calls.get_claim, token)

    async def claim_payout_link(self, token: str, *, address: str, memo: str | None = None) -> types.ClaimedLink:
        """Claim a payout link: see Sluice.claim_payout_link."""
        return await asyncio.to_thread(self._calls.claim_payout_link, token, address=address, memo=memo)

    async def create_wallet(
        self,
        *,
        currency: str,
        network: str | None = None,
        order_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> types.Wallet:
        """Create a static wallet: see Sluice.create_wallet."""
        return await asyncio.to_thread(
            self._calls.create_wallet,
            currency=currency,
            network=network,
            order_id=order_id,
            idempotency_key=idempotency_key,
        )

    async def block_wallet(self, *, address: str, is_force_block: bool | None = None) -> types.WalletBlock:
        """Block or unblock a static wallet: see Sluice.block_wallet."""
        return await asyncio.to_thread(self._calls.block_wallet, address=address, is_force_block=is_force_block)

    async def get_wallet(
        self,
        *,
        uuid: str | None = None,
        address: str | None = None,
        limit: int | None = None,
        offset: int | None = None,
    ) -> types.WalletInfo:
        """Read a static wallet: see Sluice.get_wallet."""
        return await asyncio.to_thread(self._calls.get_wallet, uuid=uuid, address=address, limit=limit, offset=offset)

    async def render_qr(self, *, address: str) -> types.Image:
        """Render a QR code: see Sluice.render_qr."""
        return await asyncio.to_thread(self._calls.render_qr, address=address)

    async def create_payment_batch(
        self,
        *,
        payments: Sequence[types.CreatePayment],
        on_error: types.CreatePaymentBatchOnError | None = None,
        idempotency_key: str | None = None,
    ) -> types.BatchCreated:
        """Create payments: see Sluice.create_payment_batch."""
        return await asyncio.to_thread(
            self._calls.create_payment_batch, on_error=on_error, payments=payments, idempotency_key=idempotency_key
        )

    async def create_payout_batch(
        self,
        *,
        payouts: Sequence[types.CreatePayout],
        on_error: types.CreatePaymentBatchOnError | None = None,
        idempotency_key: str | None = None,
    ) -> types.BatchCreated:
        """Create payouts: see Sluice.create_payout_batch."""
        return await asyncio.to_thread(
            self._calls.create_payout_batch, on_error=on_error, payouts=payouts, idempotency_key=idempotency_key
        )

    async def create_refund_batch(
        self,
        *,
        refunds: Sequence[types.CreateRefund],
        on_error: types.CreatePaymentBatchOnError | None = None,
        idempotency_key: str | None = None,
    ) -> types.BatchCreated:
        """Create refunds: see Sluice.create_refund_batch."""
        return await asyncio.to_thread(
            self._calls.create_refund_batch, on_error=on_error, refunds=refunds, idempotency_key=idempotency_key
        )

    async def get_batch(self, *, batch_id: str, limit: int | None = None, offset: int | None = None) -> types.BatchInfo:
        """Read a batch: see Sluice.get_batch."""
        return await asyncio.to_thread(self._calls.get_batch, batch_id=batch_id, limit=limit, offset=offset)

    async def register_webhook(self, *, url: str) -> types.WebhookEndpoint:
        """Register the webhook endpoint: see Sluice.register_webhook."""
        return await asyncio.to_thread(self._calls.register_webhook, url=url)

    async def list_webhook_deliveries(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        status: Literal["dead", "delivered", "pending", "retrying", ""] | None = None,
        uuid: str | None = None,
        event: types.ListDeliveriesEvent | None = None,
    ) -> types.DeliveryPage:
        """List webhook deliveries: see Sluice.list_webhook_deliveries."""
        return await asyncio.to_thread(
            self._calls.list_webhook_deliveries, limit=limit, cursor=cursor, status=status, uuid=uuid, event=event
        )

    async def iter_webhook_deliveries(
        self,
        *,
        limit: int | None = None,
        status: Literal["dead", "delivered", "pending", "retrying", ""] | None = None,
        uuid: str | None = None,
        event: types.ListDeliveriesEvent | None = None,
    ) -> AsyncIterator[types.Delivery]:
        """List webhook deliveries, all pages; `limit` is the size of one."""
        cursor: str | None = None
        while True:
            page = await self.list_webhook_deliveries(limit=limit, status=status, uuid=uuid, event=event, cursor=cursor)
            for item in page["items"]:
                yield item
            cursor = page["next_cursor"]
            if not cursor:
                return

    async def redeliver_webhook(self, *, delivery_id: str) -> types.Delivery:
        """Send a webhook again: see Sluice.redeliver_webhook."""
        return await asyncio.to_thread(self._calls.redeliver_webhook, delivery_id=delivery_id)

    async def test_webhook(self, *, event: types.ListDeliveriesEvent | None = None) -> types.WebhookTrial:
        """Test the webhook endpoint: see Sluice.test_webhook."""
        return await asyncio.to_thread(self._calls.test_webhook, event=event)

    async def set_ip_allowlist(self, *, ips: Sequence[str] | None = None) -> types.IpAllowlist:
        """Read or set the IP allowlist: see Sluice.set_ip_allowlist."""
        return await asyncio.to_thread(self._calls.set_ip_allowlist, ips=ips)

    async def add_split_rule(
        self,
        *,
        recipient_merchant_id: str,
        percent: float,
        title: str | None = None,
        idempotency_key: str | None = None,
    ) -> types.SplitRule:
        """Share credits with another merchant: see Sluice.add_split_rule."""
        return await asyncio.to_thread(
            self._calls.add_split_rule,
            recipient_merchant_id=recipient_merchant_id,
            percent=percent,
            title=title,
            idempotency_key=idempotency_key,
        )

    async def list_split_rules(self) -> types.SplitRules:
        """List the rules: see Sluice.list_split_rules."""
        return await asyncio.to_thread(self._calls.list_split_rules)

    async def delete_split_rule(self, *, rule_id: str) -> types.DeletedRule:
        """Delete a rule: see Sluice.delete_split_rule."""
        return await asyncio.to_thread(self._calls.delete_split_rule, rule_id=rule_id)

    async def get_split_config(self) -> types.SplitConfig:
        """Read the settings of split rules: see Sluice.get_split_config."""
        return await asyncio.to_thread(self._calls.get_split_config)

    async def set_split_config(
        self, *, enabled: bool | None = None, refund_hold_hours: int | None = None
    ) -> types.SplitConfig:
        """Set the settings of split rules: see Sluice.set_split_config."""
        return await asyncio.to_thread(
            self._calls.set_split_config, enabled=enabled, refund_hold_hours=refund_hold_hours
        )

    async def get_health(self) -> types.Health:
        """Is the process alive?: see Sluice.get_health."""
        return await asyncio.to_thread(self._calls.get_health)

    async def get_readiness(self) -> types.Readiness:
        """Can the gateway serve?: see Sluice.get_readiness."""
        return await asyncio.to_thread(self._calls.get_readiness)

    async def get_metrics(self) -> str:
        """Metrics in Prometheus's format: see Sluice.get_metrics."""
        return await asyncio.to_thread(self._calls.get_metrics)
