// The page of a cheque: follows the payout. The page is complete without it.
(() => {
  const POLLS = [5000, 30000];
  const page = byId("page");

  const following = follow(page, {
    swapped: ["lines", "body"],
    polls: () => (page.dataset.final === "yes" ? null : POLLS),
    isBusy: () => byId("confirm") !== null || byId("name") !== null,
    onTaken: (fresh) => {
      show("until", !fresh.getElementById("until").hidden);
      countDown();
    },
    leads: false,
  });

  function countDown() {
    const expiresAt = Number(page.dataset.expires);
    setText("expiry", timeOf(expiresAt, { dateStyle: "medium", timeStyle: "short" }));
    setText("remaining", leftText(following.secondsUntil(expiresAt)));
  }

  show("remaining", true);
  countDown();
  window.setInterval(countDown, 1000);
  following.poll();
})();
