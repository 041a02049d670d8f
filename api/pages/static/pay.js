// The page of a payment: counts down, lets the buyer choose and copy, and leads a buyer who has paid on to the shop. The
// page is complete without it.
(() => {
  const POLLS = [3000, 15000];
  // What is final may still change: a late payment comes, or the chain takes one back.
  const POLLS_FINAL = [15000, 60000];
  const REDIRECT_S = 5;
  const page = byId("payment");

  const isDone = (stage) => stage === "paid" || stage === "paid_over";
  let askedText = toPay();
  const following = follow(page, {
    swapped: ["header", "lines", "finder", "body"],
    polls: () => (page.dataset.final === "yes" ? POLLS_FINAL : POLLS),
    isBusy: () => false,
    onTaken: taken,
    leads: false,
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
    // Said once: a reader of the screen would say each second.
    setText("announced", byId("leaving-text").textContent);
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
    setText("remaining", leftText(following.secondsUntil(expiresAt)));
    setText("rate-expiry", timeOf(rateExpiresAt, { timeStyle: "short" }));
    setText("rate-left", leftText(following.secondsUntil(rateExpiresAt)));
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
      button.textContent = WORDS.copied;
    } catch {
      button.textContent = WORDS.copy_by_hand;
    }
    setText("announced", button.textContent);
    window.setTimeout(() => { button.textContent = label; setText("announced", ""); }, 2000);
  }

  // What only works with this script is shown by it.
  function enable() {
    putLastChoiceFirst();
    findMethods();
    ["remaining", "rate-left"].forEach((id) => show(id, true));
    setText("open-until", timeOf(Number(page.dataset.expires), { dateStyle: "medium", timeStyle: "short" }));
  }

  page.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.dataset.currency) remember(button.dataset.currency);
    if (button.dataset.copy) copy(button);
    if (button.id === "print") window.print();
  });
  enable();
  countDown();
  window.setInterval(countDown, 1000);
  following.poll();
})();
