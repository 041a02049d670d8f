// Checks a payment link out: sends what the buyer chose, and goes on to the page of the payment that was made.
// What comes from the API is set as text, never as markup.
"use strict";

// Returns an amount as the API takes it, from what people write: "12,50", "1 234,50", "1.234,50", "1'234.5".
// What can be read in two ways ("12,345") is left as it is, and refused by the API.
function plainAmount(written) {
  const text = written.replace(/[\s'\u2019]/g, "");
  const [, mark] = /([.,])\d*$/.exec(text) || [];
  if (!mark) return text;
  const other = mark === "," ? "." : ",";
  const [whole, ...parts] = text.split(mark);
  if (parts.length > 1) {
    // Only thousands are marked more than once.
    return /^\d{1,3}$/.test(whole) && parts.every((part) => /^\d{3}$/.test(part)) ? whole + parts.join("") : text;
  }
  const isGrouped = whole.split(other).length > 1;
  if (isGrouped && !new RegExp(`^\\d{1,3}(\\${other}\\d{3})+$`).test(whole)) return text;
  const isThousands = mark === "," && !isGrouped && parts[0].length === 3 && /^[1-9]\d{0,2}$/.test(whole);
  return isThousands ? text : `${whole.replaceAll(other, "")}.${parts[0]}`;
}

(() => {
  const page = document.getElementById("link");
  const byId = (id) => document.getElementById(id);
  const api = `/v1/link/${encodeURIComponent(page.dataset.id)}/checkout`;
  let isSending = false;

  // Puts a problem beside its field, which then has the focus, or above the button.
  function complain(text, id) {
    const field = id && byId(id) ? id : "";
    ["amount", "email", ""].forEach((name) => {
      const place = byId(name ? `${name}-problem` : "problem");
      if (!place) return;
      place.textContent = name === field ? text : "";
      place.hidden = name !== field || !text;
      if (name) byId(name).setAttribute("aria-invalid", name === field && text ? "true" : "false");
    });
    if (field && text) byId(field).focus();
  }

  const amountText = () => plainAmount(byId("amount").value);

  function order() {
    const chosen = byId("pinned") || document.querySelector("input[name=coin]:checked");
    const wanted = chosen ? { currency: chosen.dataset.currency, network: chosen.dataset.network } : {};
    if (byId("amount")) wanted.amount = amountText();
    if (byId("email").value.trim()) wanted.payer_email = byId("email").value.trim();
    return wanted;
  }

  function explain(body) {
    if (!body.error) return complain(body.message || "Please try again in a moment.", "");
    const { code, message } = body.error;
    const isAmount = ["paylink.", "payment.", "pay.below"].some((start) => code.startsWith(start));
    if (code === "request.bad_field") return complain(page.dataset.emailProblem, "email");
    return complain(message, isAmount ? "amount" : "");
  }

  async function checkOut(event) {
    event.preventDefault();
    if (isSending) return;
    isSending = true;
    byId("submit").disabled = true;
    complain("", "");
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
      complain("The gateway could not be reached. Please try again.", "");
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
