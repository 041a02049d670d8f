// Keeps the payment page current: asks the server for the page again and shows what has changed, counts down by the
// server's clock, lets the buyer choose and copy. The page is complete without it, and every word of it is the server's.
"use strict";

(() => {
  const POLL_MS = 3000;
  const POLL_HIDDEN_MS = 15000;
  // What is final may still change: a late payment comes, or the chain takes one back.
  const POLL_FINAL_MS = 15000;
  const POLL_FINAL_HIDDEN_MS = 60000;
  const POLL_MAX_MS = 60000;
  const REDIRECT_S = 5;
  const STALE_AFTER = 2;
  const SWAPPED = ["header", "lines", "body"];
  const SHOWN_DATA = ["stage", "tone", "expires", "rateExpires", "final", "address"];
  const page = document.getElementById("payment");
  const byId = (id) => document.getElementById(id);
  const api = `/v1/pay/${encodeURIComponent(page.dataset.id)}`;
  // The server's own text of what is swapped, before this script touched it.
  const shown = new Map();
  let etag = page.dataset.tag ? `W/"${page.dataset.tag}"` : "";
  let failures = 0;
  let timer = 0;
  let freshAt = Date.now();
  // Added to performance.now(), which no change of the device's clock moves, it gives the server's time.
  let clockOffsetMs = Date.now() - performance.now();

  const setText = (id, text) => {
    const element = byId(id);
    if (element && element.textContent !== text) element.textContent = text;
  };
  const show = (id, visible) => {
    const element = byId(id);
    if (element) element.hidden = !visible;
  };
  const isDone = () => page.dataset.stage === "paid" || page.dataset.stage === "paid_over";

  // Takes over what the server's new page says. Its text is escaped there, and nothing that is taken over can run.
  function take(html) {
    const fresh = new DOMParser().parseFromString(html, "text/html");
    const next = fresh.getElementById("payment");
    if (!next) return;
    const wasDone = isDone();
    const focused = document.activeElement ? document.activeElement.id : "";
    const opened = Array.from(document.querySelectorAll("#body details[open]"), (element) => element.id);
    const asked = toPay(document);
    const askedUntil = page.dataset.rateExpires;
    const stageBefore = page.dataset.stage;
    SHOWN_DATA.forEach((name) => { page.dataset[name] = next.dataset[name]; });
    SWAPPED.forEach((id) => swap(id, fresh));
    ["heading", "progress-text"].forEach((id) => setText(id, fresh.getElementById(id).textContent));
    ["progress", "progress-text", "countdown", "rate-time", "onward"].forEach((id) => {
      const element = fresh.getElementById(id);
      if (element) show(id, !element.hidden);
    });
    byId("progress").max = fresh.getElementById("progress").max;
    byId("progress").value = fresh.getElementById("progress").value;
    opened.forEach((id) => { if (byId(id)) byId(id).open = true; });
    // A new quote begins where the old one ended; a payment in part changes the amount as well, and says so itself.
    const isRequoted = asked && page.dataset.stage === stageBefore && askedUntil !== page.dataset.rateExpires;
    if (isRequoted && asked !== toPay(document)) show("changed", true);
    if (page.dataset.stage !== stageBefore) show("changed", false);
    enable();
    countDown();
    // A reader who goes by keyboard stays where he was, or begins at the new heading.
    if (focused) (byId(focused) || byId("heading")).focus();
    if (isDone() && !wasDone && /^https?:\/\//i.test(page.dataset.success)) leave();
  }

  const toPay = (shownPage) => {
    const amount = shownPage.getElementById("amount");
    return amount ? amount.textContent : "";
  };

  // Goes on to the shop, announced, unless the buyer stays.
  function leave() {
    let left = REDIRECT_S;
    const timerOfLeaving = window.setInterval(() => {
      left -= 1;
      setText("leaving-s", String(left));
      if (left > 0) return;
      window.clearInterval(timerOfLeaving);
      window.location.assign(page.dataset.success);
    }, 1000);
    setText("leaving-s", String(left));
    show("leaving", true);
    byId("stay").addEventListener("click", () => {
      window.clearInterval(timerOfLeaving);
      show("leaving", false);
      byId("success").focus();
    }, { once: true });
  }

  // Puts the server's children in place of ours where they differ.
  function swap(id, fresh) {
    const mine = byId(id);
    const theirs = fresh.getElementById(id);
    if (shown.get(id) === theirs.innerHTML) return;
    shown.set(id, theirs.innerHTML);
    mine.replaceChildren(...Array.from(theirs.childNodes, (node) => document.importNode(node, true)));
  }

  function setClock(answer, askedAt) {
    const serverMs = Number(answer.headers.get("X-Gateway-Time"));
    // It was taken somewhere between the question and the answer.
    if (serverMs) clockOffsetMs = serverMs - (askedAt + performance.now()) / 2;
  }

  const retryAfterMs = (answer) => 1000 * (Number(answer.headers.get("Retry-After")) || 0);

  async function ask() {
    const askedAt = performance.now();
    const headers = { Accept: "text/html" };
    if (etag) headers["If-None-Match"] = etag;
    const answer = await fetch(window.location.pathname, { headers, cache: "no-store" });
    if (!answer.ok && answer.status !== 304) return { isFresh: false, waitMs: retryAfterMs(answer) };
    setClock(answer, askedAt);
    if (answer.ok) {
      const html = await answer.text();
      etag = answer.headers.get("ETag") || "";
      take(html);
    }
    return { isFresh: true, waitMs: 0 };
  }

  async function poll() {
    window.clearTimeout(timer);
    let outcome = { isFresh: false, waitMs: 0 };
    try {
      outcome = await ask();
    } catch {
      // Offline for a moment: the next poll tells.
    }
    failures = outcome.isFresh ? 0 : failures + 1;
    if (outcome.isFresh) freshAt = Date.now();
    showStale();
    timer = window.setTimeout(poll, waitMs(outcome.waitMs));
  }

  // A server that asks for patience has it; one that fails is asked ever more seldom, by no two pages in step.
  function waitMs(askedMs) {
    const isFinal = page.dataset.final === "yes";
    const [seenMs, hiddenMs] = isFinal ? [POLL_FINAL_MS, POLL_FINAL_HIDDEN_MS] : [POLL_MS, POLL_HIDDEN_MS];
    const usualMs = document.hidden ? hiddenMs : seenMs;
    if (!failures) return usualMs;
    return Math.max(askedMs, Math.min(POLL_MAX_MS, usualMs * 2 ** failures)) * (1 + Math.random() / 4);
  }

  function showStale() {
    show("stale", failures >= STALE_AFTER);
    if (failures < STALE_AFTER) return;
    const at = new Date(freshAt).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
    setText("stale", `The gateway does not answer right now. What you see is of ${at}; it is asked again by itself.`);
  }

  const timeOf = (unix) => new Date(unix * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });

  // Writes the time left until a moment as 1:02:03 or 02:03.
  function timeLeft(unix) {
    const seconds = Math.max(0, Math.ceil(unix - (performance.now() + clockOffsetMs) / 1000));
    const two = (number) => String(number).padStart(2, "0");
    const hours = Math.floor(seconds / 3600);
    return `${hours ? `${hours}:` : ""}${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`;
  }

  function countDown() {
    const expiresAt = Number(page.dataset.expires);
    const rateExpiresAt = Number(page.dataset.rateExpires);
    setText("expiry", timeOf(expiresAt));
    setText("remaining", ` · ${timeLeft(expiresAt)} left`);
    setText("rate-expiry", timeOf(rateExpiresAt));
    setText("rate-left", ` · ${timeLeft(rateExpiresAt)} left`);
  }

  async function choose(button) {
    const buttons = document.querySelectorAll("[data-currency]");
    const choice = { currency: button.dataset.currency, network: button.dataset.network };
    buttons.forEach((other) => { other.disabled = true; });
    show("select-error", false);
    let pauseMs = 0;
    try {
      const answer = await fetch(`${api}/select`, {
        method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(choice),
      });
      if (answer.ok) {
        remember(choice.currency);
        await poll();
        byId("heading").focus();
        return;
      }
      pauseMs = retryAfterMs(answer);
      const body = await answer.json();
      setText("select-error", body.error ? body.error.message : "Please try again in a moment.");
    } catch {
      setText("select-error", "The gateway could not be reached. Please try again.");
    }
    show("select-error", true);
    window.setTimeout(() => { enable(); button.focus(); }, pauseMs);
  }

  // The coin of the last choice comes first. A browser may forbid its storage, which then remembers nothing.
  function remember(coin) {
    try {
      window.localStorage.setItem("coin", coin);
    } catch {
      // Nothing is remembered.
    }
  }

  function putLastChoiceFirst() {
    let coin = "";
    try {
      coin = window.localStorage.getItem("coin") || "";
    } catch {
      return;
    }
    const last = Array.from(document.querySelectorAll("[data-coin]")).find((each) => each.dataset.coin === coin);
    if (last) last.parentElement.prepend(last);
  }

  async function copy(button) {
    const text = byId(button.dataset.copy).textContent.trim();
    const label = button.dataset.label || button.textContent;
    button.dataset.label = label;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Copy by hand";
    }
    setText("copied", button.textContent);
    window.setTimeout(() => { button.textContent = label; setText("copied", ""); }, 2000);
  }

  // What only works with this script is shown by it.
  function enable() {
    putLastChoiceFirst();
    document.querySelectorAll("[data-currency]").forEach((button) => { button.disabled = false; });
    document.querySelectorAll("[data-copy]").forEach((button) => { button.hidden = false; });
    ["remaining", "rate-left"].forEach((id) => show(id, true));
  }

  page.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button && button.dataset.currency) choose(button);
    if (button && button.dataset.copy) copy(button);
  });
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && !failures) poll();
  });
  SWAPPED.forEach((id) => shown.set(id, byId(id).innerHTML));
  enable();
  countDown();
  window.setInterval(countDown, 1000);
  poll();
})();
