// Keeps the payment page current: polls the public payment, counts down, lets the buyer choose and copy.
// The page is complete without it; whatever is written here comes from the API and is set as text, never as markup.
"use strict";

(() => {
  const POLL_MS = 3000;
  const POLL_HIDDEN_MS = 15000;
  const REDIRECT_MS = 5000;
  const page = document.getElementById("payment");
  const byId = (id) => document.getElementById(id);
  const api = `/v1/pay/${encodeURIComponent(page.dataset.id)}`;
  const headings = JSON.parse(page.dataset.headings);
  let etag = "";
  let shownStatus = page.dataset.status;
  let expiresAt = Number(page.dataset.expires);

  const setText = (id, text) => {
    const element = byId(id);
    if (element && element.textContent !== text) element.textContent = text;
  };
  const show = (id, visible) => {
    const element = byId(id);
    if (element) element.hidden = !visible;
  };

  function outcome(payment) {
    const arrived = `${payment.payment_amount || "0"} ${payment.payer_currency}`;
    if (payment.payment_status === "wrong_amount") {
      return `${arrived} of ${payment.payer_amount} ${payment.payer_currency} arrived. Please contact the shop.`;
    }
    if (payment.payment_status === "expired") {
      return "Please do not send anything to its address. The shop can give you a new payment.";
    }
    return `Thank you. ${arrived} arrived.`;
  }

  function render(payment) {
    const status = payment.payment_status;
    const isOpen = status === "select" || status === "check";
    const isPaid = status === "paid" || status === "paid_over";
    if (payment.address !== page.dataset.address) {
      // A coin was chosen, here or in another window: the address and its code come from the server.
      window.location.reload();
      return;
    }
    expiresAt = payment.expired_at;
    setText("heading", headings[status] || status);
    show("view-select", status === "select");
    show("view-pay", status === "check");
    show("view-done", !isOpen);
    show("countdown", isOpen);
    show("success", isPaid);
    setText("amount", page.dataset.rest === "yes" ? payment.amount_remaining : payment.payer_amount);
    const received = !["", "0"].includes(payment.amount_paid);
    show("progress", received);
    if (received) {
      setText("progress", `Received ${payment.amount_paid} ${payment.payer_currency}, `
        + `${payment.confirmations} of ${payment.required_confirmations} confirmations.`);
    }
    if (!isOpen) setText("outcome", outcome(payment));
    if (isPaid && status !== shownStatus && /^https?:\/\//i.test(page.dataset.success)) {
      window.setTimeout(() => window.location.assign(page.dataset.success), REDIRECT_MS);
    }
    shownStatus = status;
    page.dataset.final = payment.is_final ? "yes" : "no";
  }

  async function poll() {
    try {
      const answer = await fetch(api, { headers: etag ? { "If-None-Match": etag } : {}, cache: "no-store" });
      if (answer.ok) {
        etag = answer.headers.get("ETag") || "";
        render((await answer.json()).result);
      }
    } catch {
      // Offline for a moment: the next poll tells.
    }
    if (page.dataset.final !== "yes") {
      window.setTimeout(poll, document.hidden ? POLL_HIDDEN_MS : POLL_MS);
    }
  }

  function countDown() {
    const left = Math.max(0, expiresAt - Math.floor(Date.now() / 1000));
    const two = (number) => String(number).padStart(2, "0");
    const hours = Math.floor(left / 3600);
    setText("expiry", new Date(expiresAt * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" }));
    setText("remaining", ` · ${hours ? `${hours}:` : ""}${two(Math.floor(left / 60) % 60)}:${two(left % 60)} left`);
  }

  async function choose(button) {
    const buttons = document.querySelectorAll("[data-currency]");
    const choice = { currency: button.dataset.currency, network: button.dataset.network };
    buttons.forEach((other) => { other.disabled = true; });
    show("select-error", false);
    try {
      const answer = await fetch(`${api}/select`, {
        method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(choice),
      });
      const body = await answer.json();
      if (answer.ok) {
        render(body.result);
        return;
      }
      setText("select-error", body.error ? body.error.message : "Please try again in a moment.");
    } catch {
      setText("select-error", "The gateway could not be reached. Please try again.");
    }
    show("select-error", true);
    buttons.forEach((other) => { other.disabled = false; });
  }

  async function copy(button) {
    const text = byId(button.dataset.copy).textContent.trim();
    const label = button.textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Select it and copy by hand";
    }
    window.setTimeout(() => { button.textContent = label; }, 2000);
  }

  document.querySelectorAll("[data-currency]").forEach((button) => {
    button.disabled = false;
    button.addEventListener("click", () => choose(button));
  });
  document.querySelectorAll("[data-copy]").forEach((button) => {
    button.hidden = false;
    button.addEventListener("click", () => copy(button));
  });
  show("remaining", true);
  countDown();
  window.setInterval(countDown, 1000);
  poll();
})();
