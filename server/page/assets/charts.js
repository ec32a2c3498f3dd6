// Charts of the trials of one job or several, from what `/v1/jobs/JOB/search` says: the metric of each trial after each of its epochs,
// when that became known, and its settings. `data-from` has the addresses, `data-shards` and `data-begun` a number for each,
// `data-names` what each is called, `data-space` the declared scales of settings. A trial's page has charts of all its metrics.
"use strict";
const Charts = (() => {
  const drawn = new WeakMap(); // Of each element, its chart and what it showed.
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const ink = () => getComputedStyle(document.body).color;
  const paper = () => getComputedStyle(document.body).backgroundColor;
  const faint = () => getComputedStyle(document.documentElement).getPropertyValue("--line");

  // Eight colours that colour-blind eyes tell apart (page.css has the same); all other lines are grey.
  const palette = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8a63d2", "#9a8c00"];
  const grey = () => dark.matches ? "#6b7580" : "#b4bcc6";

  function ranks(trials, goal) {
    const order = trials.filter((trial) => trial.best !== null).sort((a, b) => goal === "max" ? b.best - a.best : a.best - b.best);
    return new Map(order.map((trial, rank) => [trial, rank]));
  }
  const namesOf = (element) => JSON.parse(element.dataset.names ?? "[]");
  const isComparison = (element) => element.dataset.names !== undefined;
  // Jobs have the same colours in each chart of a comparison.
  const ofJob = (element, source) => palette[Number((element.dataset.colours ?? "").split(" ")[source] ?? source) % palette.length];
  const nameOf = (trial, element) => isComparison(element) ? `job ${trial.job}, trial ${trial.trial}` : `trial ${trial.trial}`;
  // The colour of a trial's line: of its job where jobs are compared, else of its place among the best.
  function look(trial, rank, element) {
    const place = rank.get(trial) ?? Infinity;
    if (isComparison(element)) return { stroke: ofJob(element, trial.source), width: place === 0 ? 3 : 1.25 };
    return place < palette.length ? { stroke: palette[place], width: place === 0 ? 3 : 1.75 } : { stroke: grey(), width: 1 };
  }

  // Names the lines: [colour, text, number of the series]. Pointing at a name, or coming to it by the keyboard, lifts its line.
  function legend(element, entries, plot) {
    element.querySelector(".keys")?.remove();
    const list = document.createElement("ul");
    list.className = "keys";
    for (const [colour, text, series] of entries) {
      const item = document.createElement("li"), swatch = document.createElement("span");
      swatch.className = "swatch";
      swatch.style.background = colour;
      item.append(swatch, text);
      list.append(item);
      if (series === undefined) continue;
      item.tabIndex = 0;
      for (const event of ["pointerenter", "focus"]) item.addEventListener(event, () => plot.setSeries(series, { focus: true }));
      for (const event of ["pointerleave", "blur"]) item.addEventListener(event, () => plot.setSeries(null, { focus: false }));
    }
    plot.root.before(list);
  }

  function trialsLegend(element, shown, rank, plot) {
    if (isComparison(element)) return legend(element, namesOf(element).map((name, source) => [ofJob(element, source), name]), plot);
    const best = shown.filter((trial) => (rank.get(trial) ?? Infinity) < palette.length).sort((a, b) => rank.get(a) - rank.get(b));
    const entries = best.map((trial) => [look(trial, rank, element).stroke, nameOf(trial, element) + (rank.get(trial) === 0 ? " (best)" : ""), shown.indexOf(trial) + 1]);
    const failed = shown.filter(hasFailed).length, more = shown.length - failed - best.length;
    if (more) entries.push([grey(), `${more} more`]);
    if (failed && element.dataset.chart === "settings") entries.push([palette[5], `${failed} failed without a value`]);
    legend(element, entries, plot);
  }

  const epochSteps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];
  // Marks of an axis of values: very large and very small ones have an exponent.
  const mark = (value) => value !== 0 && (Math.abs(value) >= 1e6 || Math.abs(value) < 1e-4) ? value.toExponential().replace("e+", "e") : String(Number(value.toPrecision(6)));
  const figures = { values: (_, all) => all.map((value) => value === null ? "" : mark(value)) };
  const axis = (label, more = {}) => ({ label, stroke: ink, grid: { stroke: faint, width: 1 }, ticks: { stroke: faint, width: 1 }, ...more });
  const width = (element) => Math.max(200, element.clientWidth);
  const height = (element) => element.dataset.height === "short" ? 240 : 320;

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
      const before = element.querySelector(".uplot, .keys");
      if (before) before.before(place);
      else element.append(place);
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
      ...look(trial, rank, element),
      points: { show: trial.values.length === 1, size: 5 },
      spanGaps: true,
    }));
    const whole = per === "epoch" ? { incrs: epochSteps } : {};
    const chart = {
      width: width(element), height: height(element), legend: { show: false },
      scales: { x: { time: false }, y: { distr: log ? 3 : 1 } },
      focus: { alpha: 0.25 },
      cursor: { focus: { prox: 24 }, drag: { x: true, y: true } },
      axes: [axis(label, whole), axis(metric, figures)],
      series: [{ label }, ...series],
      hooks: {
        setSeries: [(plot, index) => {
          if (index === null || index === 0) return;
          const trial = shown[index - 1];
          say(element, `${nameOf(trial, element)}: ${settingsOf(trial)}; best ${number(trial.best)}`);
        }],
      },
    };
    const plot = new uPlot(chart, [xs, ...shown.map(values)], element);
    place(element, plot);
    trialsLegend(element, shown, rank, plot);
    if (!element.querySelector(".said")) say(element, "Point at a curve to see its trial; drag to zoom, double-click to see all.");
  }

  // Four digits; with an exponent where there would be many zeros.
  function number(value) {
    if (value === null || value === undefined) return "none";
    const short = Number(value.toPrecision(4)), size = Math.abs(short);
    return size !== 0 && (size >= 1e6 || size < 1e-3) ? short.toExponential().replace("e+", "e") : short.toString();
  }
  // `lr` of `training.optimizer.lr`, `optimizer` of `training.optimizer.name`: as the tables name settings.
  const lastWord = (key) => key.replace(/\.name$/, "").split(".").pop();
  const text = (value) => typeof value === "number" ? number(value) : typeof value === "string" ? value : JSON.stringify(value);
  const settingsOf = (trial) => Object.entries(trial.choices).map(([key, value]) => `${lastWord(key)} = ${text(value)}`).join(", ") || "no settings";
  const outcome = (trial, metric) => trial.best === null ? "failed without a value" : `${metric} ${number(trial.best)}`;
  const hasFailed = (trial) => trial.best === null && trial.state === "failed";

  // Where values lie on an axis, from 0 to 1, and the marks of the axis. The scale is that of the declared space, which the values of
  // trials outside of it widen; a setting without one goes by its values: numbers evenly, others by name.
  function dimension(key, values, declared) {
    const known = values.filter((value) => value !== undefined && value !== null);
    const name = lastWord(key);
    if (!declared?.values && known.every((value) => typeof value === "number")) {
      const low = Math.min(declared?.low ?? Infinity, ...known), high = Math.max(declared?.high ?? -Infinity, ...known);
      const log = Boolean(declared?.log) && low > 0;
      const at = (value) => log ? Math.log(value) : value;
      const span = at(high) - at(low) || 1;
      const marks = high > low ? [[0, number(low)], [1, number(high)]] : [[0, number(low)]];
      return { name, log, low, high, marks, at: (value) => typeof value === "number" ? (at(value) - at(low)) / span : null };
    }
    const all = (declared?.values ?? []).map((value) => JSON.stringify(value));
    const others = known.map((value) => JSON.stringify(value)).filter((value) => !all.includes(value)).sort();
    const names = [...new Set([...all, ...others])];
    const placed = (index) => names.length > 1 ? index / (names.length - 1) : 0.5, marks = names.map((value, index) => [placed(index), text(JSON.parse(value))]);
    return { name, names, marks, at: (value) => value === undefined || value === null ? null : placed(names.indexOf(JSON.stringify(value))) };
  }

  const spaceOf = (element) => JSON.parse(element.dataset.space || "{}");
  // The settings that vary: those of the declared space, and those in which trials differ.
  const keysOf = (trials) => [...new Set(trials.flatMap((trial) => Object.keys(trial.choices)))].sort();

  // A point for each trial: one of its settings, and the metric. Trials that failed without a value are at the worst end.
  function scatter(element, trials) {
    const { metric, goal } = element.dataset;
    const known = trials.filter((trial) => trial.best !== null || hasFailed(trial));
    const keys = keysOf(known);
    if (!keys.length || !known.some((trial) => trial.best !== null)) return;
    options(element, [["key", "against", keys.map((key) => [key, lastWord(key)])]], () => scatter(element, element.trials));
    const key = option(element, "key").value;
    const shown = known.filter((trial) => trial.choices[key] !== undefined && trial.choices[key] !== null);
    if (!shown.length) return;
    const scale = dimension(key, shown.map((trial) => trial.choices[key]), spaceOf(element)[key]);
    const placeOf = (trial) => scale.names ? scale.names.indexOf(JSON.stringify(trial.choices[key])) : trial.choices[key];
    shown.sort((a, b) => placeOf(a) - placeOf(b));
    const best = shown.map((trial) => trial.best), finite = best.filter((value) => value !== null);
    const low = Math.min(...finite), high = Math.max(...finite), room = (high - low || Math.abs(high) || 1) * 0.08;
    const failed = shown.some(hasFailed), worst = goal === "max" ? low - 2 * room : high + 2 * room;
    const named = scale.names ? { splits: scale.names.map((_, at) => at), values: (_, all) => all.map((at) => scale.marks[at]?.[1] ?? "") } : { values: (_, all) => all.map((value) => value === null ? "" : number(value)) };
    if (scale.log) named.splits = () => decades(scale.low, scale.high);
    const margin = scale.log ? 1.1 : (scale.high - scale.low || 1) * 0.03;
    const range = scale.names ? [-0.5, scale.names.length - 0.5] : scale.log ? [scale.low / margin, scale.high * margin] : [scale.low - margin, scale.high + margin];
    const dot = (colour, size) => ({ paths: () => null, points: { show: true, size, stroke: colour, fill: colour } });
    const chart = {
      width: width(element), height: 260, legend: { show: false },
      scales: { x: { time: false, distr: scale.log ? 3 : 1, range }, y: { range: [Math.min(low, failed ? worst : low) - room, Math.max(high, failed ? worst : high) + room] } },
      cursor: { drag: { x: true, y: true } },
      axes: [axis(scale.name + (scale.log ? " (logarithmic)" : ""), named), axis(metric)],
      series: [{ label: key }, { label: metric, ...dot(palette[0], 6) }, { label: "failed", ...dot(palette[5], 7) }],
      hooks: {
        setCursor: [(plot) => {
          const trial = shown[plot.cursor.idx ?? -1];
          if (trial) say(element, `${nameOf(trial, element)}: ${settingsOf(trial)}; ${outcome(trial, metric)}`);
        }],
      },
    };
    const plot = new uPlot(chart, [shown.map(placeOf), best, shown.map((trial) => hasFailed(trial) ? worst : null)], element);
    place(element, plot);
    legend(element, [[palette[0], "a trial"], ...(failed ? [[palette[5], "failed without a value, at the worst end"]] : [])], plot);
    if (!element.querySelector(".said")) say(element, "Point at a trial to see its settings.");
  }

  // Powers of ten between two numbers, some of them left out where they are many; the numbers themselves where they are few.
  function decades(low, high) {
    const first = Math.ceil(Math.log10(low)), last = Math.floor(Math.log10(high));
    const step = Math.max(1, Math.ceil((last - first) / 8));
    const all = Array.from({ length: Math.max(0, Math.floor((last - first) / step) + 1) }, (_, at) => 10 ** (first + at * step));
    return all.length > 1 ? all : [low, high];
  }

  const AXIS_ROOM = 96; // Pixels that an axis and its words need: with less the chart is wider than the page, and scrolls.

  // Parallel coordinates: an axis for each setting that varies, and one for the metric; a line for each trial.
  function settings(element, trials) {
    const { metric, goal } = element.dataset;
    const shown = trials.filter((trial) => trial.best !== null || hasFailed(trial));
    const keys = keysOf(shown), space = spaceOf(element);
    if (!keys.length) return say(element, "Nothing to compare yet: no evaluated trials, or no settings that vary.");
    const dimensions = keys.map((key) => dimension(key, shown.map((trial) => trial.choices[key]), space[key]));
    const ofMetric = dimension(metric, shown.map((trial) => trial.best).filter((value) => value !== null));
    const failed = shown.filter(hasFailed), worst = goal === "max" ? -0.15 : 1.15;
    dimensions.push({ ...ofMetric, name: metric, marks: shown.length > failed.length ? ofMetric.marks : [] });
    if (failed.length) dimensions.at(-1).marks = [...dimensions.at(-1).marks, [worst, "no value"]];
    const rank = ranks(shown, goal);
    const order = [...shown].sort((a, b) => (rank.get(b) ?? Infinity) - (rank.get(a) ?? Infinity));
    const xs = dimensions.map((_, at) => at);
    const lineOf = (trial) => hasFailed(trial) ? { stroke: palette[5], width: 1, dash: [4, 4] } : look(trial, rank, element);
    const series = order.map((trial) => ({ label: nameOf(trial, element), ...lineOf(trial), points: { show: false }, spanGaps: true }));
    const placesOf = (trial) => dimensions.map((of, at) => at < keys.length ? of.at(trial.choices[keys[at]]) : trial.best === null ? worst : of.at(trial.best));
    const chart = {
      width: Math.max(width(element), dimensions.length * AXIS_ROOM), height: 340, legend: { show: false }, padding: [16, 0, 0, 0],
      scales: { x: { time: false, range: [-0.5, dimensions.length - 0.5] }, y: { range: [-0.22, 1.22] } },
      focus: { alpha: 0.2 },
      cursor: { focus: { prox: 24 }, drag: { x: false, y: false }, x: false, y: false },
      axes: [axis("", { splits: xs, values: () => xs.map(() => ""), size: 34, grid: { stroke: ink, width: 1 } }), { show: false }],
      series: [{ label: "setting" }, ...series],
      hooks: {
        draw: [(plot) => words(plot, dimensions)],
        setSeries: [(plot, index) => {
          if (index === null || index === 0) return;
          const trial = order[index - 1];
          say(element, `${nameOf(trial, element)}: ${settingsOf(trial)}; ${outcome(trial, metric)}`);
        }],
      },
    };
    const plot = new uPlot(chart, [xs, ...order.map(placesOf)], element);
    place(element, plot);
    trialsLegend(element, order, rank, plot);
    if (!element.querySelector(".said")) say(element, "A line is a trial. Point at one to see its settings.");
  }

  // The names of parallel axes below them, and their marks beside them.
  function words(plot, dimensions) {
    const { ctx } = plot, ratio = uPlot.pxRatio, room = plot.bbox.width / dimensions.length;
    ctx.save();
    ctx.textAlign = "center";
    ctx.fillStyle = ink();
    const fitted = (text, wide) => {
      if (ctx.measureText(text).width <= wide) return text;
      let end = text.length;
      while (end > 1 && ctx.measureText(`${text.slice(0, end)}…`).width > wide) end -= 1;
      return `${text.slice(0, end)}…`;
    };
    dimensions.forEach((of, at) => {
      const x = plot.valToPos(at, "x", true);
      ctx.font = `600 ${13 * ratio}px system-ui, sans-serif`;
      ctx.fillText(fitted(of.name, room - 8 * ratio), x, plot.bbox.top + plot.bbox.height + 14 * ratio);
      ctx.font = `${11 * ratio}px system-ui, sans-serif`;
      if (of.log) ctx.fillText("logarithmic", x, plot.bbox.top + plot.bbox.height + 28 * ratio);
      // Marks of many categories would lie on each other: some are left out.
      const step = Math.ceil(of.marks.length / 12);
      of.marks.forEach(([place, mark], index) => {
        if (index % step !== 0) return;
        const y = plot.valToPos(place, "y", true), shown = fitted(mark, room - 16 * ratio), wide = ctx.measureText(shown).width;
        const above = of.names || place < 0 || place > 1 ? 4 : place === 1 ? -6 : 16;
        [ctx.fillStyle, ctx.globalAlpha] = [paper(), 0.8];
        ctx.fillRect(x - wide / 2 - 2 * ratio, y + (above - 11) * ratio, wide + 4 * ratio, 14 * ratio);
        [ctx.fillStyle, ctx.globalAlpha] = [ink(), 1];
        ctx.fillText(shown, x, y + above * ratio);
      });
    });
    ctx.restore();
  }

  // The charts of one trial: one for each metric and sum, of training and of validation.
  function trial(element, { epochs, panels }) {
    if (!epochs.length) return say(element, "No epoch has been evaluated yet.");
    options(element, [["log", "logarithmic"]], () => trial(element, element.trials));
    const log = isOn(element, "log");
    for (const plot of drawn.get(element) ?? []) plot.destroy();
    element.querySelector(".panels")?.remove();
    const box = document.createElement("div");
    box.className = "panels";
    element.append(box);
    // All are in the page before the first is drawn: by then their widths are known.
    for (const { name } of panels) box.append(Object.assign(document.createElement("div"), { title: name }));
    drawn.set(element, panels.map(({ name, series }, number) => {
      const panel = box.children[number];
      panel.dataset.panel = name;
      const line = ({ name }, at) => ({ label: name, stroke: palette[at], width: 2, dash: at ? [] : [6, 3], points: { show: epochs.length === 1, size: 5 }, spanGaps: true, value: (_, value) => value === null ? "–" : number(value) });
        return new uPlot({
        width: Math.max(200, panel.clientWidth), height: 220,
        scales: { x: { time: false }, y: { distr: log ? 3 : 1 } },
        axes: [axis("epoch", { incrs: epochSteps }), axis(name, figures)],
        series: [{ label: "epoch" }, ...series.map((of, at) => line(of, series.length > 1 ? at : 1))],
      }, [epochs, ...series.map(({ values }) => values.map((value) => log && value <= 0 ? null : value))], panel);
    }));
  }

  const kinds = { curves, scatter, settings, trial };

  const awaited = new Map(); // Answers by address: charts of the same trials share one.

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
    if (element.dataset.chart === "trial") return trial(element, (element.trials = answers[0]));
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
