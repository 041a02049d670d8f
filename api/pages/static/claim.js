// The page of a cheque: sends its forms without leaving the page, and follows the payout.
(() => {
  const POLLS = [5000, 30000];
  const page = byId("page");
  let isSending = false;

  const following = follow(page, {
    swapped: ["lines", "body"],
    polls: () => (page.dataset.final === "yes" ? null : POLLS),
    isBusy: () => isSending || byId("confirm") !== null || byId("name") !== null,
    onTaken: (fresh) => {
      show("until", !fresh.getElementById("until").hidden);
      countDown();
    },
  });

  function countDown() {
    const expiresAt = Number(page.dataset.expires);
    setText("expiry", timeOf(expiresAt, { dateStyle: "medium", timeStyle: "short" }));
    setText("remaining", ` · ${clockText(following.secondsUntil(expiresAt))}\u00a0left`);
  }

  async function send(form, button) {
    const fields = new URLSearchParams(new FormData(form));
    if (button && button.name) fields.set(button.name, button.value);
    isSending = true;
    form.querySelectorAll("button").forEach((each) => { each.disabled = true; });
    try {
      const answer = await fetch(window.location.pathname, { method: "POST", headers: { Accept: "text/html" }, body: fields });
      following.take(await answer.text(), true);
      (document.querySelector("[aria-invalid=true]") || byId("heading")).focus();
    } catch {
      setText("stale", "The gateway could not be reached. Please try again with the same address.");
      show("stale", true);
    }
    isSending = false;
    document.querySelectorAll("form button").forEach((each) => { each.disabled = false; });
  }

  page.addEventListener("submit", (event) => {
    event.preventDefault();
    if (!isSending) send(event.target, event.submitter);
  });
  show("remaining", true);
  countDown();
  window.setInterval(countDown, 1000);
  following.poll();
})();
