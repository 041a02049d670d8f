// The page of a payment link: sends its form without leaving the page, and goes on to the page of the payment that was
// made. The page is complete without it.
(() => {
  follow(byId("link"), { swapped: ["body"], polls: () => null, isBusy: () => true, onTaken: findMethods, leads: true });
  findMethods();
  const expiry = byId("expiry");
  if (expiry) setText("expiry", timeOf(Number(expiry.dataset.unix), { dateStyle: "medium", timeStyle: "short" }));
})();
