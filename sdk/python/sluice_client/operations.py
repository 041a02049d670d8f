"""Every call of the API as a method."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal
from urllib.parse import quote

from sluice_client import types
from sluice_client.references import with_reference, with_references
from sluice_client.transport import Operation, Transport

_CREATE_PAYMENT = Operation("createPayment", "POST", "/v1/payment", "key", True, True)
_GET_PAYMENT = Operation("getPayment", "POST", "/v1/payment/info", "read", True, True)
_LIST_PAYMENTS = Operation("listPayments", "POST", "/v1/payment/history", "read", True, True)
_GET_PAYMENT_QR = Operation("getPaymentQr", "POST", "/v1/payment/qr", "read", True, True)
_LIST_PAYMENT_METHODS = Operation("listPaymentMethods", "POST", "/v1/payment/services", "read", True, True)
_RESOLVE_PAYMENT = Operation("resolvePayment", "POST", "/v1/payment/resolve", "no", True, True)
_RESEND_PAYMENT = Operation("resendPayment", "POST", "/v1/payment/resend", "no", True, True)
_SEND_PAYMENT_EMAIL = Operation("sendPaymentEmail", "POST", "/v1/payment/send-email", "no", True, True)
_SET_ACCEPTED_METHODS = Operation("setAcceptedMethods", "POST", "/v1/payment/accepted", "read", True, True)
_SET_DISCOUNT = Operation("setDiscount", "POST", "/v1/payment/discount", "read", True, True)
_SET_ACCURACY = Operation("setAccuracy", "POST", "/v1/payment/accuracy", "read", True, True)
_GET_PAYMENT_TIMELINE = Operation("getPaymentTimeline", "POST", "/v1/payment/timeline", "read", True, True)
_GET_PUBLIC_PAYMENT = Operation("getPublicPayment", "GET", "/v1/pay/{invoice_id}", "read", False, True)
_SELECT_METHOD = Operation("selectMethod", "POST", "/v1/pay/{invoice_id}/select", "no", False, True)
_CREATE_PAYMENT_LINK = Operation("createPaymentLink", "POST", "/v1/payment/link", "key", True, True)
_LIST_PAYMENT_LINKS = Operation("listPaymentLinks", "POST", "/v1/payment/link/list", "read", True, True)
_GET_PAYMENT_LINK = Operation("getPaymentLink", "POST", "/v1/payment/link/info", "read", True, True)
_TOGGLE_PAYMENT_LINK = Operation("togglePaymentLink", "POST", "/v1/payment/link/toggle", "no", True, True)
_GET_LINK = Operation("getLink", "GET", "/v1/link/{link_id}", "read", False, True)
_CHECK_OUT_LINK = Operation("checkOutLink", "POST", "/v1/link/{link_id}/checkout", "no", False, True)
_LIST_CURRENCIES = Operation("listCurrencies", "GET", "/v1/currencies", "read", False, True)
_LIST_EXCHANGE_RATES = Operation("listExchangeRates", "POST", "/v1/exchange-rate/list", "read", True, True)
_REFUND_PAYMENT = Operation("refundPayment", "POST", "/v1/payment/refund", "key", True, True)
_REFUND_BLOCKED_WALLET = Operation(
    "refundBlockedWallet", "POST", "/v1/wallet/blocked-address-refund", "key", True, True
)
_GET_BALANCE = Operation("getBalance", "POST", "/v1/balance", "read", True, True)
_TRANSFER_TO_PERSONAL = Operation("transferToPersonal", "POST", "/v1/transfer/to-personal", "key", True, True)
_CREATE_PAYOUT = Operation("createPayout", "POST", "/v1/payout", "key", True, True)
_CALCULATE_PAYOUT = Operation("calculatePayout", "POST", "/v1/payout/calculate", "read", True, True)
_CREATE_PAYOUTS = Operation("createPayouts", "POST", "/v1/payout/mass", "key", True, True)
_SET_PAYOUT_FEES = Operation("setPayoutFees", "POST", "/v1/payout/fee-settings", "read", True, True)
_GET_PAYOUT = Operation("getPayout", "POST", "/v1/payout/info", "read", True, True)
_LIST_PAYOUTS = Operation("listPayouts", "POST", "/v1/payout/history", "read", True, True)
_LIST_PAYOUT_METHODS = Operation("listPayoutMethods", "POST", "/v1/payout/services", "read", True, True)
_APPROVE_PAYOUT = Operation("approvePayout", "POST", "/v1/payout/approve", "no", True, True)
_CANCEL_PAYOUT = Operation("cancelPayout", "POST", "/v1/payout/cancel", "no", True, True)
_SET_AUTO_WITHDRAW = Operation("setAutoWithdraw", "POST", "/v1/auto-withdraw", "read", True, True)
_CREATE_PAYOUT_LINK = Operation("createPayoutLink", "POST", "/v1/payout/link", "bytes", True, True)
_CREATE_PAYOUT_LINKS = Operation("createPayoutLinks", "POST", "/v1/payout/link/batch", "bytes", True, True)
_LIST_PAYOUT_LINKS = Operation("listPayoutLinks", "POST", "/v1/payout/link/list", "read", True, True)
_GET_PAYOUT_LINK = Operation("getPayoutLink", "POST", "/v1/payout/link/info", "read", True, True)
_CANCEL_PAYOUT_LINK = Operation("cancelPayoutLink", "POST", "/v1/payout/link/cancel", "no", True, True)
_GET_CLAIM = Operation("getClaim", "GET", "/v1/claim/{token}", "read", False, True)
_CLAIM_PAYOUT_LINK = Operation("claimPayoutLink", "POST", "/v1/claim/{token}", "no", False, True)
_CREATE_WALLET = Operation("createWallet", "POST", "/v1/wallet", "key", True, True)
_BLOCK_WALLET = Operation("blockWallet", "POST", "/v1/wallet/block", "no", True, True)
_GET_WALLET = Operation("getWallet", "POST", "/v1/wallet/info", "read", True, True)
_RENDER_QR = Operation("renderQr", "POST", "/v1/wallet/qr", "read", True, True)
_CREATE_PAYMENT_BATCH = Operation("createPaymentBatch", "POST", "/v1/payment/batch", "key", True, True)
_CREATE_PAYOUT_BATCH = Operation("createPayoutBatch", "POST", "/v1/payout/batch", "key", True, True)
_CREATE_REFUND_BATCH = Operation("createRefundBatch", "POST", "/v1/refund/batch", "key", True, True)
_GET_BATCH = Operation("getBatch", "POST", "/v1/batch/info", "read", True, True)
_REGISTER_WEBHOOK = Operation("registerWebhook", "POST", "/v1/webhooks", "no", True, False)
_LIST_WEBHOOK_DELIVERIES = Operation("listWebhookDeliveries", "POST", "/v1/webhooks/deliveries", "read", True, True)
_REDELIVER_WEBHOOK = Operation("redeliverWebhook", "POST", "/v1/webhooks/redeliver", "no", True, True)
_TEST_WEBHOOK = Operation("testWebhook", "POST", "/v1/webhooks/test", "no", True, True)
_SET_IP_ALLOWLIST = Operation("setIpAllowlist", "POST", "/v1/ip-allowlist", "read", True, True)
_ADD_SPLIT_RULE = Operation("addSplitRule", "POST", "/v1/split/rule", "key", True, True)
_LIST_SPLIT_RULES = Operation("listSplitRules", "POST", "/v1/split/rule/list", "read", True, True)
_DELETE_SPLIT_RULE = Operation("deleteSplitRule", "POST", "/v1/split/rule/delete", "no", True, True)
_GET_SPLIT_CONFIG = Operation("getSplitConfig", "POST", "/v1/split/config/get", "read", True, True)
_SET_SPLIT_CONFIG = Operation("setSplitConfig", "POST", "/v1/split/config/set", "read", True, True)
_GET_HEALTH = Operation("getHealth", "GET", "/healthz", "read", False, False)
_GET_READINESS = Operation("getReadiness", "GET", "/readyz", "read", False, False)
_GET_METRICS = Operation("getMetrics", "GET", "/metrics", "read", False, False)


class Sluice(Transport):
    """A gateway and a key of yours: `Sluice("https://pay.shop.example", "pk_your_key", "sk_your_secret").create_payment(…)`."""

    def create_payment(
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
        """Create a payment.

        Creates a payment with a price and a deposit address. Without to_currency and network, the buyer chooses a
        coin on the hosted page, among those that allow a payment of this size; if none does, the answer is
        payment.below_minimum. A repeat with the order_id of a live payment returns that payment, and X-Differing-
        Fields names the price and coin that it asks for in vain; a repeat with the same Idempotency-Key returns
        the stored answer. Needs a key of kind payment or unified.

        amount: A decimal string, with no more fractional digits than the currency has.

        currency: The currency of the price: a fiat currency or a coin.

        order_id: Your own reference, at most 255 characters. A repeat with the reference of an existing object
        returns that object.

        network: The network that the buyer pays on. Without it the buyer chooses.

        to_currency: The coin that the buyer pays in. Without it the buyer chooses; if only network is set, it is
        currency.

        lifetime: Seconds until the payment expires: 300 to 43200. A value outside is set to the nearest limit.
        Default: 3600, unless the gateway's operator chose another.

        subtract: Percent of the network fee that the payer bears, from 0 to 100.

        accuracy_payment_percent: Tolerated difference from the amount, in percent: 0 to 5, at most 4 fractional
        digits. Default: your account's setting.

        url_callback: URL that receives this payment's webhooks instead of your registered endpoint, which you
        still need. Public http or https. A host in Unicode is stored as punycode.

        url_return: An absolute URL, http or https, at most 2048 characters.

        url_success: An absolute URL, http or https, at most 2048 characters.

        additional_data: Your private text, at most 4096 characters. Webhooks repeat it; the buyer never sees it.

        payer_email: The buyer's e-mail address, for the receipt.

        theme: The theme of the payment page.

        is_payment_multiple: true: the payment page asks the buyer for the rest of an incomplete payment. Default
        false.

        is_refresh: true: reopen the expired payment of this order_id. Default false.
        """
        result: types.Payment = self.call(
            _CREATE_PAYMENT,
            "/v1/payment",
            {
                "amount": amount,
                "currency": currency,
                "order_id": order_id,
                "network": network,
                "to_currency": to_currency,
                "lifetime": lifetime,
                "subtract": subtract,
                "accuracy_payment_percent": accuracy_payment_percent,
                "url_callback": url_callback,
                "url_return": url_return,
                "url_success": url_success,
                "additional_data": additional_data,
                "payer_email": payer_email,
                "theme": theme,
                "is_payment_multiple": is_payment_multiple,
                "is_refresh": is_refresh,
            },
            idempotency_key,
        )
        return result

    def get_payment(self, *, uuid: str | None = None, order_id: str | None = None) -> types.PaymentInfo:
        """Read a payment.

        Finds the payment by uuid, or else by order_id: the newest live payment, else the newest of all. Needs a
        key of kind payment or unified.

        uuid: The object's identifier. If it is set, order_id is ignored.

        order_id: Your own reference.
        """
        result: types.PaymentInfo = self.call(_GET_PAYMENT, "/v1/payment/info", {"uuid": uuid, "order_id": order_id})
        return result

    def list_payments(
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
        """List payments.

        Newest first. next_cursor is null on the last page. Needs a key of kind payment or unified.

        limit: The number of items on a page: 1 to 200. Any other value means 50.

        cursor: The next_cursor of the previous page. Default: the first page.

        status: Only payments with this payment_status. Default: all.

        currency: The currency of the price.

        network: The network that the buyer pays on. Without it the buyer chooses.

        order_id: Only payments with this order_id.

        date_from: Only those created at this time or later.

        date_to: Only those created before this time. A date without time includes that day.
        """
        result: types.PaymentPage = self.call(
            _LIST_PAYMENTS,
            "/v1/payment/history",
            {
                "limit": limit,
                "cursor": cursor,
                "status": status,
                "currency": currency,
                "network": network,
                "order_id": order_id,
                "date_from": date_from,
                "date_to": date_to,
            },
        )
        return result

    def iter_payments(
        self,
        *,
        limit: int | None = None,
        status: Literal["", "check", "expired", "paid", "paid_over", "select", "wrong_amount"] | None = None,
        currency: str | None = None,
        network: str | None = None,
        order_id: str | None = None,
        date_from: str | None = None,
        date_to: str | None = None,
    ) -> Iterator[types.Payment]:
        """List payments, all pages; `limit` is the size of one."""
        cursor: str | None = None
        while True:
            page = self.list_payments(
                limit=limit,
                status=status,
                currency=currency,
                network=network,
                order_id=order_id,
                date_from=date_from,
                date_to=date_to,
                cursor=cursor,
            )
            yield from page["items"]
            cursor = page["next_cursor"]
            if not cursor:
                return

    def get_payment_qr(self, *, uuid: str | None = None, order_id: str | None = None) -> types.Image:
        """Render a payment's QR code.

        The code has the deposit address; before the buyer has chosen a coin, the URL of the payment page. Needs a
        key of kind payment or unified.

        uuid: The object's identifier. If it is set, order_id is ignored.

        order_id: Your own reference.
        """
        result: types.Image = self.call(_GET_PAYMENT_QR, "/v1/payment/qr", {"uuid": uuid, "order_id": order_id})
        return result

    def list_payment_methods(self) -> types.PaymentServices:
        """List payment methods.

        Returns every coin on every network, with limits and fees. is_available is false for a method that you do
        not accept, and while the network's scan is halted or behind, no address is left, or the coin has no fresh
        rate. Needs a key of kind payment or unified.
        """
        result: types.PaymentServices = self.call(_LIST_PAYMENT_METHODS, "/v1/payment/services", {})
        return result

    def resolve_payment(
        self,
        *,
        action: types.ResolvePaymentAction,
        uuid: str | None = None,
        order_id: str | None = None,
        txid: str | None = None,
        address: str | None = None,
        network: str | None = None,
    ) -> types.ResolvedPayment:
        """Resolve a payment.

        accept credits the paid sum in place of the price, and the payment becomes paid. refund sends the sum
        back, less the network fee, and the payment becomes final once the refund is confirmed. With txid, both
        apply to that stray deposit, in its own coin and in any status of the payment. accept needs a payment key,
        refund a payout key.

        uuid: The object's identifier. If it is set, order_id is ignored.

        order_id: Your own reference.

        action: accept: credit the received amount; refund: send it back, less the network fee.

        txid: The transaction of the stray deposit to decide on.

        address: For a refund: the recipient's address. Default: the payer's. Any other address needs an approval.

        network: For a refund: must be the deposit's network, if you send it.
        """
        result: types.ResolvedPayment = self.call(
            _RESOLVE_PAYMENT,
            "/v1/payment/resolve",
            {
                "uuid": uuid,
                "order_id": order_id,
                "action": action,
                "txid": txid,
                "address": address,
                "network": network,
            },
        )
        return result

    def resend_payment(self, *, uuid: str | None = None, order_id: str | None = None) -> types.Resent:
        """Send a payment's webhooks again.

        Sends the webhook of the latest status again, with the same id. Needs a key of kind payment or unified.

        uuid: The object's identifier. If it is set, order_id is ignored.

        order_id: Your own reference.
        """
        result: types.Resent = self.call(_RESEND_PAYMENT, "/v1/payment/resend", {"uuid": uuid, "order_id": order_id})
        return result

    def send_payment_email(
        self, *, uuid: str | None = None, order_id: str | None = None, email: str | None = None
    ) -> types.QueuedEmail:
        """E-mail a payment's receipt or page.

        Sends the receipt of a paid or paid_over payment, else the link to its page; to email, or else to the
        payment's payer_email. After five an hour for one payment, the answer is 429 with Retry-After. Needs a key
        of kind payment or unified.

        uuid: The object's identifier. If it is set, order_id is ignored.

        order_id: Your own reference.

        email: The recipient's e-mail address. Default: the payment's payer_email.
        """
        result: types.QueuedEmail = self.call(
            _SEND_PAYMENT_EMAIL, "/v1/payment/send-email", {"uuid": uuid, "order_id": order_id, "email": email}
        )
        return result

    def set_accepted_methods(self, *, accepted: Sequence[types.MethodName] | None = None) -> types.AcceptedMethods:
        """Read or set the accepted methods.

        Sets the coins and networks that buyers may pay with. Payments that have a coin keep it. Omit accepted to
        read the list; an empty list accepts every method. Needs a key of kind payment or unified.

        accepted: The new list, at most 200 methods. Omit it to read the list; [] accepts every method.
        """
        result: types.AcceptedMethods = self.call(_SET_ACCEPTED_METHODS, "/v1/payment/accepted", {"accepted": accepted})
        return result

    def set_discount(
        self, *, currency: str | None = None, network: str | None = None, discount_percent: float | None = None
    ) -> types.Discounts:
        """Read or set discounts.

        Sets a percentage that is taken off the price, or added if it is negative, if the buyer pays with a coin.
        A payment takes it with its first quote and keeps it. 0 ends a discount. The answer has all discounts that
        are then set. Omit discount_percent to read them: all, or those of a coin or network. Needs a key of kind
        payment or unified.

        currency: The coin.

        network: The network. Default: all networks of the coin.

        discount_percent: Percent off the price: -99 to 99, at most 4 fractional digits. 0 ends the discount; a
        negative value raises the price.
        """
        result: types.Discounts = self.call(
            _SET_DISCOUNT,
            "/v1/payment/discount",
            {"currency": currency, "network": network, "discount_percent": discount_percent},
        )
        return result

    def set_accuracy(self, *, enabled: bool | None = None, accuracy_percent: float | None = None) -> types.Accuracy:
        """Read or set the tolerance.

        Sets by how much a buyer may pay less or more, including both bounds, for new payments without
        accuracy_payment_percent. An empty body reads the setting. Needs a key of kind payment or unified.

        enabled: true: a difference is tolerated. Omit it to keep the setting.

        accuracy_percent: Percent: 1 to 5 while enabled, at most 4 fractional digits. Omit it to keep the setting.
        """
        result: types.Accuracy = self.call(
            _SET_ACCURACY, "/v1/payment/accuracy", {"enabled": enabled, "accuracy_percent": accuracy_percent}
        )
        return result

    def get_payment_timeline(self, *, uuid: str | None = None, order_id: str | None = None) -> types.Timeline:
        """Read the history of a payment.

        Returns the events of a payment, oldest first, at most 1000: of more, the creation and the newest. detail
        shows what a deposit waits for, and the sum that an expired payment lacks. Needs a key of kind payment or
        unified.

        uuid: The object's identifier. If it is set, order_id is ignored.

        order_id: Your own reference.
        """
        result: types.Timeline = self.call(
            _GET_PAYMENT_TIMELINE, "/v1/payment/timeline", {"uuid": uuid, "order_id": order_id}
        )
        return result

    def get_public_payment(self, invoice_id: str) -> types.PublicPayment:
        """Read a payment as its buyer.

        Poll it with If-None-Match: the answer is 304 while nothing changes.
        """
        result: types.PublicPayment = self.call(_GET_PUBLIC_PAYMENT, f"/v1/pay/{quote(invoice_id, safe='')}", None)
        return result

    def select_method(self, invoice_id: str, *, currency: str, network: str | None = None) -> types.PublicPayment:
        """Choose coin and network.

        Sets coin, rate and address of a payment whose status is select. The expiry stays the same.

        currency: The coin to pay in.

        network: The network to pay on. May be omitted if the coin has only one.
        """
        result: types.PublicPayment = self.call(
            _SELECT_METHOD, f"/v1/pay/{quote(invoice_id, safe='')}/select", {"currency": currency, "network": network}
        )
        return result

    def create_payment_link(
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
        """Create a payment link.

        Creates a page on which any number of buyers pay, each with a payment of its own. Fields of other modes
        are ignored. Without a pinned coin the buyer chooses among those that you accept. Honours Idempotency-Key.
        Needs a key of kind payment or unified.

        amount_mode: fixed: you set the amount; open: the buyer sets it; range: the buyer sets it within two
        bounds.

        currency: The currency of the price: a fiat currency or a coin.

        amount_fixed: The price, in currency. Mode fixed requires it; the others ignore it. At least one coin must
        allow a payment of this size.

        amount_min: The smallest amount that a buyer may pay, in currency. Mode range requires it; it is optional
        in mode open.

        amount_max: The largest amount that a buyer may pay, in currency. Mode range requires it; the others
        ignore it.

        pinned_currency: The coin that buyers pay in. Without it the buyer chooses.

        pinned_network: The coin's network. May be omitted if the coin has only one.

        title: Shown on the page.

        description: Shown on the page.

        expires_in: Seconds until the link expires, at most ten years. Default 0: it never expires.
        """
        result: types.CreatedPaymentLink = self.call(
            _CREATE_PAYMENT_LINK,
            "/v1/payment/link",
            {
                "amount_mode": amount_mode,
                "currency": currency,
                "amount_fixed": amount_fixed,
                "amount_min": amount_min,
                "amount_max": amount_max,
                "pinned_currency": pinned_currency,
                "pinned_network": pinned_network,
                "title": title,
                "description": description,
                "expires_in": expires_in,
            },
            idempotency_key,
        )
        return result

    def list_payment_links(self, *, limit: int | None = None, offset: int | None = None) -> types.PaymentLinks:
        """List payment links.

        Returns links newest first, with those that are switched off or have expired. Needs a key of kind payment
        or unified.

        limit: The number of links on a page: 1 to 200. Any other value means 50.

        offset: The number of links to skip, from the newest. Default 0.
        """
        result: types.PaymentLinks = self.call(
            _LIST_PAYMENT_LINKS, "/v1/payment/link/list", {"limit": limit, "offset": offset}
        )
        return result

    def get_payment_link(
        self, *, link_id: str, limit: int | None = None, offset: int | None = None
    ) -> types.PaymentLinkWithPayments:
        """Read a payment link.

        Returns the link with a page of its payments, newest first. Use POST /v1/payment/history for older ones
        than offset reaches. Needs a key of kind payment or unified.

        link_id: The link's identifier.

        limit: The number of payments to show: 1 to 200. Any other value means 50.

        offset: The number of payments to skip, from the newest. Default 0.
        """
        result: types.PaymentLinkWithPayments = self.call(
            _GET_PAYMENT_LINK, "/v1/payment/link/info", {"link_id": link_id, "limit": limit, "offset": offset}
        )
        return result

    def toggle_payment_link(self, *, link_id: str, active: bool) -> types.ToggledPaymentLink:
        """Switch a payment link on or off.

        Existing payments of the link are not affected. A repeat changes nothing. Needs a key of kind payment or
        unified.

        link_id: The link's identifier.

        active: false: the link's page and checkout answer as if the link did not exist.
        """
        result: types.ToggledPaymentLink = self.call(
            _TOGGLE_PAYMENT_LINK, "/v1/payment/link/toggle", {"link_id": link_id, "active": active}
        )
        return result

    def get_link(self, link_id: str) -> types.PublicPaymentLink:
        """Read a payment link as a buyer.

        A link that is switched off or has expired answers like one that does not exist.
        """
        result: types.PublicPaymentLink = self.call(_GET_LINK, f"/v1/link/{quote(link_id, safe='')}", None)
        return result

    def check_out_link(
        self,
        link_id: str,
        *,
        amount: str | None = None,
        currency: str | None = None,
        network: str | None = None,
        payer_email: str | None = None,
    ) -> types.PublicPayment:
        """Check a payment link out.

        Creates a payment for this buyer. If the link pins no coin and the buyer names none, its status is select.
        A pinned coin may be named or omitted. The answer is also 429 while too many payments of the link are
        unpaid.

        amount: The amount that the buyer pays, in the link's currency. Ignored if the link has a fixed price.

        currency: The coin that the buyer pays in.

        network: The coin's network. May be omitted if the coin has only one.

        payer_email: The buyer's e-mail address, for a receipt, if the gateway sends e-mail.
        """
        result: types.PublicPayment = self.call(
            _CHECK_OUT_LINK,
            f"/v1/link/{quote(link_id, safe='')}/checkout",
            {"amount": amount, "currency": currency, "network": network, "payer_email": payer_email},
        )
        return result

    def list_currencies(self) -> types.Currencies:
        """List coins, networks and pricing currencies.

        Lists the coins with their networks, and the currencies that a price can have.
        """
        result: types.Currencies = self.call(_LIST_CURRENCIES, "/v1/currencies", None)
        return result

    def list_exchange_rates(self, *, currency_from: str | None = None) -> list[types.ExchangeRate]:
        """Read exchange rates.

        The rates are in USDT. A currency that is unknown, or has no fresh rate, is absent.

        currency_from: The currency. Default: all.
        """
        result: list[types.ExchangeRate] = self.call(
            _LIST_EXCHANGE_RATES, "/v1/exchange-rate/list", {"currency_from": currency_from}
        )
        return result

    def refund_payment(
        self,
        *,
        uuid: str | None = None,
        order_id: str | None = None,
        amount: str | None = None,
        address: str | None = None,
        network: str | None = None,
        idempotency_key: str | None = None,
    ) -> types.PaymentRefund:
        """Refund a payment.

        Refunds a credited payment, or a part of it, from the available balance. The recipient gets exactly the
        amount; you pay the network fee on top, and the gateway's fee is not returned. A refund to the payer's
        address is sent at once, to any other address after POST /v1/payout/approve. A repeat with the same
        payment, address and amount returns the existing refund. Needs a key of kind payout or unified.

        uuid: The object's identifier. If it is set, order_id is ignored.

        order_id: Your own reference.

        amount: The amount to refund, in the payment's coin. Default: the whole rest.

        address: The recipient's address. Default: the payment's payer_address. Any other address needs an
        approval.

        network: Must be the payment's network, if you send it.
        """
        result: types.PaymentRefund = self.call(
            _REFUND_PAYMENT,
            "/v1/payment/refund",
            {"uuid": uuid, "order_id": order_id, "amount": amount, "address": address, "network": network},
            idempotency_key,
        )
        return result

    def refund_blocked_wallet(
        self,
        *,
        refund_address: str,
        uuid: str | None = None,
        address: str | None = None,
        idempotency_key: str | None = None,
    ) -> types.WalletRefunds:
        """Refund the deposits of a blocked wallet.

        Refunds deposits that were confirmed and not credited, less the network fee, without a gateway fee. Makes
        one payout for each coin; a coin that is worth no more than its fee stays. Handles the 1000 largest
        deposits in one call. Needs a key of kind payout or unified.

        uuid: The wallet's identifier. If it is set, address is ignored.

        address: The wallet's address.

        refund_address: The address that receives the coins, on their network.
        """
        result: types.WalletRefunds = self.call(
            _REFUND_BLOCKED_WALLET,
            "/v1/wallet/blocked-address-refund",
            {"uuid": uuid, "address": address, "refund_address": refund_address},
            idempotency_key,
        )
        return result

    def get_balance(self) -> types.Balance:
        """Read the balance.

        Returns every coin, each over all its networks. total = available + maturing + payout_held + hold - debt.
        """
        result: types.Balance = self.call(_GET_BALANCE, "/v1/balance", {})
        return result

    def transfer_to_personal(
        self, *, amount: str, currency: str, order_id: str | None = None, idempotency_key: str | None = None
    ) -> types.Transferred:
        """Transfer to the personal wallet.

        Moves an available amount to the personal wallet of the merchant's owner, which all of the owner's
        merchants share. A repeat of an order_id moves nothing and gets the first answer, even if other fields
        differ. The same holds for an identical request with the same signature, whatever its Idempotency-Key: to
        move the same amount twice within a second, use two order_ids. Refused while payouts of the merchant are
        frozen, and while it owes the gateway in any coin. Needs a key of kind payout or unified.

        amount: A decimal string, with no more fractional digits than the currency has.

        currency: The coin.

        order_id: Your own reference. Always send it: a repeat with the same order_id moves nothing and gets the
        first answer.
        """
        result: types.Transferred = self.call(
            _TRANSFER_TO_PERSONAL,
            "/v1/transfer/to-personal",
            {"amount": amount, "currency": currency, "order_id": order_id},
            idempotency_key,
        )
        return result

    def create_payout(
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
        """Create a payout.

        Holds the money and sends it. order_id makes a repeat safe: each order_id has one payout for ever, and a
        repeat returns it, even if other fields differ or the payout failed. The network fee is fixed now and
        never rises. With from_currency the payout is paid in USDT, converted in the same step. If the merchant
        requires co-signing, the status is awaiting_cosign until another principal approves. Needs a key of kind
        payout or unified.

        order_id: Your own reference, at most 255 characters. A repeat with the same order_id never makes a second
        payout.

        amount: The amount, in currency. It may have no more fractional digits than the coin.

        currency: The coin to send.

        network: The network. May be omitted if the coin has only one.

        address: The recipient's address. If it mixes upper and lower case, its EIP-55 checksum must be right.

        memo: The memo, at most 120 characters; only on solana and ton.

        is_subtract: true: you pay the network fee on top of the amount; false: the fee is deducted from the
        amount. Default: your fee settings.

        from_currency: The coin of your balance that pays for it: USDT, converted at the current rate. Default:
        currency.

        priority: high: sent before normal payouts. Default normal.

        source: The origin of the payout, which answers repeat. Default api.

        url_callback: URL that receives this payout's webhooks instead of your registered endpoint, which you
        still need. Public http or https. A host in Unicode is stored as punycode.
        """
        result: types.CreatedPayout = self.call(
            _CREATE_PAYOUT,
            "/v1/payout",
            {
                "order_id": order_id,
                "amount": amount,
                "currency": currency,
                "network": network,
                "address": address,
                "memo": memo,
                "is_subtract": is_subtract,
                "from_currency": from_currency,
                "priority": priority,
                "source": source,
                "url_callback": url_callback,
            },
            idempotency_key,
        )
        return result

    def calculate_payout(
        self, *, amount: str, currency: str, network: str | None = None, is_subtract: bool | None = None
    ) -> types.PayoutQuote:
        """Calculate a payout.

        Returns the present cost and result of a payout without making it. Any amount is allowed, also below the
        smallest payout or above the balance. commission is the network fee. Needs a key of kind payout or
        unified.

        amount: The amount, in currency. It may have no more fractional digits than the coin.

        currency: The coin to send.

        network: The network. May be omitted if the coin has only one.

        is_subtract: true: you pay the network fee on top of the amount; false: the fee is deducted from the
        amount. Default: your fee settings.
        """
        result: types.PayoutQuote = self.call(
            _CALCULATE_PAYOUT,
            "/v1/payout/calculate",
            {"amount": amount, "currency": currency, "network": network, "is_subtract": is_subtract},
        )
        return result

    def create_payouts(
        self,
        *,
        payouts: Sequence[types.CreatePayout],
        source: types.CreatePayoutSource | None = None,
        idempotency_key: str | None = None,
    ) -> types.MassResult:
        """Create up to 100 payouts.

        Makes each payout independently: one that is refused or malformed stops no other. items are in the order
        of the request. Each order_id makes its payout safe to repeat, and so the whole call: after a 503 no
        payout was made; send the call again. An Idempotency-Key covers the whole call, with its refusals. Needs a
        key of kind payout or unified.

        payouts: 1 to 100 payouts, in the form of POST /v1/payout. A malformed one fails alone.

        source: The source of payouts that have none of their own. Default api.
        """
        result: types.MassResult = self.call(
            _CREATE_PAYOUTS, "/v1/payout/mass", {"payouts": payouts, "source": source}, idempotency_key
        )
        return result

    def set_payout_fees(self, *, is_subtract: bool | None = None) -> types.PayoutFees:
        """Choose who bears the network fee.

        Sets the default of is_subtract for payouts without it. true, the initial setting: you pay the fee on top
        of the amount; false: the fee is deducted from the amount. An empty body reads the setting. Needs a key of
        kind payout or unified.

        is_subtract: The new setting. Omit it to read the present one.
        """
        result: types.PayoutFees = self.call(_SET_PAYOUT_FEES, "/v1/payout/fee-settings", {"is_subtract": is_subtract})
        return result

    def get_payout(self, *, uuid: str | None = None, order_id: str | None = None) -> types.Payout:
        """Read a payout.

        Finds the payout by uuid, or else by order_id. A refund, a claimed cheque and an automatic withdrawal are
        payouts. Needs a key of kind payout or unified.

        uuid: The object's identifier. If it is set, order_id is ignored.

        order_id: Your own reference.
        """
        result: types.Payout = self.call(_GET_PAYOUT, "/v1/payout/info", {"uuid": uuid, "order_id": order_id})
        return result

    def list_payouts(
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
        """List payouts.

        Newest first. next_cursor is null on the last page. Needs a key of kind payout or unified.

        limit: The number of items on a page: 1 to 200. Any other value means 50.

        cursor: The next_cursor of the previous page. Default: the first page.

        status: Only payouts with this status. Default: all.

        currency: Only payouts of this coin.

        network: Only payouts on this network.

        order_id: Your own reference.

        date_from: Only those created at this time or later.

        date_to: Only those created before this time. A date without time includes that day.
        """
        result: types.PayoutPage = self.call(
            _LIST_PAYOUTS,
            "/v1/payout/history",
            {
                "limit": limit,
                "cursor": cursor,
                "status": status,
                "currency": currency,
                "network": network,
                "order_id": order_id,
                "date_from": date_from,
                "date_to": date_to,
            },
        )
        return result

    def iter_payouts(
        self,
        *,
        limit: int | None = None,
        status: Literal["", "awaiting_cosign", "cancel", "check", "fail", "paid", "process"] | None = None,
        currency: str | None = None,
        network: str | None = None,
        order_id: str | None = None,
        date_from: str | None = None,
        date_to: str | None = None,
    ) -> Iterator[types.Payout]:
        """List payouts, all pages; `limit` is the size of one."""
        cursor: str | None = None
        while True:
            page = self.list_payouts(
                limit=limit,
                status=status,
                currency=currency,
                network=network,
                order_id=order_id,
                date_from=date_from,
                date_to=date_to,
                cursor=cursor,
            )
            yield from page["items"]
            cursor = page["next_cursor"]
            if not cursor:
                return

    def list_payout_methods(self) -> types.PayoutServices:
        """List payout methods.

        Returns every coin on every network, with its smallest amount and the present cost of a payout.
        is_available is false while a payout would be refused or would wait: this gateway does not serve the
        network or is behind its chain, does not know the fee or the coin's rate, has no addresses left, or
        payouts are frozen. Needs a key of kind payout or unified.
        """
        result: types.PayoutServices = self.call(_LIST_PAYOUT_METHODS, "/v1/payout/services", {})
        return result

    def approve_payout(self, *, uuid: str | None = None, order_id: str | None = None) -> types.Payout:
        """Approve a payout.

        Finds the payout by uuid, or else by order_id. Needed for a refund to another address than the payer's,
        and for every payout of a merchant with co-signing. The approver is the key that signs the request. It
        must differ from the key that made the payout, and from earlier approvers. With co-signing, a payout that
        waits for approval first becomes awaiting_cosign and needs a second approval. Needs a key of kind payout
        or unified.

        uuid: The object's identifier. If it is set, order_id is ignored.

        order_id: Your own reference.
        """
        result: types.Payout = self.call(_APPROVE_PAYOUT, "/v1/payout/approve", {"uuid": uuid, "order_id": order_id})
        return result

    def cancel_payout(self, *, uuid: str | None = None, order_id: str | None = None) -> types.Payout:
        """Cancel a payout.

        Finds the payout by uuid, or else by order_id. Only while it waits for approval or for a co-signature. The
        held amount becomes available again. Its order_id cannot be used again. Needs a key of kind payout or
        unified.

        uuid: The object's identifier. If it is set, order_id is ignored.

        order_id: Your own reference.
        """
        result: types.Payout = self.call(_CANCEL_PAYOUT, "/v1/payout/cancel", {"uuid": uuid, "order_id": order_id})
        return result

    def set_auto_withdraw(
        self,
        *,
        currency: str | None = None,
        network: str | None = None,
        address: str | None = None,
        threshold: str | None = None,
        enabled: bool | None = None,
    ) -> types.AutoWithdraw:
        """Set up automatic withdrawals.

        Each coin has at most one rule: when the available balance reaches the threshold, all of it is sent to the
        address, less the network fee, as a payout with source manual and an order_id that begins with
        autowithdraw:. A coin has one such payout at a time, and none while payouts are frozen or you owe the
        gateway. If the merchant requires co-signing, a new or changed rule is awaiting_cosign and sends nothing
        until another principal of the merchant sends the same address and threshold. Omitted fields keep their
        value; another network replaces the rule. An empty body reads all rules, a currency alone the rule of that
        coin. Needs a key of kind payout or unified.

        currency: The coin. Each coin has at most one rule.

        network: The network of the payouts. May be omitted if the coin has only one network, or already has a
        rule. Another network than the rule's replaces the rule.

        address: Your address for the payouts. Omit it to keep the present one.

        threshold: When the available balance reaches this amount, all of it is paid out. In currency; at least
        the smallest payout. Omit it to keep the present one.

        enabled: true: the rule makes payouts. Omit it to keep the setting; default true for a new rule.
        """
        result: types.AutoWithdraw = self.call(
            _SET_AUTO_WITHDRAW,
            "/v1/auto-withdraw",
            {"currency": currency, "network": network, "address": address, "threshold": threshold, "enabled": enabled},
        )
        return result

    def create_payout_link(
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
        """Create a payout link.

        Holds the amount and the network fee for a recipient, who opens claim_url and names an address.
        claim_token and claim_url are shown only here. Idempotency-Key has no effect: a second link with the same
        reference is refused; without a reference, an identical request with the same signature gets the first
        answer. Needs a key of kind payout or unified.

        currency: The coin.

        amount: The amount that the recipient gets, in currency. You pay the network fee on top.

        network: The network. May be omitted if the coin has only one.

        reference: Your own reference, at most 255 characters. A second link with the same reference is refused.

        title: Title that the recipient sees, at most 255 characters.

        note: Message to the recipient, at most 4096 characters.

        email: The recipient's e-mail address. The claim link is sent to it, if the gateway sends e-mail.

        expires_in_hours: Hours until the link expires: 1 to 720, default 1. A value outside is set to the nearest
        limit.
        """
        result: types.CreatedPayoutLink = self.call(
            _CREATE_PAYOUT_LINK,
            "/v1/payout/link",
            with_reference(
                {
                    "currency": currency,
                    "amount": amount,
                    "network": network,
                    "reference": reference,
                    "title": title,
                    "note": note,
                    "email": email,
                    "expires_in_hours": expires_in_hours,
                }
            ),
        )
        return result

    def create_payout_links(self, *, links: Sequence[types.CreatePayoutLink]) -> types.PayoutLinkBatch:
        """Create several payout links.

        Each link is made, or fails, independently, with the codes of POST /v1/payout/link. An identical request
        with the same signature makes no further links. After a 503 no link was made. Needs a key of kind payout
        or unified.

        links: 1 to 500 links, in the form of POST /v1/payout/link. A malformed one fails alone.
        """
        result: types.PayoutLinkBatch = self.call(
            _CREATE_PAYOUT_LINKS, "/v1/payout/link/batch", with_references({"links": links})
        )
        return result

    def list_payout_links(self, *, limit: int | None = None, offset: int | None = None) -> types.PayoutLinks:
        """List payout links.

        Returns links newest first, without their tokens. Needs a key of kind payout or unified.

        limit: The number of items on a page: 1 to 200. Any other value means 50.

        offset: The number of links to skip, from the newest. Default 0.
        """
        result: types.PayoutLinks = self.call(
            _LIST_PAYOUT_LINKS, "/v1/payout/link/list", {"limit": limit, "offset": offset}
        )
        return result

    def get_payout_link(self, *, link_id: str) -> types.PayoutLink:
        """Read a payout link.

        After the claim, the answer has the payout's id and the recipient's address. Needs a key of kind payout or
        unified.

        link_id: The link's identifier.
        """
        result: types.PayoutLink = self.call(_GET_PAYOUT_LINK, "/v1/payout/link/info", {"link_id": link_id})
        return result

    def cancel_payout_link(self, *, link_id: str) -> types.PayoutLink:
        """Cancel a payout link.

        Cancels a funded link. A link that is already cancelled or claimed is returned unchanged. Needs a key of
        kind payout or unified.

        link_id: The link's identifier.
        """
        result: types.PayoutLink = self.call(_CANCEL_PAYOUT_LINK, "/v1/payout/link/cancel", {"link_id": link_id})
        return result

    def get_claim(self, token: str) -> types.PublicPayoutLink:
        """Read a payout link as its recipient.

        Shows the holder of the token the amount, and whether the link can be claimed.
        """
        result: types.PublicPayoutLink = self.call(_GET_CLAIM, f"/v1/claim/{quote(token, safe='')}", None)
        return result

    def claim_payout_link(self, token: str, *, address: str, memo: str | None = None) -> types.ClaimedLink:
        """Claim a payout link.

        Makes a payout to the recipient's address. A repeat with the same address gets the same payout; another
        address is refused. A refusal because of the address leaves the link unchanged.

        address: The recipient's address on the link's network.

        memo: The memo, at most 120 characters; only on solana and ton.
        """
        result: types.ClaimedLink = self.call(
            _CLAIM_PAYOUT_LINK, f"/v1/claim/{quote(token, safe='')}", {"address": address, "memo": memo}
        )
        return result

    def create_wallet(
        self,
        *,
        currency: str,
        network: str | None = None,
        order_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> types.Wallet:
        """Create a static wallet.

        Creates a permanent address. There is one for each currency, network and order_id, and a repeat returns
        it. Every deposit of a coin of the catalogue on its network, from the network's smallest deposit on, is
        credited less the percent fee, and announced by wallet.paid. Needs a key of kind payment or unified.

        currency: The coin of the wallet.

        network: The network. May be omitted if the coin has only one.

        order_id: Your reference for a customer. Each order_id has its own wallet; there is one more without an
        order_id.
        """
        result: types.Wallet = self.call(
            _CREATE_WALLET,
            "/v1/wallet",
            {"currency": currency, "network": network, "order_id": order_id},
            idempotency_key,
        )
        return result

    def block_wallet(self, *, address: str, is_force_block: bool | None = None) -> types.WalletBlock:
        """Block or unblock a static wallet.

        Deposits to a blocked wallet are held once they are confirmed, and credited when the wallet is unblocked.
        Needs a key of kind payment or unified.

        address: The wallet's address.

        is_force_block: true: block the wallet; false: unblock it. Default true.
        """
        result: types.WalletBlock = self.call(
            _BLOCK_WALLET, "/v1/wallet/block", {"address": address, "is_force_block": is_force_block}
        )
        return result

    def get_wallet(
        self,
        *,
        uuid: str | None = None,
        address: str | None = None,
        limit: int | None = None,
        offset: int | None = None,
    ) -> types.WalletInfo:
        """Read a static wallet.

        Finds the wallet by uuid, or else by address. Its deposits are newest first. Needs a key of kind payment
        or unified.

        uuid: The wallet's identifier. If it is set, address is ignored.

        address: The wallet's address.

        limit: The number of deposits to show: 1 to 200. Any other value means 50.

        offset: The number of deposits to skip, from the newest. Default 0.
        """
        result: types.WalletInfo = self.call(
            _GET_WALLET, "/v1/wallet/info", {"uuid": uuid, "address": address, "limit": limit, "offset": offset}
        )
        return result

    def render_qr(self, *, address: str) -> types.Image:
        """Render a QR code.

        Draws an address or any other text. The image is empty if the text is too long for a QR code. Needs a key
        of kind payment or unified.

        address: The text to encode, usually an address.
        """
        result: types.Image = self.call(_RENDER_QR, "/v1/wallet/qr", {"address": address})
        return result

    def create_payment_batch(
        self,
        *,
        payments: Sequence[types.CreatePayment],
        on_error: types.CreatePaymentBatchOnError | None = None,
        idempotency_key: str | None = None,
    ) -> types.BatchCreated:
        """Create payments.

        1 to 5000 items, taken at once and done afterwards: read them with POST /v1/batch/info. An item that is
        malformed or refused fails by itself. With on_error stop they are done in order, and after the first
        failure the rest is skipped. Idempotency-Key covers the whole batch; an item is recognised by its
        order_id. Needs a key of kind payment or unified.

        on_error: stop: items are handled in order, and the first failure skips the rest; continue: each item is
        handled. Default continue.

        payments: 1 to 5000 payments, in the form of POST /v1/payment. A malformed one fails alone.
        """
        result: types.BatchCreated = self.call(
            _CREATE_PAYMENT_BATCH, "/v1/payment/batch", {"on_error": on_error, "payments": payments}, idempotency_key
        )
        return result

    def create_payout_batch(
        self,
        *,
        payouts: Sequence[types.CreatePayout],
        on_error: types.CreatePaymentBatchOnError | None = None,
        idempotency_key: str | None = None,
    ) -> types.BatchCreated:
        """Create payouts.

        1 to 5000 items, taken at once and done afterwards: read them with POST /v1/batch/info. An item that is
        malformed or refused fails by itself. With on_error stop they are done in order, and after the first
        failure the rest is skipped. Idempotency-Key covers the whole batch; an item is recognised by its
        order_id, which is required. One whose funds are still maturing fails and can be sent again in another
        batch. Needs a key of kind payout or unified.

        on_error: stop: items are handled in order, and the first failure skips the rest; continue: each item is
        handled. Default continue.

        payouts: 1 to 5000 payouts, in the form of POST /v1/payout. A malformed one fails alone.
        """
        result: types.BatchCreated = self.call(
            _CREATE_PAYOUT_BATCH, "/v1/payout/batch", {"on_error": on_error, "payouts": payouts}, idempotency_key
        )
        return result

    def create_refund_batch(
        self,
        *,
        refunds: Sequence[types.CreateRefund],
        on_error: types.CreatePaymentBatchOnError | None = None,
        idempotency_key: str | None = None,
    ) -> types.BatchCreated:
        """Create refunds.

        1 to 5000 items, taken at once and done afterwards: read them with POST /v1/batch/info. An item that is
        malformed or refused fails by itself. With on_error stop they are done in order, and after the first
        failure the rest is skipped. Idempotency-Key covers the whole batch; an item is recognised by payment,
        address and amount. Needs a key of kind payout or unified.

        on_error: stop: items are handled in order, and the first failure skips the rest; continue: each item is
        handled. Default continue.

        refunds: 1 to 5000 refunds, in the form of POST /v1/payment/refund. A malformed one fails alone.
        """
        result: types.BatchCreated = self.call(
            _CREATE_REFUND_BATCH, "/v1/refund/batch", {"on_error": on_error, "refunds": refunds}, idempotency_key
        )
        return result

    def get_batch(self, *, batch_id: str, limit: int | None = None, offset: int | None = None) -> types.BatchInfo:
        """Read a batch.

        completed means that all items are handled, not that all succeeded. An item's result is the created
        object; its error is the one that its own endpoint would have returned.

        batch_id: The batch's identifier.

        limit: The number of items to show: 1 to 5000. Default, and any other value: all.

        offset: The number of items to skip, from the first. Default 0.
        """
        result: types.BatchInfo = self.call(
            _GET_BATCH, "/v1/batch/info", {"batch_id": batch_id, "limit": limit, "offset": offset}
        )
        return result

    def register_webhook(self, *, url: str) -> types.WebhookEndpoint:
        """Register the webhook endpoint.

        A merchant has one endpoint: a repeat replaces the URL and makes a new secret, which is shown only once.
        If you lose the answer, call again. The answer is the bare object. Needs a key of kind payment or unified.

        url: A public https URL. A host in Unicode is stored as punycode.
        """
        result: types.WebhookEndpoint = self.call(_REGISTER_WEBHOOK, "/v1/webhooks", {"url": url})
        return result

    def list_webhook_deliveries(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        status: Literal["dead", "delivered", "pending", "retrying", ""] | None = None,
        uuid: str | None = None,
        event: types.ListDeliveriesEvent | None = None,
    ) -> types.DeliveryPage:
        """List webhook deliveries.

        Newest first. next_cursor is null on the last page.

        limit: The number of items on a page: 1 to 200. Any other value means 50.

        cursor: The next_cursor of the previous page. Default: the first page.

        status: Only deliveries with this status. Default: all.

        uuid: The identifier of the event's payment, wallet or payout.

        event: Only deliveries of this event. Default: all.
        """
        result: types.DeliveryPage = self.call(
            _LIST_WEBHOOK_DELIVERIES,
            "/v1/webhooks/deliveries",
            {"limit": limit, "cursor": cursor, "status": status, "uuid": uuid, "event": event},
        )
        return result

    def iter_webhook_deliveries(
        self,
        *,
        limit: int | None = None,
        status: Literal["dead", "delivered", "pending", "retrying", ""] | None = None,
        uuid: str | None = None,
        event: types.ListDeliveriesEvent | None = None,
    ) -> Iterator[types.Delivery]:
        """List webhook deliveries, all pages; `limit` is the size of one."""
        cursor: str | None = None
        while True:
            page = self.list_webhook_deliveries(limit=limit, status=status, uuid=uuid, event=event, cursor=cursor)
            yield from page["items"]
            cursor = page["next_cursor"]
            if not cursor:
                return

    def redeliver_webhook(self, *, delivery_id: str) -> types.Delivery:
        """Send a webhook again.

        Sends the same delivery again, with its id and body, in any status; its attempts are counted from 0 again.
        A delivery whose body was deleted cannot be sent again. Needs a key of kind payment or unified.

        delivery_id: The delivery's identifier in the delivery log.
        """
        result: types.Delivery = self.call(_REDELIVER_WEBHOOK, "/v1/webhooks/redeliver", {"delivery_id": delivery_id})
        return result

    def test_webhook(self, *, event: types.ListDeliveriesEvent | None = None) -> types.WebhookTrial:
        """Test the webhook endpoint.

        Sends one signed webhook to the registered endpoint at once and waits for its answer, up to 10 seconds.
        The body has the form of the event, a uuid of zeros and `"test": true`. It is not repeated. A merchant can
        run one test at a time; a second one gets gateway.busy. Needs a key of kind payment or unified.

        event: The event to send. Default invoice.paid.
        """
        result: types.WebhookTrial = self.call(_TEST_WEBHOOK, "/v1/webhooks/test", {"event": event})
        return result

    def set_ip_allowlist(self, *, ips: Sequence[str] | None = None) -> types.IpAllowlist:
        """Read or set the IP allowlist.

        The gateway refuses requests with your keys from any other source address, a second later at most. Omit
        ips to read the list; an empty list allows every address. Needs a key of kind payout or unified.

        ips: IP addresses, and networks in CIDR notation. Omit it to read the list; [] allows all addresses.
        """
        result: types.IpAllowlist = self.call(_SET_IP_ALLOWLIST, "/v1/ip-allowlist", {"ips": ips})
        return result

    def add_split_rule(
        self,
        *,
        recipient_merchant_id: str,
        percent: float,
        title: str | None = None,
        idempotency_key: str | None = None,
    ) -> types.SplitRule:
        """Share credits with another merchant.

        From now on this percentage of each credit of payments and static wallets, after fees and after the
        repayment of a debt, is held and then goes to the recipient. It is rounded down to the coin's precision.
        Two rules may name the same recipient; send an Idempotency-Key, so that a repeat makes no second rule. If
        the merchant requires co-signing, the rule is awaiting_cosign and shares nothing until another principal
        of the merchant sends the same recipient, percent and title. Needs a key of kind payout or unified.

        recipient_merchant_id: The merchant of this gateway that receives the share.

        percent: Percent of the net credit: 0.01 to 100, at most 2 fractional digits. All rules together: at most
        100.

        title: Your name for the rule, at most 255 characters.
        """
        result: types.SplitRule = self.call(
            _ADD_SPLIT_RULE,
            "/v1/split/rule",
            {"recipient_merchant_id": recipient_merchant_id, "percent": percent, "title": title},
            idempotency_key,
        )
        return result

    def list_split_rules(self) -> types.SplitRules:
        """List the rules.

        All rules, newest first, with those that wait for a co-signature and without those of revoked keys. A
        merchant has at most 100. Needs a key of kind payout or unified.
        """
        result: types.SplitRules = self.call(_LIST_SPLIT_RULES, "/v1/split/rule/list", {})
        return result

    def delete_split_rule(self, *, rule_id: str) -> types.DeletedRule:
        """Delete a rule.

        The rule shares no later credit. Shares that are already held still go to their recipient. Needs a key of
        kind payout or unified.

        rule_id: The rule's identifier.
        """
        result: types.DeletedRule = self.call(_DELETE_SPLIT_RULE, "/v1/split/rule/delete", {"rule_id": rule_id})
        return result

    def get_split_config(self) -> types.SplitConfig:
        """Read the settings of split rules.

        Also returns the shares that the merchant has received by the rules of others. Needs a key of kind payout
        or unified.
        """
        result: types.SplitConfig = self.call(_GET_SPLIT_CONFIG, "/v1/split/config/get", {})
        return result

    def set_split_config(
        self, *, enabled: bool | None = None, refund_hold_hours: int | None = None
    ) -> types.SplitConfig:
        """Set the settings of split rules.

        Sets if rules apply to credits from now on (at first true), and for how many hours their shares are held
        (at first 0). Refunds during that time reduce a held share. Shares that are already held keep their time.
        Omitted fields keep their setting. Needs a key of kind payout or unified.

        enabled: true: rules apply to new credits. Omit it to keep the setting.

        refund_hold_hours: Hours that a share is held after its credit: 0 to 2160. Omit it to keep the setting.
        """
        result: types.SplitConfig = self.call(
            _SET_SPLIT_CONFIG, "/v1/split/config/set", {"enabled": enabled, "refund_hold_hours": refund_hold_hours}
        )
        return result

    def get_health(self) -> types.Health:
        """Is the process alive?.

        Answers while the process serves requests at all; it asks neither store.
        """
        result: types.Health = self.call(_GET_HEALTH, "/healthz", None)
        return result

    def get_readiness(self) -> types.Readiness:
        """Can the gateway serve?.

        Checks PostgreSQL, its writes, Redis and the schema, but no chain. attention names further faults for the
        operator. They do not make the gateway unready, since a web process cannot mend them.
        """
        result: types.Readiness = self.call(_GET_READINESS, "/readyz", None)
        return result

    def get_metrics(self) -> str:
        """Metrics in Prometheus's format.

        Requires Authorization: Bearer METRICS_TOKEN. A production gateway without that setting has no metrics
        page.
        """
        result: str = self.call(_GET_METRICS, "/metrics", None)
        return result
