// Keeps a page current: asks the server for the page again and shows what has changed, and counts by the server's clock.
// Every word is the server's, escaped there; nothing that is taken over from its answer can run.
"use strict";

const byId = (id) => document.getElementById(id);
const setText = (id, text) => {
  const element = byId(id);
  if (element && element.textContent !== text) element.textContent = text;
};
const show = (id, visible) => {
  const element = byId(id);
  if (element) element.hidden = !visible;
};
const timeOf = (unix, style) => new Date(unix * 1000).toLocaleString([], style);

// page: the element whose data and parts are kept current. swapped: the ids of the parts whose children may change.
// polls: the milliseconds between two questions, as [seen, hidden] or null for no more. isBusy: whether the reader is
// writing, so that only another stage may change what he sees. onTaken: called after each change.
function follow(page, { swapped, polls, isBusy, onTaken }) {
  const POLL_MAX_MS = 60000;
  const STALE_AFTER = 2;
  // The server's own text of what is swapped, before any script touched it.
  const shown = new Map(swapped.map((id) => [id, byId(id).innerHTML]));
  let etag = page.dataset.tag ? `W/"${page.dataset.tag}"` : "";
  let failures = 0;
  let timer = 0;
  let freshAt = Date.now();
  // Added to performance.now(), which no change of the device's clock moves, it gives the server's time.
  let clockOffsetMs = Date.now() - performance.now();

  // Puts the server's children in place of ours where they differ.
  function swap(id, fresh) {
    const theirs = fresh.getElementById(id);
    if (shown.get(id) === theirs.innerHTML) return;
    shown.set(id, theirs.innerHTML);
    byId(id).replaceChildren(...Array.from(theirs.childNodes, (node) => document.importNode(node, true)));
  }

  // Takes over what the server's new page says.
  function take(html, isWanted) {
    const fresh = new DOMParser().parseFromString(html, "text/html");
    const next = fresh.getElementById(page.id);
    if (!next) return;
    if (!isWanted && isBusy() && next.dataset.stage === page.dataset.stage) return;
    const focused = document.activeElement ? document.activeElement.id : "";
    const opened = Array.from(document.querySelectorAll("details[open]"), (element) => element.id);
    const before = { ...page.dataset };
    Object.keys(next.dataset).filter((name) => name !== "tag").forEach((name) => { page.dataset[name] = next.dataset[name]; });
    swapped.forEach((id) => swap(id, fresh));
    ["heading", "progress-text"].forEach((id) => {
      if (byId(id)) setText(id, fresh.getElementById(id).textContent);
    });
    opened.forEach((id) => { if (byId(id)) byId(id).open = true; });
    onTaken(fresh, before);
    // A reader who goes by keyboard stays where he was, or begins at the new heading.
    if (focused) (byId(focused) || byId("heading")).focus();
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
      take(html, false);
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
    if (polls()) timer = window.setTimeout(poll, waitMs(outcome.waitMs));
  }

  // A server that asks for patience has it; one that fails is asked ever more seldom, by no two pages in step.
  function waitMs(askedMs) {
    const [seenMs, hiddenMs] = polls();
    const usualMs = document.hidden ? hiddenMs : seenMs;
    if (!failures) return usualMs;
    return Math.max(askedMs, Math.min(POLL_MAX_MS, usualMs * 2 ** failures)) * (1 + Math.random() / 4);
  }

  function showStale() {
    show("stale", failures >= STALE_AFTER);
    if (failures < STALE_AFTER) return;
    const at = timeOf(freshAt / 1000, { timeStyle: "short" });
    setText("stale", `The gateway does not answer right now. What you see is of ${at}; it is asked again by itself.`);
  }

  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && !failures && polls()) poll();
  });
  return {
    poll,
    take,
    retryAfterMs,
    secondsUntil: (unix) => Math.max(0, Math.ceil(unix - (performance.now() + clockOffsetMs) / 1000)),
  };
}

// Writes a time that is left as 1:02:03 or 02:03, with its days, if it has any.
function clockText(seconds) {
  const two = (number) => String(number).padStart(2, "0");
  const days = Math.floor(seconds / 86400);
  const hours = Math.floor(seconds / 3600) % 24;
  // Unbreakable blanks: a day's number must not end a line.
  return `${days ? `${days}\u00a0d\u00a0` : ""}${hours || days ? `${hours}:` : ""}${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`;
}
