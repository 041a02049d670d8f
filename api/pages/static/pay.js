// The page of a payment: counts down, lets the buyer choose and copy, and leads a buyer who has paid on to the shop. The
// page is complete without it.
(() => {
  const POLLS = [3000, 15000];
  // What is final may still change: a late payment comes, or the chain takes one back.
  const POLLS_FINAL = [15000, 60000];
  const REDIRECT_S = 5;
  const page = byId("payment");
  const api = `/v1/pay/${encodeURIComponent(page.dataset.id)}`;

  const isDone = (stage) => stage === "paid" || stage === "paid_over";
  let askedText = toPay();
  const following = follow(page, {
    swapped: ["header", "lines", "body"],
    polls: () => (page.dataset.final === "yes" ? POLLS_FINAL : POLLS),
    isBusy: () => false,
    onTaken: taken,
  });

  function toPay() {
    return byId("amount") ? byId("amount").textContent : "";
  }

  function taken(fresh, before) {
    ["progress", "progress-text", "countdown", "rate-time", "onward"].forEach((id) => {
      const element = fresh.getElementById(id);
      if (element) show(id, !element.hidden);
    });
    byId("progress").max = fresh.getElementById("progress").max;
    byId("progress").value = fresh.getElementById("progress").value;
    // A new quote begins where the old one ended; a payment in part changes the amount as well, and says so itself.
    const isSameStage = page.dataset.stage === before.stage;
    const isRequoted = askedText && isSameStage && before.rateExpires !== page.dataset.rateExpires;
    if (isRequoted && askedText !== toPay()) show("changed", true);
    if (!isSameStage) show("changed", false);
    askedText = toPay();
    enable();
    countDown();
    if (isDone(page.dataset.stage) && !isDone(before.stage) && /^https?:\/\//i.test(page.dataset.success)) leave();
  }

  // Goes on to the shop, announced, unless the buyer stays.
  function leave() {
    let left = REDIRECT_S;
    const timer = window.setInterval(() => {
      left -= 1;
      setText("leaving-s", String(left));
      if (left > 0) return;
      window.clearInterval(timer);
      window.location.assign(page.dataset.success);
    }, 1000);
    setText("leaving-s", String(left));
    show("leaving", true);
    byId("stay").addEventListener("click", () => {
      window.clearInterval(timer);
      show("leaving", false);
      byId("success").focus();
    }, { once: true });
  }

  function countDown() {
    const expiresAt = Number(page.dataset.expires);
    const rateExpiresAt = Number(page.dataset.rateExpires);
    setText("expiry", timeOf(expiresAt, { timeStyle: "short" }));
    setText("remaining", ` · ${clockText(following.secondsUntil(expiresAt))} left`);
    setText("rate-expiry", timeOf(rateExpiresAt, { timeStyle: "short" }));
    setText("rate-left", ` · ${clockText(following.secondsUntil(rateExpiresAt))} left`);
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
        await following.poll();
        byId("heading").focus();
        return;
      }
      pauseMs = following.retryAfterMs(answer);
      const body = await answer.json();
      setText("select-error", body.error ? body.error.message : "Please try again in a moment.");
    } catch {
      setText("select-error", "The gateway could not be reached. Please try again.");
    }
    show("select-error", true);
    window.setTimeout(() => {
      buttons.forEach((other) => { other.disabled = false; });
      button.focus();
    }, pauseMs);
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
    document.querySelectorAll("[data-copy]").forEach((button) => { button.hidden = false; });
    ["remaining", "rate-left"].forEach((id) => show(id, true));
  }

  page.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.dataset.currency) {
      event.preventDefault();
      choose(button);
    }
    if (button.dataset.copy) copy(button);
  });
  enable();
  countDown();
  window.setInterval(countDown, 1000);
  following.poll();
})();
