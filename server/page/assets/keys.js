// Keys for those who use no mouse. Single letters can be turned off, since programs that type for their user press them by mistake.
"use strict";
(() => {
  const dialog = document.getElementById("keys"), on = document.getElementById("keys-on");
  const { root } = document.body.dataset;
  const stored = "sojourn-keys"; // "off", or nothing.
  const places = { j: "", h: "hosts", f: "failures" };
  const patience = 1500; // Milliseconds between two keys that belong together.
  let afterG = 0;

  on.checked = localStorage.getItem(stored) !== "off";
  on.addEventListener("change", () => { if (on.checked) localStorage.removeItem(stored); else localStorage.setItem(stored, "off"); });
  document.getElementById("show-keys").addEventListener("click", () => dialog.showModal());

  const isTyping = (node) => node.closest("input:not([type=checkbox]), textarea, select, [contenteditable]") !== null;

  // The first links of the rows of the table that has the focus, else of the first one that is in sight.
  function links() {
    const tables = [...document.querySelectorAll("main table")];
    const table = tables.find((table) => table.contains(document.activeElement)) ?? tables.find((table) => {
      const box = table.getBoundingClientRect();
      return box.bottom > 0 && box.top < innerHeight && table.querySelector("tbody a");
    });
    return [...(table?.tBodies ?? [])].flatMap((body) => [...body.rows]).map((row) => row.querySelector("a")).filter(Boolean);
  }

  function step(by) {
    const all = links();
    const here = all.findIndex((link) => link.closest("tr").contains(document.activeElement));
    const next = here < 0 ? (by > 0 ? 0 : all.length - 1) : here + by;
    all[Math.min(Math.max(next, 0), all.length - 1)]?.focus();
  }

  function press(key) {
    const follows = Date.now() - afterG < patience;
    afterG = 0;
    if (follows && key in places) location.assign(root + places[key]);
    else if (key === "?") dialog.showModal();
    else if (key === "/") location.assign(`${root}find`);
    else if (key === "g") afterG = Date.now();
    else if (key === "j") step(1);
    else if (key === "k") step(-1);
    else if (/^[1-9]$/.test(key)) document.querySelectorAll(".tabs a")[key - 1]?.click();
    else return false;
    return true;
  }

  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing || dialog.open || isTyping(event.target) || !on.checked) return;
    if (press(event.key)) event.preventDefault();
  });
})();
