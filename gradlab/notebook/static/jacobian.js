// The live view of a Jacobian. Python computes; this file draws the traits it sends and reports what was clicked.
// Plain DOM, no library. Whatever a user named is written with textContent only.

const SVG = "http://www.w3.org/2000/svg";
const SLIDERS = 12;        // at a time
const BOXES = 12;          // weights written out
const NUMBERS = 12;        // of the result written out
const PAUSE = 450;         // ms between rows while playing
const PATIENCE = 1500;     // ms until a view says that it waits for the kernel
const LINGER = 2000;       // ms after which a view that is gone is not coming back
const views = (globalThis[Symbol.for("gradlab.views")] ??= new Map());

function html(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (key === "class") node.className = value;
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
}

function svg(tag, attributes = {}, text) {
  const node = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

// A binary trait as a typed array. The bytes are copied: a DataView may begin anywhere in its buffer.
function array(type, view) {
  if (!view) return new type(0);
  return new type(view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength));
}

function number(value) {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "+inf" : "−inf";
  if (value === 0) return "0";
  const size = Math.abs(value);
  const digits = size >= 1e4 || size < 1e-3 ? size.toExponential(1) : size.toPrecision(3);
  return (value < 0 ? "−" : "+") + digits.replace("e-", "e−").replace("e+", "e");
}

const weight = (value) => String(Number(value.toPrecision(3))).replace("-", "−");
const size = (shape) => shape.reduce((a, b) => a * b, 1);
const times = (shape) => shape.join("×") || "scalar";
const short = (text, length = 16) => (text.length > length ? text.slice(0, length - 7) + "…" + text.slice(-6) : text);

// The label of element i of the named arrays `parts`, one after the other: "x[0,2]".
function label(parts, i) {
  for (const { name, shape } of parts) {
    const count = size(shape);
    if (i >= count) { i -= count; continue; }
    if (!shape.length) return name;
    const index = [];
    for (const length of [...shape].reverse()) { index.unshift(i % length); i = Math.floor(i / length); }
    return `${name}[${index.join(",")}]`;
  }
  return "";
}

// ------------------------------------------------------------------------------------------------ the heat map
function heatmap(about, rowLabel, columnLabel) {
  const m = about.rowBins.length, n = about.columnBins.length;
  let high = Math.min(30, Math.max(340 / m, 5)), wide = Math.min(30, Math.max(340 / n, 5));
  high = Math.min(high, 3 * wide); wide = Math.min(wide, 3 * high);
  const gap = Math.min(high, wide) >= 12 ? 2 : Math.min(high, wide) > 7 ? 1 : 0.5;
  const letter = 6.4, between = about.blocks.length > 1 ? 10 : 0;
  const rowName = (i) => short(rowLabel(about.rowBins[i])), columnName = (j) => short(columnLabel(about.columnBins[j]));
  const widest = (name, count) => letter * Math.max(3, ...Array.from({ length: count }, (_, k) => name(k).length));
  const left = Math.max(widest(rowName, m), letter * 3) + 10;
  const labelWidth = widest(columnName, n);
  const every = (need, pitch, count) => [1, 2, 5, 10, 20, 50].find((step) => step >= count || need <= step * pitch) ?? count;
  const upright = every(labelWidth + 6, wide, n) > 2 && wide >= 13;
  const columnStep = upright ? 1 : every(labelWidth + 6, wide, n), rowStep = every(13, high, m);
  const top = (between ? 16 : 0) + (upright ? labelWidth + 10 : 20);
  const blockOf = (j) => about.blocks.filter((start) => start <= j).length - 1;
  const x = (j) => left + j * wide + blockOf(j) * between, y = (i) => top + i * high;
  const width = n ? x(n - 1) + wide : left, stripTop = y(m) + 12, barTop = stripTop + Math.min(high, 30) + 14;
  const full = Math.max(width + 4, left + 140, upright || !n ? 0 : x(Math.floor((n - 1) / columnStep) * columnStep) + (wide + labelWidth) / 2);
  const root = svg("svg", { width: full, height: barTop + 28, role: "img", viewBox: `0 0 ${full} ${barTop + 28}` });
  for (let j = 0; j < n; j += columnStep) {
    const place = upright ? { x: x(j) + wide / 2 + 3, y: top - 8, transform: `rotate(-90 ${x(j) + wide / 2 + 3} ${top - 8})` }
      : { x: x(j) + (wide - gap) / 2, y: top - 8, "text-anchor": "middle" };
    root.append(svg("text", place, columnName(j)));
  }
  if (between) about.inputs.forEach(({ name }, k) => {
    const first = about.blocks[k], last = (about.blocks[k + 1] ?? n) - 1;
    if (last >= first) root.append(svg("text", { x: (x(first) + x(last) + wide - gap) / 2, y: 11, "text-anchor": "middle", class: "gl-name" }, short(name)));
  });
  for (let i = 0; i < m; i += rowStep) root.append(svg("text", { x: left - 7, y: y(i) + (high - gap) / 2 + 3.7, "text-anchor": "end" }, rowName(i)));
  const box = (i, j, x0, y0, tall) => svg("rect", { x: x0, y: y0, width: wide - gap, height: tall - gap, rx: gap === 2 ? 3 : 0,
    class: "gl-cell gl-empty", "data-i": i, "data-j": j });
  const cells = Array.from({ length: m }, (_, i) => Array.from({ length: n }, (_, j) => root.appendChild(box(i, j, x(j), y(i), high))));
  root.append(svg("text", { x: left - 7, y: stripTop + Math.min(high, 30) / 2 + 3, "text-anchor": "end", class: "gl-strip" }, "vᵀJ"));
  const strip = Array.from({ length: n }, (_, j) => root.appendChild(box(-1, j, x(j), stripTop, Math.min(high, 30))));
  const signs = root.appendChild(svg("g"));
  const now = root.appendChild(svg("rect", { class: "gl-now", rx: gap === 2 ? 5 : 2, x: left - 3, width: width - left + 6 - gap, height: high - gap + 6, y: 0 }));
  const bar = root.appendChild(svg("g"));
  const length = 132, steps = 33;
  const ends = ["start", "middle", "end"].map((anchor, k) => svg("text", { x: left + k * length / 2, y: barTop + 20, "text-anchor": anchor }));

  const [negative, zero, positive] = about.colours;
  const colour = (t) => {
    const end = t < 0 ? negative : positive, a = Math.min(1, Math.abs(t));
    return `rgb(${zero.map((c, k) => Math.round(c + a * (end[k] - c))).join(",")})`;
  };
  for (let k = 0; k < steps; k++) bar.append(svg("rect", { x: left + k * length / steps, y: barTop, width: length - k * length / steps, height: 8, fill: colour(-1 + 2 * k / (steps - 1)) }));
  bar.append(svg("rect", { x: left, y: barTop, width: length, height: 8, class: "gl-outline" }), ...ends);

  function paint(rect, value, bound) {
    const filled = value !== undefined;
    rect.setAttribute("class", filled ? "gl-cell" : "gl-cell gl-empty");
    rect.toggleAttribute("data-filled", filled);
    if (!filled) { rect.removeAttribute("fill"); return; }
    rect.setAttribute("fill", Number.isNaN(value) ? "rgb(150,156,164)" : colour(bound ? value / bound : Math.sign(value)));
    if (Number.isFinite(value)) return;
    const [x0, y0, w, h] = ["x", "y", "width", "height"].map((key) => Number(rect.getAttribute(key)));
    const letters = Math.min(w, h) * 0.95;
    signs.append(svg("text", { x: x0 + w / 2, y: y0 + h / 2 + letters * 0.36, class: "gl-sign",
      style: `font-size:${letters}px;fill:${value === -Infinity ? "#fff" : "#282c34"}` }, Number.isNaN(value) ? "×" : value > 0 ? "+" : "−"));
  }

  let values = [], mix = [];
  return {
    root,
    value: (i, j) => (i < 0 ? mix[j] : values[i]?.[j]),
    draw(data, shown, stripValues, extent, row) {
      values = Array.from({ length: m }, (_, i) => (shown[i] ? data.subarray(i * n, (i + 1) * n) : []));
      mix = stripValues;
      let bound = Math.max(-extent[0], extent[1], 0);
      for (const value of stripValues) if (Number.isFinite(value)) bound = Math.max(bound, Math.abs(value));
      signs.replaceChildren();
      cells.forEach((line, i) => line.forEach((rect, j) => paint(rect, values[i][j], bound)));
      strip.forEach((rect, j) => paint(rect, mix[j], bound));
      const at = row < 0 ? -1 : about.rowBins.findLastIndex((start) => start <= row);
      now.setAttribute("visibility", at < 0 ? "hidden" : "visible");
      if (at >= 0) now.setAttribute("y", y(at) - 3);
      bar.setAttribute("visibility", bound ? "visible" : "hidden");
      [number(-bound), "0", number(bound)].forEach((text, k) => { ends[k].textContent = text; });
    },
  };
}

// ------------------------------------------------------------------------------------------------ the view
function render({ model, el }) {
  const about = model.get("about"), token = model.get("token"), me = Math.random().toString(36).slice(2);
  const rowLabel = (i) => label([about.output], i), columnLabel = (j) => label(about.inputs, j);
  const rows = about.rows;
  let weights = new Map(), first = 0, playing = false, timer = 0, patience = 0, count = 0;
  let flying = null, queued = null;                       // the id of the frame asked for, the newest wish after it

  // One frame is in flight at a time; of the wishes that come meanwhile the newest is asked for when it has come.
  function ask(what, buffers = []) {
    if (flying) { queued = [what, buffers]; return; }
    flying = `${me}:${++count}`;
    root.setAttribute("aria-busy", "true");
    patience = setTimeout(() => { say("waiting for the kernel …"); }, PATIENCE);
    try { model.send({ ask: what, id: flying }, undefined, buffers); } catch (problem) { landed(); fail(`no kernel answers: ${problem.message}`); }
  }
  function landed() {
    flying = null;
    clearTimeout(patience);
    root.removeAttribute("aria-busy");
    say("");
  }
  function say(text) { waiting.textContent = text; }
  function fail(text) { problem.textContent = text; problem.hidden = !text; }

  const done = () => model.get("filled") >= rows;
  function play(on) {
    clearTimeout(timer);
    const was = playing;
    playing = on && !done();
    playButton.textContent = playing ? "pause" : "play";
    if (playing) ask("play"); else if (was && !done()) ask("pause");
  }
  const button = (text, title, action, kind = "") => html("button", { type: "button", title, class: kind,
    "data-lm-suppress-shortcuts": "true", onclick: (event) => { if (event.currentTarget.getAttribute("aria-disabled") !== "true") action(); } }, text);
  const disable = (node, on) => node.setAttribute("aria-disabled", String(on));   // stays focusable, so that focus is not lost
  const stepButton = button("step ▸", "fill the next row by one weighted backward", () => { play(false); ask("step"); }, "gl-first");
  const playButton = button("play", "fill row after row", () => play(!playing));
  const resetButton = button("reset", "empty the view", () => { play(false); ask("reset"); });
  const waiting = html("span", { class: "gl-dim", role: "status" });
  const spoken = html("span", { class: "gl-spoken", role: "status" });
  const problem = html("p", { class: "gl-error", role: "alert", hidden: "" });

  const sentence = html("span", { class: "gl-dim" });
  const head = html("div", { class: "gl-head" }, html("b", {}, html("code", {}, about.output.name), ` (${times(about.output.shape)}) by `));
  about.inputs.forEach(({ name, shape }, k) => head.firstChild.append(k ? ", " : "", html("code", {}, name), ` (${times(shape)})`));
  head.append(" ", sentence);
  const map = heatmap(about, rowLabel, columnLabel);
  const read = html("div", { class: "gl-read gl-dim" });
  map.root.addEventListener("pointerover", (event) => {
    const { i, j } = event.target.dataset ?? {};
    if (i === undefined) { read.textContent = ""; return; }
    const value = map.value(Number(i), Number(j)), column = columnLabel(about.columnBins[j]);
    const pooled = about.columnBins.length < about.columns || about.rowBins.length < rows;
    const what = Number(i) < 0 ? `(vᵀJ) at ${column}` : `∂${rowLabel(about.rowBins[i])}/∂${column}`;
    const exact = value === undefined ? "not computed yet" : String(value).replace("-", "−");
    read.textContent = pooled ? `largest in the block from ${what}: ${exact}` : `${what} ${value === undefined ? ":" : "="} ${exact}`.replace(" :", ":");
  });
  const boxes = html("span", { class: "gl-vector", role: "img" });
  const numbers = html("div", { class: "gl-numbers", role: "list" });
  const meaning = html("span", { class: "gl-dim" });
  const code = html("pre", { tabindex: "0", "aria-label": "code that does the same by hand", "data-lm-suppress-shortcuts": "true" });
  const sliders = html("div", { class: "gl-sliders", role: "group", "aria-label": "weights v" });
  const range = html("span", { class: "gl-dim" });
  const page = (step) => { first = Math.min(Math.max(0, first + step), Math.floor((rows - 1) / SLIDERS) * SLIDERS); makeSliders(); };
  const pager = html("span", {}, " ", button("◂", "earlier weights", () => page(-SLIDERS)), " ", button("▸", "later weights", () => page(SLIDERS)), " ", range);
  for (const node of pager.querySelectorAll("button")) node.setAttribute("aria-label", node.title);
  pager.hidden = rows <= SLIDERS;

  const root = html("div", { class: "gl-jacobian", role: "group",
    "aria-label": `Jacobian of ${about.output.name} by ${about.inputs.map(({ name }) => name).join(", ")}, row by row` },
    head,
    html("div", { class: "gl-body" },
      html("div", { class: "gl-map" }, map.root, read),
      html("div", { class: "gl-side" }, problem,
        html("div", { class: "gl-buttons" }, stepButton, playButton, resetButton, waiting),
        html("div", { class: "gl-vectors" }, html("span", { class: "gl-dim" }, "v"), boxes,
          html("span", { class: "gl-back" }, "vᵀJ"), html("div", {}, numbers, meaning)),
        html("div", { class: "gl-caption" }, "the same by hand"), code,
        html("div", { class: "gl-caption" }, "choose v: a weight from −1 to 1 for each row", pager), sliders, spoken)));
  root.addEventListener("keydown", (event) => event.stopPropagation());

  function makeSliders() {
    sliders.replaceChildren();
    const last = Math.min(rows, first + SLIDERS);
    range.textContent = `${short(rowLabel(first))} to ${short(rowLabel(last - 1))} of ${rows}`;
    for (let i = first; i < last; i++) {
      const name = rowLabel(i), value = weights.get(i) ?? 0, shown = html("output", {}, weight(value));
      const input = html("input", { type: "range", min: "-1", max: "1", step: "0.05", "data-row": i, "aria-label": `weight of ${name}`,
        "data-lm-suppress-shortcuts": "true", oninput: () => {
          const chosen = Number(input.value);
          if (chosen) weights.set(i, chosen); else weights.delete(i);
          shown.textContent = weight(chosen);
          play(false);
          const order = [...weights].sort((a, b) => a[0] - b[0]);
          ask("mix", [Int32Array.from(order, ([row]) => row).buffer, Float64Array.from(order, ([, w]) => w).buffer]);
        } });
      input.value = String(value);
      sliders.append(html("label", { title: name }, html("code", {}, short(name, 12)), input, shown));
    }
  }

  // The sliders that are there take over the weights of a frame, but not while the user is still moving them.
  function setSliders() {
    for (const node of sliders.querySelectorAll("input")) {
      const value = weights.get(Number(node.dataset.row)) ?? 0;
      node.value = String(value);
      node.nextSibling.textContent = weight(value);
    }
  }

  function makeBoxes(row) {
    const from = rows <= BOXES ? 0 : Math.min(Math.max(0, row - 4), rows - 9), to = rows <= BOXES ? rows : from + 9;
    boxes.replaceChildren();
    if (from > 0) boxes.append("… ");
    for (let i = from; i < to; i++) {
      const value = weights.get(i) ?? 0;
      boxes.append(html("i", { class: value ? "gl-on" : "", title: `weight of ${rowLabel(i)}` }, weight(value)));
    }
    if (to < rows) boxes.append(` … (${rows})`);
    const named = [...weights].map(([i, value]) => `${weight(value)} at ${rowLabel(i)}`);
    boxes.setAttribute("aria-label", named.length ? `v is ${named.slice(0, 12).join(", ")}, elsewhere 0` : "v is 0 everywhere");
  }

  function update() {
    const row = model.get("row"), filled = model.get("filled"), result = array(Float64Array, model.get("result"));
    const picked = array(Int32Array, model.get("picked")), given = array(Float64Array, model.get("weights"));
    if (!queued) {
      weights = new Map(Array.from(picked, (i, k) => [i, given[k]]));
      const page = row < 0 ? first : Math.floor(row / SLIDERS) * SLIDERS;
      if (page !== first || !sliders.children.length) { first = page; makeSliders(); } else setSliders();
    }
    map.draw(array(Float64Array, model.get("cells")), array(Uint8Array, model.get("shown")), array(Float64Array, model.get("strip")), model.get("extent"), row);
    makeBoxes(row < 0 && picked.length ? picked[0] : row);
    const how = result.length ? (model.get("sweeps") ? "one weighted backward" : "from rows already known") : "one weighted backward a row";
    const where = row >= 0 ? `row ${row + 1} of ${rows}` : result.length ? "a mix of rows" : filled ? `${filled} of ${rows} rows` : "no row yet";
    sentence.textContent = `— ${where} · ${how}${row >= 0 && filled === rows ? " · all rows known" : ""}`;
    numbers.replaceChildren();
    result.slice(0, NUMBERS).forEach((value, j) => numbers.append(html("span", { role: "listitem", title: `${columnLabel(j)}: ${value}` },
      html("small", {}, short(columnLabel(j))), number(value))));
    const rest = about.columns > NUMBERS ? `, the first ${NUMBERS} of ${about.columns}` : "";
    const terms = Array.from(picked, (i, k) => `${given[k] < 0 ? "−" : k ? "+ " : ""}${weight(Math.abs(given[k]))} · row ${rowLabel(i)}`);
    meaning.textContent = !result.length ? "nothing yet: step, or move a slider" : row >= 0 ? `= row ${rowLabel(row)}${rest}`
      : terms.length ? `= ${terms.slice(0, 6).join(" ")}${terms.length > 6 ? " + …" : ""}${rest}` : `= 0${rest}`;
    map.root.setAttribute("aria-label", `heat map, ${rows} by ${about.columns}, ${filled} rows filled${row >= 0 ? `, row ${rowLabel(row)} outlined` : ""}`);
    code.textContent = model.get("code");
    fail(model.get("error"));
    if (model.get("error")) play(false);
    root.toggleAttribute("data-ended", model.get("ended"));
    if (model.get("ended")) fail("This view was closed and its graph let go. Run the cell again.");
    [[stepButton, done()], [playButton, done()], [resetButton, !filled && !result.length]].forEach(([node, off]) => disable(node, off || model.get("ended")));
    if (!playing) spoken.textContent = row >= 0 ? `row ${rowLabel(row)} filled, ${filled} of ${rows}` : "";
  }

  function answered() {
    const mine = model.get("answered") === flying;
    if (mine) landed();
    update();
    if (!mine) return;
    if (queued) { const next = queued; queued = null; ask(...next); return; }
    if (playing && done()) play(false);
    else if (playing) timer = setTimeout(() => { if (playing) ask("play"); }, PAUSE);
  }

  model.on("change:answered", answered);
  model.on("change:ended", update);
  views.set(token, (views.get(token) ?? 0) + 1);
  update();
  el.append(root);
  return () => {
    playing = false;
    clearTimeout(timer); clearTimeout(patience);
    model.off("change:answered", answered);
    model.off("change:ended", update);
    views.set(token, views.get(token) - 1);
    // A cell that is moved, or a page that is scrolled, may draw the view anew at once; only then is nobody left to look.
    setTimeout(() => {
      if (views.get(token) > 0) return;
      try { model.send({ ask: "gone", id: `${me}:gone` }); } catch { /* the model went with its view */ }
    }, LINGER);
    root.remove();
  };
}

export default { render };
