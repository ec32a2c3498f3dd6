// The page of a new job. The server checks the job file a moment after each change; a file that is dropped is read here. Files of
// data go to the server one by one, a few at once, and then the job file. The server writes a first job file for files that have come.
"use strict";
(() => {
  const form = document.getElementById("new");
  if (!form) return;
  const field = document.getElementById("text"), shown = document.getElementById("checked"), over = form.elements.over;
  const box = document.getElementById("files"), taken = document.getElementById("taken");
  const drafts = document.getElementById("draft"), drafted = document.getElementById("drafted");
  const pause = 400, poll = 500; // Milliseconds: after the last change, and between questions about a job that is being made.
  const atOnce = 4; // Files on their way.
  const { root = "/" } = document.body.dataset;
  const sendsFiles = () => box !== null && over.value === "files";
  let timer, asked = 0;

  async function check() {
    const number = ++asked;
    if (!field.value.trim()) return shown.replaceChildren();
    const answer = await fetch(`${root}jobs/new?part=check`, { method: "POST", body: new URLSearchParams({ over: over.value, text: field.value }), redirect: "error" }).catch(() => null);
    // A later one is on its way.
    if (number !== asked) return;
    // The server checks so many a minute; it says when there is time for one more.
    if (answer?.status === 429) {
      shown.textContent = "The server checks this in a moment.";
      clearTimeout(timer);
      timer = setTimeout(check, 1000 * (Number(answer.headers.get("retry-after")) || 1));
      return mark();
    }
    if (answer?.ok) shown.innerHTML = await answer.text();
    else shown.textContent = answer ? `The server can't check this (${answer.status}).` : "The server doesn't answer.";
    mark();
  }

  const soon = () => { clearTimeout(timer); timer = setTimeout(check, pause); };
  field.addEventListener("input", soon);
  over.addEventListener("change", () => { if (box) box.hidden = drafted.hidden = !sendsFiles(); check(); });

  const take = (where, then) => {
    where.addEventListener("dragover", (event) => event.preventDefault());
    where.addEventListener("drop", (event) => {
      if (!event.dataTransfer.files.length) return;
      event.preventDefault();
      then(event.dataTransfer.files);
    });
  };
  take(field, async (files) => { field.value = await files[0].text(); check(); });

  // A problem's line is selected in the file.
  shown.addEventListener("click", (event) => {
    const line = Number(event.target.dataset?.line);
    if (!line) return;
    const lines = field.value.split("\n");
    const start = lines.slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0);
    field.focus();
    field.setSelectionRange(start, start + (lines[line - 1]?.length ?? 0));
  });

  // Files of data by their paths, as far as the browser tells them.
  const chosen = new Map();
  const size = (bytes) => bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} kB` : bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(1)} GB`;
  const sum = (files) => [...files].reduce((bytes, file) => bytes + file.size, 0);

  function choose(files) {
    for (const file of files) chosen.set(file.webkitRelativePath || file.name, file);
    taken.textContent = `${chosen.size} ${chosen.size === 1 ? "file" : "files"}, ${size(sum(chosen.values()))}`;
    drafts.disabled = false;
    mark();
  }
  if (box) {
    take(box, choose);
    for (const input of box.querySelectorAll("input")) input.addEventListener("change", () => choose(input.files));
  }

  const wanted = () => [...shown.querySelectorAll("[data-file]")].map((item) => item.dataset.file.replace(/\/+$/, ""));
  const within = (path, name) => path === name || path.startsWith(`${name}/`);

  // The name that the job file has for a chosen file. Browsers don't tell the folders above those that were chosen.
  function named(path, names) {
    if (names.some((name) => within(path, name))) return path;
    for (const name of names) {
      const cut = name.lastIndexOf("/") + 1;
      if (within(path, name.slice(cut))) return name.slice(0, cut) + path;
    }
    // What lies beside the training data, such as a file of labels.
    const beside = (names[0] ?? "").slice(0, (names[0] ?? "").lastIndexOf("/") + 1);
    return path.startsWith(beside) ? path : beside + path;
  }

  // Says which of the files that the job file names were chosen: those that weren't.
  function mark() {
    const names = wanted(), paths = [...chosen.keys()].map((path) => named(path, names));
    return [...shown.querySelectorAll("[data-file]")].filter((item) => {
      const has = paths.some((path) => within(path, item.dataset.file.replace(/\/+$/, "")));
      item.querySelector(".hint").textContent = has ? " chosen" : " not chosen yet";
      return !has;
    }).length;
  }

  // An upload: what names it on the server, what has gone, and what is on its way.
  let upload = null, isGoing = false;
  const sent = new Map(), going = new Set();
  const why = (text, status) => new DOMParser().parseFromString(text, "text/html").querySelector("[role=alert]")?.textContent ?? `the server answers ${status}`;

  async function ask(path, options) {
    const answer = await fetch(`${root}jobs/new/data${path}`, { redirect: "error", ...options });
    const text = await answer.text();
    if (!answer.ok) throw Object.assign(new Error(why(text, answer.status)), { isGone: answer.status === 404 });
    return text;
  }

  // Only this kind of request says how far a body is.
  const put = (name, file, told) => new Promise((done, failed) => {
    const request = new XMLHttpRequest();
    request.open("PUT", `${root}jobs/new/data/${upload}?name=${encodeURIComponent(name)}`);
    request.upload.addEventListener("progress", (event) => told(event.loaded));
    request.addEventListener("load", () => request.status < 300 ? done() : failed(Object.assign(new Error(why(request.responseText, request.status)), { isGone: request.status === 404 })));
    request.addEventListener("error", () => failed(new Error(`\`${name}\` can't be read, or the server doesn't answer`)));
    request.addEventListener("abort", () => failed(new Error("stopped")));
    request.addEventListener("loadend", () => going.delete(request));
    going.add(request);
    request.send(file);
  });

  function forget() {
    for (const request of going) request.abort();
    if (upload) fetch(`${root}jobs/new/data/${upload}`, { method: "DELETE", keepalive: true }).catch(() => null);
    upload = null;
    sent.clear();
  }

  function bar(of, where) {
    const line = document.createElement("p"), shows = document.createElement("progress"), says = document.createElement("span"), stop = document.createElement("button");
    shows.max = Math.max(of, 1);
    shows.value = 0;
    shows.setAttribute("aria-label", "Sending files");
    stop.type = "button";
    stop.textContent = "Stop";
    stop.addEventListener("click", forget);
    line.append(shows, says, stop);
    where.replaceChildren(line);
    return (bytes) => { shows.value = bytes; says.textContent = ` ${size(bytes)} of ${size(of)} sent `; };
  }

  async function send(where, names) {
    const all = [...chosen].map(([path, file]) => ({ name: named(path, names), file, stamp: `${file.size}:${file.lastModified}` }));
    const rest = all.filter(({ name, stamp }) => sent.get(name) !== stamp);
    const total = sum(rest.map(({ file }) => file));
    upload ??= await ask(`?bytes=${total}`, { method: "POST" });
    const tell = bar(total, where);
    const bytes = new Map();
    const told = (name, count) => { bytes.set(name, count); tell([...bytes.values()].reduce((all, some) => all + some, 0)); };
    const worker = async () => {
      for (let next; (next = rest.shift());) {
        const { name, file, stamp } = next;
        await put(name, file, (count) => told(name, count));
        sent.set(name, stamp);
      }
    };
    await Promise.all(Array.from({ length: atOnce }, worker));
  }

  // Has the server make something of the files, and shows how far it is until it has.
  async function follow(where, path, body) {
    where.innerHTML = await ask(`/${upload}${path}`, { method: "POST", body });
    while (where.querySelector("[data-making]")) {
      await new Promise((done) => setTimeout(done, poll));
      where.innerHTML = await ask(`/${upload}`, {});
    }
  }

  // The training data among the chosen files: the only one, the folder of all, or the one that is called so.
  function training() {
    const paths = [...chosen.keys()], [first] = paths;
    const folder = first.slice(0, first.indexOf("/"));
    if (paths.length === 1) return first;
    if (folder && paths.every((path) => path.startsWith(`${folder}/`))) return folder;
    return paths.find((path) => /(^|\/)train/i.test(path));
  }

  // The job file that was written last, which another may replace without a question.
  let written = "";
  async function draft(label) {
    const data = training();
    if (!data) throw new Error("which of the files has the training data? One whose name begins with `train`, a folder alone, or one file alone is taken");
    if (field.value.trim() && field.value !== written && !confirm("Write over the job file below?")) return;
    await send(drafted, []);
    await follow(drafted, "/draft", new URLSearchParams({ data, label }));
    const text = drafted.querySelector("[data-text]")?.dataset.text;
    if (text === undefined) return;
    field.value = written = text;
    drafted.querySelector("#label")?.addEventListener("change", (event) => busy(drafted, () => draft(event.target.value)));
    check();
  }
  drafts?.addEventListener("click", () => busy(drafted, () => draft("")));

  async function submit() {
    clearTimeout(timer);
    await check();
    if (!shown.querySelector(".good") || mark()) return;
    const text = field.value;
    await send(shown, wanted());
    await follow(shown, "", new URLSearchParams({ text, again: form.elements.again.checked }));
    const made = shown.querySelector("a.made");
    if (!made) return;
    upload = null;
    location.assign(made.href);
  }

  form.addEventListener("submit", (event) => {
    if (!sendsFiles()) return;
    event.preventDefault();
    busy(shown, submit);
  });

  // Does one thing with the files at a time, and shows there what went wrong.
  async function busy(where, act) {
    if (isGoing) return;
    isGoing = true;
    const buttons = [form.querySelector(".buttons button"), drafts];
    for (const button of buttons) button.disabled = true;
    try {
      await act();
    } catch (error) {
      for (const request of going) request.abort();
      if (error.isGone) forget();
      const line = document.createElement("p"), says = document.createElement("strong");
      says.className = "error";
      says.textContent = where === shown ? `The job wasn't submitted: ${error.message}.` : `No job file was written: ${error.message}.`;
      line.append(says);
      where.replaceChildren(line);
    }
    isGoing = false;
    for (const button of buttons) button.disabled = false;
  }

  // What was sent is of no use when the page has gone, unless its job is being made.
  addEventListener("pagehide", () => { if (!shown.querySelector("[data-making]")) forget(); });
  check();
})();
