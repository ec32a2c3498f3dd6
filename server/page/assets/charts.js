// Charts of a job's trials, from what `/v1/jobs/JOB/search` says: the metric of each trial after each of its epochs, and its settings.
"use strict";
const Charts = (() => {
  const drawn = new WeakMap(); // Of each element, its chart and what it showed.
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const ink = () => getComputedStyle(document.body).color;
  const faint = () => getComputedStyle(document.documentElement).getPropertyValue("--line");

  // From the worst value to the best one: grey to the colour of the page.
  function colour(rank, count) {
    const share = count > 1 ? 1 - rank / (count - 1) : 1;
    return `hsl(${Math.round(260 - 100 * share)} ${Math.round(20 + 60 * share)}% ${dark.matches ? 40 + 25 * share : 70 - 30 * share}%)`;
  }

  function ranks(trials, goal) {
    const order = trials.filter((trial) => trial.best !== null).sort((a, b) => goal === "max" ? b.best - a.best : a.best - b.best);
    return new Map(order.map((trial, rank) => [trial.trial, rank]));
  }

  const axis = (label, more = {}) => ({ label, stroke: ink, grid: { stroke: faint, width: 1 }, ticks: { stroke: faint, width: 1 }, ...more });
  const width = (element) => Math.max(200, element.clientWidth);

  // Shows the options of a chart, and calls back when one is changed.
  function options(element, all, draw) {
    if (element.querySelector(".options")) return;
    const box = document.createElement("p");
    box.className = "options";
    for (const [name, text] of all) {
      const label = document.createElement("label"), field = document.createElement("input");
      field.type = "checkbox";
      field.name = name;
      field.addEventListener("change", draw);
      label.append(field, " ", text);
      box.append(label, " ");
    }
    element.append(box);
  }
  const isOn = (element, name) => Boolean(element.querySelector(`.options [name=${name}]`)?.checked);

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

  function curves(element, trials) {
    const { metric, goal } = element.dataset;
    const shown = trials.filter((trial) => trial.values.length);
    const draw = () => curves(element, trials);
    options(element, [["log", "logarithmic"]], draw);
    if (!shown.length) return say(element, "No epoch has been evaluated yet.");
    const epochs = Math.max(...shown.map((trial) => trial.values.length));
    const rank = ranks(shown, goal);
    // The best are drawn last, above the others.
    shown.sort((a, b) => (rank.get(b.trial) ?? Infinity) - (rank.get(a.trial) ?? Infinity));
    const xs = Array.from({ length: epochs }, (_, epoch) => epoch + 1);
    const series = shown.map((trial) => ({
      label: `trial ${trial.trial}`,
      stroke: colour(rank.get(trial.trial) ?? rank.size, rank.size),
      width: 1,
      points: { show: trial.values.length === 1, size: 4 },
      spanGaps: true,
    }));
    const log = isOn(element, "log");
    const positive = (value) => value !== null && (!log || value > 0) ? value : null;
    const data = [xs, ...shown.map((trial) => xs.map((_, at) => positive(trial.values[at] ?? null)))];
    const chart = {
      width: width(element), height: 320, legend: { show: false },
      scales: { x: { time: false }, y: { distr: log ? 3 : 1 } },
      focus: { alpha: 0.25 },
      cursor: { focus: { prox: 24 }, drag: { x: true, y: true } },
      axes: [axis("epoch", { incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000] }), axis(metric)],
      series: [{ label: "epoch" }, ...series],
      hooks: {
        setSeries: [(plot, index) => {
          if (index === null || index === 0) return;
          const trial = shown[index - 1];
          say(element, `trial ${trial.trial}: ${settingsOf(trial)}; best ${number(trial.best)}`);
        }],
      },
    };
    place(element, new uPlot(chart, data, element));
    if (!element.querySelector(".said")) say(element, "Point at a curve to see its trial; drag to zoom, double-click to see all.");
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
    const order = shown.map((_, at) => at).sort((a, b) => rank.get(shown[b].trial) - rank.get(shown[a].trial));
    const xs = dimensions.map((_, at) => at);
    const series = order.map((at) => ({ label: `trial ${shown[at].trial}`, stroke: colour(rank.get(shown[at].trial), rank.size), width: 1.5, points: { show: false }, spanGaps: true }));
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
          say(element, `trial ${trial.trial}: ${settingsOf(trial)}; ${metric} ${number(trial.best)}`);
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

  const kinds = { curves, settings };

  // The answers that are awaited, by address: charts of the same trials share one.
  const awaited = new Map();

  // A report has them in the page: `#ID` is the element's.
  async function trialsFrom(address) {
    if (address.startsWith("#")) return JSON.parse(document.querySelector(address).textContent);
    const answer = await fetch(address);
    if (!answer.ok) throw new Error(String(answer.status));
    return (await answer.json()).trials;
  }

  async function update(element) {
    const address = element.dataset.from;
    if (!awaited.has(address)) awaited.set(address, trialsFrom(address).finally(() => awaited.delete(address)));
    element.trials = await awaited.get(address);
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
