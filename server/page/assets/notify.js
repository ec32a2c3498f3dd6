// Tells the reader when a job has ended, by a notification of the browser, while any page of the server is open. Browsers allow that on
// secure addresses alone: by TLS, or on the machine itself.
"use strict";
(() => {
  if (!("Notification" in window)) return;
  const { root } = document.body.dataset;
  const stored = `sojourn-awaited${root === "/" ? "" : location.pathname.slice(0, new URL(root, location.href).pathname.length)}`;
  const pause = 5000; // Milliseconds between two looks at least.
  const place = document.getElementById("notify"), button = place?.querySelector("button");
  let last = 0, planned = false;

  // The jobs that are awaited: names by numbers. Other pages of the server have the same.
  const awaited = () => JSON.parse(localStorage.getItem(stored) ?? "{}");
  const keep = (jobs) => localStorage.setItem(stored, JSON.stringify(jobs));

  function show() {
    if (!place?.isConnected) return;
    const isDenied = Notification.permission === "denied";
    button.disabled = isDenied;
    button.setAttribute("aria-pressed", String(place.dataset.job in awaited()));
    button.textContent = isDenied ? "This browser allows no notifications"
      : place.dataset.job in awaited() ? "You will be told when it ends" : "Tell me when it ends";
    place.hidden = false;
  }

  async function look() {
    planned = false;
    last = Date.now();
    const jobs = awaited();
    for (const [job, name] of Object.entries(jobs)) {
      const answer = await fetch(`${root}v1/jobs/${job}`).catch(() => null);
      // A job that is gone is awaited no more; of a server that is away nothing is known.
      const state = answer?.ok ? (await answer.json()).summary.state : answer?.status === 404 ? "deleted" : "running";
      if (state === "running" || state === "paused") continue;
      const left = awaited();
      if (!(job in left)) continue;
      delete left[job];
      keep(left);
      if (place?.dataset.job === job) place.remove();
      const note = new Notification(`${name}: ${state}`, { tag: `sojourn-job-${job}` });
      note.onclick = () => { focus(); location.assign(`${root}jobs/${job}`); };
    }
    show();
  }

  function plan() {
    if (planned || !Object.keys(awaited()).length) return;
    planned = true;
    setTimeout(look, Math.max(0, last + pause - Date.now()));
  }

  button?.addEventListener("click", async () => {
    const { job, name } = place.dataset, jobs = awaited();
    if (job in jobs) delete jobs[job];
    else if ((await Notification.requestPermission()) === "granted") jobs[job] = name;
    keep(jobs);
    show();
    plan();
  });
  addEventListener("sojourn-changed", plan);
  show();
  plan();
})();
