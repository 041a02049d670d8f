// Types of the client. Made by sdk/generate.py from the gateway's description.

export class SluiceError extends Error {}
export class ConnectionFailedError extends SluiceError {}
export class UnexpectedAnswerError extends SluiceError {
  readonly status: number;
}
export class InvalidWebhookError extends SluiceError {}
export class RateLimitedError extends SluiceError {
  readonly retryAfterS: number;
}
export class ApiError extends SluiceError {
  readonly code: string;
  readonly status: number;
  readonly requestId: string;
  readonly retryAfterS: number;
}
export class AcceptedError extends ApiError {}
export class AccuracyError extends ApiError {}
export class AllowlistError extends ApiError {}
export class AuthError extends ApiError {}
export class AutowithdrawError extends ApiError {}
export class BatchError extends ApiError {}
export class ComplianceError extends ApiError {}
export class DiscountError extends ApiError {}
export class EmailError extends ApiError {}
export class GatewayError extends ApiError {}
export class IdempotencyError extends ApiError {}
export class InvoiceError extends ApiError {}
export class MerchantError extends ApiError {}
export class PayError extends ApiError {}
export class PaylinkError extends ApiError {}
export class PaymentError extends ApiError {}
export class PayoutError extends ApiError {}
export class PayoutlinkError extends ApiError {}
export class PersonalError extends ApiError {}
export class QrError extends ApiError {}
export class RefundError extends ApiError {}
export class RequestError extends ApiError {}
export class SplitError extends ApiError {}
export class TransferError extends ApiError {}
export class WalletError extends ApiError {}
export class WebhookError extends ApiError {}
export class ClockSkewError extends AuthError {
  readonly skewS: number;
}

export function sign(secret: string, timestamp: string, method: string, path: string, body: string | Uint8Array): string;
export function verifyWebhook(
  body: string | Uint8Array,
  headers: Headers | Record<string, string | string[] | undefined>,
  secrets: string | readonly string[],
  options?: { toleranceS?: number; now?: number },
): PaymentEvent | WalletEvent | PayoutEvent;

export interface SluiceOptions {
  /** The gateway's address, https except on this machine. */
  url: string;
  publicId: string;
  secret: string;
  /** Milliseconds for one attempt. Default 30000. */
  timeoutMs?: number;
  /** Attempts of a call that can be repeated safely. Default 3. */
  attempts?: number;
}
export interface CallOptions {
  /** The same value on all attempts of one action; the library makes one for each call. */
  idempotencyKey?: string;
  signal?: AbortSignal;
}

export class Sluice {
  constructor(options: SluiceOptions);
  /** Create a payment. Creates a payment with a price and a deposit address. Without to_currency and network, the buyer chooses a coin on the hosted page, among those that allow a payment of this size; if none does, the answer is payment.below_minimum. A repeat with the order_id of a live payment returns that payment, and X-Differing-Fields names the price and coin that it asks for in vain; a repeat with the same Idempotency-Key returns the stored answer. Needs a key of kind payment or unified. */
  createPayment(fields: CreatePayment, options?: CallOptions): Promise<Payment>;
  /** Read a payment. Finds the payment by uuid, or else by order_id: the newest live payment, else the newest of all. Needs a key of kind payment or unified. */
  getPayment(fields?: PaymentLookup, options?: CallOptions): Promise<PaymentInfo>;
  /** List payments. Newest first. next_cursor is null on the last page. Needs a key of kind payment or unified. */
  listPayments(fields?: PaymentHistory, options?: CallOptions): Promise<PaymentPage>;
  iterPayments(fields?: Omit<PaymentHistory, "cursor">): AsyncGenerator<Payment>;
  /** Render a payment's QR code. The code has the deposit address; before the buyer has chosen a coin, the URL of the payment page. Needs a key of kind payment or unified. */
  getPaymentQr(fields?: PaymentLookup, options?: CallOptions): Promise<Image>;
  /** List payment methods. Returns every coin on every network, with limits and fees. is_available is false for a method that you do not accept, and while the network's scan is halted or behind, no address is left, or the coin has no fresh rate. Needs a key of kind payment or unified. */
  listPaymentMethods(fields?: Empty, options?: CallOptions): Promise<PaymentServices>;
  /** Resolve a payment. accept credits the paid sum in place of the price, and the payment becomes paid. refund sends the sum back, less the network fee, and the payment becomes final once the refund is confirmed. With txid, both apply to that stray deposit, in its own coin and in any status of the payment. accept needs a payment key, refund a payout key. */
  resolvePayment(fields: ResolvePayment, options?: CallOptions): Promise<ResolvedPayment>;
  /** Send a payment's webhooks again. Sends the webhook of the latest status again, with the same id. Needs a key of kind payment or unified. */
  resendPayment(fields?: PaymentLookup, options?: CallOptions): Promise<Resent>;
  /** E-mail a payment's receipt or page. Sends the receipt of a paid or paid_over payment, else the link to its page; to email, or else to the payment's payer_email. After five an hour for one payment, the answer is 429 with Retry-After. Needs a key of kind payment or unified. */
  sendPaymentEmail(fields?: SendPaymentEmail, options?: CallOptions): Promise<QueuedEmail>;
  /** Read or set the accepted methods. Sets the coins and networks that buyers may pay with. Payments that have a coin keep it. Omit accepted to read the list; an empty list accepts every method. Needs a key of kind payment or unified. */
  setAcceptedMethods(fields?: SetAccepted, options?: CallOptions): Promise<AcceptedMethods>;
  /** Read or set discounts. Sets a percentage that is taken off the price, or added if it is negative, if the buyer pays with a coin. A payment takes it with its first quote and keeps it. 0 ends a discount. The answer has all discounts that are then set. Omit discount_percent to read them: all, or those of a coin or network. Needs a key of kind payment or unified. */
  setDiscount(fields?: SetDiscount, options?: CallOptions): Promise<Discounts>;
  /** Read or set the tolerance. Sets by how much a buyer may pay less or more, including both bounds, for new payments without accuracy_payment_percent. An empty body reads the setting. Needs a key of kind payment or unified. */
  setAccuracy(fields?: SetAccuracy, options?: CallOptions): Promise<Accuracy>;
  /** Read the history of a payment. Returns the events of a payment, oldest first, at most 1000: of more, the creation and the newest. detail shows what a deposit waits for, and the sum that an expired payment lacks. Needs a key of kind payment or unified. */
  getPaymentTimeline(fields?: PaymentLookup, options?: CallOptions): Promise<Timeline>;
  /** Read a payment as its buyer. Poll it with If-None-Match: the answer is 304 while nothing changes. */
  getPublicPayment(invoiceId: string, options?: CallOptions): Promise<PublicPayment>;
  /** Choose coin and network. Sets coin, rate and address of a payment whose status is select. The expiry stays the same. */
  selectMethod(invoiceId: string, fields: MethodChoice, options?: CallOptions): Promise<PublicPayment>;
  /** Create a payment link. Creates a page on which any number of buyers pay, each with a payment of its own. Fields of other modes are ignored. Without a pinned coin the buyer chooses among those that you accept. Honours Idempotency-Key. Needs a key of kind payment or unified. */
  createPaymentLink(fields: CreatePaymentLink, options?: CallOptions): Promise<CreatedPaymentLink>;
  /** List payment links. Returns links newest first, with those that are switched off or have expired. Needs a key of kind payment or unified. */
  listPaymentLinks(fields?: PaymentLinkPage, options?: CallOptions): Promise<PaymentLinks>;
  /** Read a payment link. Returns the link with a page of its payments, newest first. Use POST /v1/payment/history for older ones than offset reaches. Needs a key of kind payment or unified. */
  getPaymentLink(fields: PaymentLinkInfo, options?: CallOptions): Promise<PaymentLinkWithPayments>;
  /** Switch a payment link on or off. Existing payments of the link are not affected. A repeat changes nothing. Needs a key of kind payment or unified. */
  togglePaymentLink(fields: TogglePaymentLink, options?: CallOptions): Promise<ToggledPaymentLink>;
  /** Read a payment link as a buyer. A link that is switched off or has expired answers like one that does not exist. */
  getLink(linkId: string, options?: CallOptions): Promise<PublicPaymentLink>;
  /** Check a payment link out. Creates a payment for this buyer. If the link pins no coin and the buyer names none, its status is select. A pinned coin may be named or omitted. The answer is also 429 while too many payments of the link are unpaid. */
  checkOutLink(linkId: string, fields?: BuyersOrder, options?: CallOptions): Promise<PublicPayment>;
  /** List coins, networks and pricing currencies. Lists the coins with their networks, and the currencies that a price can have. */
  listCurrencies(options?: CallOptions): Promise<Currencies>;
  /** Read exchange rates. The rates are in USDT. A currency that is unknown, or has no fresh rate, is absent. */
  listExchangeRates(fields?: RateQuery, options?: CallOptions): Promise<Array<ExchangeRate>>;
  /** Refund a payment. Refunds a credited payment, or a part of it, from the available balance. The recipient gets exactly the amount; you pay the network fee on top, and the gateway's fee is not returned. A refund to the payer's address is sent at once, to any other address after POST /v1/payout/approve. A repeat with the same payment, address and amount returns the existing refund. Needs a key of kind payout or unified. */
  refundPayment(fields?: CreateRefund, options?: CallOptions): Promise<PaymentRefund>;
  /** Refund the deposits of a blocked wallet. Refunds deposits that were confirmed and not credited, less the network fee, without a gateway fee. Makes one payout for each coin; a coin that is worth no more than its fee stays. Handles the 1000 largest deposits in one call. Needs a key of kind payout or unified. */
  refundBlockedWallet(fields: BlockedRefund, options?: CallOptions): Promise<WalletRefunds>;
  /** Read the balance. Returns every coin, each over all its networks. total = available + maturing + payout_held + hold - debt. */
  getBalance(fields?: Empty, options?: CallOptions): Promise<Balance>;
  /** Transfer to the personal wallet. Moves an available amount to the personal wallet of the merchant's owner, which all of the owner's merchants share. A repeat of an order_id moves nothing and gets the first answer, even if other fields differ. The same holds for an identical request with the same signature, whatever its Idempotency-Key: to move the same amount twice within a second, use two order_ids. Refused while payouts of the merchant are frozen, and while it owes the gateway in any coin. Needs a key of kind payout or unified. */
  transferToPersonal(fields: ToPersonal, options?: CallOptions): Promise<Transferred>;
  /** Create a payout. Holds the money and sends it. order_id makes a repeat safe: each order_id has one payout for ever, and a repeat returns it, even if other fields differ or the payout failed. The network fee is fixed now and never rises. With from_currency the payout is paid in USDT, converted in the same step. If the merchant requires co-signing, the status is awaiting_cosign until another principal approves. Needs a key of kind payout or unified. */
  createPayout(fields: CreatePayout, options?: CallOptions): Promise<CreatedPayout>;
  /** Calculate a payout. Returns the present cost and result of a payout without making it. Any amount is allowed, also below the smallest payout or above the balance. commission is the network fee. Needs a key of kind payout or unified. */
  calculatePayout(fields: CalculatePayout, options?: CallOptions): Promise<PayoutQuote>;
  /** Create up to 100 payouts. Makes each payout independently: one that is refused or malformed stops no other. items are in the order of the request. Each order_id makes its payout safe to repeat, and so the whole call: after a 503 no payout was made; send the call again. An Idempotency-Key covers the whole call, with its refusals. Needs a key of kind payout or unified. */
  createPayouts(fields: MassPayout, options?: CallOptions): Promise<MassResult>;
  /** Choose who bears the network fee. Sets the default of is_subtract for payouts without it. true, the initial setting: you pay the fee on top of the amount; false: the fee is deducted from the amount. An empty body reads the setting. Needs a key of kind payout or unified. */
  setPayoutFees(fields?: PayoutFeeSettings, options?: CallOptions): Promise<PayoutFees>;
  /** Read a payout. Finds the payout by uuid, or else by order_id. A refund, a claimed cheque and an automatic withdrawal are payouts. Needs a key of kind payout or unified. */
  getPayout(fields?: PayoutLookup, options?: CallOptions): Promise<Payout>;
  /** List payouts. Newest first. next_cursor is null on the last page. Needs a key of kind payout or unified. */
  listPayouts(fields?: PayoutHistory, options?: CallOptions): Promise<PayoutPage>;
  iterPayouts(fields?: Omit<PayoutHistory, "cursor">): AsyncGenerator<Payout>;
  /** List payout methods. Returns every coin on every network, with its smallest amount and the present cost of a payout. is_available is false while a payout would be refused or would wait: this gateway does not serve the network or is behind its chain, does not know the fee or the coin's rate, has no addresses left, or payouts are frozen. Needs a key of kind payout or unified. */
  listPayoutMethods(fields?: Empty, options?: CallOptions): Promise<PayoutServices>;
  /** Approve a payout. Finds the payout by uuid, or else by order_id. Needed for a refund to another address than the payer's, and for every payout of a merchant with co-signing. The approver is the key that signs the request. It must differ from the key that made the payout, and from earlier approvers. With co-signing, a payout that waits for approval first becomes awaiting_cosign and needs a second approval. Needs a key of kind payout or unified. */
  approvePayout(fields?: PayoutLookup, options?: CallOptions): Promise<Payout>;
  /** Cancel a payout. Finds the payout by uuid, or else by order_id. Only while it waits for approval or for a co-signature. The held amount becomes available again. Its order_id cannot be used again. Needs a key of kind payout or unified. */
  cancelPayout(fields?: PayoutLookup, options?: CallOptions): Promise<Payout>;
  /** Set up automatic withdrawals. Each coin has at most one rule: when the available balance reaches the threshold, all of it is sent to the address, less the network fee, as a payout with source manual and an order_id that begins with autowithdraw:. A coin has one such payout at a time, and none while payouts are frozen or you owe the gateway. If the merchant requires co-signing, a new or changed rule is awaiting_cosign and sends nothing until another principal of the merchant sends the same address and threshold. Omitted fields keep their value; another network replaces the rule. An empty body reads all rules, a currency alone the rule of that coin. Needs a key of kind payout or unified. */
  setAutoWithdraw(fields?: SetAutoWithdraw, options?: CallOptions): Promise<AutoWithdraw>;
  /** Create a payout link. Holds the amount and the network fee for a recipient, who opens claim_url and names an address. claim_token and claim_url are shown only here. Idempotency-Key has no effect: a second link with the same reference is refused; without a reference, an identical request with the same signature gets the first answer. Needs a key of kind payout or unified. */
  createPayoutLink(fields: CreatePayoutLink, options?: CallOptions): Promise<CreatedPayoutLink>;
  /** Create several payout links. Each link is made, or fails, independently, with the codes of POST /v1/payout/link. An identical request with the same signature makes no further links. After a 503 no link was made. Needs a key of kind payout or unified. */
  createPayoutLinks(fields: CreatePayoutLinks, options?: CallOptions): Promise<PayoutLinkBatch>;
  /** List payout links. Returns links newest first, without their tokens. Needs a key of kind payout or unified. */
  listPayoutLinks(fields?: PayoutLinkPage, options?: CallOptions): Promise<PayoutLinks>;
  /** Read a payout link. After the claim, the answer has the payout's id and the recipient's address. Needs a key of kind payout or unified. */
  getPayoutLink(fields: PayoutLinkLookup, options?: CallOptions): Promise<PayoutLink>;
  /** Cancel a payout link. Cancels a funded link. A link that is already cancelled or claimed is returned unchanged. Needs a key of kind payout or unified. */
  cancelPayoutLink(fields: PayoutLinkLookup, options?: CallOptions): Promise<PayoutLink>;
  /** Read a payout link as its recipient. Shows the holder of the token the amount, and whether the link can be claimed. */
  getClaim(token: string, options?: CallOptions): Promise<PublicPayoutLink>;
  /** Claim a payout link. Makes a payout to the recipient's address. A repeat with the same address gets the same payout; another address is refused. A refusal because of the address leaves the link unchanged. */
  claimPayoutLink(token: string, fields: ClaimLink, options?: CallOptions): Promise<ClaimedLink>;
  /** Create a static wallet. Creates a permanent address. There is one for each currency, network and order_id, and a repeat returns it. Every deposit of a coin of the catalogue on its network, from the network's smallest deposit on, is credited less the percent fee, and announced by wallet.paid. Needs a key of kind payment or unified. */
  createWallet(fields: CreateWallet, options?: CallOptions): Promise<Wallet>;
  /** Block or unblock a static wallet. Deposits to a blocked wallet are held once they are confirmed, and credited when the wallet is unblocked. Needs a key of kind payment or unified. */
  blockWallet(fields: BlockWallet, options?: CallOptions): Promise<WalletBlock>;
  /** Read a static wallet. Finds the wallet by uuid, or else by address. Its deposits are newest first. Needs a key of kind payment or unified. */
  getWallet(fields?: WalletLookup, options?: CallOptions): Promise<WalletInfo>;
  /** Render a QR code. Draws an address or any other text. The image is empty if the text is too long for a QR code. Needs a key of kind payment or unified. */
  renderQr(fields: WalletQr, options?: CallOptions): Promise<Image>;
  /** Create payments. 1 to 5000 items, taken at once and done afterwards: read them with POST /v1/batch/info. An item that is malformed or refused fails by itself. With on_error stop they are done in order, and after the first failure the rest is skipped. Idempotency-Key covers the whole batch; an item is recognised by its order_id. Needs a key of kind payment or unified. */
  createPaymentBatch(fields: CreatePaymentBatch, options?: CallOptions): Promise<BatchCreated>;
  /** Create payouts. 1 to 5000 items, taken at once and done afterwards: read them with POST /v1/batch/info. An item that is malformed or refused fails by itself. With on_error stop they are done in order, and after the first failure the rest is skipped. Idempotency-Key covers the whole batch; an item is recognised by its order_id, which is required. One whose funds are still maturing fails and can be sent again in another batch. Needs a key of kind payout or unified. */
  createPayoutBatch(fields: CreatePayoutBatch, options?: CallOptions): Promise<BatchCreated>;
  /** Create refunds. 1 to 5000 items, taken at once and done afterwards: read them with POST /v1/batch/info. An item that is malformed or refused fails by itself. With on_error stop they are done in order, and after the first failure the rest is skipped. Idempotency-Key covers the whole batch; an item is recognised by payment, address and amount. Needs a key of kind payout or unified. */
  createRefundBatch(fields: CreateRefundBatch, options?: CallOptions): Promise<BatchCreated>;
  /** Read a batch. completed means that all items are handled, not that all succeeded. An item's result is the created object; its error is the one that its own endpoint would have returned. */
  getBatch(fields: BatchLookup, options?: CallOptions): Promise<BatchInfo>;
  /** Register the webhook endpoint. A merchant has one endpoint: a repeat replaces the URL and makes a new secret, which is shown only once. If you lose the answer, call again. The answer is the bare object. Needs a key of kind payment or unified. */
  registerWebhook(fields: RegisterWebhook, options?: CallOptions): Promise<WebhookEndpoint>;
  /** List webhook deliveries. Newest first. next_cursor is null on the last page. */
  listWebhookDeliveries(fields?: ListDeliveries, options?: CallOptions): Promise<DeliveryPage>;
  iterWebhookDeliveries(fields?: Omit<ListDeliveries, "cursor">): AsyncGenerator<Delivery>;
  /** Send a webhook again. Sends the same delivery again, with its id and body, in any status; its attempts are counted from 0 again. A delivery whose body was deleted cannot be sent again. Needs a key of kind payment or unified. */
  redeliverWebhook(fields: Redeliver, options?: CallOptions): Promise<Delivery>;
  /** Test the webhook endpoint. Sends one signed webhook to the registered endpoint at once and waits for its answer, up to 10 seconds. The body has the form of the event, a uuid of zeros and `"test": true`. It is not repeated. A merchant can run one test at a time; a second one gets gateway.busy. Needs a key of kind payment or unified. */
  testWebhook(fields?: TryWebhook, options?: CallOptions): Promise<WebhookTrial>;
  /** Read or set the IP allowlist. The gateway refuses requests with your keys from any other source address, a second later at most. Omit ips to read the list; an empty list allows every address. Needs a key of kind payout or unified. */
  setIpAllowlist(fields?: AllowlistChange, options?: CallOptions): Promise<IpAllowlist>;
  /** Share credits with another merchant. From now on this percentage of each credit of payments and static wallets, after fees and after the repayment of a debt, is held and then goes to the recipient. It is rounded down to the coin's precision. Two rules may name the same recipient; send an Idempotency-Key, so that a repeat makes no second rule. If the merchant requires co-signing, the rule is awaiting_cosign and shares nothing until another principal of the merchant sends the same recipient, percent and title. Needs a key of kind payout or unified. */
  addSplitRule(fields: AddRule, options?: CallOptions): Promise<SplitRule>;
  /** List the rules. All rules, newest first, with those that wait for a co-signature and without those of revoked keys. A merchant has at most 100. Needs a key of kind payout or unified. */
  listSplitRules(fields?: Empty, options?: CallOptions): Promise<SplitRules>;
  /** Delete a rule. The rule shares no later credit. Shares that are already held still go to their recipient. Needs a key of kind payout or unified. */
  deleteSplitRule(fields: RuleLookup, options?: CallOptions): Promise<DeletedRule>;
  /** Read the settings of split rules. Also returns the shares that the merchant has received by the rules of others. Needs a key of kind payout or unified. */
  getSplitConfig(fields?: Empty, options?: CallOptions): Promise<SplitConfig>;
  /** Set the settings of split rules. Sets if rules apply to credits from now on (at first true), and for how many hours their shares are held (at first 0). Refunds during that time reduce a held share. Shares that are already held keep their time. Omitted fields keep their setting. Needs a key of kind payout or unified. */
  setSplitConfig(fields?: SetSplits, options?: CallOptions): Promise<SplitConfig>;
  /** Is the process alive?. Answers while the process serves requests at all; it asks neither store. */
  getHealth(options?: CallOptions): Promise<Health>;
  /** Can the gateway serve?. Checks PostgreSQL, its writes, Redis and the schema, but no chain. attention names further faults for the operator. They do not make the gateway unready, since a web process cannot mend them. */
  getReadiness(options?: CallOptions): Promise<Readiness>;
  /** Metrics in Prometheus's format. Requires Authorization: Bearer METRICS_TOKEN. A production gateway without that setting has no metrics page. */
  getMetrics(options?: CallOptions): Promise<string>;
}

/** An invoice to create (POST /v1/payment). */
export interface CreatePayment {
  /** A decimal string, with no more fractional digits than the currency has. */
  amount: string;
  /** The currency of the price: a fiat currency or a coin. */
  currency: string;
  /** Your own reference, at most 255 characters. A repeat with the reference of an existing object returns that object. */
  order_id?: string | null;
  /** The network that the buyer pays on. Without it the buyer chooses. */
  network?: string | null;
  /** The coin that the buyer pays in. Without it the buyer chooses; if only network is set, it is currency. */
  to_currency?: string | null;
  /** Seconds until the payment expires: 300 to 43200. A value outside is set to the nearest limit. Default: 3600, unless the gateway's operator chose another. */
  lifetime?: number | null;
  /** Percent of the network fee that the payer bears, from 0 to 100. */
  subtract?: number | null;
  /** Tolerated difference from the amount, in percent: 0 to 5, at most 4 fractional digits. Default: your account's setting. */
  accuracy_payment_percent?: number | null;
  /** URL that receives this payment's webhooks instead of your registered endpoint, which you still need. Public http or https. A host in Unicode is stored as punycode. */
  url_callback?: string | null;
  /** An absolute URL, http or https, at most 2048 characters. */
  url_return?: string | null;
  /** An absolute URL, http or https, at most 2048 characters. */
  url_success?: string | null;
  /** Your private text, at most 4096 characters. Webhooks repeat it; the buyer never sees it. */
  additional_data?: string | null;
  /** The buyer's e-mail address, for the receipt. */
  payer_email?: string | null;
  /** The theme of the payment page. */
  theme?: "" | "dark" | "light" | null;
  /** true: the payment page asks the buyer for the rest of an incomplete payment. Default false. */
  is_payment_multiple?: boolean | null;
  /** true: reopen the expired payment of this order_id. Default false. */
  is_refresh?: boolean | null;
}
/** A payment as its merchant sees it. */
export interface Payment {
  /** The payment's identifier. */
  uuid: string;
  /** Your own reference; empty if it has none. */
  order_id: string;
  /** The price, in currency. */
  amount: string;
  /** The sum of confirmed deposits, in payer_currency; null before the first one. */
  payment_amount: string | null;
  /** The sum detected so far, in payer_currency; empty before a coin is chosen. */
  amount_paid: string;
  /** The sum still due, in payer_currency; empty before a coin is chosen. */
  amount_remaining: string;
  /** The amount to pay, in payer_currency; empty before a coin is chosen. */
  payer_amount: string;
  /** The coin that the buyer pays in; empty before it is chosen. */
  payer_currency: string;
  /** The currency of the price. */
  currency: string;
  /** The network that the buyer pays on; empty before a coin is chosen. */
  network: string;
  /** The address to pay to; empty before a coin is chosen. */
  address: string;
  /** The QR code of the address, as a PNG data URI. */
  address_qr_code: string;
  /** select: the buyer has yet to choose a coin; check: waits for payment; paid: the amount is right; paid_over: more than the amount was paid; wrong_amount: too little was paid, or too late; expired: nothing was paid in time. */
  payment_status: PaymentPaymentStatus;
  /** true if the buyer chooses coin and network. */
  is_multi: boolean;
  /** The hosted payment page. */
  url: string;
  /** The time of expiry, in Unix seconds. */
  expired_at: number;
  /** The time until which payer_amount is valid, in Unix seconds. */
  rate_expires_at: number;
  /** true if the status is final. A late deposit, a reorg or is_refresh can reopen the payment. */
  is_final: boolean;
  /** Time in ISO 8601, UTC. */
  created_at: string;
  /** Time in ISO 8601, UTC. */
  updated_at: string;
  /** The URL of the payment page's link back to your shop; empty if you set none. */
  url_return: string;
  /** The URL that the payment page leads to once it is paid; empty if you set none. */
  url_success: string;
  /** Confirmations of the newest deposit that counts; 0 before the first deposit. */
  confirmations: number;
  /** Confirmations that a deposit needs to count; 100 for a block reward; 0 before a coin is chosen. */
  required_confirmations: number;
  /** The transaction's hash; empty until it is known. */
  txid: string;
  /** The methods that the buyer may choose; only while the status is select. */
  accepted?: Array<AcceptedMethod>;
  /** Your private text, as you sent it. */
  additional_data: string;
  /** The buyer's e-mail address; empty if it is unknown. */
  payer_email: string;
  /** The sender's address; empty on networks where a transaction can have several senders. */
  payer_address: string;
}
/** A coin on a network. */
export interface AcceptedMethod {
  /** The coin's code. */
  currency: string;
  /** The network's code. */
  network: string;
}
/** The payment, by uuid or else by order_id. */
export interface PaymentLookup {
  /** The object's identifier. If it is set, order_id is ignored. */
  uuid?: string | null;
  /** Your own reference. */
  order_id?: string | null;
}
/** A payment with what was refunded of it and what strayed to its address. */
export interface PaymentInfo {
  /** The payment's identifier. */
  uuid: string;
  /** Your own reference; empty if it has none. */
  order_id: string;
  /** The price, in currency. */
  amount: string;
  /** The sum of confirmed deposits, in payer_currency; null before the first one. */
  payment_amount: string | null;
  /** The sum detected so far, in payer_currency; empty before a coin is chosen. */
  amount_paid: string;
  /** The sum still due, in payer_currency; empty before a coin is chosen. */
  amount_remaining: string;
  /** The amount to pay, in payer_currency; empty before a coin is chosen. */
  payer_amount: string;
  /** The coin that the buyer pays in; empty before it is chosen. */
  payer_currency: string;
  /** The currency of the price. */
  currency: string;
  /** The network that the buyer pays on; empty before a coin is chosen. */
  network: string;
  /** The address to pay to; empty before a coin is chosen. */
  address: string;
  /** The QR code of the address, as a PNG data URI. */
  address_qr_code: string;
  /** select: the buyer has yet to choose a coin; check: waits for payment; paid: the amount is right; paid_over: more than the amount was paid; wrong_amount: too little was paid, or too late; expired: nothing was paid in time. */
  payment_status: PaymentPaymentStatus;
  /** true if the buyer chooses coin and network. */
  is_multi: boolean;
  /** The hosted payment page. */
  url: string;
  /** The time of expiry, in Unix seconds. */
  expired_at: number;
  /** The time until which payer_amount is valid, in Unix seconds. */
  rate_expires_at: number;
  /** true if the status is final. A late deposit, a reorg or is_refresh can reopen the payment. */
  is_final: boolean;
  /** Time in ISO 8601, UTC. */
  created_at: string;
  /** Time in ISO 8601, UTC. */
  updated_at: string;
  /** The URL of the payment page's link back to your shop; empty if you set none. */
  url_return: string;
  /** The URL that the payment page leads to once it is paid; empty if you set none. */
  url_success: string;
  /** Confirmations of the newest deposit that counts; 0 before the first deposit. */
  confirmations: number;
  /** Confirmations that a deposit needs to count; 100 for a block reward; 0 before a coin is chosen. */
  required_confirmations: number;
  /** The transaction's hash; empty until it is known. */
  txid: string;
  /** The methods that the buyer may choose; only while the status is select. */
  accepted?: Array<AcceptedMethod>;
  /** Your private text, as you sent it. */
  additional_data: string;
  /** The buyer's e-mail address; empty if it is unknown. */
  payer_email: string;
  /** The sender's address; empty on networks where a transaction can have several senders. */
  payer_address: string;
  /** The number of changes of payment_status so far; webhook bodies have the same number. 0 before the first change. */
  revision: number;
  /** The refunded part. Pending refunds count; failed and cancelled ones do not. */
  refund_status: "full" | "none" | "partial";
  /** Its refunds, oldest first; only the newest 1000. */
  refunds: Array<Refund>;
  /** Deposits to its address that do not count, oldest first. */
  stray_deposits: Array<StrayDeposit>;
}
/** A refund of a payment, or of a stray deposit to its address. */
export interface Refund {
  /** The refund's identifier, which is also its payout's. */
  uuid: string;
  /** The status of its payout: check, awaiting_cosign, process, paid, fail or cancel. */
  status: string;
  /** The amount that the recipient gets, in the refund's coin. */
  amount: string;
  /** The recipient's address. */
  address: string;
  /** The transaction's hash; empty until it is known. */
  txid: string;
  /** true if the status is paid, fail or cancel. */
  is_final: boolean;
  /** The time of creation, in ISO 8601, UTC. */
  created_at: string;
  /** The coin; only in the refund of a stray deposit. */
  currency?: string;
  /** The network; only in the refund of a stray deposit. */
  network?: string;
}
/** A deposit of another asset, on another network, or too small to count. */
export interface StrayDeposit {
  /** The transaction's hash. */
  txid: string;
  /** The coin that was received. */
  currency: string;
  /** The network on which it was received. */
  network: string;
  /** The amount received, in its coin. */
  amount: string;
  /** The state of the deposit. refunding: a refund is being sent; refunded: the refund was sent. */
  status: string;
  /** asset: another coin; network: another network; dust: below the network's smallest deposit. */
  reason: StrayDepositReason;
}
/** A page of a merchant's payments, newest first (POST /v1/payment/history). */
export interface PaymentHistory {
  /** The number of items on a page: 1 to 200. Any other value means 50. */
  limit?: number | null;
  /** The next_cursor of the previous page. Default: the first page. */
  cursor?: string | null;
  /** Only payments with this payment_status. Default: all. */
  status?: "" | "check" | "expired" | "paid" | "paid_over" | "select" | "wrong_amount" | null;
  /** The currency of the price. */
  currency?: string | null;
  /** The network that the buyer pays on. Without it the buyer chooses. */
  network?: string | null;
  /** Only payments with this order_id. */
  order_id?: string | null;
  /** Only those created at this time or later. */
  date_from?: string | null;
  /** Only those created before this time. A date without time includes that day. */
  date_to?: string | null;
}
/** Payments, and where the next page begins. */
export interface PaymentPage {
  /** Newest first. */
  items: Array<Payment>;
  /** The cursor of the next page; null on the last page. */
  next_cursor: string | null;
}
/** A QR code. */
export interface Image {
  /** The QR code, as a PNG data URI. */
  image: string;
}
/** A body without fields. */
export interface Empty {
}
/** Every method of the catalogue. */
export interface PaymentServices {
  /** One item for each coin on a network. */
  items: Array<PaymentMethod>;
}
/** A coin on a network, with your terms for payments in it. */
export interface PaymentMethod {
  /** The coin's code. */
  currency: string;
  /** The network's code. */
  network: string;
  /** true if payments in it are possible now. */
  is_available: boolean;
  /** The smallest and largest payment. */
  limit: MethodLimit;
  /** The gateway's fee for your account. */
  commission: MethodCommission;
  /** Confirmations that a deposit needs to count. */
  confirmations: number;
  /** Percent off the price. A negative value raises the price. */
  discount_percent: number;
}
/** The smallest and largest amount, in the coin. */
export interface MethodLimit {
  /** The amount, in the coin. */
  min_amount: string;
  /** The amount, in the coin; null while the coin has no rate. */
  max_amount: string | null;
}
/** The gateway's fee. */
export interface MethodCommission {
  /** Percent of the credited amount. */
  percent: string;
  /** US dollars, once for each payment. */
  fixed_usd: string;
}
/** Your decision on a wrong_amount payment or a stray deposit (POST /v1/payment/resolve). */
export interface ResolvePayment {
  /** The object's identifier. If it is set, order_id is ignored. */
  uuid?: string | null;
  /** Your own reference. */
  order_id?: string | null;
  /** accept: credit the received amount; refund: send it back, less the network fee. */
  action: ResolvePaymentAction;
  /** The transaction of the stray deposit to decide on. */
  txid?: string | null;
  /** For a refund: the recipient's address. Default: the payer's. Any other address needs an approval. */
  address?: string | null;
  /** For a refund: must be the deposit's network, if you send it. */
  network?: string | null;
}
/** A payment after its resolution, with the refund if you chose one. */
export interface ResolvedPayment {
  /** The payment's identifier. */
  uuid: string;
  /** Your own reference; empty if it has none. */
  order_id: string;
  /** The price, in currency. */
  amount: string;
  /** The sum of confirmed deposits, in payer_currency; null before the first one. */
  payment_amount: string | null;
  /** The sum detected so far, in payer_currency; empty before a coin is chosen. */
  amount_paid: string;
  /** The sum still due, in payer_currency; empty before a coin is chosen. */
  amount_remaining: string;
  /** The amount to pay, in payer_currency; empty before a coin is chosen. */
  payer_amount: string;
  /** The coin that the buyer pays in; empty before it is chosen. */
  payer_currency: string;
  /** The currency of the price. */
  currency: string;
  /** The network that the buyer pays on; empty before a coin is chosen. */
  network: string;
  /** The address to pay to; empty before a coin is chosen. */
  address: string;
  /** The QR code of the address, as a PNG data URI. */
  address_qr_code: string;
  /** select: the buyer has yet to choose a coin; check: waits for payment; paid: the amount is right; paid_over: more than the amount was paid; wrong_amount: too little was paid, or too late; expired: nothing was paid in time. */
  payment_status: PaymentPaymentStatus;
  /** true if the buyer chooses coin and network. */
  is_multi: boolean;
  /** The hosted payment page. */
  url: string;
  /** The time of expiry, in Unix seconds. */
  expired_at: number;
  /** The time until which payer_amount is valid, in Unix seconds. */
  rate_expires_at: number;
  /** true if the status is final. A late deposit, a reorg or is_refresh can reopen the payment. */
  is_final: boolean;
  /** Time in ISO 8601, UTC. */
  created_at: string;
  /** Time in ISO 8601, UTC. */
  updated_at: string;
  /** The URL of the payment page's link back to your shop; empty if you set none. */
  url_return: string;
  /** The URL that the payment page leads to once it is paid; empty if you set none. */
  url_success: string;
  /** Confirmations of the newest deposit that counts; 0 before the first deposit. */
  confirmations: number;
  /** Confirmations that a deposit needs to count; 100 for a block reward; 0 before a coin is chosen. */
  required_confirmations: number;
  /** The transaction's hash; empty until it is known. */
  txid: string;
  /** The methods that the buyer may choose; only while the status is select. */
  accepted?: Array<AcceptedMethod>;
  /** Your private text, as you sent it. */
  additional_data: string;
  /** The buyer's e-mail address; empty if it is unknown. */
  payer_email: string;
  /** The sender's address; empty on networks where a transaction can have several senders. */
  payer_address: string;
  /** The refund; only with the action refund. */
  refund?: PaymentRefund;
}
/** A refund, which is a payout of a payment. */
export interface PaymentRefund {
  /** The refund's identifier, which is also its payout's. */
  uuid: string;
  /** The refunded payment's identifier. */
  payment_uuid: string;
  /** The status of its payout. check: it waits for POST /v1/payout/approve. */
  status: PaymentRefundStatus;
  /** The amount that the recipient gets, in currency. */
  amount: string;
  /** The coin's code. */
  currency: string;
  /** The network's code. */
  network: string;
  /** The recipient's address. */
  address: string;
  /** The transaction's hash; empty until it is sent. */
  txid: string;
  /** true if it needs, or needed, POST /v1/payout/approve. */
  approval_required: boolean;
  /** true if the status is paid, fail or cancel. */
  is_final: boolean;
  /** Time in ISO 8601, UTC. */
  created_at: string;
}
/** The webhooks of a payment's latest status, queued again; empty before the first event. */
export interface Resent {
  /** The deliveries that are sent again. */
  deliveries: Array<QueuedDelivery>;
}
/** A webhook that was queued again. */
export interface QueuedDelivery {
  /** The delivery's identifier, which is the X-Webhook-Id of every attempt. */
  delivery_id: string;
  /** The event's name. */
  event: string;
  /** pending: the delivery waits for its next attempt. */
  status: string;
}
/** A payment whose details are sent by e-mail (POST /v1/payment/send-email). */
export interface SendPaymentEmail {
  /** The object's identifier. If it is set, order_id is ignored. */
  uuid?: string | null;
  /** Your own reference. */
  order_id?: string | null;
  /** The recipient's e-mail address. Default: the payment's payer_email. */
  email?: string | null;
}
/** An e-mail that waits to be sent. */
export interface QueuedEmail {
  /** The recipient's e-mail address. */
  email: string;
  /** Always true: the e-mail is stored, and is sent in the background. */
  queued: boolean;
}
/** The methods that a merchant accepts (POST /v1/payment/accepted). */
export interface SetAccepted {
  /** The new list, at most 200 methods. Omit it to read the list; [] accepts every method. */
  accepted?: Array<MethodName> | null;
}
/** A coin on a network, as a merchant names it. */
export interface MethodName {
  /** The coin. */
  currency: string;
  /** The network. May be omitted if the coin has only one. */
  network?: string | null;
}
/** The methods that a merchant accepts. */
export interface AcceptedMethods {
  /** The accepted methods; an empty list means every method. */
  accepted: Array<AcceptedMethod>;
}
/** A discount for payments in a coin (POST /v1/payment/discount). */
export interface SetDiscount {
  /** The coin. */
  currency?: string | null;
  /** The network. Default: all networks of the coin. */
  network?: string | null;
  /** Percent off the price: -99 to 99, at most 4 fractional digits. 0 ends the discount; a negative value raises the price. */
  discount_percent?: number | null;
}
/** A merchant's discounts. A method that is not listed has no discount. */
export interface Discounts {
  /** One item for each method with a discount. */
  items: Array<Discount>;
}
/** The discount of a method. */
export interface Discount {
  /** The coin's code. */
  currency: string;
  /** The network's code. */
  network: string;
  /** Percent off the price. A negative value raises the price. */
  discount_percent: number;
}
/** The difference that a merchant tolerates (POST /v1/payment/accuracy). */
export interface SetAccuracy {
  /** true: a difference is tolerated. Omit it to keep the setting. */
  enabled?: boolean | null;
  /** Percent: 1 to 5 while enabled, at most 4 fractional digits. Omit it to keep the setting. */
  accuracy_percent?: number | null;
}
/** The tolerated difference of payments without accuracy_payment_percent. */
export interface Accuracy {
  /** true if a difference is tolerated. */
  enabled: boolean;
  /** Percent, in force while enabled; 0 if it was never set. */
  accuracy_percent: number;
}
/** The history of a payment. */
export interface Timeline {
  /** The events, oldest first. Of more than 1000: created, and the newest. */
  items: Array<TimelineEvent>;
}
/** An event in a payment's history. */
export interface TimelineEvent {
  /** The time of the event, in ISO 8601, UTC. */
  at: string;
  /** The kind of the event. */
  event: "confirmation" | "created" | "credited" | "detected" | "expired" | "quoted" | "refunded" | "reorged" | "resolved" | "selected" | "webhook";
  /** The amounts of the event, and the reason if something waits or is missing. */
  detail: TimelineDetail;
}
/** The details of an event. Fields that do not apply to it are absent. */
export interface TimelineDetail {
  /** created: the price; else the amount of the deposit or refund, in currency. */
  amount?: string;
  /** The coin of the amounts; created: the currency of the price. */
  currency?: string;
  /** The network of the coin, deposit or refund. */
  network?: string;
  /** The transaction's hash; empty for a refund that is not sent yet. */
  txid?: string;
  /** The height of the deposit's block: the number of blocks before it. */
  block_height?: number;
  /** created: the time of expiry, in Unix seconds. */
  expired_at?: number;
  /** quoted: the time until which the quote is valid, in Unix seconds. */
  rate_expires_at?: number;
  /** quoted: the number of quotes of the payment so far, from 1. */
  generation?: number;
  /** quoted, expired, resolved: the amount to pay, in currency. */
  payer_amount?: string;
  /** expired, resolved: the sum of confirmed deposits, in currency. */
  payment_amount?: string;
  /** expired, resolved: the sum detected so far, in currency. */
  amount_paid?: string;
  /** expired, resolved: the sum that was missing then, in currency. */
  amount_remaining?: string;
  /** detected: the time of the payment, which decides if it was late: its block's, or an earlier one; ISO 8601. */
  seen_at?: string;
  /** detected: the time since which an unconfirmed payment has disappeared from the network; ISO 8601. */
  gone_at?: string;
  /** detected: true if seen_at is after the payment's expiry. */
  is_late?: boolean;
  /** The reason why the deposit does not count. asset: another coin; network: another network; dust: too small. */
  stray_reason?: StrayDepositReason;
  /** confirmation: the present and the required number of confirmations. */
  depth?: string;
  /** The next step that the deposit needs. block: its first block; confirmations: more confirmations; witnesses: other providers that confirm it; scan: the network's scan, which is paused; rest: the rest of the amount; resolve: a call of /v1/payment/resolve; rate: a rate, for a quote. */
  waiting_for?: "block" | "confirmations" | "rate" | "resolve" | "rest" | "scan" | "witnesses";
  /** The reason why one provider is not enough. amount: the deposit is large; unpriced: its coin has no rate; hourly: smaller deposits used up this hour's limit; missing: a second reading of its block did not show it; hidden: a contract passed the coin on, so that only the address's balance shows it. */
  witness_reason?: "amount" | "hidden" | "hourly" | "missing" | "unpriced";
  /** The providers' last answers; empty before the first. */
  witnesses?: string;
  /** credited: the amount that you got, in currency. */
  net_amount?: string;
  /** credited: the gateway's fee, in currency. */
  fee?: string;
  /** expired: the payment's new status; reorged: the deposit's old status; refunded, webhook: the present status of the refund or the delivery. */
  status?: string;
  /** expired: unpaid: no deposit that counts was confirmed; short: less than the amount; stray: only stray deposits. reorged: left_chain: the block left the chain. */
  reason?: "left_chain" | "short" | "stray" | "unpaid";
  /** reorged: the time at which the deposit was found; ISO 8601. */
  detected_at?: string;
  /** reorged: the time at which it was confirmed, if it was; ISO 8601. */
  confirmed_at?: string;
  /** reorged: the time at which it was credited, if it was; ISO 8601. */
  credited_at?: string;
  /** resolved: your decision. */
  action?: ResolvePaymentAction;
  /** resolved, refunded: the refund's identifier. */
  uuid?: string;
  /** resolved, refunded: the refund's recipient. */
  address?: string;
  /** refunded: the time at which the refund ended; ISO 8601. */
  ended_at?: string;
  /** refunded: the reason of the refund's failure. */
  error?: string;
  /** webhook: the delivery's identifier in /v1/webhooks/deliveries. */
  delivery_id?: string;
  /** webhook: the event that it reports. */
  event?: string;
  /** webhook: the number of attempts so far. */
  attempts?: number;
  /** webhook: the HTTP status of the last attempt. */
  last_status_code?: number;
  /** webhook: the error of the last attempt. */
  last_error?: string;
  /** webhook: the time at which your endpoint accepted it; ISO 8601. */
  delivered_at?: string;
}
/** A payment as its buyer sees it. */
export interface PublicPayment {
  /** The payment's identifier. */
  uuid: string;
  /** Your own reference; empty if it has none. */
  order_id: string;
  /** The price, in currency. */
  amount: string;
  /** The sum of confirmed deposits, in payer_currency; null before the first one. */
  payment_amount: string | null;
  /** The sum detected so far, in payer_currency; empty before a coin is chosen. */
  amount_paid: string;
  /** The sum still due, in payer_currency; empty before a coin is chosen. */
  amount_remaining: string;
  /** The amount to pay, in payer_currency; empty before a coin is chosen. */
  payer_amount: string;
  /** The coin that the buyer pays in; empty before it is chosen. */
  payer_currency: string;
  /** The currency of the price. */
  currency: string;
  /** The network that the buyer pays on; empty before a coin is chosen. */
  network: string;
  /** The address to pay to; empty before a coin is chosen. */
  address: string;
  /** The QR code of the address, as a PNG data URI. */
  address_qr_code: string;
  /** select: the buyer has yet to choose a coin; check: waits for payment; paid: the amount is right; paid_over: more than the amount was paid; wrong_amount: too little was paid, or too late; expired: nothing was paid in time. */
  payment_status: PaymentPaymentStatus;
  /** true if the buyer chooses coin and network. */
  is_multi: boolean;
  /** The hosted payment page. */
  url: string;
  /** The time of expiry, in Unix seconds. */
  expired_at: number;
  /** The time until which payer_amount is valid, in Unix seconds. */
  rate_expires_at: number;
  /** true if the status is final. A late deposit, a reorg or is_refresh can reopen the payment. */
  is_final: boolean;
  /** Time in ISO 8601, UTC. */
  created_at: string;
  /** Time in ISO 8601, UTC. */
  updated_at: string;
  /** The URL of the payment page's link back to your shop; empty if you set none. */
  url_return: string;
  /** The URL that the payment page leads to once it is paid; empty if you set none. */
  url_success: string;
  /** Confirmations of the newest deposit that counts; 0 before the first deposit. */
  confirmations: number;
  /** Confirmations that a deposit needs to count; 100 for a block reward; 0 before a coin is chosen. */
  required_confirmations: number;
  /** The transaction's hash; empty until it is known. */
  txid: string;
  /** The methods that the buyer may choose; only while the status is select. */
  accepted?: Array<AcceptedMethod>;
}
/** The coin and network that a buyer chooses (POST /v1/pay/{id}/select). */
export interface MethodChoice {
  /** The coin to pay in. */
  currency: string;
  /** The network to pay on. May be omitted if the coin has only one. */
  network?: string | null;
}
/** A payment link to create (POST /v1/payment/link). */
export interface CreatePaymentLink {
  /** fixed: you set the amount; open: the buyer sets it; range: the buyer sets it within two bounds. */
  amount_mode: CreatePaymentLinkAmountMode;
  /** The currency of the price: a fiat currency or a coin. */
  currency: string;
  /** The price, in currency. Mode fixed requires it; the others ignore it. At least one coin must allow a payment of this size. */
  amount_fixed?: string | null;
  /** The smallest amount that a buyer may pay, in currency. Mode range requires it; it is optional in mode open. */
  amount_min?: string | null;
  /** The largest amount that a buyer may pay, in currency. Mode range requires it; the others ignore it. */
  amount_max?: string | null;
  /** The coin that buyers pay in. Without it the buyer chooses. */
  pinned_currency?: string | null;
  /** The coin's network. May be omitted if the coin has only one. */
  pinned_network?: string | null;
  /** Shown on the page. */
  title?: string | null;
  /** Shown on the page. */
  description?: string | null;
  /** Seconds until the link expires, at most ten years. Default 0: it never expires. */
  expires_in?: number | null;
}
/** A new payment link. */
export interface CreatedPaymentLink {
  /** The link's identifier. */
  link_id: string;
  /** The page to send buyers to. */
  url: string;
}
/** A page of a merchant's payment links, newest first (POST /v1/payment/link/list). */
export interface PaymentLinkPage {
  /** The number of links on a page: 1 to 200. Any other value means 50. */
  limit?: number | null;
  /** The number of links to skip, from the newest. Default 0. */
  offset?: number | null;
}
/** A page of payment links. */
export interface PaymentLinks {
  /** Newest first. */
  items: Array<PaymentLink>;
}
/** A payment link. Fields that are not set are absent. */
export interface PaymentLink {
  /** The link's identifier. */
  link_id: string;
  /** The page to send buyers to. */
  url: string;
  /** Shown on the page. */
  title?: string;
  /** Shown on the page. */
  description?: string;
  /** fixed: you set the amount; open: the buyer sets it; range: the buyer sets it within two bounds. */
  amount_mode: CreatePaymentLinkAmountMode;
  /** The currency of the price. */
  currency: string;
  /** The price, in currency; only in mode fixed. */
  amount_fixed?: string;
  /** The smallest amount, in currency; only in modes open and range. */
  amount_min?: string;
  /** The largest amount, in currency; only in mode range. */
  amount_max?: string;
  /** The coin that buyers pay in, if you set one. */
  pinned_currency?: string;
  /** The network of that coin. */
  pinned_network?: string;
  /** true if buyers can use the link, until it expires. */
  active: boolean;
  /** The time of expiry in ISO 8601, UTC; absent if the link never expires. */
  expires_at?: string;
  /** The time of creation, in ISO 8601, UTC. */
  created_at: string;
}
/** A payment link and a page of its payments (POST /v1/payment/link/info). */
export interface PaymentLinkInfo {
  /** The link's identifier. */
  link_id: string;
  /** The number of payments to show: 1 to 200. Any other value means 50. */
  limit?: number | null;
  /** The number of payments to skip, from the newest. Default 0. */
  offset?: number | null;
}
/** A payment link with some of its payments. */
export interface PaymentLinkWithPayments {
  /** The link's identifier. */
  link_id: string;
  /** The page to send buyers to. */
  url: string;
  /** Shown on the page. */
  title?: string;
  /** Shown on the page. */
  description?: string;
  /** fixed: you set the amount; open: the buyer sets it; range: the buyer sets it within two bounds. */
  amount_mode: CreatePaymentLinkAmountMode;
  /** The currency of the price. */
  currency: string;
  /** The price, in currency; only in mode fixed. */
  amount_fixed?: string;
  /** The smallest amount, in currency; only in modes open and range. */
  amount_min?: string;
  /** The largest amount, in currency; only in mode range. */
  amount_max?: string;
  /** The coin that buyers pay in, if you set one. */
  pinned_currency?: string;
  /** The network of that coin. */
  pinned_network?: string;
  /** true if buyers can use the link, until it expires. */
  active: boolean;
  /** The time of expiry in ISO 8601, UTC; absent if the link never expires. */
  expires_at?: string;
  /** The time of creation, in ISO 8601, UTC. */
  created_at: string;
  /** Newest first. */
  payments: Array<LinkPayment>;
}
/** A payment that a buyer made by a link. */
export interface LinkPayment {
  /** The payment's identifier. */
  uuid: string;
  /** The payment's status. */
  status: PaymentPaymentStatus;
  /** The price, in currency. */
  amount: string;
  /** The currency of the price. */
  currency: string;
  /** The time of creation, in ISO 8601, UTC. */
  created_at: string;
}
/** A payment link to switch on or off (POST /v1/payment/link/toggle). */
export interface TogglePaymentLink {
  /** The link's identifier. */
  link_id: string;
  /** false: the link's page and checkout answer as if the link did not exist. */
  active: boolean;
}
/** The new state of a link. */
export interface ToggledPaymentLink {
  /** The link's identifier. */
  link_id: string;
  /** true if buyers can use the link, until it expires. */
  active: boolean;
}
/** A payment link as its buyers see it. */
export interface PublicPaymentLink {
  /** The link's identifier. */
  link_id: string;
  /** The page to send buyers to. */
  url: string;
  /** Shown on the page. */
  title?: string;
  /** Shown on the page. */
  description?: string;
  /** fixed: you set the amount; open: the buyer sets it; range: the buyer sets it within two bounds. */
  amount_mode: CreatePaymentLinkAmountMode;
  /** The currency of the price. */
  currency: string;
  /** The price, in currency; only in mode fixed. */
  amount_fixed?: string;
  /** The smallest amount, in currency; only in modes open and range. */
  amount_min?: string;
  /** The largest amount, in currency; only in mode range. */
  amount_max?: string;
  /** The coin that buyers pay in, if you set one. */
  pinned_currency?: string;
  /** The network of that coin. */
  pinned_network?: string;
  /** true if buyers can use the link, until it expires. */
  active: boolean;
  /** The time of expiry in ISO 8601, UTC; absent if the link never expires. */
  expires_at?: string;
  /** The time of creation, in ISO 8601, UTC. */
  created_at: string;
  /** The name of the merchant. */
  merchant_name: string;
  /** The methods to pay by: the coin of the link, or all that the merchant accepts. */
  accepted: Array<AcceptedMethod>;
}
/** A buyer's order on a link (POST /v1/link/{link_id}/checkout). Other fields have no effect. */
export interface BuyersOrder {
  /** The amount that the buyer pays, in the link's currency. Ignored if the link has a fixed price. */
  amount?: string | null;
  /** The coin that the buyer pays in. */
  currency?: string | null;
  /** The coin's network. May be omitted if the coin has only one. */
  network?: string | null;
  /** The buyer's e-mail address, for a receipt, if the gateway sends e-mail. */
  payer_email?: string | null;
}
/** The catalogue. */
export interface Currencies {
  /** The coins to be paid in. */
  currencies: Array<Currency>;
  /** The currencies to set prices in. */
  pricing_currencies: Array<PricingCurrency>;
}
/** A coin to be paid in. */
export interface Currency {
  /** The coin's code. */
  currency: string;
  /** The coin's name. */
  name: string;
  /** The networks that carry the coin. */
  networks: Array<CurrencyNetwork>;
}
/** A network that carries a coin. */
export interface CurrencyNetwork {
  /** The network's code. */
  network: string;
  /** The token's contract; null for the network's own coin. */
  contract: string | null;
  /** The decimal places of the coin on this network. */
  decimals: number;
  /** The decimal places that an amount may have on this network. */
  precision: number;
  /** The smallest deposit that counts, in the coin's smallest units on this network. */
  min_minor: string;
  /** Confirmations that a deposit needs to be credited. */
  confirmations: number;
  /** Confirmations from which the credit can be spent. */
  maturity: number;
  /** true if payments in it are possible now. */
  is_available: boolean;
}
/** A currency to set prices in. */
export interface PricingCurrency {
  /** The currency's code. */
  currency: string;
  /** fiat: a fiat currency; crypto: a coin. */
  kind: "crypto" | "fiat";
  /** The decimal places that a price may have. */
  precision: number;
}
/** The rates to read (POST /v1/exchange-rate/list). */
export interface RateQuery {
  /** The currency. Default: all. */
  currency_from?: string | null;
}
/** The rate of a currency. */
export interface ExchangeRate {
  /** The currency: a coin or a fiat currency. */
  from: string;
  /** The currency of course. */
  to: "USDT";
  /** The amount of USDT for one unit of the currency. */
  course: string;
  /** Time in ISO 8601, UTC. */
  updated_at: string;
}
/** A full or partial refund of a payment (POST /v1/payment/refund). */
export interface CreateRefund {
  /** The object's identifier. If it is set, order_id is ignored. */
  uuid?: string | null;
  /** Your own reference. */
  order_id?: string | null;
  /** The amount to refund, in the payment's coin. Default: the whole rest. */
  amount?: string | null;
  /** The recipient's address. Default: the payment's payer_address. Any other address needs an approval. */
  address?: string | null;
  /** Must be the payment's network, if you send it. */
  network?: string | null;
}
/** A refund of a blocked static wallet's deposits (POST /v1/wallet/blocked-address-refund). */
export interface BlockedRefund {
  /** The wallet's identifier. If it is set, address is ignored. */
  uuid?: string | null;
  /** The wallet's address. */
  address?: string | null;
  /** The address that receives the coins, on their network. */
  refund_address: string;
}
/** The refunds of a blocked wallet, a payout for each coin. */
export interface WalletRefunds {
  /** One payout for each coin on a network. */
  payouts: Array<Payout>;
}
/** A payout. */
export interface Payout {
  /** The payout's identifier. */
  uuid: string;
  /** Your own reference. */
  order_id: string;
  /** The requested amount, in currency. */
  amount: string;
  /** The coin's code. */
  currency: string;
  /** The network's code. */
  network: string;
  /** The recipient's address. */
  address: string;
  /** The transaction's hash; empty until it is sent. */
  txid: string;
  /** check: waits for an approval; awaiting_cosign: waits for a second one; process: approved and being sent; paid, fail and cancel are final. */
  status: PaymentRefundStatus;
  /** The reason why the payout waits; absent if it does not. liquidity: the gateway's wallet on this network has too little; limit: a limit of the gateway is reached; freeze: the operator stopped payouts; fee: the network fee is too high now; cosign, approval: another key or user has to approve it; network: the network or its nodes have a problem; debt: your balance has a debt. */
  waiting_for?: PayoutWaitingFor;
  /** true if the status is paid, fail or cancel. */
  is_final: boolean;
  /** true if it needs, or needed, POST /v1/payout/approve. */
  approval_required: boolean;
  /** The origin of the payout: api or manual. */
  source: PayoutSource;
  /** The memo; empty if it has none. */
  memo: string;
  /** The network fee, in currency. */
  commission: string;
  /** The confirmations of its transaction. */
  confirmations: number;
  /** The reason of the failure; null unless the status is fail. */
  error: string | null;
  /** Time in ISO 8601, UTC. */
  created_at: string;
  /** Time in ISO 8601, UTC. */
  updated_at: string;
}
/** The balances of all coins. */
export interface Balance {
  /** The merchant's balances, in amounts of each coin. */
  items: Array<BalanceItem>;
  /** The owner's personal balances, which all of the owner's merchants share; empty without an owner. */
  personal: Array<PersonalItem>;
}
/** A merchant's balance of one coin, over all its networks. */
export interface BalanceItem {
  /** The coin's code. */
  currency: string;
  /** The amount that can be spent. */
  available: string;
  /** The amount that is credited, but needs more confirmations before it can be spent. */
  maturing: string;
  /** The amount that is held for unfinished payouts and payout links. */
  payout_held: string;
  /** Shares of split rules that wait for the end of their hold. */
  hold: string;
  /** The amount that you owe because a reorg removed a deposit that was already spent. New credits repay it first. */
  debt: string;
  /** available + maturing + payout_held + hold - debt. */
  total: string;
}
/** The owner's personal balance of one coin. */
export interface PersonalItem {
  /** The coin's code. */
  currency: string;
  /** The amount that can be spent. */
  available: string;
}
/** A transfer from a merchant's balance to its owner's personal balance (POST /v1/transfer/to-personal). */
export interface ToPersonal {
  /** A decimal string, with no more fractional digits than the currency has. */
  amount: string;
  /** The coin. */
  currency: string;
  /** Your own reference. Always send it: a repeat with the same order_id moves nothing and gets the first answer. */
  order_id?: string | null;
}
/** A completed transfer. */
export interface Transferred {
  /** The coin's code. */
  currency: string;
  /** The moved amount, in currency. */
  amount: string;
  /** to_personal: from the merchant's balance to the owner's personal balance. */
  direction: "to_personal";
  /** The owner's personal balance after the transfer, in currency. All of the owner's merchants share it. */
  personal_balance: string;
}
/** A payout to make (POST /v1/payout; the items of mass calls and batches). */
export interface CreatePayout {
  /** Your own reference, at most 255 characters. A repeat with the same order_id never makes a second payout. */
  order_id: string;
  /** The amount, in currency. It may have no more fractional digits than the coin. */
  amount: string;
  /** The coin to send. */
  currency: string;
  /** The network. May be omitted if the coin has only one. */
  network?: string | null;
  /** The recipient's address. If it mixes upper and lower case, its EIP-55 checksum must be right. */
  address: string;
  /** The memo, at most 120 characters; only on solana and ton. */
  memo?: string | null;
  /** true: you pay the network fee on top of the amount; false: the fee is deducted from the amount. Default: your fee settings. */
  is_subtract?: boolean | null;
  /** The coin of your balance that pays for it: USDT, converted at the current rate. Default: currency. */
  from_currency?: string | null;
  /** high: sent before normal payouts. Default normal. */
  priority?: "" | "high" | "normal" | null;
  /** The origin of the payout, which answers repeat. Default api. */
  source?: CreatePayoutSource | null;
  /** URL that receives this payout's webhooks instead of your registered endpoint, which you still need. Public http or https. A host in Unicode is stored as punycode. */
  url_callback?: string | null;
}
/** A new payout. */
export interface CreatedPayout {
  /** The payout's identifier. */
  uuid: string;
  /** Your own reference. */
  order_id: string;
  /** The requested amount, in currency. */
  amount: string;
  /** The coin's code. */
  currency: string;
  /** The network's code. */
  network: string;
  /** The recipient's address. */
  address: string;
  /** The transaction's hash; empty until it is sent. */
  txid: string;
  /** check: waits for an approval; awaiting_cosign: waits for a second one; process: approved and being sent; paid, fail and cancel are final. */
  status: PaymentRefundStatus;
  /** The reason why the payout waits; absent if it does not. liquidity: the gateway's wallet on this network has too little; limit: a limit of the gateway is reached; freeze: the operator stopped payouts; fee: the network fee is too high now; cosign, approval: another key or user has to approve it; network: the network or its nodes have a problem; debt: your balance has a debt. */
  waiting_for?: PayoutWaitingFor;
  /** true if the status is paid, fail or cancel. */
  is_final: boolean;
  /** true if it needs, or needed, POST /v1/payout/approve. */
  approval_required: boolean;
  /** The origin of the payout: api or manual. */
  source: PayoutSource;
  /** The memo; empty if it has none. */
  memo: string;
  /** The network fee, in currency. */
  commission: string;
  /** The confirmations of its transaction. */
  confirmations: number;
  /** The reason of the failure; null unless the status is fail. */
  error: string | null;
  /** Time in ISO 8601, UTC. */
  created_at: string;
  /** Time in ISO 8601, UTC. */
  updated_at: string;
  /** The conversion; only with from_currency. */
  convert?: PayoutConversion;
}
/** The conversion that paid for a payout. */
export interface PayoutConversion {
  /** The coin taken from your balance. */
  from_currency: string;
  /** The coin of the payout. */
  to_currency: string;
  /** The amount taken from your balance, in from_currency. */
  from_amount: string;
  /** The amount of to_currency for one unit of from_currency. */
  rate: string;
}
/** A payout to calculate without making it (POST /v1/payout/calculate). */
export interface CalculatePayout {
  /** The amount, in currency. It may have no more fractional digits than the coin. */
  amount: string;
  /** The coin to send. */
  currency: string;
  /** The network. May be omitted if the coin has only one. */
  network?: string | null;
  /** true: you pay the network fee on top of the amount; false: the fee is deducted from the amount. Default: your fee settings. */
  is_subtract?: boolean | null;
}
/** The present cost and result of a payout. */
export interface PayoutQuote {
  /** The requested amount, in currency. */
  amount: string;
  /** The coin's code. */
  currency: string;
  /** The network's code. */
  network: string;
  /** The network fee, in currency. */
  commission: string;
  /** The amount taken from your balance, in currency. */
  merchant_amount: string;
  /** The amount that the recipient gets, in currency. */
  to_amount: string;
  /** The part of your available balance that can be paid out on this network now, in currency. Its limit is the gateway's wallet there, less the queued payouts. 0 while payouts are stopped. */
  available_now: string;
}
/** Up to 100 payouts, each made independently (POST /v1/payout/mass). */
export interface MassPayout {
  /** 1 to 100 payouts, in the form of POST /v1/payout. A malformed one fails alone. */
  payouts: Array<CreatePayout>;
  /** The source of payouts that have none of their own. Default api. */
  source?: CreatePayoutSource | null;
}
/** The outcome of each, in the order in which they were sent. */
export interface MassResult {
  /** One for each payout of the request. */
  items: Array<MassItem>;
}
/** The outcome of one payout of a mass call. */
export interface MassItem {
  /** Whether it was made. */
  success: boolean;
  /** As it was sent; empty where it was none. */
  order_id: string;
  /** The payout's identifier; only where it was made. */
  uuid?: string;
  /** The payout's status; only where it was made. */
  status?: string;
  /** That of the payout; only where it was made. */
  is_final?: boolean;
  /** That of the payout; only where it was made. */
  approval_required?: boolean;
  /** Why it was not made. */
  message?: string;
}
/** Your default for the network fee of payouts without is_subtract (POST /v1/payout/fee-settings). */
export interface PayoutFeeSettings {
  /** The new setting. Omit it to read the present one. */
  is_subtract?: boolean | null;
}
/** Who bears the network fee where a payout does not say it. */
export interface PayoutFees {
  /** true: on top of the amount; false: out of it. */
  is_subtract: boolean;
}
/** The payout, by uuid or else by order_id. */
export interface PayoutLookup {
  /** The object's identifier. If it is set, order_id is ignored. */
  uuid?: string | null;
  /** Your own reference. */
  order_id?: string | null;
}
/** A page of a merchant's payouts, newest first (POST /v1/payout/history). */
export interface PayoutHistory {
  /** The number of items on a page: 1 to 200. Any other value means 50. */
  limit?: number | null;
  /** The next_cursor of the previous page. Default: the first page. */
  cursor?: string | null;
  /** Only payouts with this status. Default: all. */
  status?: "" | "awaiting_cosign" | "cancel" | "check" | "fail" | "paid" | "process" | null;
  /** Only payouts of this coin. */
  currency?: string | null;
  /** Only payouts on this network. */
  network?: string | null;
  /** Your own reference. */
  order_id?: string | null;
  /** Only those created at this time or later. */
  date_from?: string | null;
  /** Only those created before this time. A date without time includes that day. */
  date_to?: string | null;
}
/** Payouts, and where the next page begins. */
export interface PayoutPage {
  /** Newest first. */
  items: Array<Payout>;
  /** The cursor of the next page; null on the last page. */
  next_cursor: string | null;
}
/** Every method of the catalogue. */
export interface PayoutServices {
  /** One for each coin on a network. */
  items: Array<PayoutMethod>;
}
/** A coin on a network, as it can be paid out. */
export interface PayoutMethod {
  /** The coin's code. */
  currency: string;
  /** The network's code. */
  network: string;
  /** Whether it can be paid out now. */
  is_available: boolean;
  /** What can be sent. */
  limit: PayoutLimit;
  /** What it costs. */
  commission: PayoutCommission;
  /** The part of your available balance that can be paid out on this network now, in currency. Its limit is the gateway's wallet there, less the queued payouts. 0 while payouts are stopped. */
  available_now: string;
}
/** The smallest and largest amount, in the coin. */
export interface PayoutLimit {
  /** The amount, in the coin. */
  min_amount: string;
  /** The amount, in the coin; null: your balance is the limit. */
  max_amount: string | null;
}
/** The present cost of a payout. */
export interface PayoutCommission {
  /** The network fee, in currency; null while it is unknown. */
  fee_amount: string | null;
  /** The coin's code. */
  currency: string;
}
/** A rule that pays your balance out automatically (POST /v1/auto-withdraw). */
export interface SetAutoWithdraw {
  /** The coin. Each coin has at most one rule. */
  currency?: string | null;
  /** The network of the payouts. May be omitted if the coin has only one network, or already has a rule. Another network than the rule's replaces the rule. */
  network?: string | null;
  /** Your address for the payouts. Omit it to keep the present one. */
  address?: string | null;
  /** When the available balance reaches this amount, all of it is paid out. In currency; at least the smallest payout. Omit it to keep the present one. */
  threshold?: string | null;
  /** true: the rule makes payouts. Omit it to keep the setting; default true for a new rule. */
  enabled?: boolean | null;
}
/** The rules of a merchant. */
export interface AutoWithdraw {
  /** The rules, one for each coin. */
  items: Array<AutoWithdrawRule>;
}
/** A rule that pays a coin out automatically. */
export interface AutoWithdrawRule {
  /** The coin's code. */
  currency: string;
  /** The network's code. */
  network: string;
  /** Your address for the payouts. */
  address: string;
  /** The available balance at which it is paid out, in currency. */
  threshold: string;
  /** true if the rule makes payouts. It becomes false when a key that set or co-signed the address is revoked. */
  enabled: boolean;
  /** active: in force; awaiting_cosign: it pays nothing until another key or user sends the same rule; off: not enabled. */
  status: "active" | "awaiting_cosign" | "off";
}
/** A payout link to create (POST /v1/payout/link). */
export interface CreatePayoutLink {
  /** The coin. */
  currency: string;
  /** The amount that the recipient gets, in currency. You pay the network fee on top. */
  amount: string;
  /** The network. May be omitted if the coin has only one. */
  network?: string | null;
  /** Your own reference, at most 255 characters. A second link with the same reference is refused. */
  reference?: string | null;
  /** Title that the recipient sees, at most 255 characters. */
  title?: string | null;
  /** Message to the recipient, at most 4096 characters. */
  note?: string | null;
  /** The recipient's e-mail address. The claim link is sent to it, if the gateway sends e-mail. */
  email?: string | null;
  /** Hours until the link expires: 1 to 720, default 1. A value outside is set to the nearest limit. */
  expires_in_hours?: number | null;
}
/** A new payout link, with the token for its claim. Token and claim URL are shown only once. */
export interface CreatedPayoutLink {
  /** The link's identifier. */
  link_id: string;
  /** The batch's identifier; only for links of a batch. */
  batch_id?: string;
  /** funded: waits for a claim; claiming: a claim is being paid; the others are final. */
  status: CreatedPayoutLinkStatus;
  /** The coin's code. */
  currency: string;
  /** The network's code. */
  network: string;
  /** The amount that the recipient gets, in currency. */
  amount: string;
  /** Title that the recipient sees; empty if it has none. */
  title: string;
  /** Message to the recipient; empty if it has none. */
  note: string;
  /** The e-mail address that the claim link was sent to; empty if it has none. */
  email: string;
  /** Your own reference; empty if it has none. */
  reference: string;
  /** Time in ISO 8601, UTC. */
  expires_at: string;
  /** Time in ISO 8601, UTC. */
  created_at: string;
  /** The payout's identifier; only after the claim. */
  payout_id?: string;
  /** The recipient's address; only after the claim. */
  claim_address?: string;
  /** The reason why the payout waits; absent if it does not. liquidity: the gateway's wallet on this network has too little; limit: a limit of the gateway is reached; freeze: the operator stopped payouts; fee: the network fee is too high now; cosign, approval: another key or user has to approve it; network: the network or its nodes have a problem; debt: your balance has a debt. */
  waiting_for?: PayoutWaitingFor;
  /** The secret token for the claim. Its holder can take the money. */
  claim_token: string;
  /** The page on which the recipient claims the money. */
  claim_url: string;
}
/** Several payout links (POST /v1/payout/link/batch). A malformed item fails alone. */
export interface CreatePayoutLinks {
  /** 1 to 500 links, in the form of POST /v1/payout/link. A malformed one fails alone. */
  links: Array<CreatePayoutLink>;
}
/** The results of a batch, in the request's order. */
export interface PayoutLinkBatch {
  /** The batch's identifier, which its links repeat. */
  batch_id: string;
  /** One item for each link of the request. */
  items: Array<BatchedPayoutLink>;
}
/** The result of an item: the fields of the link, or the error. */
export interface BatchedPayoutLink {
  /** The item's place in the request, from 0. */
  index: number;
  /** true if the link was made. Only then the fields of the link are present. */
  success: boolean;
  /** The error; only if the link was not made. */
  error?: BatchedPayoutLinkError;
  /** The link's identifier. */
  link_id?: string;
  /** The batch's identifier. */
  batch_id?: string;
  /** funded: waits for a claim. */
  status?: CreatedPayoutLinkStatus;
  /** The coin's code. */
  currency?: string;
  /** The network's code. */
  network?: string;
  /** The amount that the recipient gets, in currency. */
  amount?: string;
  /** Title that the recipient sees; empty if it has none. */
  title?: string;
  /** Message to the recipient; empty if it has none. */
  note?: string;
  /** The e-mail address that the claim link was sent to; empty if it has none. */
  email?: string;
  /** Your own reference; empty if it has none. */
  reference?: string;
  /** Time in ISO 8601, UTC. */
  expires_at?: string;
  /** Time in ISO 8601, UTC. */
  created_at?: string;
  /** The secret token for the claim, shown only once. Its holder can take the money. */
  claim_token?: string;
  /** The page on which the recipient claims the money, shown only once. */
  claim_url?: string;
}
/** The error of an item of a batch. */
export interface BatchedPayoutLinkError {
  /** The error's code, as POST /v1/payout/link would have returned it. */
  code: string;
  /** The error in words. The wording may change. */
  message: string;
}
/** A page of a merchant's payout links, newest first (POST /v1/payout/link/list). */
export interface PayoutLinkPage {
  /** The number of items on a page: 1 to 200. Any other value means 50. */
  limit?: number | null;
  /** The number of links to skip, from the newest. Default 0. */
  offset?: number | null;
}
/** A page of payout links. */
export interface PayoutLinks {
  /** Newest first. */
  links: Array<PayoutLink>;
}
/** A payout link. */
export interface PayoutLink {
  /** The link's identifier. */
  link_id: string;
  /** The batch's identifier; only for links of a batch. */
  batch_id?: string;
  /** funded: waits for a claim; claiming: a claim is being paid; the others are final. */
  status: CreatedPayoutLinkStatus;
  /** The coin's code. */
  currency: string;
  /** The network's code. */
  network: string;
  /** The amount that the recipient gets, in currency. */
  amount: string;
  /** Title that the recipient sees; empty if it has none. */
  title: string;
  /** Message to the recipient; empty if it has none. */
  note: string;
  /** The e-mail address that the claim link was sent to; empty if it has none. */
  email: string;
  /** Your own reference; empty if it has none. */
  reference: string;
  /** Time in ISO 8601, UTC. */
  expires_at: string;
  /** Time in ISO 8601, UTC. */
  created_at: string;
  /** The payout's identifier; only after the claim. */
  payout_id?: string;
  /** The recipient's address; only after the claim. */
  claim_address?: string;
  /** The reason why the payout waits; absent if it does not. liquidity: the gateway's wallet on this network has too little; limit: a limit of the gateway is reached; freeze: the operator stopped payouts; fee: the network fee is too high now; cosign, approval: another key or user has to approve it; network: the network or its nodes have a problem; debt: your balance has a debt. */
  waiting_for?: PayoutWaitingFor;
}
/** The payout link. */
export interface PayoutLinkLookup {
  /** The link's identifier. */
  link_id: string;
}
/** A payout link as the holder of its token sees it. */
export interface PublicPayoutLink {
  /** The coin's code. */
  currency: string;
  /** The network's code. */
  network: string;
  /** The amount that the recipient gets, in currency. */
  amount: string;
  /** Text from the sender; empty if there is no text. */
  title: string;
  /** Text from the sender; empty if there is no text. */
  note: string;
  /** funded: the link can be claimed; any other status: it can no longer be claimed. */
  status: CreatedPayoutLinkStatus;
  /** Time in ISO 8601, UTC. */
  expires_at: string;
}
/** A recipient's claim of a payout link (POST /v1/claim/{token}). */
export interface ClaimLink {
  /** The recipient's address on the link's network. */
  address: string;
  /** The memo, at most 120 characters; only on solana and ton. */
  memo?: string | null;
}
/** The answer to a claim. */
export interface ClaimedLink {
  /** claiming: the payout is not made yet; claimed: it is. */
  status: CreatedPayoutLinkStatus;
  /** The payout's identifier. */
  payout_id: string;
}
/** A static wallet to create (POST /v1/wallet). */
export interface CreateWallet {
  /** The coin of the wallet. */
  currency: string;
  /** The network. May be omitted if the coin has only one. */
  network?: string | null;
  /** Your reference for a customer. Each order_id has its own wallet; there is one more without an order_id. */
  order_id?: string | null;
}
/** A static wallet: a permanent address. */
export interface Wallet {
  /** The wallet's identifier. */
  uuid: string;
  /** The permanent receiving address. */
  address: string;
  /** The network that the wallet was made for. */
  network: string;
  /** The coin that the wallet was made for. Deposits in the network's other coins are credited too. */
  currency: string;
  /** Your own reference; empty if it has none. */
  order_id: string;
  /** Reserved; always empty. */
  url: string;
}
/** A static wallet to block or unblock (POST /v1/wallet/block). */
export interface BlockWallet {
  /** The wallet's address. */
  address: string;
  /** true: block the wallet; false: unblock it. Default true. */
  is_force_block?: boolean | null;
}
/** The state of a static wallet. */
export interface WalletBlock {
  /** The wallet's identifier. */
  uuid: string;
  /** The wallet's address. */
  address: string;
  /** true if new deposits are held instead of credited. */
  blocked: boolean;
}
/** A static wallet, by uuid or else by address, and a range of its deposits. */
export interface WalletLookup {
  /** The wallet's identifier. If it is set, address is ignored. */
  uuid?: string | null;
  /** The wallet's address. */
  address?: string | null;
  /** The number of deposits to show: 1 to 200. Any other value means 50. */
  limit?: number | null;
  /** The number of deposits to skip, from the newest. Default 0. */
  offset?: number | null;
}
/** A static wallet with its deposits. */
export interface WalletInfo {
  /** The wallet's identifier. */
  uuid: string;
  /** The permanent receiving address. */
  address: string;
  /** The network that the wallet was made for. */
  network: string;
  /** The coin that the wallet was made for. Deposits in the network's other coins are credited too. */
  currency: string;
  /** Your own reference; empty if it has none. */
  order_id: string;
  /** Reserved; always empty. */
  url: string;
  /** true if new deposits are held instead of credited. */
  blocked: boolean;
  /** Newest first. */
  deposits: Array<WalletDeposit>;
}
/** A deposit to a static wallet. */
export interface WalletDeposit {
  /** The transaction's hash. */
  txid: string;
  /** The coin that was received. */
  currency: string;
  /** The amount, in currency, before the gateway's fee. */
  amount: string;
  /** awaiting_quorum: a second provider has yet to confirm it; dust: below the network's smallest deposit, not credited; blocked: held, because the wallet is blocked; refunding: a refund is being sent; refunded: the refund was sent; reversed: its block left the chain. */
  status: "awaiting_quorum" | "blocked" | "credited" | "dust" | "pending" | "refunded" | "refunding" | "reversed";
  /** The time of its block, in ISO 8601, UTC. */
  at: string;
  /** The network; only if it is not the wallet's. */
  network?: string;
}
/** A text to draw as a QR code (POST /v1/wallet/qr). */
export interface WalletQr {
  /** The text to encode, usually an address. */
  address: string;
}
/** Payments to create (POST /v1/payment/batch). */
export interface CreatePaymentBatch {
  /** stop: items are handled in order, and the first failure skips the rest; continue: each item is handled. Default continue. */
  on_error?: CreatePaymentBatchOnError | null;
  /** 1 to 5000 payments, in the form of POST /v1/payment. A malformed one fails alone. */
  payments: Array<CreatePayment>;
}
/** An accepted batch. */
export interface BatchCreated {
  /** The batch's identifier. */
  batch_id: string;
  /** The kind of its items. */
  kind: BatchCreatedKind;
  /** The number of accepted items. */
  count: number;
  /** pending: no item has been handled yet. */
  status: "pending";
}
/** Payouts to create (POST /v1/payout/batch). */
export interface CreatePayoutBatch {
  /** stop: items are handled in order, and the first failure skips the rest; continue: each item is handled. Default continue. */
  on_error?: CreatePaymentBatchOnError | null;
  /** 1 to 5000 payouts, in the form of POST /v1/payout. A malformed one fails alone. */
  payouts: Array<CreatePayout>;
}
/** Refunds to create (POST /v1/refund/batch). */
export interface CreateRefundBatch {
  /** stop: items are handled in order, and the first failure skips the rest; continue: each item is handled. Default continue. */
  on_error?: CreatePaymentBatchOnError | null;
  /** 1 to 5000 refunds, in the form of POST /v1/payment/refund. A malformed one fails alone. */
  refunds: Array<CreateRefund>;
}
/** A batch and a range of its items (POST /v1/batch/info). */
export interface BatchLookup {
  /** The batch's identifier. */
  batch_id: string;
  /** The number of items to show: 1 to 5000. Default, and any other value: all. */
  limit?: number | null;
  /** The number of items to skip, from the first. Default 0. */
  offset?: number | null;
}
/** A batch with the results of its items, in their order. */
export interface BatchInfo {
  /** The batch's identifier. */
  batch_id: string;
  /** The kind of its items. */
  kind: BatchCreatedKind;
  /** completed: all items are handled, with or without success. */
  status: "completed" | "pending" | "processing";
  /** stop: a failure skips the items after it; continue: it does not. */
  on_error: "continue" | "stop";
  /** The number of all items. */
  count: number;
  /** The number of successful items so far. */
  succeeded: number;
  /** The number of failed items so far, with the skipped ones. */
  failed: number;
  /** Time in ISO 8601, UTC. */
  created_at: string;
  /** Time in ISO 8601, UTC; null until the batch is completed. */
  completed_at: string | null;
  /** The requested range of items, in the order of the batch. */
  items: Array<BatchItem>;
}
/** One item of a batch. */
export interface BatchItem {
  /** The item's place in the request, from 0. */
  index: number;
  /** The item's order_id; empty if it has none. */
  order_id: string;
  /** pending: the item has not been handled yet. */
  status: "error" | "pending" | "success";
  /** The created object; null unless status is success. */
  result: Record<string, unknown> | null;
  /** The reason of the failure; null unless status is error. */
  error: BatchItemError | null;
}
/** The error of an item, as its own endpoint would have returned it. */
export interface BatchItemError {
  /** The error's code. batch.skipped: an earlier item failed. */
  code: string;
  /** The error in words. The wording may change. */
  message: string;
}
/** The endpoint that receives your webhooks (POST /v1/webhooks). */
export interface RegisterWebhook {
  /** A public https URL. A host in Unicode is stored as punycode. */
  url: string;
}
/** A registered endpoint. Its secret is shown only once. */
export interface WebhookEndpoint {
  /** The endpoint's identifier. */
  endpoint_id: string;
  /** The URL that receives webhooks. */
  url: string;
  /** The secret key of X-Webhook-Signature. */
  secret: string;
}
/** A page of the delivery log (POST /v1/webhooks/deliveries). */
export interface ListDeliveries {
  /** The number of items on a page: 1 to 200. Any other value means 50. */
  limit?: number | null;
  /** The next_cursor of the previous page. Default: the first page. */
  cursor?: string | null;
  /** Only deliveries with this status. Default: all. */
  status?: "dead" | "delivered" | "pending" | "retrying" | "" | null;
  /** The identifier of the event's payment, wallet or payout. */
  uuid?: string | null;
  /** Only deliveries of this event. Default: all. */
  event?: ListDeliveriesEvent | null;
}
/** Deliveries, and where the next page begins. */
export interface DeliveryPage {
  /** Newest first. */
  items: Array<Delivery>;
  /** The cursor of the next page; null on the last page. */
  next_cursor: string | null;
}
/** A webhook and the state of its delivery. */
export interface Delivery {
  /** The delivery's identifier, which is the X-Webhook-Id of every attempt. */
  delivery_id: string;
  /** The event's name. */
  event: "invoice.expired" | "invoice.paid" | "invoice.paid_over" | "invoice.wrong_amount" | "payout.approved" | "payout.awaiting_cosign" | "payout.broadcasting" | "payout.cancelled" | "payout.confirmed" | "payout.failed" | "payout.pending" | "payout.sent" | "wallet.paid";
  /** The identifier of the event's payment, wallet or payout. */
  uuid: string;
  /** The URL of the next attempt or, once finished, of the last one. */
  url: string;
  /** pending: not tried yet; retrying: waits for another attempt; delivered: your endpoint accepted it; dead: the last attempt failed. */
  status: "dead" | "delivered" | "pending" | "retrying";
  /** The number of attempts since it was last queued. */
  attempts: number;
  /** The HTTP status of the last answer; null without an answer. */
  last_status_code: number | null;
  /** The error of the last attempt; null before the first failure, and after a success. */
  last_error: string | null;
  /** The time of the next attempt in ISO 8601, UTC; null once it is delivered or dead. */
  next_attempt_at: string | null;
  /** Time in ISO 8601, UTC. */
  created_at: string;
  /** Time in ISO 8601, UTC. */
  delivered_at: string | null;
  /** The X-Request-Id of the call that made the object; empty if it is unknown. */
  request_id: string;
  /** The webhook's body; null once it is deleted, 30 days after the event. */
  payload: Record<string, unknown> | null;
}
/** A delivery to send again (POST /v1/webhooks/redeliver). */
export interface Redeliver {
  /** The delivery's identifier in the delivery log. */
  delivery_id: string;
}
/** A test webhook to your endpoint (POST /v1/webhooks/test). */
export interface TryWebhook {
  /** The event to send. Default invoice.paid. */
  event?: ListDeliveriesEvent | null;
}
/** The result of a test webhook. It is not in the delivery log and is not repeated. */
export interface WebhookTrial {
  /** The HTTP status of the last answer; null without an answer. */
  status_code: number | null;
  /** true if the answer was 2xx. */
  delivered: boolean;
  /** Milliseconds until the answer or the failure. */
  duration_ms: number;
  /** The error; null if it was delivered. */
  error: string | null;
}
/** The source addresses that may use your keys (POST /v1/ip-allowlist). */
export interface AllowlistChange {
  /** IP addresses, and networks in CIDR notation. Omit it to read the list; [] allows all addresses. */
  ips?: Array<string> | null;
}
/** The source addresses that may use your keys; an empty list allows all. */
export interface IpAllowlist {
  /** IP addresses, and networks in CIDR notation. */
  ips: Array<string>;
}
/** A rule that shares your credits with another merchant (POST /v1/split/rule). */
export interface AddRule {
  /** The merchant of this gateway that receives the share. */
  recipient_merchant_id: string;
  /** Percent of the net credit: 0.01 to 100, at most 2 fractional digits. All rules together: at most 100. */
  percent: number;
  /** Your name for the rule, at most 255 characters. */
  title?: string | null;
}
/** A rule, in force or waiting for its co-signature. */
export interface SplitRule {
  /** The rule's identifier. */
  rule_id: string;
  /** The merchant that receives the share. */
  recipient_merchant_id: string;
  /** Percent of the net credit. */
  percent: number;
  /** Your name for the rule; empty if it has none. */
  title: string;
  /** active: the rule applies; awaiting_cosign: it shares nothing until another key or user adds the same rule. */
  status: "active" | "awaiting_cosign";
  /** The time of creation, in ISO 8601, UTC. */
  created_at: string;
}
/** All rules of a merchant, newest first. */
export interface SplitRules {
  /** All rules, newest first. */
  items: Array<SplitRule>;
}
/** The rule to delete (POST /v1/split/rule/delete). */
export interface RuleLookup {
  /** The rule's identifier. */
  rule_id: string;
}
/** A deleted rule. */
export interface DeletedRule {
  /** The rule's identifier. */
  rule_id: string;
  /** Always true. */
  deleted: boolean;
}
/** The settings of a merchant's rules, and its earnings from the rules of others. */
export interface SplitConfig {
  /** true if rules apply to new credits. */
  enabled: boolean;
  /** Hours that a new share is held after its credit. */
  refund_hold_hours: number;
  /** The shares received from others by coin, in the ledger's smallest units, with shares that repaid a debt. */
  earnings_by_asset: Record<string, string>;
}
/** The settings of your rules from now on (POST /v1/split/config/set). */
export interface SetSplits {
  /** true: rules apply to new credits. Omit it to keep the setting. */
  enabled?: boolean | null;
  /** Hours that a share is held after its credit: 0 to 2160. Omit it to keep the setting. */
  refund_hold_hours?: number | null;
}
/** How the process or the gateway is. */
export interface Health {
  /** Always ok. */
  status: HealthStatus;
}
/** How the gateway is, and what an operator should look at. */
export interface Readiness {
  /** Always ok. */
  status: HealthStatus;
  /** What does not keep this process from serving. */
  attention: Array<string>;
  /** When the books were last found right, as ISO 8601 in UTC; null: not yet. */
  audit_passed_at: string | null;
}
/** The body of an invoice.* event: the payment as it was when it happened. */
export interface PaymentEvent {
  /** The identifier of the event's payment, wallet or payout. */
  uuid: string;
  /** Your own reference; empty if it has none. */
  order_id: string;
  /** The transaction's hash; empty until it is known. */
  txid: string;
  /** true if POST /v1/webhooks/test sent it; else absent. */
  test?: boolean;
  /** The kind of object: payment, wallet or payout. */
  type: "payment";
  /** The price, in currency. */
  amount: string;
  /** The currency of the price. */
  currency: string;
  /** The sum of confirmed deposits, in payer_currency; null if there are none. */
  payment_amount: string | null;
  /** The amount to pay, in payer_currency; empty before a coin is chosen. */
  payer_amount: string;
  /** The coin that the buyer pays in; empty before it is chosen. */
  payer_currency: string;
  /** The payment_status. */
  status: "expired" | "paid" | "paid_over" | "wrong_amount";
  /** The number of status changes of the payment so far. Deduplicate by uuid, status and revision. */
  revision: number;
  /** true if the status is final. A late deposit or a reorg can reopen the payment. */
  is_final: boolean;
  /** Your private text, as you sent it. */
  additional_data: string;
}
/** The body of wallet.paid: a deposit that was credited. */
export interface WalletEvent {
  /** The identifier of the event's payment, wallet or payout. */
  uuid: string;
  /** Your own reference; empty if it has none. */
  order_id: string;
  /** The transaction's hash; empty until it is known. */
  txid: string;
  /** true if POST /v1/webhooks/test sent it; else absent. */
  test?: boolean;
  /** The kind of object: payment, wallet or payout. */
  type: "wallet";
  /** The wallet's address. */
  address: string;
  /** The network of the deposit. */
  network: string;
  /** The coin that the wallet was made for. */
  currency: string;
  /** The amount of the deposit, in payer_currency, before the gateway's fee. */
  payment_amount: string;
  /** The coin of the deposit. */
  payer_currency: string;
  /** Always paid. */
  status: "paid";
  /** Always true. */
  is_final: boolean;
}
/** The body of a payout.* event: the payout as it was when it happened. */
export interface PayoutEvent {
  /** The identifier of the event's payment, wallet or payout. */
  uuid: string;
  /** Your own reference; empty if it has none. */
  order_id: string;
  /** The transaction's hash; empty until it is known. */
  txid: string;
  /** true if POST /v1/webhooks/test sent it; else absent. */
  test?: boolean;
  /** The kind of object: payment, wallet or payout. */
  type: "payout";
  /** The requested amount, in currency. */
  amount: string;
  /** The coin's code. */
  currency: string;
  /** The network's code. */
  network: string;
  /** The recipient's address. */
  address: string;
  /** The payout's status. The event's name is more precise. */
  status: PaymentRefundStatus;
  /** true if the status is paid, fail or cancel. */
  is_final: boolean;
  /** The part of the network fee that was not returned, in currency; only in payout.failed. */
  commission?: string;
}
export type PaymentPaymentStatus = "check" | "expired" | "paid" | "paid_over" | "select" | "wrong_amount";
export type StrayDepositReason = "asset" | "dust" | "network";
export type ResolvePaymentAction = "accept" | "refund";
export type PaymentRefundStatus = "awaiting_cosign" | "cancel" | "check" | "fail" | "paid" | "process";
export type CreatePaymentLinkAmountMode = "fixed" | "open" | "range";
export type PayoutWaitingFor = "approval" | "cosign" | "debt" | "fee" | "freeze" | "limit" | "liquidity" | "network";
export type PayoutSource = "api" | "manual";
export type CreatePayoutSource = "" | "api" | "manual";
export type CreatedPayoutLinkStatus = "cancelled" | "claimed" | "claiming" | "expired" | "funded";
export type CreatePaymentBatchOnError = "" | "continue" | "stop";
export type BatchCreatedKind = "payment" | "payout" | "refund";
export type ListDeliveriesEvent = "invoice.expired" | "invoice.paid" | "invoice.paid_over" | "invoice.wrong_amount" | "payout.approved" | "payout.awaiting_cosign" | "payout.broadcasting" | "payout.cancelled" | "payout.confirmed" | "payout.failed" | "payout.pending" | "payout.sent" | "wallet.paid" | "";
export type HealthStatus = "ok";
export type Done = 0;
/** A refusal, or a fault of the gateway. */
export interface Error {
  error: ErrorDetail;
}
/** Why there is no result. */
export interface ErrorDetail {
  /** The reason of the refusal: branch on it. */
  code: string;
  /** In words, which may change. */
  message: string;
}
/** A limit is used up. */
export interface TooManyRequests {
  /** Always 1. */
  state: 1;
  /** In words, which may change. */
  message: string;
}