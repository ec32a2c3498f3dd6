// Keeps a page as the server has it. When the server says that something has changed, each part that has an address (`data-live`)
// and is in sight is fetched again, and what is new in it is put in; fields in use, focus and open details stay.
"use strict";
(() => {
  const connection = document.getElementById("connection");
  // A page for guests has addresses of its own.
  const { root = "/", changes = `${root}v1/changes`, probe } = document.body.dataset;
  const pause = 1000; // Milliseconds between two updates at least.
  const tags = new WeakMap(); // Of each part, the entity tag of what it shows.
  const stale = new Set(); // Parts that may have changed.
  let updating = false, last = 0;

  const inSight = (part) => {
    const box = part.getBoundingClientRect();
    return box.bottom > -200 && box.top < innerHeight + 200;
  };

  const inSightAndStale = () => [...stale].filter((part) => part.isConnected && inSight(part));

  async function update(part) {
    if (part.dataset.chart) return Charts.update(part);
    const headers = tags.has(part) ? { "If-None-Match": tags.get(part) } : {};
    const answer = await fetch(part.dataset.live, { headers, redirect: "error" });
    if (answer.status === 304) return;
    if (!answer.ok) throw new Error(String(answer.status));
    tags.set(part, answer.headers.get("ETag"));
    Idiomorph.morph(part, await answer.text(), {
      morphStyle: "innerHTML",
      ignoreActiveValue: true,
      // What the reader has opened stays open, and what is ticked stays ticked.
      callbacks: { beforeAttributeUpdated: (name, node) => name !== "checked" && !(name === "open" && node.tagName === "DETAILS") },
    });
    sayAges(part);
  }

  async function updateAll() {
    if (updating || document.hidden) return;
    updating = true;
    for (let parts = inSightAndStale(); parts.length && !document.hidden; parts = inSightAndStale()) {
      await new Promise((done) => setTimeout(done, Math.max(0, last + pause - Date.now())));
      last = Date.now();
      try {
        for (const part of parts) stale.delete(part);
        await Promise.all(parts.map(update));
      } catch (error) {
        for (const part of parts) stale.add(part);
        await isSignedIn();
        await new Promise((done) => setTimeout(done, 2 * pause));
      }
    }
    updating = false;
  }

  // Where the session has ended, the page for signing in comes next.
  async function isSignedIn() {
    const answer = await fetch(probe ?? `${root}v1/traffic`).catch(() => null);
    if (answer?.status !== 401) return;
    if (probe) location.reload();
    else location.assign(`${root}sign-in?to=` + encodeURIComponent(ownPath() + location.search));
  }

  // The page's path at the server, which may lie below a path of a proxy.
  function ownPath() {
    return location.pathname.slice(new URL(root, location.href).pathname.length - 1);
  }

  function sayAges(part) {
    for (const time of part.querySelectorAll("time[datetime]")) {
      const seconds = Math.round((Date.parse(time.dateTime) - Date.now()) / 1000);
      const [unit, length] = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]].find(([, length]) => Math.abs(seconds) >= length) ?? ["second", 1];
      time.textContent = new Intl.RelativeTimeFormat("en", { numeric: "auto" }).format(Math.round(seconds / length), unit);
      time.title = new Date(time.dateTime).toLocaleString();
    }
  }

  const note = () => {
    for (const part of document.querySelectorAll("[data-live], [data-chart]")) stale.add(part);
    updateAll();
  };
  // A browser connects again by itself unless the server's answer was an error: then this does, and an ended session leads to the
  // page for signing in.
  function listen() {
    const source = new EventSource(changes);
    source.addEventListener("changed", () => { note(); dispatchEvent(new Event("sojourn-changed")); });
    source.onopen = () => { connection.textContent = "live"; connection.className = "live"; };
    source.onerror = () => {
      connection.textContent = "not connected";
      connection.className = "lost";
      if (source.readyState === EventSource.CLOSED) setTimeout(() => isSignedIn().then(listen), 3000);
    };
  }
  listen();
  document.addEventListener("visibilitychange", note);
  addEventListener("scroll", updateAll, { passive: true });
  // Parts with what the journal doesn't have, such as the memory that units take, are asked for by the clock too.
  for (const part of document.querySelectorAll("[data-live][data-every]")) {
    setInterval(() => { stale.add(part); updateAll(); }, 1000 * part.dataset.every);
  }
  sayAges(document);
  setInterval(() => sayAges(document), 10000);
})();
