// The live board of a job in a notebook. Python makes the HTML, with all text escaped; parts that have changed are exchanged here,
// so that what a reader has opened, scrolled to or chosen with the keyboard stays. No other file and no network is needed.

function exchange(board, html) {
  const fresh = document.createElement("template");
  fresh.innerHTML = html;
  const next = fresh.content.firstElementChild;
  const now = board.firstElementChild;
  if (!next) return;
  if (!now) {
    board.replaceChildren(next);
    return;
  }
  now.setAttribute("aria-label", next.getAttribute("aria-label") ?? "");
  for (const part of next.querySelectorAll("[data-part]")) {
    const old = now.querySelector(`[data-part="${part.dataset.part}"]`);
    if (old && !old.isEqualNode(part)) update(old, part);
  }
}

function update(old, part) {
  const open = old.querySelector("details")?.open ?? false;
  const scrolled = old.querySelector(".wide")?.scrollLeft ?? 0;
  const focused = old.contains(document.activeElement) ? document.activeElement.localName : null;
  const details = part.querySelector("details");
  if (details) details.open = open;
  old.replaceChildren(...part.childNodes);
  const wide = old.querySelector(".wide");
  if (wide) wide.scrollLeft = scrolled;
  if (focused) old.querySelector(focused === "summary" ? "summary" : ".wide")?.focus({ preventScroll: true });
}

function light(board, event) {
  const trial = event.target.closest?.("[data-trial]")?.dataset.trial;
  for (const line of board.querySelectorAll("g[data-trial]")) {
    line.classList.toggle("lit", line.dataset.trial === trial);
  }
}

function render({ model, el }) {
  const board = document.createElement("div");
  el.append(board);
  const show = () => exchange(board, model.get("html"));
  const point = (event) => light(board, event);
  board.addEventListener("pointerover", point);
  board.addEventListener("pointerleave", point);
  model.on("change:html", show);
  show();
  return () => model.off("change:html", show);
}

export default { render };
