// The page of a new job: the file is checked by the server a moment after each change, and a file that is dropped is read here.
"use strict";
(() => {
  const form = document.getElementById("new");
  if (!form) return;
  const field = document.getElementById("text"), shown = document.getElementById("checked");
  const pause = 400; // Milliseconds after the last change.
  let timer, asked = 0;

  async function check() {
    const number = ++asked;
    if (!field.value.trim()) return shown.replaceChildren();
    const answer = await fetch("/jobs/new?part=check", { method: "POST", body: new URLSearchParams(new FormData(form)), redirect: "error" }).catch(() => null);
    // A later one is on its way.
    if (number !== asked) return;
    if (answer?.ok) shown.innerHTML = await answer.text();
    else shown.textContent = answer ? `The server can't check this (${answer.status}).` : "The server doesn't answer.";
  }

  const soon = () => { clearTimeout(timer); timer = setTimeout(check, pause); };
  field.addEventListener("input", soon);
  form.elements.over.addEventListener("change", check);

  field.addEventListener("dragover", (event) => event.preventDefault());
  field.addEventListener("drop", async (event) => {
    const file = event.dataTransfer.files[0];
    if (!file) return;
    event.preventDefault();
    field.value = await file.text();
    check();
  });

  // A problem's line is selected in the file.
  shown.addEventListener("click", (event) => {
    const line = Number(event.target.dataset?.line);
    if (!line) return;
    const lines = field.value.split("\n");
    const start = lines.slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0);
    field.focus();
    field.setSelectionRange(start, start + (lines[line - 1]?.length ?? 0));
  });
  check();
})();
