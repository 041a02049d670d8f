// Keeps a page current: asks the server for the page again and shows what has changed, sends the page's forms without
// leaving it, and counts by the server's clock. Every word is the server's; nothing in its answers can run.
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
document.documentElement.dataset.scripts = "yes";
// The texts that only scripts show, in the page's language.
const WORDS = JSON.parse(document.body.dataset.words);
// Moments are written as the language does, in the digits of the amounts.
const LOCALE = `${document.documentElement.lang}-u-ca-gregory-nu-latn`;
const timeOf = (unix, style) => new Date(unix * 1000).toLocaleString(LOCALE, style);
// The page's own address, in the language that the reader chose.
const ADDRESS = window.location.pathname + window.location.search;

// page: the element whose data and parts are kept current. swapped: the ids of the parts whose children may change.
// polls: the milliseconds between two questions, as [seen, hidden] or null for no more. isBusy: whether the reader is
// writing, so that only another stage may change the parts. onTaken: called after each change. leads: whether a form
// leads to another page.
function follow(page, { swapped, polls, isBusy, onTaken, leads }) {
  const POLL_MAX_MS = 60000;
  const STALE_AFTER = 2;
  // The server's own text of what is swapped, before any script touched it.
  const shown = new Map(swapped.map((id) => [id, byId(id).innerHTML]));
  let etag = page.dataset.tag ? `W/"${page.dataset.tag}"` : "";
  let failures = 0;
  let timer = 0;
  let isSending = false;
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

  // Takes over the server's new page; returns false if it is another page.
  function take(fresh) {
    const next = fresh.getElementById(page.id);
    if (!next) return false;
    const focused = document.activeElement ? document.activeElement.id : "";
    const opened = Array.from(document.querySelectorAll("details[open]"), (element) => element.id);
    const before = { ...page.dataset };
    Object.keys(next.dataset).filter((name) => name !== "tag").forEach((name) => { page.dataset[name] = next.dataset[name]; });
    swapped.forEach((id) => swap(id, fresh));
    ["heading", "progress-text"].forEach((id) => {
      if (byId(id)) setText(id, fresh.getElementById(id).textContent);
    });
    opened.forEach((id) => { if (byId(id)) byId(id).open = true; });
    show("trouble", false);
    onTaken(fresh, before);
    // A reader who goes by keyboard stays at the same place, or begins at the new heading.
    if (focused) (byId(focused) || byId("heading")).focus();
    return true;
  }

  const parse = (html) => new DOMParser().parseFromString(html, "text/html");

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
    const answer = await fetch(ADDRESS, { headers, cache: "no-store" });
    if (!answer.ok && answer.status !== 304) return { isFresh: false, waitMs: retryAfterMs(answer) };
    setClock(answer, askedAt);
    if (answer.ok) {
      const fresh = parse(await answer.text());
      etag = answer.headers.get("ETag") || "";
      const next = fresh.getElementById(page.id);
      if (next && !((isSending || isBusy()) && next.dataset.stage === page.dataset.stage)) take(fresh);
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
    setText("stale", WORDS.stale.replace("{time}", timeOf(freshAt / 1000, { timeStyle: "short" })));
  }

  // Sends a form. Its buttons rest until the answer is there, or for as long as the server asks for patience.
  async function send(form, button) {
    const fields = new URLSearchParams(new FormData(form));
    if (button && button.name) fields.set(button.name, button.value);
    const buttons = () => document.querySelectorAll("form button");
    isSending = true;
    buttons().forEach((each) => { each.disabled = true; });
    show("trouble", false);
    let pauseMs = 0;
    let next = [button && button.id];
    try {
      const answer = await fetch(ADDRESS, { method: "POST", headers: { Accept: "text/html" }, body: fields });
      if (answer.redirected && leads) {
        window.location.assign(answer.url);
        return;
      }
      pauseMs = retryAfterMs(answer);
      const fresh = parse(await answer.text());
      if (!take(fresh)) complain(fresh.querySelector("h1").textContent);
      else if (answer.ok) next = ["heading"];
      if (answer.redirected) etag = answer.headers.get("ETag") || "";
    } catch {
      complain(WORDS.unreachable);
    }
    buttons().forEach((each) => { each.disabled = true; });
    window.setTimeout(() => {
      isSending = false;
      buttons().forEach((each) => { each.disabled = false; });
      const wrong = document.querySelector("[aria-invalid=true]");
      const place = wrong || next.map(byId).find(Boolean) || byId("heading");
      if (place) place.focus();
    }, pauseMs);
  }

  function complain(text) {
    setText("trouble", text);
    show("trouble", true);
  }

  page.addEventListener("submit", (event) => {
    event.preventDefault();
    if (!isSending) send(event.target, event.submitter);
  });
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && !failures && polls()) poll();
  });
  // A reader who comes back from another page may send the form again.
  window.addEventListener("pageshow", () => {
    isSending = false;
    document.querySelectorAll("form button").forEach((each) => { each.disabled = false; });
  });
  return {
    poll,
    secondsUntil: (unix) => Math.max(0, Math.ceil(unix - (performance.now() + clockOffsetMs) / 1000)),
  };
}

// Shows the coins that the reader looks for, by their own names or those of their networks.
function findMethods() {
  const field = byId("search");
  if (!field) return;
  field.hidden = false;
  const wanted = field.value.trim().toLowerCase();
  document.querySelectorAll("[data-coin]").forEach((row) => { row.hidden = !row.textContent.toLowerCase().includes(wanted); });
}

document.addEventListener("input", (event) => {
  if (event.target.id === "search") findMethods();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && event.target.id === "search") event.preventDefault();
});

// Writes a time that is left as 1:02:03 or 02:03, with its days, if it has any.
function clockText(seconds) {
  const two = (number) => String(number).padStart(2, "0");
  const days = Math.floor(seconds / 86400);
  const hours = Math.floor(seconds / 3600) % 24;
  // Unbreakable blanks: a day's number must not end a line.
  const inDays = days ? `${WORDS.days.replace("{days}", days)} `.replaceAll(" ", "\u00a0") : "";
  return `${inDays}${hours || days ? `${hours}:` : ""}${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`;
}

// Writes the time that is left after a moment, in the page's language.
const leftText = (seconds) => ` · ${WORDS.left.replace("{time}", clockText(seconds))}`;
