/* Draws the charts of the report. All texts are put in as text, never as HTML. */
"use strict";
(() => {
  const SMALL = 0.12, ROW = 18, LABEL = 118;
  let told = [], drawn = new Map();

  const make = (name, attributes, ...inside) => {
    const svg = ["svg", "rect", "text", "g"].includes(name);
    const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
    made.append(...inside);
    return made;
  };
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

  /* Figures as texts. */
  const whole = (value) => (value == null ? "-" : value.toLocaleString("en-US"));
  const short = (value) => {
    for (const [size, unit] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]])
      if (value >= size) return `${+(value / size).toPrecision(3)}${unit}`;
    return `${+value.toPrecision(3)}`;
  };
  const bytes = (value) => (value == null ? "-" : `${short(value)}B`);
  const time = (value) => {
    if (value == null) return "-";
    for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "min"]])
      if (value >= size) return `${+(value / size).toPrecision(3)} ${unit}`;
    return `${+value.toPrecision(3)} s`;
  };
  const span = (width) => {
    for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "min"]])
      if (width % size === 0) return `${width / size} ${unit}`;
    return `${width} s`;
  };
  const HANDY = [1, 2, 5, 10, 20, 30].flatMap((n) => [n, n * 60]).concat([1, 2, 3, 6, 12].map((n) => n * 3600), [1, 2, 5, 10, 20, 50, 100].map((n) => n * 86400), [0.01, 0.02, 0.05, 0.1, 0.2, 0.5]).sort((a, b) => a - b);
  const moment = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 19).replace("T", " ");
  const ticks = (_, splits, __, ___, step) => {
    let day = "";
    return splits.map((at) => {
      const full = moment(at), clock = step < 60 ? full.slice(11) : full.slice(11, 16);
      const first = full.slice(0, 10) !== day;
      day = full.slice(0, 10);
      if (step >= 86400) return full.slice(5, 10);
      return first ? `${clock}\n${full.slice(5, 10)}` : clock;
    });
  };

  /* What each chart shows: [name, values, colour], how a figure is written, and as bars or lines. */
  const some = (values) => values.some((value) => value != null);
  const KINDS = {
    records: (p) => ({ series: [["records", p.records, "a"], ["of these bad", p.bad, "b"]], say: whole, tick: short, bars: true }),
    bytes: (p) => ({ series: [["bytes", p.bytes, "c"]], say: bytes, tick: bytes, bars: true }),
    lag: (p) => ({ series: [["longest lag", p.lag, "d"]], say: time, tick: time }),
    between: (p) => ({
      series: [["longest time between two", p.between, "a"]].concat(some(p.took) ? [["longest commit", p.took, "b"]] : []),
      say: time, tick: time,
    }),
    codes: (p) => ({ series: p.codes.map(([code, values], n) => [code, values, "badcef"[n]]), say: whole, tick: short, bars: true, stacked: true }),
  };
  const times = (p) => p.records.map((_, n) => p.from + n * p.width);

  const stacked = (rows) => {
    const sum = new Array(rows[0].length).fill(0);
    return rows.map((row) => row.map((value, n) => (sum[n] += value)));
  };

  const marks = (p) => (u) => {
    const { ctx, bbox } = u;
    ctx.save();
    ctx.strokeStyle = colour("b");
    ctx.fillStyle = colour("b");
    ctx.lineWidth = devicePixelRatio;
    ctx.setLineDash([4, 4]);
    for (const [at] of p.marks) {
      if (at < u.scales.x.min || at > u.scales.x.max) continue;
      const x = Math.round(u.valToPos(at, "x", true));
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      ctx.beginPath();
      ctx.moveTo(x - 5, bbox.top);
      ctx.lineTo(x + 5, bbox.top);
      ctx.lineTo(x, bbox.top + 8);
      ctx.fill();
    }
    ctx.restore();
  };

  const plot = (place, p, kind) => {
    const { series, say, tick, bars, stacked: piled } = KINDS[kind](p);
    if (!series.length || !series.some(([, values]) => some(values))) {
      place.replaceChildren(make("p", { class: "empty" }, "Nobody tells: the files of these commits have no such figures."));
      return null;
    }
    const rows = series.map(([, values]) => values), shown = piled ? stacked(rows) : rows;
    const order = series.map((_, n) => n);
    if (piled) order.reverse();
    const axis = { stroke: colour("soft"), grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line"), width: 1 } };
    const lines = order.map((n) => {
      const [label, , name] = series[n], ink = colour(name);
      const look = bars ? { fill: ink, width: 0, paths: uPlot.paths.bars({ size: [0.9, 60] }), points: { show: false } }
        : { width: 2, dash: n ? [6, 4] : [], points: { show: true, size: 4, fill: ink } };
      return { label, stroke: ink, value: (_, __, ___, at) => (at == null ? "-" : say(rows[n][at])), ...look };
    });
    const half = p.width / 2, first = p.from, last = p.from + p.records.length * p.width;
    return new uPlot({
      width: place.clientWidth, height: 200, ms: 1e-3,
      tzDate: (at) => uPlot.tzDate(new Date(at * 1000), "Etc/UTC"),
      cursor: { sync: { key: p.name }, drag: { x: true, y: false } },
      scales: { x: { range: (_, low, high) => (low == null ? [first, last] : [low - half, high + half]) }, y: { range: (_, __, high) => [0, (high || 1) * 1.08] } },
      axes: [{ ...axis, values: ticks, size: 44 }, { ...axis, values: (_, splits) => splits.map(tick), size: 62, ...(tick === time ? { incrs: HANDY } : {}) }],
      series: [{ label: "from", value: (_, at) => (at == null ? "-" : moment(at)) }, ...lines],
      hooks: { draw: [marks(p)] },
    }, [times(p), ...order.map((n) => shown[n])], place);
  };

  /* The heat map: a row for each partition, a column for each span of time. */
  const heat = (place, p) => {
    const { rows, from, width } = p.heat, columns = rows[0][2].length;
    const room = Math.max(60, place.clientWidth - LABEL - 70), cell = room / columns;
    const most = Math.max(1, ...rows.map(([, , cells]) => Math.max(...cells)));
    const total = rows.reduce((sum, [, all]) => sum + all, 0) || 1;
    const high = rows.length * ROW + 22;
    const svg = make("svg", { class: "heat", height: high, viewBox: `0 0 ${place.clientWidth} ${high}`, "aria-hidden": "true" });
    rows.forEach(([name, all, cells], y) => {
      const label = name.length > 18 ? `…${name.slice(-17)}` : name;
      svg.append(make("text", { x: LABEL - 6, y: y * ROW + 13, "text-anchor": "end" }, label));
      cells.forEach((value, x) => {
        const at = { x: LABEL + x * cell, y: y * ROW + 1, width: Math.max(0.5, cell - 0.6), height: ROW - 2 };
        const ink = value ? { "fill-opacity": SMALL + (1 - SMALL) * Math.sqrt(value / most) } : { class: "none" };
        svg.append(make("rect", { ...at, ...ink }));
      });
      const share = `${((100 * all) / total).toFixed(1)} %`;
      svg.append(make("text", { x: LABEL + room + 6, y: y * ROW + 13 }, share));
    });
    svg.append(make("text", { x: LABEL, y: high - 6 }, moment(from).slice(5, 16)));
    svg.append(make("text", { x: LABEL + room, y: high - 6, "text-anchor": "end" }, moment(from + columns * width).slice(5, 16)));
    const said = make("span", {}, "");
    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect();
      const x = Math.floor((event.clientX - box.left - LABEL) / cell), y = Math.floor((event.clientY - box.top) / ROW);
      const row = rows[y];
      said.textContent = row && row[2][x] != null ? `${row[0]}, ${moment(from + x * width)}: ${whole(row[2][x])} offsets` : "";
    });
    const scale = make("div", { class: "scale" }, "few", make("i"), `${whole(most)} offsets in ${span(width)}`, said);
    place.replaceChildren(svg, scale);
    return { destroy: () => place.replaceChildren() };
  };

  const draw = (figure) => {
    const place = figure.querySelector(".plot"), p = told[+figure.dataset.pipeline], kind = figure.dataset.chart;
    drawn.get(figure)?.destroy();
    place.replaceChildren();
    drawn.set(figure, kind === "heat" ? heat(place, p) : plot(place, p, kind));
    figure.dataset.drawn = "";
  };

  /* The same figures as a table, made when somebody opens it. */
  const figures = (details, p, kind) => {
    const cells = kind === "heat"
      ? [["partition", "offsets", ...p.heat.rows[0][2].map((_, n) => moment(p.heat.from + n * p.heat.width))],
        ...p.heat.rows.map(([name, all, row]) => [name, whole(all), ...row.map(whole)])]
      : (() => {
        const { series, say } = KINDS[kind](p);
        const rows = times(p).map((at, n) => [moment(at), ...series.map(([, values]) => say(values[n]))]);
        const full = rows.filter((_, n) => p.commits[n]);
        return [["from", ...series.map(([name]) => name)], ...full];
      })();
    const [head, ...body] = cells;
    const row = (tag, scope) => (line) => make("tr", {}, ...line.map((value, n) =>
      n && tag === "td" ? make("td", { class: "n" }, value) : make("th", { scope: n ? "col" : scope, ...(n ? { class: "n" } : {}) }, value)));
    const table = make("table", {}, make("thead", {}, row("th", "col")(head)), make("tbody", {}, ...body.map(row("td", "row"))));
    const name = `${p.name}: ${details.closest("figure").querySelector("figcaption").textContent}`;
    details.append(make("div", { class: "wide", role: "region", tabindex: "0", "aria-label": name }, table));
  };

  const steps = (event, figure) => {
    const u = drawn.get(figure), by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!u || !u.setCursor || !by) return;
    const at = Math.min(u.data[0].length - 1, Math.max(0, (u.cursor.idx ?? (by > 0 ? -1 : u.data[0].length)) + by));
    u.setCursor({ left: u.valToPos(u.data[0][at], "x"), top: 20 });
    event.preventDefault();
  };

  const prepare = (figure) => {
    const p = told[+figure.dataset.pipeline], kind = figure.dataset.chart;
    const place = make("div", { class: "plot" }), width = kind === "heat" ? p.heat.width : p.width;
    const details = make("details", {}, make("summary", {}, "As a table"));
    figure.firstElementChild.append(make("span", { class: "each" }, `, in each ${span(width)}`));
    figure.append(place, details);
    place.setAttribute("role", "img");
    place.setAttribute("aria-label", `${figure.querySelector("figcaption").textContent}. The table below has the figures.`);
    if (kind !== "heat") {
      place.tabIndex = 0;
      place.addEventListener("keydown", (event) => steps(event, figure));
    }
    details.addEventListener("toggle", () => details.children.length > 1 || figures(details, p, kind));
  };

  const spark = (place) => {
    const p = told[+place.dataset.pipeline], most = Math.max(1, ...p.records), wide = 120, high = 22;
    const svg = make("svg", { width: wide, height: high, "aria-hidden": "true" });
    const step = wide / Math.max(1, p.records.length);
    p.records.forEach((value, n) => {
      for (const [figure, name] of [[value, "good"], [p.bad[n], "bad"]]) {
        const tall = figure ? Math.max(1, (figure / most) * high) : 0;
        if (tall) svg.append(make("rect", { class: name, x: n * step, y: high - tall, width: Math.max(0.6, step - 0.3), height: tall }));
      }
    });
    const sum = p.records.reduce((all, each) => all + each, 0);
    place.replaceChildren(svg);
    place.setAttribute("role", "img");
    place.setAttribute("aria-label", `${whole(sum)} records`);
  };

  let near = null;
  const begin = () => {
    told = JSON.parse(document.getElementById("data").textContent);
    drawn.clear();
    near?.disconnect();
    near = new IntersectionObserver((seen) => {
      for (const { isIntersecting, target } of seen)
        if (isIntersecting) { near.unobserve(target); draw(target); }
    }, { rootMargin: "600px" });
    document.querySelectorAll(".spark").forEach(spark);
    document.querySelectorAll("figure").forEach((figure) => { prepare(figure); near.observe(figure); });
  };
  const again = () => [...drawn.keys()].forEach(draw);

  /* A page that is served asks for itself again. */
  const refresh = async () => {
    const answer = await fetch(location.href, { cache: "no-store" });
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const open = [...document.querySelectorAll("details[open]")].map(({ parentElement: { dataset } }) => `${dataset.pipeline} ${dataset.chart}`);
    for (const name of ["header p", "nav ul", "main"]) document.querySelector(name).replaceWith(fresh.querySelector(name));
    begin();
    document.querySelectorAll("details").forEach((each) => {
      const { dataset } = each.parentElement;
      each.open = open.includes(`${dataset.pipeline} ${dataset.chart}`);
    });
  };

  begin();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  addEventListener("beforeprint", () => document.querySelectorAll("figure:not([data-drawn])").forEach(draw));
  let wide = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== wide) { wide = innerWidth; again(); } });
  const every = +document.documentElement.dataset.refresh, label = document.getElementById("again");
  if (every) {
    label.hidden = false;
    setInterval(() => { if (label.firstElementChild.checked && !document.hidden) refresh().catch(() => {}); }, every * 1000);
  }
})();
