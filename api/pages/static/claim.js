// Claims a cheque: sends the address that its holder names, and keeps the page current.
// The token stands in the page's own address and nowhere else. What comes from the API is set as text, never as markup.
"use strict";

(() => {
  const POLL_MS = 5000;
  const POLL_HIDDEN_MS = 30000;
  const OPEN = ["funded", "claiming"];
  const page = document.getElementById("claim");
  const byId = (id) => document.getElementById(id);
  const api = `/v1/claim/${encodeURIComponent(window.location.pathname.split("/").pop())}`;
  const headings = JSON.parse(page.dataset.headings);
  let status = page.dataset.status;
  let expiresAt = Number(byId("expiry").dataset.unix);
  let isSending = false;
  // Added to performance.now(), which no change of the device's clock moves, it gives the gateway's time.
  let clockOffsetMs = (Number(page.dataset.now) || Date.now()) - performance.now();

  const setText = (id, text) => {
    const element = byId(id);
    if (element && element.textContent !== text) element.textContent = text;
  };
  const show = (id, visible) => {
    const element = byId(id);
    if (element) element.hidden = !visible;
  };

  function outcome() {
    if (status === "claimed") return `${page.dataset.amount} were claimed and are being sent. That can take some minutes.`;
    if (status === "cancelled") return "Please ask whoever sent you this link.";
    return "The money went back to the sender, who can give you a new link.";
  }

  function render(next) {
    status = next;
    const isOpen = OPEN.includes(status);
    setText("heading", headings[status] || status);
    show("view-open", isOpen);
    show("until", isOpen);
    show("view-done", !isOpen);
    if (!isOpen) setText("outcome", outcome());
  }

  function complain(text) {
    setText("problem", text);
    show("problem", Boolean(text));
    byId("address").setAttribute("aria-invalid", text ? "true" : "false");
  }

  async function claim(event) {
    event.preventDefault();
    if (isSending) return;
    const address = byId("address").value.trim();
    const memo = byId("memo") ? byId("memo").value.trim() : "";
    isSending = true;
    byId("submit").disabled = true;
    complain("");
    try {
      const answer = await fetch(api, {
        method: "POST", headers: { "Content-Type": "application/json" },
        body: JSON.stringify(memo ? { address, memo } : { address }),
      });
      const body = await answer.json();
      if (answer.ok) {
        setText("sent-to", address);
        setText("payout-id", body.result.payout_id);
        show("destination", true);
        show("payout", true);
        render(body.result.status);
      } else {
        complain((body.error || body).message || "Please try again in a moment.");
        if (answer.status === 410) window.setTimeout(refresh, 0);
      }
    } catch {
      complain("The gateway could not be reached. Please try again with the same address.");
    }
    isSending = false;
    byId("submit").disabled = false;
  }

  function setClock(answer, askedAt) {
    const gatewayMs = Number(answer.headers.get("X-Gateway-Time"));
    // It was taken somewhere between the question and the answer.
    if (gatewayMs) clockOffsetMs = gatewayMs - (askedAt + performance.now()) / 2;
  }

  async function refresh() {
    try {
      const askedAt = performance.now();
      const answer = await fetch(api, { cache: "no-store" });
      setClock(answer, askedAt);
      if (answer.ok && !isSending) {
        const link = (await answer.json()).result;
        expiresAt = Math.floor(Date.parse(link.expires_at) / 1000);
        render(link.status);
      }
    } catch {
      // Offline for a moment: the next look tells.
    }
  }

  async function poll() {
    await refresh();
    if (OPEN.includes(status)) window.setTimeout(poll, document.hidden ? POLL_HIDDEN_MS : POLL_MS);
  }

  function countDown() {
    const left = Math.max(0, expiresAt - Math.floor((performance.now() + clockOffsetMs) / 1000));
    const two = (number) => String(number).padStart(2, "0");
    const days = Math.floor(left / 86400);
    const clock = `${two(Math.floor(left / 3600) % 24)}:${two(Math.floor(left / 60) % 60)}:${two(left % 60)}`;
    setText("expiry", new Date(expiresAt * 1000).toLocaleString([], { dateStyle: "medium", timeStyle: "short" }));
    // Unbreakable blanks: a day's number must not end a line.
    setText("remaining", ` · ${days ? `${days}\u00a0d\u00a0` : ""}${clock}\u00a0left`);
  }

  byId("view-open").addEventListener("submit", claim);
  byId("submit").disabled = false;
  show("remaining", true);
  countDown();
  window.setInterval(countDown, 1000);
  window.setTimeout(poll, POLL_MS);
})();
