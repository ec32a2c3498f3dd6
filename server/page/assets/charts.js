// Charts of the trials of one job or several, from what `/v1/jobs/JOB/search` says: the metric of each trial after each of its epochs,
// when that became known, and its settings. `data-from` has the addresses, `data-shards` and `data-begun` a number for each.
"use strict";
const Charts = (() => {
  const drawn = new WeakMap(); // Of each element, its chart and what it showed.
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const ink = () => getComputedStyle(document.body).color;
  const faint = () => getComputedStyle(document.documentElement).getPropertyValue("--line");

  // From the worst value to the best one: grey to the colour of the job.
  function colour(rank, count, job = 0) {
    const share = count > 1 ? 1 - rank / (count - 1) : 1;
    return `hsl(${Math.round(260 - 100 * share + 137 * job)} ${Math.round(20 + 60 * share)}% ${dark.matches ? 40 + 25 * share : 70 - 30 * share}%)`;
  }

  function ranks(trials, goal) {
    const order = trials.filter((trial) => trial.best !== null).sort((a, b) => goal === "max" ? b.best - a.best : a.best - b.best);
    return new Map(order.map((trial, rank) => [trial, rank]));
  }
  const nameOf = (trial, element) => sources(element).length > 1 ? `job ${trial.job}, trial ${trial.trial}` : `trial ${trial.trial}`;

  const axis = (label, more = {}) => ({ label, stroke: ink, grid: { stroke: faint, width: 1 }, ticks: { stroke: faint, width: 1 }, ...more });
  const width = (element) => Math.max(200, element.clientWidth);

  // Shows the options of a chart, and calls back when one is changed: a box to tick, or a choice where there are values.
  function options(element, all, draw) {
    if (element.querySelector(".options")) return;
    const box = document.createElement("p");
    box.className = "options";
    for (const [name, text, values] of all) {
      const label = document.createElement("label"), field = document.createElement(values ? "select" : "input");
      if (values) for (const [value, shown] of values) field.append(new Option(shown, value));
      else field.type = "checkbox";
      field.name = name;
      field.addEventListener("change", () => draw());
      if (values) label.append(text, " ", field);
      else label.append(field, " ", text);
      box.append(label, " ");
    }
    element.append(box);
  }
  const option = (element, name) => element.querySelector(`.options [name=${name}]`);
  const isOn = (element, name) => Boolean(option(element, name)?.checked);

  function place(element, chart) {
    drawn.get(element)?.destroy();
    drawn.set(element, chart);
  }

  function say(element, text) {
    let place = element.querySelector(".said");
    if (!place) {
      place = document.createElement("p");
      place.className = "said hint";
      place.setAttribute("role", "status");
      element.append(place);
    }
    place.textContent = text;
  }

  // The places of a trial's values: epochs, hops, or milliseconds since its job was submitted.
  const places = {
    epoch: (trial) => trial.values.map((_, at) => at + 1),
    hop: (trial) => trial.values.map((_, at) => (at + 1) * trial.shards),
    time: (trial) => trial.values.map((_, at) => (trial.at ?? [])[at] ? trial.at[at] - trial.begun : null),
  };
  const BINS = 400; // Places of a chart by time: what lies in one is drawn at its end.

  // The places of all trials, in order, what stands below them, and which of them a place of a trial is.
  function grid(trials, per) {
    const all = [...new Set(trials.flatMap(places[per]).filter((place) => place !== null))].sort((a, b) => a - b);
    if (per !== "time") {
      const index = new Map(all.map((place, at) => [place, at]));
      return { xs: all, label: per, at: (place) => index.get(place) };
    }
    const most = Math.max(1, all.at(-1) ?? 1), step = most / BINS;
    const [unit, name] = [[3600000, "hours"], [60000, "minutes"], [1000, "seconds"]].find(([unit]) => most > 3 * unit) ?? [1000, "seconds"];
    const xs = Array.from({ length: BINS }, (_, at) => (at + 1) * step / unit);
    return { xs, label: `${name} since the job was submitted`, at: (place) => Math.max(0, Math.ceil(place / step) - 1) };
  }

  function curves(element, trials) {
    const { metric, goal } = element.dataset;
    const shown = trials.filter((trial) => trial.values.length);
    options(element, [["per", "by", [["epoch", "epoch"], ["hop", "hop"], ["time", "time"]]], ["log", "logarithmic"]], () => curves(element, element.trials));
    if (!shown.length) return say(element, "No epoch has been evaluated yet.");
    const per = option(element, "per").value;
    const { xs, label, at } = grid(shown, per);
    const rank = ranks(shown, goal);
    // The best are drawn last, above the others.
    shown.sort((a, b) => (rank.get(b) ?? Infinity) - (rank.get(a) ?? Infinity));
    const log = isOn(element, "log");
    const values = (trial) => {
      const of = new Array(xs.length).fill(null), where = places[per](trial);
      trial.values.forEach((value, n) => { if (where[n] !== null && value !== null && (!log || value > 0)) of[at(where[n])] = value; });
      return of;
    };
    const series = shown.map((trial) => ({
      label: nameOf(trial, element),
      stroke: colour(rank.get(trial) ?? rank.size, rank.size, trial.source),
      width: 1,
      points: { show: trial.values.length === 1, size: 4 },
      spanGaps: true,
    }));
    const whole = per === "epoch" ? { incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000] } : {};
    const chart = {
      width: width(element), height: 320, legend: { show: false },
      scales: { x: { time: false }, y: { distr: log ? 3 : 1 } },
      focus: { alpha: 0.25 },
      cursor: { focus: { prox: 24 }, drag: { x: true, y: true } },
      axes: [axis(label, whole), axis(metric)],
      series: [{ label }, ...series],
      hooks: {
        setSeries: [(plot, index) => {
          if (index === null || index === 0) return;
          const trial = shown[index - 1];
          say(element, `${nameOf(trial, element)}: ${settingsOf(trial)}; best ${number(trial.best)}`);
        }],
      },
    };
    place(element, new uPlot(chart, [xs, ...shown.map(values)], element));
    if (!element.querySelector(".said")) say(element, "Point at a curve to see its trial; drag to zoom, double-click to see all.");
  }

  // A point for each trial: one of its settings, and the metric.
  function scatter(element, trials) {
    const { metric } = element.dataset;
    const known = trials.filter((trial) => trial.best !== null);
    const keys = [...new Set(known.flatMap((trial) => Object.keys(trial.choices)))].sort();
    if (!keys.length) return;
    options(element, [["key", "against", keys.map((key) => [key, key.split(".").pop()])]], () => scatter(element, element.trials));
    const key = option(element, "key").value;
    const shown = known.filter((trial) => trial.choices[key] !== undefined && trial.choices[key] !== null);
    const numbers = shown.every((trial) => typeof trial.choices[key] === "number");
    const names = [...new Set(shown.map((trial) => JSON.stringify(trial.choices[key])))].sort();
    const placeOf = (trial) => numbers ? trial.choices[key] : names.indexOf(JSON.stringify(trial.choices[key]));
    shown.sort((a, b) => placeOf(a) - placeOf(b));
    const xs = shown.map(placeOf), low = xs[0], high = xs[xs.length - 1];
    const log = numbers && low > 0 && high / low > 100;
    const named = numbers ? { values: (_, all) => all.map((value) => value === null ? "" : number(value)) } : { splits: names.map((_, at) => at), values: (_, all) => all.map((at) => names[at] ?? "") };
    const range = numbers ? {} : { range: [-0.5, names.length - 0.5] };
    const chart = {
      width: width(element), height: 260, legend: { show: false },
      scales: { x: { time: false, distr: log ? 3 : 1, ...range } },
      cursor: { drag: { x: true, y: true } },
      axes: [axis(key.split(".").pop(), named), axis(metric)],
      series: [{ label: key }, { label: metric, paths: () => null, points: { show: true, size: 6, stroke: colour(0, 1), fill: colour(0, 1) } }],
      hooks: {
        setCursor: [(plot) => {
          const trial = shown[plot.cursor.idx ?? -1];
          if (trial) say(element, `${nameOf(trial, element)}: ${settingsOf(trial)}; ${metric} ${number(trial.best)}`);
        }],
      },
    };
    place(element, new uPlot(chart, [xs, shown.map((trial) => trial.best)], element));
  }

  const number = (value) => value === null ? "none" : Number(value.toPrecision(5)).toString();
  const settingsOf = (trial) => Object.entries(trial.choices).map(([key, value]) => `${key.split(".").pop()} = ${JSON.stringify(value)}`).join(", ") || "no settings";

  // Parallel coordinates: an axis for each setting that varies, and one for the metric; a line for each trial.
  function settings(element, trials) {
    const { metric, goal } = element.dataset;
    const shown = trials.filter((trial) => trial.best !== null);
    const keys = [...new Set(shown.flatMap((trial) => Object.keys(trial.choices)))].sort();
    if (!keys.length) return say(element, "Nothing to compare yet: no evaluated trials, or no settings that vary.");
    const dimensions = keys.map((key) => dimension(key.split(".").pop(), shown.map((trial) => trial.choices[key])));
    dimensions.push(dimension(metric, shown.map((trial) => trial.best)));
    const rank = ranks(shown, goal);
    const order = shown.map((_, at) => at).sort((a, b) => rank.get(shown[b]) - rank.get(shown[a]));
    const xs = dimensions.map((_, at) => at);
    const series = order.map((at) => ({ label: nameOf(shown[at], element), stroke: colour(rank.get(shown[at]), rank.size, shown[at].source), width: 1.5, points: { show: false }, spanGaps: true }));
    const data = [xs, ...order.map((at) => dimensions.map((of) => of.places[at]))];
    const chart = {
      width: width(element), height: 320, legend: { show: false },
      scales: { x: { time: false, range: [-0.2, dimensions.length - 0.8] }, y: { range: [-0.05, 1.05] } },
      focus: { alpha: 0.2 },
      cursor: { focus: { prox: 24 }, drag: { x: false, y: false } },
      axes: [
        axis("", { splits: xs, values: (_, all) => all.map((at) => dimensions[at]?.title ?? ""), grid: { stroke: ink, width: 1 } }),
        { show: false },
      ],
      series: [{ label: "setting" }, ...series],
      hooks: {
        setSeries: [(plot, index) => {
          if (index === null || index === 0) return;
          const trial = shown[order[index - 1]];
          say(element, `${nameOf(trial, element)}: ${settingsOf(trial)}; ${metric} ${number(trial.best)}`);
        }],
      },
    };
    place(element, new uPlot(chart, data, element));
    if (!element.querySelector(".said")) say(element, "A line is a trial; those with the best metric are strongest. Point at one to see its settings.");
  }

  // Where each value lies on its axis, from 0 to 1: numbers by size, by their logarithm where they span more than two powers of ten;
  // others by name.
  function dimension(name, values) {
    const known = values.filter((value) => value !== undefined && value !== null);
    if (known.every((value) => typeof value === "number")) {
      const low = Math.min(...known), high = Math.max(...known);
      const log = low > 0 && high / low > 100;
      const at = (value) => log ? Math.log(value) : value;
      const span = at(high) - at(low) || 1;
      const title = `${name}\n${number(low)} to ${number(high)}`;
      return { title, places: values.map((value) => value === undefined || value === null ? null : (at(value) - at(low)) / span) };
    }
    const names = [...new Set(known.map((value) => JSON.stringify(value)))].sort();
    const title = `${name}\n${names.length} values`;
    return { title, places: values.map((value) => value === undefined ? null : names.indexOf(JSON.stringify(value)) / Math.max(1, names.length - 1)) };
  }

  const kinds = { curves, scatter, settings };

  // The answers that are awaited, by address: charts of the same trials share one.
  const awaited = new Map();

  // Where an element's trials come from: a job each.
  function sources(element) {
    const of = (name) => (element.dataset[name] ?? "").split(" ");
    const [shards, begun] = [of("shards"), of("begun")];
    return of("from").map((address, at) => ({ address, shards: Number(shards[at]), begun: Number(begun[at]) }));
  }

  // A report has them in the page: `#ID` is the element's.
  async function answerOf(address) {
    if (address.startsWith("#")) return { trials: JSON.parse(document.querySelector(address).textContent) };
    const answer = await fetch(address);
    if (!answer.ok) throw new Error(String(answer.status));
    return answer.json();
  }

  function once(address) {
    if (!awaited.has(address)) awaited.set(address, answerOf(address).finally(() => awaited.delete(address)));
    return awaited.get(address);
  }

  async function update(element) {
    const all = sources(element);
    const answers = await Promise.all(all.map((of) => once(of.address)));
    element.trials = answers.flatMap(({ job, trials }, source) => {
      const { shards, begun } = all[source];
      return trials.map((trial) => ({ ...trial, job, source, shards, begun }));
    });
    kinds[element.dataset.chart](element, element.trials);
  }

  function drawAgain() {
    for (const element of document.querySelectorAll("[data-chart]")) {
      if (element.trials) kinds[element.dataset.chart](element, element.trials);
    }
  }
  dark.addEventListener("change", drawAgain);
  let resized;
  addEventListener("resize", () => { clearTimeout(resized); resized = setTimeout(drawAgain, 200); });
  return { update };
})();
