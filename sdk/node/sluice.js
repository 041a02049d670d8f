// A client of the Sluice payment gateway: signs, repeats where that is safe, checks webhooks. Node 18 or newer, no
// dependency. Made by sdk/generate.py from the gateway's description: change the template there.
import { createHmac, randomUUID, timingSafeEqual } from "node:crypto";

const VERSION = "1.0.0";
const LOCAL = new Set(["127.0.0.1", "[::1]", "localhost"]);
const PAUSE_MAX_MS = 60_000;
const FIRST_PAUSE_MS = 500;
const TOLERANCE_S = 300;

/** Any failure of a call. */
export class SluiceError extends Error {
  constructor(message) {
    super(message);
    this.name = new.target.name;
  }
}
/** The gateway could not be reached, or its answer did not arrive whole: the call may have been carried out. */
export class ConnectionFailedError extends SluiceError {}
/** The answer comes from another program, such as a proxy. */
export class UnexpectedAnswerError extends SluiceError {
  constructor(status) {
    super(`HTTP ${status} without an answer of the gateway: is the address that of the API?`);
    this.status = status;
  }
}
/** A webhook that you must not trust. */
export class InvalidWebhookError extends SluiceError {}
/** A limit is used up. */
export class RateLimitedError extends SluiceError {
  constructor(message, retryAfterS) {
    super(message);
    this.retryAfterS = retryAfterS;
  }
}
/** A refusal of the gateway: branch on `code`. */
export class ApiError extends SluiceError {
  constructor(code, message, { status, requestId, retryAfterS = 0 }) {
    super(`${code}: ${message}`);
    Object.assign(this, { code, status, requestId, retryAfterS });
  }
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
const FAMILIES = { accepted: AcceptedError, accuracy: AccuracyError, allowlist: AllowlistError, auth: AuthError, autowithdraw: AutowithdrawError, batch: BatchError, compliance: ComplianceError, discount: DiscountError, email: EmailError, gateway: GatewayError, idempotency: IdempotencyError, invoice: InvoiceError, merchant: MerchantError, pay: PayError, paylink: PaylinkError, payment: PaymentError, payout: PayoutError, payoutlink: PayoutlinkError, personal: PersonalError, qr: QrError, refund: RefundError, request: RequestError, split: SplitError, transfer: TransferError, wallet: WalletError, webhook: WebhookError };
/** This machine's clock differs from the gateway's by skewS seconds; positive: it is ahead. */
export class ClockSkewError extends AuthError {
  constructor(details, skewS) {
    const direction = skewS > 0 ? "ahead of" : "behind";
    super("auth.bad_timestamp", `this machine's clock is ${Math.abs(Math.round(skewS))} s ${direction} the gateway's`, details);
    this.skewS = skewS;
  }
}

/** Return the signature of a request: path as sent, with its query; body as its exact text. */
export function sign(secret, timestamp, method, path, body) {
  return createHmac("sha256", secret).update(`${timestamp}\n${method.toUpperCase()}\n${path}\n`).update(body).digest("hex");
}

/** Return a webhook's body, once its signature is right by one of the secrets. Throws a InvalidWebhookError. */
export function verifyWebhook(body, headers, secrets, { toleranceS = TOLERANCE_S, now = Date.now() / 1000 } = {}) {
  const read = (name) => (typeof headers.get === "function" ? headers.get(name) : lowered(headers)[name]) ?? "";
  const timestamp = read("x-webhook-timestamp");
  if (!/^[0-9]+$/.test(timestamp)) throw new InvalidWebhookError("X-Webhook-Timestamp is missing or malformed");
  const given = Buffer.from(read("x-webhook-signature"));
  const set = [secrets].flat().filter((secret) => secret && secret.length !== 0);
  const matches = set.map((secret) => {
    const expected = Buffer.from(createHmac("sha256", secret).update(`${timestamp}.`).update(body).digest("hex"));
    return expected.length === given.length && timingSafeEqual(expected, given);
  });
  if (!matches.includes(true)) throw new InvalidWebhookError("the signature is not that of these bytes under a secret of yours");
  const ageS = now - Number(timestamp);
  if (Math.abs(ageS) > toleranceS) throw new InvalidWebhookError(`the webhook was sent ${Math.round(ageS)} s ago`);
  return JSON.parse(Buffer.from(body).toString("utf8"));
}

const lowered = (headers) => Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
const withReference = (fields) => ({ ...fields, reference: fields.reference || `lib-${randomUUID()}` });
const withReferences = (fields) => ({ ...fields, links: fields.links.map(withReference) });
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const seconds = (text) => (/^[0-9]+$/.test(text ?? "") ? Number(text) : 0);

function refusal(response, content) {
  const retryAfterS = seconds(response.headers.get("retry-after"));
  if (response.status === 429 && !content.error) return new RateLimitedError(String(content.message), retryAfterS);
  const { code, message } = content.error ?? {};
  if (typeof code !== "string") return new UnexpectedAnswerError(response.status);
  const details = { status: response.status, requestId: response.headers.get("x-request-id") ?? "", retryAfterS };
  const date = Date.parse(response.headers.get("date") ?? "");
  if (code === "auth.bad_timestamp" && !Number.isNaN(date)) return new ClockSkewError(details, (Date.now() - date) / 1000);
  const Family = FAMILIES[code.split(".")[0]] ?? ApiError;
  return new Family(code, String(message), details);
}

// A call may be sent again: it cannot be carried out twice, and may succeed.
function isSafe(operation, error) {
  if (error instanceof RateLimitedError) return true;
  if (operation.repeat === "no") return false;
  if (error instanceof ApiError) return error.status >= 500 || error.code === "idempotency.in_progress";
  return error instanceof ConnectionFailedError || (error instanceof UnexpectedAnswerError && error.status >= 500);
}

// A call that ended so may have been carried out.
const mayBeDone = (error) =>
  error instanceof ConnectionFailedError || (error instanceof UnexpectedAnswerError && error.status >= 500);

// An error shows the fate of the attempts before it, unless it precedes all work.
const decides = (error) =>
  error instanceof ApiError && error.status < 500 && error.status !== 401 && error.code !== "idempotency.in_progress";

/** A gateway and a key of yours. */
export class Sluice {
  #secret;
  #prefix;

  constructor({ url, publicId, secret, timeoutMs = 30_000, attempts = 3 }) {
    const parsed = new URL(url);
    if (parsed.protocol !== "https:" && !(parsed.protocol === "http:" && LOCAL.has(parsed.hostname))) {
      throw new TypeError("url must be https: over http anybody on the way reads and changes your calls");
    }
    if (!publicId || !secret) throw new TypeError("publicId and secret must be those of a key: see `sluice key create`");
    this.#secret = secret;
    this.#prefix = parsed.pathname.replace(/\/$/, "");
    Object.assign(this, { url: parsed.origin, publicId, timeoutMs, attempts: Math.max(attempts, 1) });
  }

  async #call(operation, path, fields, { idempotencyKey, signal } = {}) {
    const body = operation.method === "GET" ? "" : JSON.stringify(fields ?? {});
    const headers = { "User-Agent": `sluice-client-node/${VERSION}`, Accept: "application/json" };
    if (body) headers["Content-Type"] = "application/json";
    if (operation.repeat === "key") headers["Idempotency-Key"] = idempotencyKey ?? randomUUID();
    let signed, unclear;
    for (let attempt = 1; ; attempt++) {
      if (operation.isSigned && (!signed || operation.repeat !== "bytes")) signed = this.#sign(operation.method, path, body);
      try {
        return await this.#send(operation, path, body, { ...headers, ...signed }, signal);
      } catch (error) {
        if (mayBeDone(error)) unclear ??= error;
        if (attempt >= this.attempts || signal?.aborted || !isSafe(operation, error)) throw decides(error) ? error : (unclear ?? error);
        const asked = (error.retryAfterS ?? 0) * 1000;
        await pause(Math.min(asked || FIRST_PAUSE_MS * 2 ** (attempt - 1) * (0.5 + Math.random() / 2), PAUSE_MAX_MS));
      }
    }
  }

  #sign(method, path, body) {
    const timestamp = String(Math.floor(Date.now() / 1000));
    const signature = sign(this.#secret, timestamp, method, this.#prefix + path, body);
    return { "X-Public-Id": this.publicId, "X-Timestamp": timestamp, "X-Signature": signature };
  }

  async #send(operation, path, body, headers, signal) {
    const limit = AbortSignal.timeout(this.timeoutMs);
    let response, text;
    try {
      response = await fetch(this.url + this.#prefix + path, {
        method: operation.method,
        headers,
        body: body || undefined,
        redirect: "manual",
        signal: signal ? AbortSignal.any([signal, limit]) : limit,
      });
      text = await response.text();
    } catch (error) {
      throw new ConnectionFailedError(`${error.name}: ${error.cause?.code ?? error.message}`);
    }
    const isJson = (response.headers.get("content-type") ?? "").startsWith("application/json");
    if (!isJson && response.ok && operation.name === "getMetrics") return text;
    let content;
    try {
      content = isJson ? JSON.parse(text) : undefined;
    } catch {
      content = undefined;
    }
    if (content === null || typeof content !== "object" || Array.isArray(content)) throw new UnexpectedAnswerError(response.status);
    if (!response.ok) throw refusal(response, content);
    if (operation.isWrapped && !("result" in content)) throw new UnexpectedAnswerError(response.status);
    return operation.isWrapped ? content.result : content;
  }

  async *#pages(read, fields) {
    for (let cursor; ; ) {
      const page = await read.call(this, { ...fields, cursor });
      yield* page.items;
      cursor = page.next_cursor;
      if (!cursor) return;
    }
  }

  createPayment(fields, options) {
    return this.#call({"name": "createPayment", "method": "POST", "repeat": "key", "isSigned": true, "isWrapped": true}, `/v1/payment`, fields, options);
  }

  getPayment(fields, options) {
    return this.#call({"name": "getPayment", "method": "POST", "repeat": "read", "isSigned": true, "isWrapped": true}, `/v1/payment/info`, fields, options);
  }

  listPayments(fields, options) {
    return this.#call({"name": "listPayments", "method": "POST", "repeat": "read", "isSigned": true, "isWrapped": true}, `/v1/payment/history`, fields, options);
  }

  iterPayments(fields) {
    return this.#pages(this.listPayments, fields);
  }

  getPaymentQr(fields, options) {
    return this.#call({"name": "getPaymentQr", "method": "POST", "repeat": "read", "isSigned": true, "isWrapped": true}, `/v1/payment/qr`, fields, options);
  }

  listPaymentMethods(fields, options) {
    return this.#call({"name": "listPaymentMethods", "method": "POST", "repeat": "read", "isSigned": true, "isWrapped": true}, `/v1/payment/services`, fields, options);
  }

  resolvePayment(fields, options) {
    return this.#call({"name": "resolvePayment", "method": "POST", "repeat": "no", "isSigned": true, "isWrapped": true}, `/v1/payment/resolve`, fields, options);
  }

  resendPayment(fields, options) {
    return this.#call({"name": "resendPayment", "method": "POST", "repeat": "no", "isSigned": true, "isWrapped": true}, `/v1/payment/resend`, fields, options);
  }

  sendPaymentEmail(fields, options) {
    return this.#call({"name": "sendPaymentEmail", "method": "POST", "repeat": "no", "isSigned": true, "isWrapped": true}, `/v1/payment/send-email`, fields, options);
  }

  setAcceptedMethods(fields, options) {
    return this.#call({"name": "setAcceptedMethods", "method": "POST", "repeat": "read", "isSigned": true, "isWrapped": true}, `/v1/payment/accepted`, fields, options);
  }

  setDiscount(fields, options) {
    return this.#call({"name": "setDiscount", "method": "POST", "repeat": "read", "isSigned": true, "isWrapped": true}, `/v1/payment/discount`, fields, options);
  }

  setAccuracy(fields, options) {
    return this.#call({"name": "setAccuracy", "method": "POST", "repeat": "read", "isSigned": true, "isWrapped": true}, `/v1/payment/accuracy`, fields, options);
  }

  getPaymentTimeline(fields, options) {
    return this.#call({"name": "getPaymentTimeline", "method": "POST", "repeat": "read", "isSigned": true, "isWrapped": true}, `/v1/payment/timeline`, fields, options);
  }

  getPublicPayment(invoiceId, options) {
    return this.#call({"name": "getPublicPayment", "method": "GET", "repeat": "read", "isSigned": false, "isWrapped": true}, `/v1/pay/${encodeURIComponent(invoiceId)}`, undefined, options);
  }

  selectMethod(invoiceId, fields, options) {
    return this.#call({"name": "selectMethod", "method": "POST", "repeat": "no", "isSigned": false, "isWrapped": true}, `/v1/pay/${encodeURIComponent(invoiceId)}/select`, fields, options);
  }

  createPaymentLink(fields, options) {
    return this.#call({"name": "createPaymentLink", "method": "POST", "repeat": "key", "isSigned": true, "isWrapped": true}, `/v1/payment/link`, fields, options);
  }

  listPaymentLinks(fields, options) {
    return this.#call({"name": "listPaymentLinks", "method": "POST", "repeat": "read", "isSigned": true, "isWrapped": true}, `/v1/payment/link/list`, fields, options);
  }

  getPaymentLink(fields, options) {
    return this.#call({"name": "getPaymentLink", "method": "POST", "repeat": "read", "isSigned": true, "isWrapped": true}, `/v1/payment/link/info`, fields, options);
  }

  togglePaymentLink(fields, options) {
    return this.#call({"name": "togglePaymentLink", "method": "POST", "repeat": "no", "isSigned": true, "isWrapped": true}, `/v1/payment/link/toggle`, fields, options);
  }

  getLink(linkId, options) {
    return this.#call({"name": "getLink", "method": "GET", "repeat": "read", "isSigned": false, "isWrapped": true}, `/v1/link/${encodeURIComponent(linkId)}`, undefined, options);
  }

  checkOutLink(linkId, fields, options) {
    return this.#call({"name": "checkOutLink", "method": "POST", "repeat": "no", "isSigned": false, "isWrapped": true}, `/v1/link/${encodeURIComponent(linkId)}/checkout`, fields, options);
  }

  listCurrencies(options) {
    return this.#call({"name": "listCurrencies", "method": "GET", "repeat": "read", "isSigned": false, "isWrapped": true}, `/v1/currencies`, undefined, options);
  }

  listExchangeRates(fields, options) {
    return this.#call({"name": "listExchangeRates", "method": "POST", "repeat": "read", "isSigned": true, "isWrapped": true}, `/v1/exchange-rate/list`, fields, options);
  }

  refundPayment(fields, options) {
    return this.#call({"name": "refundPayment", "method": "POST", "repeat": "key", "isSigned": true, "isWrapped": true}, `/v1/payment/refund`, fields, options);
  }

  refundBlockedWallet(fields, options) {
    return this.#call({"name": "refundBlockedWallet", "method": "POST", "repeat": "key", "isSigned": true, "isWrapped": true}, `/v1/wallet/blocked-address-refund`, fields, options);
  }

  getBalance(fields, options) {
    return this.#call({"name": "getBalance", "method": "POST", "repeat": "read", "isSigned": true, "isWrapped": true}, `/v1/balance`, fields, options);
  }

  transferToPersonal(fields, options) {
    return this.#call({"name": "transferToPersonal", "method": "POST", "repeat": "key", "isSigned": true, "isWrapped": true}, `/v1/transfer/to-personal`, fields, options);
  }

  createPayout(fields, options) {
    return this.#call({"name": "createPayout", "method": "POST", "repeat": "key", "isSigned": true, "isWrapped": true}, `/v1/payout`, fields, options);
  }

  calculatePayout(fields, options) {
    return this.#call({"name": "calculatePayout", "method": "POST", "repeat": "read", "isSigned": true, "isWrapped": true}, `/v1/payout/calculate`, fields, options);
  }

  createPayouts(fields, options) {
    return this.#call({"name": "createPayouts", "method": "POST", "repeat": "key", "isSigned": true, "isWrapped": true}, `/v1/payout/mass`, fields, options);
  }

  setPayoutFees(fields, options) {
    return this.#call({"name": "setPayoutFees", "method": "POST", "repeat": "read", "isSigned": true, "isWrapped": true}, `/v1/payout/fee-settings`, fields, options);
  }

  getPayout(fields, options) {
    return this.#call({"name": "getPayout", "method": "POST", "repeat": "read", "isSigned": true, "isWrapped": true}, `/v1/payout/info`, fields, options);
  }

  listPayouts(fields, options) {
    return this.#call({"name": "listPayouts", "method": "POST", "repeat": "read", "isSigned": true, "isWrapped": true}, `/v1/payout/history`, fields, options);
  }

  iterPayouts(fields) {
    return this.#pages(this.listPayouts, fields);
  }

  listPayoutMethods(fields, options) {
    return this.#call({"name": "listPayoutMethods", "method": "POST", "repeat": "read", "isSigned": true, "isWrapped": true}, `/v1/payout/services`, fields, options);
  }

  approvePayout(fields, options) {
    return this.#call({"name": "approvePayout", "method": "POST", "repeat": "no", "isSigned": true, "isWrapped": true}, `/v1/payout/approve`, fields, options);
  }

  cancelPayout(fields, options) {
    return this.#call({"name": "cancelPayout", "method": "POST", "repeat": "no", "isSigned": true, "isWrapped": true}, `/v1/payout/cancel`, fields, options);
  }

  setAutoWithdraw(fields, options) {
    return this.#call({"name": "setAutoWithdraw", "method": "POST", "repeat": "read", "isSigned": true, "isWrapped": true}, `/v1/auto-withdraw`, fields, options);
  }

  createPayoutLink(fields, options) {
    return this.#call({"name": "createPayoutLink", "method": "POST", "repeat": "bytes", "isSigned": true, "isWrapped": true}, `/v1/payout/link`, withReference(fields), options);
  }

  createPayoutLinks(fields, options) {
    return this.#call({"name": "createPayoutLinks", "method": "POST", "repeat": "bytes", "isSigned": true, "isWrapped": true}, `/v1/payout/link/batch`, withReferences(fields), options);
  }

  listPayoutLinks(fields, options) {
    return this.#call({"name": "listPayoutLinks", "method": "POST", "repeat": "read", "isSigned": true, "isWrapped": true}, `/v1/payout/link/list`, fields, options);
  }

  getPayoutLink(fields, options) {
    return this.#call({"name": "getPayoutLink", "method": "POST", "repeat": "read", "isSigned": true, "isWrapped": true}, `/v1/payout/link/info`, fields, options);
  }

  cancelPayoutLink(fields, options) {
    return this.#call({"name": "cancelPayoutLink", "method": "POST", "repeat": "no", "isSigned": true, "isWrapped": true}, `/v1/payout/link/cancel`, fields, options);
  }

  getClaim(token, options) {
    return this.#call({"name": "getClaim", "method": "GET", "repeat": "read", "isSigned": false, "isWrapped": true}, `/v1/claim/${encodeURIComponent(token)}`, undefined, options);
  }

  claimPayoutLink(token, fields, options) {
    return this.#call({"name": "claimPayoutLink", "method": "POST", "repeat": "no", "isSigned": false, "isWrapped": true}, `/v1/claim/${encodeURIComponent(token)}`, fields, options);
  }

  createWallet(fields, options) {
    return this.#call({"name": "createWallet", "method": "POST", "repeat": "key", "isSigned": true, "isWrapped": true}, `/v1/wallet`, fields, options);
  }

  blockWallet(fields, options) {
    return this.#call({"name": "blockWallet", "method": "POST", "repeat": "no", "isSigned": true, "isWrapped": true}, `/v1/wallet/block`, fields, options);
  }

  getWallet(fields, options) {
    return this.#call({"name": "getWallet", "method": "POST", "repeat": "read", "isSigned": true, "isWrapped": true}, `/v1/wallet/info`, fields, options);
  }

  renderQr(fields, options) {
    return this.#call({"name": "renderQr", "method": "POST", "repeat": "read", "isSigned": true, "isWrapped": true}, `/v1/wallet/qr`, fields, options);
  }

  createPaymentBatch(fields, options) {
    return this.#call({"name": "createPaymentBatch", "method": "POST", "repeat": "key", "isSigned": true, "isWrapped": true}, `/v1/payment/batch`, fields, options);
  }

  createPayoutBatch(fields, options) {
    return this.#call({"name": "createPayoutBatch", "method": "POST", "repeat": "key", "isSigned": true, "isWrapped": true}, `/v1/payout/batch`, fields, options);
  }

  createRefundBatch(fields, options) {
    return this.#call({"name": "createRefundBatch", "method": "POST", "repeat": "key", "isSigned": true, "isWrapped": true}, `/v1/refund/batch`, fields, options);
  }

  getBatch(fields, options) {
    return this.#call({"name": "getBatch", "method": "POST", "repeat": "read", "isSigned": true, "isWrapped": true}, `/v1/batch/info`, fields, options);
  }

  registerWebhook(fields, options) {
    return this.#call({"name": "registerWebhook", "method": "POST", "repeat": "no", "isSigned": true, "isWrapped": false}, `/v1/webhooks`, fields, options);
  }

  listWebhookDeliveries(fields, options) {
    return this.#call({"name": "listWebhookDeliveries", "method": "POST", "repeat": "read", "isSigned": true, "isWrapped": true}, `/v1/webhooks/deliveries`, fields, options);
  }

  iterWebhookDeliveries(fields) {
    return this.#pages(this.listWebhookDeliveries, fields);
  }

  redeliverWebhook(fields, options) {
    return this.#call({"name": "redeliverWebhook", "method": "POST", "repeat": "no", "isSigned": true, "isWrapped": true}, `/v1/webhooks/redeliver`, fields, options);
  }

  testWebhook(fields, options) {
    return this.#call({"name": "testWebhook", "method": "POST", "repeat": "no", "isSigned": true, "isWrapped": true}, `/v1/webhooks/test`, fields, options);
  }

  setIpAllowlist(fields, options) {
    return this.#call({"name": "setIpAllowlist", "method": "POST", "repeat": "read", "isSigned": true, "isWrapped": true}, `/v1/ip-allowlist`, fields, options);
  }

  addSplitRule(fields, options) {
    return this.#call({"name": "addSplitRule", "method": "POST", "repeat": "key", "isSigned": true, "isWrapped": true}, `/v1/split/rule`, fields, options);
  }

  listSplitRules(fields, options) {
    return this.#call({"name": "listSplitRules", "method": "POST", "repeat": "read", "isSigned": true, "isWrapped": true}, `/v1/split/rule/list`, fields, options);
  }

  deleteSplitRule(fields, options) {
    return this.#call({"name": "deleteSplitRule", "method": "POST", "repeat": "no", "isSigned": true, "isWrapped": true}, `/v1/split/rule/delete`, fields, options);
  }

  getSplitConfig(fields, options) {
    return this.#call({"name": "getSplitConfig", "method": "POST", "repeat": "read", "isSigned": true, "isWrapped": true}, `/v1/split/config/get`, fields, options);
  }

  setSplitConfig(fields, options) {
    return this.#call({"name": "setSplitConfig", "method": "POST", "repeat": "read", "isSigned": true, "isWrapped": true}, `/v1/split/config/set`, fields, options);
  }

  getHealth(options) {
    return this.#call({"name": "getHealth", "method": "GET", "repeat": "read", "isSigned": false, "isWrapped": false}, `/healthz`, undefined, options);
  }

  getReadiness(options) {
    return this.#call({"name": "getReadiness", "method": "GET", "repeat": "read", "isSigned": false, "isWrapped": false}, `/readyz`, undefined, options);
  }

  getMetrics(options) {
    return this.#call({"name": "getMetrics", "method": "GET", "repeat": "read", "isSigned": false, "isWrapped": false}, `/metrics`, undefined, options);
  }
}
