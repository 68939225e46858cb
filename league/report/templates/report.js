// Draws the plots and lists the problems. Text of models is only ever put in as text (textContent), never as markup.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const PAGE = 25, ROWS = 200;

  // --- light and dark -------------------------------------------------------------------------------------------
  const system = matchMedia("(prefers-color-scheme: dark)");
  const button = document.getElementById("theme");
  const names = { auto: "◐ as the system", light: "☀ light", dark: "☾ dark" };
  let wish = "auto";
  const colours = () => {
    const style = getComputedStyle(root);
    return { ink: style.getPropertyValue("--ink"), line: style.getPropertyValue("--line"), card: style.getPropertyValue("--card") };
  };
  function setTheme() {
    root.dataset.theme = wish === "auto" ? (system.matches ? "dark" : "light") : wish;
    button.textContent = names[wish];
    button.setAttribute("aria-label", "Colours: " + names[wish].slice(2));
    for (const plot of document.querySelectorAll(".plot.js-plotly-plot")) Plotly.relayout(plot, themed(colours()));
  }
  function themed(c) {
    const look = { "font.color": c.ink, "legend.bgcolor": "rgba(0,0,0,0)", "hoverlabel.bgcolor": c.card, "hoverlabel.font.color": c.ink };
    for (const axis of ["xaxis", "yaxis"])
      for (const part of ["gridcolor", "linecolor", "zerolinecolor"]) look[axis + "." + part] = c.line;
    return look;
  }
  button.addEventListener("click", () => {
    wish = { auto: "light", light: "dark", dark: "auto" }[wish];
    setTheme();
  });
  system.addEventListener("change", setTheme);

  // --- plots ----------------------------------------------------------------------------------------------------
  const config = { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["lasso2d", "select2d", "autoScale2d"] };
  function draw(node, figure) {
    if (!figure.data.length) {
      const note = document.createElement("p");
      note.className = "empty";
      note.textContent = "Nothing to show: the run has no such numbers.";
      node.replaceChildren(note);
      return;
    }
    const c = colours();
    const given = figure.layout;
    const axis = (one) => ({ automargin: true, gridcolor: c.line, linecolor: c.line, zerolinecolor: c.line, ...one, title: { standoff: 10, ...one.title } });
    // Room for the legend, which wraps where the plot is narrow.
    const named = figure.data.filter((one) => one.showlegend !== false && one.name);
    const longest = Math.max(0, ...named.map((one) => one.name.length));
    const across = Math.max(1, Math.floor((node.clientWidth - 80) / (60 + 7 * longest)));
    const extra = given.showlegend === false ? 0 : 20 * Math.max(0, Math.ceil(named.length / across) - 1);
    const layout = {
      autosize: true, margin: { l: 60, r: 12, t: 12, b: 44 }, hovermode: "closest",
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: c.ink, size: 13 },
      legend: { orientation: "h", x: 0, y: 1, yanchor: "bottom", maxheight: 600, bgcolor: "rgba(0,0,0,0)" },
      showlegend: true, hoverlabel: { bgcolor: c.card, font: { color: c.ink } }, dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
      ...given, height: (given.height ?? 360) + extra, xaxis: axis(given.xaxis), yaxis: axis(given.yaxis),
    };
    Plotly.react(node, figure.data, layout, config);
  }
  // Left and right move from point to point of the curve with the most points, as a mouse would.
  function walk(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const traces = event.currentTarget.data;
    if (!step || !traces) return;
    const curves = traces.map((one, place) => [one, place]).filter(([one]) => one.hoverinfo !== "skip" && one.x);
    if (!curves.length) return;
    const most = Math.max(...curves.map(([one]) => one.x.length));
    const node = event.currentTarget;
    node.place = Math.min(most - 1, Math.max(0, (node.place ?? (step > 0 ? -1 : most)) + step));
    const points = curves.filter(([one]) => node.place < one.x.length && one.x[node.place] !== null)
      .map(([, place]) => ({ curveNumber: place, pointNumber: node.place }));
    if (points.length) Plotly.Fx.hover(node, points.slice(0, 1).concat(points.slice(1)));
    event.preventDefault();
  }
  const plots = [...document.querySelectorAll(".plot[data-plot]")];
  for (const node of document.querySelectorAll(".plot")) node.addEventListener("keydown", walk);

  const chooser = document.getElementById("metric");
  function numbersOf(node) {
    const run = Number(node.dataset.run);
    if (node.dataset.plot) return [node.dataset.plot, data.plots[node.dataset.plot][run].numbers];
    return [chooser.value.replaceAll("/", "-"), data.metrics[chooser.value][run]];
  }
  function drawMetric() {
    const all = data.metrics[chooser.value];
    const seen = all.flatMap((one) => (one[chooser.value] || []).filter((value) => value !== null));
    const steps = all.flatMap((one) => one.step);
    const air = (low, high) => { const gap = 0.05 * (high - low) || 0.5; return [low - gap, high + gap]; };
    for (const node of document.querySelectorAll(".plot.metric")) {
      const one = all[Number(node.dataset.run)];
      const curve = { type: "scatter", mode: "lines+markers", x: one.step, y: one[chooser.value], line: { color: "#4e8fd0" }, marker: { size: 4 } };
      const layout = { showlegend: false, xaxis: { title: { text: "step" }, range: air(Math.min(...steps), Math.max(...steps)) },
        yaxis: { title: { text: chooser.value }, range: air(Math.min(...seen), Math.max(...seen)) } };
      draw(node, { data: one.step.length ? [curve] : [], layout });
    }
    for (const box of document.querySelectorAll(".numbers[data-metric]")) box.open = false;
  }

  // --- numbers --------------------------------------------------------------------------------------------------
  // A cell that a spreadsheet would take for a formula gets an apostrophe; every text is quoted.
  function csvCell(value) {
    if (value === null || value === undefined) return "";
    if (typeof value === "number" || typeof value === "boolean") return String(value);
    const text = /^[\s]*[=+\-@|%]/.test(value) || /^[\t\r\n]/.test(value) ? "'" + value : value;
    return '"' + text.replaceAll('"', '""') + '"';
  }
  function save(name, heads, rows) {
    const text = [heads, ...rows].map((row) => row.map(csvCell).join(",")).join("\r\n") + "\r\n";
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
    link.download = name + ".csv";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }
  const fileName = (run, name) => (data.runs[run] + "-" + name).replace(/[^\w.-]+/g, "-");
  const rowsOf = (numbers) => {
    const heads = Object.keys(numbers);
    return [heads, (numbers[heads[0]] || []).map((_, place) => heads.map((head) => numbers[head][place]))];
  };
  function element(tag, text, className) {
    const node = document.createElement(tag);
    if (text !== undefined) node.textContent = text;
    if (className) node.className = className;
    return node;
  }
  function table(heads, rows) {
    const node = element("table"), head = element("tr"), body = element("tbody");
    for (const name of heads) { const cell = element("th", name); cell.scope = "col"; head.append(cell); }
    for (const row of rows) {
      const line = element("tr");
      for (const value of row) line.append(element("td", typeof value === "number" ? String(Number(value.toPrecision(5))) : String(value ?? "–")));
      body.append(line);
    }
    const top = element("thead");
    top.append(head);
    node.append(top, body);
    return node;
  }
  for (const box of document.querySelectorAll(".numbers")) {
    box.addEventListener("toggle", () => {
      if (!box.open) return;
      const [heads, rows] = rowsOf(numbersOf(box)[1]);
      const place = box.querySelector(".scroll");
      place.replaceChildren(table(heads, rows.slice(0, ROWS)));
      if (rows.length > ROWS) place.append(element("p", `The first ${ROWS} of ${rows.length} rows; the CSV has all.`));
    });
    box.querySelector(".csv").addEventListener("click", () => {
      const [name, numbers] = numbersOf(box);
      save(fileName(Number(box.dataset.run), name), ...rowsOf(numbers));
    });
  }

  // --- problems -------------------------------------------------------------------------------------------------
  const form = document.getElementById("filters"), list = document.getElementById("list");
  const more = document.getElementById("more"), count = document.getElementById("count");
  let found = [], listed = 0;
  const ORDERS = {
    new: (a, b) => b.step - a.step, old: (a, b) => a.step - b.step, deep: (a, b) => (b.structure[0] ?? -1) - (a.structure[0] ?? -1),
    hard: (a, b) => (a.rate ?? 2) - (b.rate ?? 2), easy: (a, b) => (b.rate ?? -1) - (a.rate ?? -1),
  };
  const number = (name) => Number(name.split("_").pop());
  const haystack = (one) => (one.hay ??= [one.id, one.program, one.message, one.reason, ...one.inputs, ...one.outputs,
    ...one.attempts.flatMap((attempt) => [attempt[0], attempt[1], attempt[3]])].join("\n").toLowerCase());
  function fill(select, values, byNumber) {
    const before = select.value;
    const sorted = [...new Set(values)].sort((a, b) => (byNumber ? number(a) - number(b) : a < b ? -1 : 1));
    select.replaceChildren(new Option("all", ""), ...sorted.map((value) => new Option(value, value)));
    select.value = sorted.includes(before) ? before : "";
  }
  const run = () => Number(form.run?.value ?? 0);
  function choices() {
    const all = data.problems[run()];
    fill(form.task, all.map((one) => one.task), false);
    fill(form.teacher, all.map((one) => one.teacher), true);
    fill(form.student, all.flatMap((one) => one.attempts.map((attempt) => attempt[0])), true);
  }
  function filter() {
    const words = form.text.value.toLowerCase().split(/\s+/).filter(Boolean);
    const low = Number(form.low.value || 0), high = form.high.value === "" ? 1 : Number(form.high.value);
    const anyRate = low <= 0 && high >= 1;
    found = data.problems[run()].filter((one) =>
      (!form.task.value || one.task === form.task.value) &&
      (!form.teacher.value || one.teacher === form.teacher.value) &&
      (!form.student.value || one.attempts.some((attempt) => attempt[0] === form.student.value)) &&
      (!form.valid.value || one.valid === (form.valid.value === "1")) &&
      (anyRate || (one.rate !== null && one.rate >= low && one.rate <= high)) &&
      words.every((word) => haystack(one).includes(word))).sort(ORDERS[form.order.value]);
    list.replaceChildren();
    listed = 0;
    show();
  }
  function show() {
    for (const one of found.slice(listed, listed + PAGE)) list.append(item(one));
    listed = Math.min(found.length, listed + PAGE);
    count.textContent = `${found.length} of ${data.problems[run()].length} problems, ${listed} listed`;
    more.hidden = listed >= found.length;
  }
  function item(one) {
    const line = element("li"), box = element("details"), solved = one.attempts.filter((attempt) => attempt[1] === "ok").length;
    const told = one.valid ? `solve rate ${one.rate === null ? "–" : one.rate.toFixed(2)} (${solved} of ${one.attempts.length})` : `invalid: ${one.reason}`;
    box.append(element("summary", `step ${one.step} · ${one.task} · ${one.teacher} · ${told}`));
    box.addEventListener("toggle", () => { if (box.open && box.children.length === 1) box.append(...inside(one)); });
    line.append(box);
    return line;
  }
  function inside(one) {
    const parts = [program(one)];
    if (one.structure[0] !== null)
      parts.push(element("p", `depth ${one.structure[0]}, cyclomatic ${one.structure[1]}, ${one.structure[2]} lines, ${one.structure[3]} variables; ${one.id}`));
    one.inputs.forEach((text, place) => parts.push(element("pre", `input   ${text}` + (place < one.outputs.length ? `\noutput  ${one.outputs[place]}` : ""))));
    if (one.message) parts.push(element("p", `message: ${one.message}`));
    if (one.attempts.length) {
      const rows = element("table", undefined, "attempts");
      for (const [student, verdict, reward, text] of one.attempts) {
        const row = element("tr"), said = element("td");
        said.append(element("pre", text));
        row.append(element("td", student), element("td", verdict, verdict === "ok" ? "ok" : "not"), element("td", String(reward)), said);
        rows.append(row);
      }
      const wide = element("div", undefined, "scroll");
      wide.tabIndex = 0;
      wide.append(rows);
      parts.push(wide);
    }
    return parts;
  }
  function program(one) {
    const code = element("code"), box = element("pre");
    const letters = [...one.program];
    let place = 0;
    for (const [, kind, length] of one.colours.matchAll(/([a-z-])(\d+)/g)) {
      const text = letters.slice(place, (place += Number(length))).join("");
      code.append(kind === "-" ? text : element("span", text, kind));
    }
    code.append(letters.slice(place).join(""));
    box.append(code);
    return box;
  }
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", (event) => { if (event.target.name === "run") choices(); filter(); });
  form.addEventListener("reset", () => setTimeout(() => { choices(); filter(); }));
  more.addEventListener("click", show);
  document.getElementById("problems-csv").addEventListener("click", () => {
    const heads = ["id", "step", "task", "teacher", "valid", "reason", "rate", "program", "inputs", "outputs", "message", "attempts", "solved"];
    save(fileName(run(), "problems"), heads, found.map((one) => [one.id, one.step, one.task, one.teacher, one.valid, one.reason, one.rate,
      one.program, one.inputs.join("\n"), one.outputs.join("\n"), one.message, one.attempts.length, one.attempts.filter((attempt) => attempt[1] === "ok").length]));
  });

  setTheme();
  choices();
  filter();
  if (chooser) {
    const wanted = Object.keys(data.metrics).find((name) => /yardstick|worked|base/.test(name)) || Object.keys(data.metrics).find((name) => name === "teacher/distinct_templates");
    if (wanted) chooser.value = wanted;
    chooser.addEventListener("input", drawMetric);
  }
  // One plot a frame, so that the page answers meanwhile.
  (function next() {
    const node = plots.shift();
    if (node) draw(node, data.plots[node.dataset.plot][Number(node.dataset.run)]);
    else if (chooser) drawMetric();
    if (node) requestAnimationFrame(next);
    else root.dataset.drawn = "yes";
  })();
})();
