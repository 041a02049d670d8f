// Checks a payment link out: sends what the buyer chose, and goes on to the page of the payment that was made.
// What comes from the API is set as text, never as markup.
"use strict";

(() => {
  const page = document.getElementById("link");
  const byId = (id) => document.getElementById(id);
  const api = `/v1/link/${encodeURIComponent(page.dataset.id)}/checkout`;
  let isSending = false;

  function complain(text, id) {
    byId("problem").textContent = text;
    byId("problem").hidden = !text;
    ["amount", "email"].forEach((name) => {
      if (byId(name)) byId(name).setAttribute("aria-invalid", name === id ? "true" : "false");
    });
  }

  // As people write it: blanks between the digits, and a comma before cents. One before thousands is left, and refused.
  const amountText = () => byId("amount").value.replace(/\s/g, "").replace(/,(?=\d{1,2}$)/, ".");

  function order() {
    const chosen = byId("pinned") || document.querySelector("input[name=coin]:checked");
    const wanted = chosen ? { currency: chosen.dataset.currency, network: chosen.dataset.network } : {};
    if (byId("amount")) wanted.amount = amountText();
    if (byId("email").value.trim()) wanted.payer_email = byId("email").value.trim();
    return wanted;
  }

  function explain(body) {
    if (!body.error) return complain(body.message || "Please try again in a moment.");
    const { code, message } = body.error;
    const isAmount = ["paylink.", "payment.", "pay.below"].some((start) => code.startsWith(start));
    return complain(message, code === "request.bad_field" ? "email" : isAmount ? "amount" : "");
  }

  async function checkOut(event) {
    event.preventDefault();
    if (isSending) return;
    isSending = true;
    byId("submit").disabled = true;
    complain("");
    try {
      const answer = await fetch(api, {
        method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(order()),
      });
      const body = await answer.json();
      if (answer.ok) {
        window.location.assign(`/pay/${encodeURIComponent(body.result.uuid)}`);
        return;
      }
      // It was switched off, or ended, while the page was open: the page itself says so.
      if (answer.status === 404) window.location.reload();
      explain(body);
    } catch {
      complain("The gateway could not be reached. Please try again.");
    }
    isSending = false;
    byId("submit").disabled = false;
  }

  const expiry = byId("expiry");
  if (expiry) {
    const ends = new Date(expiry.dataset.unix * 1000);
    expiry.textContent = ends.toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
  }
  byId("order").addEventListener("submit", checkOut);
  // Whoever comes back from the payment's page may pay again.
  window.addEventListener("pageshow", () => {
    isSending = false;
    byId("submit").disabled = false;
  });
})();
