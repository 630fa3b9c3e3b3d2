// The live view of a Jacobian. Python computes; this file draws the frames it sends and reports what was clicked.
// Plain DOM, no library. Whatever a user named is written with textContent only.

const SVG = "http://www.w3.org/2000/svg";
const SLIDERS = 8; // at a time
const BOXES = 12; // weights written out
const NUMBERS = 12; // of the result written out
const PATIENCE = 1500; // ms until a view says that it waits for the kernel
const LINGER = 2000; // ms after which a view that is gone is not coming back
const SIDE = 380; // of a large map, px
const KNOWN = 1,
  NAN = 2,
  PLUS = 4,
  MINUS = 8;
const GROUPS = ["#44aa99", "#332288", "#ddcc77", "#aa4499", "#88ccee", "#117733", "#cc6677", "#999933", "#882255", "#bbbbbb"];
const TYPES = { f8: Float64Array, i4: Int32Array, u1: Uint8Array };
const SUPPRESS = "data-lm-suppress-shortcuts"; // JupyterLab leaves keys alone where the focused element has this
const views = (globalThis[Symbol.for("gradlab.views")] ??= new Map());

function html(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (key === "class") node.className = value;
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value !== undefined) node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
}

function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

// A buffer as a typed array. The bytes are copied: a DataView may begin anywhere in its buffer.
function typed(kind, data) {
  const view = data instanceof ArrayBuffer ? new DataView(data) : data;
  return new TYPES[kind](view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength));
}

function number(value) {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "+inf" : "−inf";
  if (value === 0) return "0";
  const size = Math.abs(value);
  const digits = size >= 1e4 || size < 1e-3 ? size.toExponential(1) : size.toPrecision(3);
  return (value < 0 ? "−" : "+") + digits.replace("e-", "e−").replace("e+", "e");
}

const exact = (value) => (Number.isFinite(value) ? String(value).replaceAll("-", "−") : number(value));
const weight = (value) => String(Number(value.toPrecision(3))).replace("-", "−");
const size = (shape) => shape.reduce((a, b) => a * b, 1);
const named = (parts) => parts.map(({ name }) => name).join(", ");
const times = (shape) => shape.join("×") || "scalar";
function short(text, length = 16) {
  if (text.length <= length) return text;
  return length < 10 ? `${text.slice(0, length - 1)}…` : `${text.slice(0, length - 7)}…${text.slice(-6)}`;
}
const grouped = (count) => count.toLocaleString("en");
const plural = (count, noun) => `${grouped(count)} ${noun}${count === 1 ? "" : "s"}`;
const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

// The label of element i of the named arrays `parts`, one after the other: "x[0,2]".
function label(parts, i) {
  for (const { name, shape } of parts) {
    const count = size(shape);
    if (i >= count) {
      i -= count;
      continue;
    }
    if (!shape.length) return name;
    const index = [];
    for (const length of [...shape].reverse()) {
      index.unshift(i % length);
      i = Math.floor(i / length);
    }
    return `${name}[${index.join(",")}]`;
  }
  return "";
}

function partOf(parts, i) {
  let k = 0;
  for (const { shape } of parts) {
    i -= size(shape);
    if (i < 0) return k;
    k++;
  }
  return k - 1;
}

function colourScale([negative, zero, positive]) {
  return (t) => {
    const end = t < 0 ? negative : positive,
      a = Math.min(1, Math.abs(t));
    return `rgb(${zero.map((c, k) => Math.round(c + a * (end[k] - c))).join(",")})`;
  };
}

// ------------------------------------------------------------------------------------------------ the heat map
// The cells are pixels of a canvas; labels and outlines are SVG around and above it.
function heatmap(about, rowLabel, columnLabel) {
  const canvas = html("canvas", { "aria-hidden": "true" }),
    over = svg("svg", { "aria-hidden": "true" });
  const root = html(
    "div",
    { class: "gl-map", tabindex: "0", role: "application", "aria-roledescription": "heat map", [SUPPRESS]: "true" },
    canvas,
    over,
  );
  const colour = colourScale(about.colours);
  let g = null; // the geometry of the frame drawn last

  function measure(frame, room) {
    const m = frame.rowBins.length,
      n = frame.columnBins.length,
      letter = 6.3;
    const rowName = (i) => short(rowLabel(frame.rowBins[i]), 14),
      columnName = (j) => short(columnLabel(frame.columnBins[j]), 14);
    const widest = (name, count, least) => letter * Math.max(least, ...Array.from({ length: count }, (_, k) => name(k).length));
    const rowWidth = widest(rowName, m, 5),
      columnWidth = widest(columnName, n, 3);
    const left = rowWidth + 10,
      across = frame.by === "columns";
    const parts = Array.from(frame.columnBins, (j) => partOf(about.inputs, j)),
      gaps = n ? parts[n - 1] - parts[0] : 0;
    const between = gaps && gaps < 20 ? 10 : 0;
    const spare = clamp(room - left - between * gaps - (across ? 46 : 4), 90, SIDE);
    let high = Math.min(30, SIDE / m),
      wide = Math.min(30, spare / n);
    high = Math.min(high, Math.max(14, 3 * wide));
    wide = Math.min(wide, Math.max(14, 3 * high));
    const gap = Math.min(high, wide) >= 12 ? 2 : Math.min(high, wide) > 6 ? 1 : 0;
    const every = (need, pitch, count) =>
      [1, 2, 5, 10, 20, 50, 100].find((step) => step >= count || need <= step * pitch) ?? count;
    const upright = every(columnWidth + 4, wide, n) > 2 && wide >= 13;
    const columnStep = upright ? 1 : every(columnWidth + 4, wide, n),
      rowStep = every(13, high, m);
    const named = between || about.inputs.length > 1;
    const top = (named ? 16 : 0) + (upright ? columnWidth + 10 : 20);
    const x = (j) => left + j * wide + (between ? (parts[Math.min(j, n - 1)] - parts[0]) * between : 0),
      y = (i) => top + i * high;
    const right = n ? x(n - 1) + wide : left,
      bottom = y(m),
      thick = clamp(across ? wide : high, 10, 30);
    const width = Math.max(
      across ? right + 12 + Math.max(thick, 22) : right + 4,
      upright || !n ? 0 : x(Math.floor((n - 1) / columnStep) * columnStep) + (wide + columnWidth) / 2,
    );
    return {
      frame,
      m,
      n,
      left,
      top,
      high,
      wide,
      gap,
      x,
      y,
      right,
      bottom,
      thick,
      across,
      parts,
      named,
      upright,
      rowStep,
      columnStep,
      rowName,
      columnName,
      width,
      height: across ? bottom + 4 : bottom + 12 + thick + 4,
      stripX: right + 12,
      stripY: bottom + 12,
    };
  }

  function draw(frame, room, groups) {
    g = measure(frame, room);
    const { m, n, x, y, high, wide, gap, across } = g,
      scale = Math.max(1, globalThis.devicePixelRatio || 1);
    over.replaceChildren();
    over.setAttribute("width", g.width);
    over.setAttribute("height", g.height);
    over.setAttribute("viewBox", `0 0 ${g.width} ${g.height}`);
    canvas.width = Math.ceil(g.width * scale);
    canvas.height = Math.ceil(g.height * scale);
    canvas.style.width = `${canvas.width / scale}px`;
    canvas.style.height = `${canvas.height / scale}px`;
    root.style.width = `${g.width}px`;
    root.style.height = `${g.height}px`;
    const pen = canvas.getContext("2d");
    let bound = frame.extent.length ? Math.max(-frame.extent[0], frame.extent[1], 0) : 0;
    if (frame.stripHigh)
      for (const k of frame.stripHigh.keys())
        if (frame.stripLow[k] <= frame.stripHigh[k]) bound = Math.max(bound, -frame.stripLow[k], frame.stripHigh[k]);
    g.bound = bound;

    function cell(x0, y0, w, h, low, high, flags) {
      const ax = Math.round(x0 * scale),
        ay = Math.round(y0 * scale),
        bx = Math.round((x0 + w) * scale),
        by = Math.round((y0 + h) * scale);
      const width = Math.max(1, bx - ax),
        height = Math.max(1, by - ay);
      if (!(flags & KNOWN)) {
        if (Math.min(w, h) < 7) return;
        pen.setLineDash([2 * scale, 2 * scale]);
        pen.lineWidth = scale * 0.8;
        pen.strokeStyle = "#7f8a99";
        pen.strokeRect(ax + scale / 2, ay + scale / 2, width - scale, height - scale);
        return;
      }
      const value = worth(low, high, flags);
      pen.fillStyle = Number.isNaN(value)
        ? "rgb(150,156,164)"
        : colour(Number.isFinite(value) ? (bound ? value / bound : 0) : Math.sign(value));
      pen.fillRect(ax, ay, width, height);
      if (gap) {
        pen.setLineDash([]);
        pen.lineWidth = scale * 0.6;
        pen.strokeStyle = "rgba(127,138,153,.45)";
        pen.strokeRect(ax, ay, width, height);
      }
      if (Number.isFinite(value)) return;
      const r = Math.max(1.2, Math.min(w, h) * 0.26) * scale,
        cx = (ax + bx) / 2,
        cy = (ay + by) / 2;
      pen.setLineDash([]);
      pen.lineWidth = Math.max(1, Math.min(2, w / 5)) * scale;
      pen.strokeStyle = value === -Infinity ? "#fff" : "#282c34";
      pen.beginPath();
      if (Number.isNaN(value)) {
        pen.moveTo(cx - r, cy - r);
        pen.lineTo(cx + r, cy + r);
        pen.moveTo(cx - r, cy + r);
        pen.lineTo(cx + r, cy - r);
      } else {
        pen.moveTo(cx - r, cy);
        pen.lineTo(cx + r, cy);
        if (value > 0) {
          pen.moveTo(cx, cy - r);
          pen.lineTo(cx, cy + r);
        }
      }
      pen.stroke();
    }

    for (let i = 0; i < m; i++)
      for (let j = 0; j < n; j++) {
        const k = i * n + j;
        if (!groups) {
          cell(x(j), y(i), wide - gap, high - gap, frame.low[k], frame.high[k], frame.flags[k]);
          continue;
        }
        const group = groups[k],
          several = group === -2;
        if (group === -1 && !gap) continue;
        pen.fillStyle = group === -1 ? "rgba(127,138,153,.10)" : several ? "#7f8a99" : GROUPS[group % GROUPS.length];
        const ax = Math.round(x(j) * scale),
          ay = Math.round(y(i) * scale),
          bx = Math.round((x(j) + wide - gap) * scale),
          by = Math.round((y(i) + high - gap) * scale);
        pen.fillRect(ax, ay, Math.max(1, bx - ax), Math.max(1, by - ay));
        if (group >= 0 && Math.min(wide, high) >= 14)
          over.append(
            svg(
              "text",
              {
                x: x(j) + (wide - gap) / 2,
                y: y(i) + (high - gap) / 2 + 4,
                "text-anchor": "middle",
                class: "gl-group",
                style: `fill:${[1, 3, 5, 8].includes(group % GROUPS.length) ? "#fff" : "#1c2430"}`,
              },
              String(group),
            ),
          );
      }
    const count = across ? m : n;
    for (let k = 0; k < count; k++) {
      const flags = frame.stripFlags ? frame.stripFlags[k] : 0,
        low = frame.stripLow?.[k],
        top = frame.stripHigh?.[k];
      if (across) cell(g.stripX, y(k), g.thick - gap, high - gap, low, top, flags);
      else cell(x(k), g.stripY, wide - gap, g.thick - gap, low, top, flags);
    }
    labels();
    outline();
  }

  function labels() {
    const { m, n, x, y, high, wide, gap, left, top, across, frame } = g,
      text = (place, ...said) => over.append(svg("text", place, ...said));
    const end = across ? g.stripX - 6 : g.width - 1;
    const beside = (middle, name) =>
      middle + name.length * 3.15 > end
        ? { x: end, y: top - 8, "text-anchor": "end" }
        : { x: middle, y: top - 8, "text-anchor": "middle" };
    for (let j = 0; j < n; j += g.columnStep)
      text(
        g.upright
          ? { x: x(j) + wide / 2 + 3, y: top - 8, transform: `rotate(-90 ${x(j) + wide / 2 + 3} ${top - 8})` }
          : beside(x(j) + (wide - gap) / 2, g.columnName(j)),
        g.columnName(j),
      );
    for (let i = 0; i < m; i += g.rowStep)
      text({ x: left - 7, y: y(i) + (g.rowStep > 1 ? 4 : (high - gap) / 2 + 3.7), "text-anchor": "end" }, g.rowName(i));
    if (g.named && n)
      for (let from = 0; from < n;) {
        const to = g.parts.lastIndexOf(g.parts[from]);
        const room = x(to) + wide - x(from);
        text(
          { x: x(from) + room / 2, y: 11, "text-anchor": "middle", class: "gl-name" },
          short(about.inputs[g.parts[from]].name, Math.max(3, Math.floor(room / 6))),
        );
        from = to + 1;
      }
    if (across) text({ x: g.stripX + g.thick / 2, y: top - 8, "text-anchor": "middle", class: "gl-name gl-product" }, "Ju");
    else
      text(
        { x: left - 7, y: g.stripY + g.thick / 2 + 3.7, "text-anchor": "end", class: "gl-name gl-product" },
        frame.zero || frame.retain ? ".grad" : "vᵀJ",
      );
    if (Math.min(high, wide) < 7 && m && n)
      over.append(
        svg("rect", { x: left - 0.5, y: top - 0.5, width: g.right - left + 1, height: g.bottom - top + 1, class: "gl-outline" }),
      );
    if (Math.min(high, wide) < 7 && !frame.stripFlags)
      over.append(
        svg(
          "rect",
          across
            ? { x: g.stripX, y: top, width: g.thick, height: g.bottom - top, class: "gl-outline gl-dashed" }
            : { x: left, y: g.stripY, width: g.right - left, height: g.thick, class: "gl-outline gl-dashed" },
        ),
      );
  }

  // The row, or column, that is shown.
  function outline() {
    const { frame, across } = g,
      [first, end] = across ? [frame.window[2], frame.window[3]] : [frame.window[0], frame.window[1]];
    if (frame.at < first || frame.at >= end) return;
    const bins = across ? frame.columnBins : frame.rowBins,
      k = bins.findLastIndex((start) => start <= frame.at);
    const thick = Math.max(3, across ? g.wide : g.high),
      r = g.gap === 2 ? 5 : 2;
    over.append(
      svg(
        "rect",
        across
          ? {
              class: "gl-now",
              rx: r,
              x: g.x(k) - 3,
              y: g.top - 3,
              width: thick - g.gap + 6,
              height: g.bottom - g.top + 6 - g.gap,
            }
          : {
              class: "gl-now",
              rx: r,
              x: g.left - 3,
              y: g.y(k) - 3,
              width: g.right - g.left + 6 - g.gap,
              height: thick - g.gap + 6,
            },
      ),
    );
  }

  // Which cell lies at a place: {i, j}, with i or j −1 in the strip; null outside.
  function at(px, py, anywhere = false) {
    if (!g || !g.m || !g.n) return null;
    const find = (start, count, pitch, value) => {
      for (let k = count - 1; k >= 0; k--) if (value >= start(k)) return value < start(k) + pitch || anywhere ? k : null;
      return anywhere ? 0 : null;
    };
    const i = find(g.y, g.m, g.high, py),
      j = find(g.x, g.n, g.wide, px);
    if (i !== null && j !== null) return { i, j };
    if (!g.across && j !== null && py >= g.stripY && py < g.stripY + g.thick) return { i: -1, j };
    if (g.across && i !== null && px >= g.stripX && px < g.stripX + g.thick) return { i, j: -1 };
    return null;
  }

  function mark(from, to) {
    over.querySelector(".gl-drag")?.remove();
    if (from)
      over.append(
        svg("rect", {
          class: "gl-drag",
          x: Math.min(from.x, to.x),
          y: Math.min(from.y, to.y),
          width: Math.abs(from.x - to.x),
          height: Math.abs(from.y - to.y),
        }),
      );
  }

  function cursor(i, j) {
    over.querySelector(".gl-cursor")?.remove();
    if (g && i >= 0 && j >= 0 && i < g.m && j < g.n)
      over.append(
        svg("rect", {
          class: "gl-cursor",
          x: g.x(j) - 1,
          y: g.y(i) - 1,
          width: Math.max(4, g.wide - g.gap + 2),
          height: Math.max(4, g.high - g.gap + 2),
        }),
      );
  }
  return { root, draw, at, mark, cursor, bound: () => (g ? g.bound : 0) };
}

const worth = (low, high, flags) =>
  flags & NAN ? NaN : flags & PLUS ? Infinity : flags & MINUS ? -Infinity : high >= -low ? high : low;

// ------------------------------------------------------------------------------------------------ the graph
function graphView(figure) {
  const shrink = clamp(440 / figure.height, 0.62, 1);
  const root = svg("svg", {
    width: figure.width * shrink,
    height: figure.height * shrink,
    viewBox: `0 0 ${figure.width} ${figure.height}`,
    role: "img",
    class: "gl-figure",
  });
  const lines = svg("g", { transform: "translate(4,4)", class: "gl-lines" }),
    boxes = svg("g");
  const paths = figure.edges.map(({ path, title }) => lines.appendChild(svg("path", { d: path }, svg("title", {}, title))));
  const nodes = figure.nodes.map((node) => {
    const pill = node.kind === "leaf" || node.kind === "output",
      tall = figure.tall,
      half = node.wide / 2;
    const group = svg(
      "g",
      { transform: `translate(${node.x},${node.y})`, class: `gl-node gl-${node.kind}` },
      svg("title", {}, node.title),
    );
    if (node.many) group.append(svg("rect", { x: -half + 3, y: 3, width: node.wide, height: tall, rx: pill ? tall / 2 : 5 }));
    group.append(
      svg("rect", { x: -half, width: node.wide, height: tall, rx: pill ? tall / 2 : 5 }),
      svg("text", { y: node.small ? 15 : 21.5, class: "gl-what" }, node.label),
    );
    if (node.small) group.append(svg("text", { y: 26, class: "gl-small" }, node.small));
    if (node.name || node.shape)
      group.append(
        svg("rect", { x: -node.tag / 2, y: tall - 4, width: node.tag, height: 15, rx: 7.5, class: "gl-tag" }),
        svg("text", { y: tall + 6.8, class: "gl-small" }, [node.name, node.shape].filter(Boolean).join("\u2002")),
      );
    return boxes.appendChild(group);
  });
  root.append(lines, boxes);
  return {
    root,
    light(lit, edges, what) {
      nodes.forEach((node, k) => node.classList.toggle("gl-lit", lit.includes(k)));
      paths.forEach((path, k) => {
        if (path.classList.toggle("gl-lit", edges.includes(k))) lines.append(path);
      }); // lit ones on top
      const named = lit.map((k) => figure.nodes[k].label);
      root.setAttribute(
        "aria-label",
        lit.length ? `graph: ${what} passes ${named.reverse().join(", ")}` : `graph of ${figure.nodes.length} nodes`,
      );
    },
  };
}

// ------------------------------------------------------------------------------------------------ the view
function render({ model, el }) {
  const about = model.get("about"),
    token = model.get("token"),
    me = Math.random().toString(36).slice(2);
  const rowLabel = (i) => label(about.outputs, i),
    columnLabel = (j) => label(about.inputs, j);
  const sizes = { rows: about.rows, columns: about.columns };
  let frame = {
    by: "rows",
    at: -1,
    window: [0, about.rows, 0, about.columns],
    low: [],
    high: [],
    flags: [],
    rowBins: [],
    columnBins: [],
    extent: [],
    lit: [],
    litEdges: [],
    filled: 0,
    of: about.rows,
  };
  let weights = new Map(),
    first = 0,
    playing = "",
    timer = 0,
    patience = 0,
    late = 0,
    count = 0,
    groups = null,
    hoverAt = null,
    column = null;
  let flying = null,
    queued = null; // the id of the frame asked for, the newest wish after it

  // One frame is in flight at a time; of the wishes that come meanwhile the newest is asked for when it has come.
  function ask(what, more = {}, buffers = []) {
    if (flying && !problem.dataset.late) {
      queued = [what, more, buffers];
      return;
    }
    flying = `${me}:${++count}`;
    root.setAttribute("aria-busy", "true");
    clearTimeout(patience);
    clearTimeout(late);
    patience = setTimeout(() => {
      waiting.textContent = "waiting for the kernel …";
    }, PATIENCE);
    late = setTimeout(
      () => {
        fail(
          "The kernel does not answer. It is busy with another cell, or it has ended. " +
            "A busy kernel answers when it is free; after a restart, run the cell again.",
          true,
        );
      },
      1000 * model.get("timeout"),
    );
    try {
      model.send({ ask: what, id: flying, ...more }, undefined, buffers);
    } catch (trouble) {
      landed();
      fail(`The kernel does not answer (${trouble.message}). After a restart, run the cell again.`, true);
    }
  }
  function landed() {
    flying = null;
    clearTimeout(patience);
    clearTimeout(late);
    root.removeAttribute("aria-busy");
    waiting.textContent = "";
    if (problem.dataset.late) fail("");
  }
  function fail(text, isLate = false) {
    problem.textContent = text;
    problem.hidden = !text;
    if (isLate) problem.dataset.late = "true";
    else delete problem.dataset.late;
    if (isLate) {
      play("");
      root.setAttribute("data-silent", "");
    } else root.removeAttribute("data-silent");
  }

  const across = () => frame.by === "columns",
    many = () => sizes[frame.by],
    name = (i) => (across() ? columnLabel(i) : rowLabel(i));
  const one = () => (across() ? "column" : "row"),
    letter = () => (across() ? "u" : "v"),
    product = () => (across() ? "Ju" : "vᵀJ");
  function play(how) {
    clearTimeout(timer);
    const was = playing;
    playing = how && !(how === "fill" ? frame.known : frame.done) ? how : "";
    playButton.textContent = playing === "step" ? "pause" : "play";
    fillButton.textContent = playing === "fill" ? "stop" : "fill";
    if (playing) ask(playing, { swift: true });
    else if (was && !frame.done) ask("pause");
  }
  const off = (node) => node.getAttribute("aria-disabled") === "true";
  const button = (text, title, action, kind = "") =>
    html(
      "button",
      {
        type: "button",
        title,
        class: kind,
        [SUPPRESS]: "true",
        onclick: (event) => {
          if (!off(event.currentTarget)) action(event);
        },
      },
      text,
    );
  const disable = (node, on) => node.setAttribute("aria-disabled", String(on)); // stays focusable, so that focus is not lost
  const stepButton = button(
    "step ▸",
    "",
    () => {
      play("");
      ask("step");
    },
    "gl-first",
  );
  const playButton = button("play", "fill one after another", () => play(playing === "step" ? "" : "step"));
  const resetButton = button("reset", "empty the view", () => {
    play("");
    ask("reset");
  });
  const fillButton = button("fill", about.plan ? `compute the rest: ${about.plan}` : "show all that is known", () =>
    play(playing === "fill" ? "" : "fill"),
  );
  const speed = html(
    "select",
    { [SUPPRESS]: "true", "aria-label": "speed of play", title: "how fast play goes" },
    ...[
      ["1/s", 1000],
      ["3/s", 333],
      ["10/s", 100],
      ["fastest", 0],
    ].map(([text, value]) => html("option", { value }, text)),
  );
  speed.value = "333";
  const waiting = html("span", { class: "gl-dim", role: "status" });
  const spoken = html("span", { class: "gl-spoken", role: "status" });
  const problem = html("p", { class: "gl-error", role: "alert", hidden: "" });
  const happened = html("p", { class: "gl-error", role: "alert", hidden: "" });

  const sentence = html("span", { class: "gl-dim" });
  const list = (parts) => parts.flatMap(({ name, shape }, k) => [k ? ", " : "", html("code", {}, name), ` (${times(shape)})`]);
  const head = html(
    "div",
    { class: "gl-head" },
    html("b", {}, ...list(about.outputs), " by ", ...list(about.inputs)),
    " ",
    sentence,
  );

  // ---------------------------------------------------------------------------------- rows or columns
  const axes = {};
  const axis = html("div", { class: "gl-axis", role: "radiogroup", "aria-label": "by rows or by columns" });
  for (const [by, way] of [
    ["rows", "backward"],
    ["columns", "forward"],
  ]) {
    const input = html("input", {
      type: "radio",
      name: `${me}-axis`,
      value: by,
      [SUPPRESS]: "true",
      onchange: () => {
        play("");
        ask("axis", { by });
      },
    });
    axes[by] = input;
    axis.append(
      html("label", {}, input, html("span", {}, html("b", {}, by), " ", html("small", {}, plural(sizes[by], `${way} sweep`)))),
    );
  }
  if (about.groups) axis.append(html("span", { class: "gl-dim gl-groups" }, `by colours: ${plural(about.groups, "sweep")}`));
  const goto = html("input", {
    type: "number",
    min: "0",
    [SUPPRESS]: "true",
    class: "gl-goto",
    onchange: () => {
      const at = Math.round(Number(goto.value));
      if (goto.value !== "" && at >= 0 && at < many()) {
        play("");
        ask("go", { at });
      }
    },
  });
  const gotoLabel = html("label", { class: "gl-dim" }, html("span", {}, "row"), goto);
  axis.append(gotoLabel);

  // ---------------------------------------------------------------------------------- the map
  const map = heatmap(about, rowLabel, columnLabel);
  const read = html("div", { class: "gl-read gl-dim" });
  const bar = html("i"),
    ends = [html("small"), html("small"), html("small")],
    extremes = html("span", { class: "gl-dim" });
  const scale = html("div", { class: "gl-scale" }, html("div", {}, bar, html("div", { class: "gl-ends" }, ...ends)), extremes);
  bar.style.background = `linear-gradient(90deg, ${about.colours.map((rgb) => `rgb(${rgb.join(",")})`).join(", ")})`;

  const span = (name, from, to) => (to - from === 1 ? name(from) : `${name(from)} … ${name(to - 1)}`);
  const ends_ = (bins, k, end) => [bins[k], k + 1 < bins.length ? bins[k + 1] : end];
  function describe({ i, j }) {
    const rows = i < 0 ? null : ends_(frame.rowBins, i, frame.window[1]),
      columns = j < 0 ? null : ends_(frame.columnBins, j, frame.window[3]);
    const strip = i < 0 || j < 0,
      k = i < 0 ? j : j < 0 ? i : i * frame.columnBins.length + j;
    const flags = strip ? (frame.stripFlags?.[k] ?? 0) : frame.flags[k],
      low = strip ? frame.stripLow?.[k] : frame.low[k],
      high = strip ? frame.stripHigh?.[k] : frame.high[k];
    const what =
      i < 0
        ? `${productName.textContent} at ${span(columnLabel, ...columns)}`
        : j < 0
          ? `Ju at ${span(rowLabel, ...rows)}`
          : `∂${span(rowLabel, ...rows)}/∂${span(columnLabel, ...columns)}`;
    if (groups && !strip)
      return `${what}: ${groups[k] === -1 ? "always zero" : groups[k] === -2 ? "several colours" : `colour ${groups[k]}`}`;
    if (!(flags & KNOWN)) return `${what}: ${strip ? "nothing yet" : "not computed yet"}`;
    const single = (!rows || rows[1] - rows[0] === 1) && (!columns || columns[1] - columns[0] === 1);
    if (single) return `${what} = ${exact(worth(low, high, flags))}`;
    const also = [flags & NAN ? "NaN" : "", flags & PLUS ? "+inf" : "", flags & MINUS ? "−inf" : ""].filter(Boolean).join(", ");
    const finite = low <= high ? `least ${number(low)}, greatest ${number(high)}` : "no finite value";
    return `${what}: ${finite}${also ? `, also ${also}` : ""}`;
  }

  const place = (event) => {
    const box = map.root.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  let drag = null;
  map.root.addEventListener("pointermove", (event) => {
    const here = place(event);
    if (drag && Math.hypot(here.x - drag.x, here.y - drag.y) > 6 && large) {
      drag.moved = true;
      map.mark(drag, here);
    }
    hoverAt = map.at(here.x, here.y);
    read.textContent = hoverAt ? describe(hoverAt) : "";
  });
  map.root.addEventListener("pointerleave", () => {
    hoverAt = null;
    read.textContent = "";
  });
  map.root.addEventListener("pointerdown", (event) => {
    if (event.button === 0) {
      drag = place(event);
      try {
        map.root.setPointerCapture(event.pointerId);
      } catch {
        /* a pointer that is gone */
      }
    }
  });
  map.root.addEventListener("pointercancel", () => {
    drag = null;
    map.mark();
  });
  map.root.addEventListener("pointerup", (event) => {
    if (!drag) return;
    const here = place(event),
      from = map.at(drag.x, drag.y, drag.moved),
      to = map.at(here.x, here.y, drag.moved),
      moved = drag.moved;
    drag = null;
    map.mark();
    if (moved && from && to) {
      const [i0, i1] = [Math.min(from.i, to.i), Math.max(from.i, to.i)],
        [j0, j1] = [Math.min(from.j, to.j), Math.max(from.j, to.j)];
      zoomTo([
        frame.rowBins[Math.max(i0, 0)],
        ends_(frame.rowBins, Math.max(i1, 0), frame.window[1])[1],
        frame.columnBins[Math.max(j0, 0)],
        ends_(frame.columnBins, Math.max(j1, 0), frame.window[3])[1],
      ]);
    } else if (from) {
      const k = across() ? from.j : from.i;
      if (k >= 0) {
        play("");
        column = across() ? Math.max(from.i, 0) : Math.max(from.j, 0);
        ask("go", { at: across() ? frame.columnBins[k] : frame.rowBins[k] });
      }
    }
  });

  // ---------------------------------------------------------------------------------- zoom
  const large = Math.max(about.rows, about.columns) > 24;
  function zoomTo(window) {
    ask("window", { window });
  }
  function zoom(factor) {
    const [first, end, left, right] = frame.window;
    const middle = (from, to, at) => (at >= from && at < to ? at : (from + to) / 2);
    const next = (from, to, whole, at) => {
      const length = clamp(Math.round((to - from) * factor), Math.min(8, whole), whole),
        start = clamp(Math.round(middle(from, to, at) - length / 2), 0, whole - length);
      return [start, start + length];
    };
    const aside = column === null ? -1 : ((across() ? frame.rowBins : frame.columnBins)[column] ?? -1);
    const [row, col] = across() ? [aside, frame.at] : [frame.at, aside];
    zoomTo([...next(first, end, about.rows, row), ...next(left, right, about.columns, col)]);
  }
  const whole = [0, about.rows, 0, about.columns];
  const tools = html(
    "div",
    { class: "gl-tools", role: "group", "aria-label": "zoom" },
    button("−", "zoom out", () => zoom(4)),
    button("+", "zoom in, about the row or column that is shown", () => zoom(1 / 4)),
    button("all", "the whole matrix", () => zoomTo(whole)),
  );
  const shownPart = html("span", { class: "gl-dim" });
  tools.append(shownPart);
  for (const node of tools.querySelectorAll("button")) node.setAttribute("aria-label", node.title);
  tools.hidden = !large;

  // ---------------------------------------------------------------------------------- colours
  const groupList = html("div", { class: "gl-grouplist", hidden: "" });
  const coloursButton = button("colours", "which rows or columns share a sweep", () => {
    if (groups) {
      groups = null;
      groupList.hidden = true;
      update();
    } else ask("colours");
  });
  coloursButton.setAttribute("aria-pressed", "false");
  coloursButton.hidden = !about.groups;

  // ---------------------------------------------------------------------------------- vectors, code, sliders
  const boxes = html("span", { class: "gl-vector", role: "img" });
  const numbers = html("div", { class: "gl-numbers", role: "list" });
  const meaning = html("span", { class: "gl-dim" });
  const vectorName = html("span", { class: "gl-accent" }, "v"),
    productName = html("span", { class: "gl-accent" }, "vᵀJ");
  const code = html("pre", { tabindex: "0", "aria-label": "code that does the same by hand", [SUPPRESS]: "true" });
  const sliders = html("div", { class: "gl-sliders", role: "group", "aria-label": "weights" });
  const range = html("span", { class: "gl-dim" });
  const page = (step) => {
    first = clamp(first + step, 0, Math.floor((many() - 1) / SLIDERS) * SLIDERS);
    makeSliders();
  };
  const pager = html(
    "span",
    { class: "gl-pager" },
    button("◂", "earlier weights", () => page(-SLIDERS)),
    button("▸", "later weights", () => page(SLIDERS)),
    range,
  );
  for (const node of pager.querySelectorAll("button")) node.setAttribute("aria-label", node.title);
  const choose = html("span");

  // ---------------------------------------------------------------------------------- forgetting
  const toggle = (key, text, title) =>
    html(
      "label",
      { title },
      html("input", {
        type: "checkbox",
        "data-key": key,
        [SUPPRESS]: "true",
        onchange: () => {
          play("");
          ask(
            "forget",
            Object.fromEntries([...forget.querySelectorAll("input")].map((node) => [node.dataset.key, node.checked])),
          );
        },
      }),
      " ",
      text,
    );
  const forget = html(
    "fieldset",
    { class: "gl-forget" },
    html("legend", {}, "what if I forget to …"),
    toggle("zero", "zero the gradient", "the next rows are added to what is in .grad"),
    toggle("retain", "retain the graph", "the first backward frees what it needs"),
  );
  const forgetSaid = html("span", { class: "gl-dim" });
  forget.append(forgetSaid);

  const graph = about.graph ? graphView(about.graph) : null;
  const graphSaid = html("div", { class: "gl-caption" });
  const graphBox = html("div", { class: "gl-graph" }, graphSaid);
  if (graph)
    graphBox.append(
      html(
        "div",
        { class: "gl-scroll", tabindex: "0", role: "group", "aria-label": "the graph", [SUPPRESS]: "true" },
        graph.root,
      ),
    );
  graphBox.hidden = !graph;

  const left = html("div", { class: "gl-left" }, tools, map.root, scale, read, groupList);
  const root = html(
    "div",
    {
      class: "gl-jacobian",
      role: "group",
      "data-by": "rows",
      "aria-label": `Jacobian of ${named(about.outputs)} by ${named(about.inputs)}`,
    },
    head,
    html(
      "div",
      { class: "gl-body" },
      left,
      html(
        "div",
        { class: "gl-side" },
        html("div", { class: "gl-buttons" }, stepButton, playButton, speed, fillButton, resetButton, coloursButton, waiting),
        problem,
        axis,
        html("div", { class: "gl-vectors" }, vectorName, boxes, productName, html("div", {}, numbers, meaning)),
        happened,
        html("div", { class: "gl-caption" }, "the same by hand"),
        code,
        html("div", { class: "gl-caption" }, choose, pager),
        sliders,
        forget,
        spoken,
      ),
      graphBox,
    ),
  );
  root.addEventListener("keydown", (event) => event.stopPropagation());

  // ---------------------------------------------------------------------------------- keys on the map
  function move(by) {
    const from = frame.at < 0 ? (by > 0 ? -1 : many()) : frame.at;
    play("");
    ask("go", { at: clamp(from + by, 0, many() - 1) });
  }
  function aside(by) {
    const bins = across() ? frame.rowBins : frame.columnBins;
    column = clamp((column ?? 0) + by, 0, bins.length - 1);
    tell();
  }
  function tell() {
    // the cell under the keyboard's cursor
    const bins = across() ? frame.columnBins : frame.rowBins,
      k = frame.at < 0 ? 0 : bins.findLastIndex((start) => start <= frame.at);
    const beside = column ?? 0,
      here = across() ? { i: beside, j: k } : { i: k, j: beside };
    map.cursor(here.i, here.j);
    read.textContent = spoken.textContent = describe(here);
  }
  map.root.addEventListener("keydown", (event) => {
    const along = across() ? ["ArrowLeft", "ArrowRight"] : ["ArrowUp", "ArrowDown"],
      sideways = across() ? ["ArrowUp", "ArrowDown"] : ["ArrowLeft", "ArrowRight"];
    const keys = {
      [along[0]]: () => move(-1),
      [along[1]]: () => move(1),
      [sideways[0]]: () => aside(-1),
      [sideways[1]]: () => aside(1),
      PageUp: () => move(-10),
      PageDown: () => move(10),
      Home: () => move(-many()),
      End: () => move(many()),
      Enter: () => ask("step"),
      " ": () => ask("step"),
      "+": () => zoom(1 / 4),
      "=": () => zoom(1 / 4),
      "-": () => zoom(4),
      0: () => zoomTo(whole),
    };
    if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
  map.root.addEventListener("blur", () => map.cursor(-1, -1));

  function mix() {
    play("");
    const order = [...weights].sort((a, b) => a[0] - b[0]);
    ask("mix", {}, [Int32Array.from(order, ([i]) => i).buffer, Float64Array.from(order, ([, w]) => w).buffer]);
  }
  function makeSliders() {
    sliders.replaceChildren();
    const last = Math.min(many(), first + SLIDERS);
    pager.hidden = many() <= SLIDERS;
    range.textContent = last > first ? `${short(name(first))} to ${short(name(last - 1))} of ${many()}` : "";
    for (let i = first; i < last; i++) {
      const value = weights.get(i) ?? 0,
        said = name(i);
      const set = (chosen) => {
        if (chosen) weights.set(i, chosen);
        else weights.delete(i);
        mix();
      };
      const slide = html("input", {
        type: "range",
        min: "-1",
        max: "1",
        step: "0.05",
        "data-at": i,
        "aria-label": `weight of ${said}`,
        [SUPPRESS]: "true",
        oninput: () => {
          typedIn.value = slide.value;
          set(Number(slide.value));
        },
      });
      const typedIn = html("input", {
        type: "number",
        step: "any",
        "data-at": i,
        "aria-label": `weight of ${said} as a number`,
        [SUPPRESS]: "true",
        oninput: () => {
          const chosen = Number(typedIn.value);
          if (typedIn.value === "" || !Number.isFinite(chosen)) return;
          slide.value = String(chosen);
          set(chosen);
        },
      });
      slide.value = typedIn.value = String(value);
      sliders.append(html("div", { class: "gl-slider", title: said }, html("code", {}, short(said, 12)), slide, typedIn));
    }
  }
  // The sliders that are there take over the weights of a frame, but not while the user is still moving them.
  function setSliders() {
    for (const node of sliders.querySelectorAll("input")) {
      const value = String(weights.get(Number(node.dataset.at)) ?? 0);
      if (node !== node.getRootNode().activeElement || node.type === "range") node.value = value;
    }
  }
  function makeBoxes(at) {
    const all = many(),
      from = all <= BOXES ? 0 : clamp(at - 4, 0, all - 9),
      to = all <= BOXES ? all : from + 9;
    boxes.replaceChildren();
    if (from > 0) boxes.append("… ");
    for (let i = from; i < to; i++) {
      const value = weights.get(i) ?? 0;
      boxes.append(html("i", { class: value ? "gl-on" : "", title: `weight of ${name(i)}` }, weight(value)));
    }
    if (to < all) boxes.append(` … (${grouped(all)})`);
    const named = [...weights].map(([i, value]) => `${weight(value)} at ${name(i)}`);
    boxes.setAttribute(
      "aria-label",
      named.length ? `${letter()} is ${named.slice(0, 12).join(", ")}, elsewhere 0` : `${letter()} is 0 everywhere`,
    );
  }

  // ---------------------------------------------------------------------------------- a frame
  function here(part) {
    if (!part) return "";
    const low = frame.low.reduce((a, b) => Math.min(a, b), Infinity),
      high = frame.high.reduce((a, b) => Math.max(a, b), -Infinity);
    return low <= high ? ` · in view ${number(low)} to ${number(high)}` : "";
  }
  function draw() {
    map.draw(frame, roomForMap(), groups);
    if (document.activeElement === map.root) tell();
  }
  const roomForMap = () => clamp(root.clientWidth - (root.clientWidth > 720 ? 370 : 30), 200, 440);
  function update() {
    const { at, by, filled, of: all } = frame,
      result = frame.result ?? [],
      columns = across(),
      trial = frame.zero || frame.retain;
    root.dataset.by = by;
    axes[by].checked = true;
    axes.columns.disabled = trial;
    gotoLabel.firstChild.textContent = `${one()} index`;
    goto.max = String(many() - 1);
    goto.setAttribute("aria-label", `go to ${one()} index`);
    if (goto !== goto.getRootNode().activeElement) goto.value = at < 0 ? "" : String(at);
    gotoLabel.hidden = many() < 2;
    vectorName.textContent = letter();
    productName.textContent = trial ? ".grad" : product();
    stepButton.title = columns ? "fill the next column by one forward sweep" : "fill the next row by one weighted backward";
    const picked = [...weights.keys()];
    makeBoxes(at < 0 && picked.length ? Math.min(...picked) : at);
    draw();
    const sweep = columns ? "forward sweep" : "weighted backward";
    const how = trial
      ? "on tensors of its own"
      : result.length
        ? frame.sweeps === 1
          ? `one ${sweep}`
          : frame.sweeps
            ? plural(frame.sweeps, "sweep")
            : "from what is known already"
        : filled === all
          ? "no sweep is needed"
          : `one ${sweep} a ${one()}`;
    const every = filled === all && !trial ? "all is known" : `${grouped(filled)} of ${plural(all, one())}`;
    const where =
      at >= 0
        ? `${one()} ${grouped(at + 1)} of ${grouped(all)}`
        : result.length
          ? `a mix of ${by}`
          : filled
            ? every
            : `no ${one()} yet`;
    sentence.textContent =
      frame.ask === "fill"
        ? `— ${every} · ${frame.sweeps ? `${plural(frame.sweeps, "sweep")} by the plan` : "no sweep"}`
        : `— ${where} · ${how}${at >= 0 && filled === all && !trial ? ` · all ${by} known` : ""}`;
    numbers.replaceChildren();
    const other = columns ? rowLabel : columnLabel,
      length = sizes[columns ? "rows" : "columns"];
    Array.from(result.slice(0, NUMBERS)).forEach((value, k) =>
      numbers.append(
        html(
          "span",
          { role: "listitem", title: `${other(frame.start + k)}: ${value}` },
          html("small", {}, short(other(frame.start + k), 11)),
          number(value),
        ),
      ),
    );
    const from = frame.start
      ? `${NUMBERS} of ${grouped(length)} from ${other(frame.start)}`
      : `the first ${NUMBERS} of ${grouped(length)}`;
    const rest = length > NUMBERS && result.length ? `, ${from}` : "";
    const sign = (w, k) => (w < 0 ? "−" : k ? "+ " : "");
    const terms = [...weights].map(([i, w], k) => `${sign(w, k)}${weight(Math.abs(w))} · ${one()} ${name(i)}`);
    meaning.textContent = !result.length
      ? "nothing yet: step, click the map, or move a slider"
      : trial
        ? `= ${frame.trial}${frame.trial.includes("+") ? `, and not row ${name(at)}` : ""}`
        : at >= 0
          ? `= ${one()} ${name(at)}${rest}`
          : terms.length
            ? `= ${terms.slice(0, 6).join(" ")}${terms.length > 6 ? " + …" : ""}${rest}`
            : `= 0${rest}`;
    const unused = frame.unused?.length ? ` ${frame.unused.join(", ")}: not used by the output, so zero.` : "";
    if (unused && result.length) meaning.textContent += `.${unused}`;
    map.root.setAttribute(
      "aria-label",
      `heat map, ${about.rows} by ${about.columns}, ${filled} ${by} filled` +
        `${at >= 0 ? `, ${one()} ${name(at)} outlined` : ""}. Arrow keys move.`,
    );
    const bound = map.bound();
    ends[0].textContent = bound ? number(-bound) : "";
    ends[1].textContent = "0";
    ends[2].textContent = bound ? number(bound) : "";
    const [r0, r1, c0, c1] = frame.window,
      part = r1 - r0 < about.rows || c1 - c0 < about.columns;
    const [low, high] = frame.extent,
      seen = frame.flags.some?.((flag) => flag & KNOWN) || filled > 0;
    const finite = low === high ? `all ${number(low)}` : `least ${number(low)} · greatest ${number(high)}`;
    const nans = frame.nans ? `${grouped(frame.nans)} NaN` : "";
    extremes.textContent = seen ? [low <= high ? finite + here(part) : "", nans].filter(Boolean).join(" · ") : "";
    scale.hidden = (!seen && !result.length) || groups !== null;
    const pooled = frame.rowBins.length < r1 - r0 || frame.columnBins.length < c1 - c0;
    const extent = part ? `rows ${r0}–${r1 - 1}, columns ${c0}–${c1 - 1}` : `${grouped(about.rows)} × ${grouped(about.columns)}`;
    const block = [(r1 - r0) / frame.rowBins.length, (c1 - c0) / frame.columnBins.length].map(Math.ceil).join(" × ");
    shownPart.textContent = extent + (pooled ? `, each cell the largest of ${block}` : "");
    read.textContent = hoverAt ? describe(hoverAt) : large ? "click a row, or drag to zoom" : read.textContent;
    code.textContent = frame.code ?? "";
    choose.textContent = `choose ${letter()}: a weight for each ${one()}`;
    for (const node of forget.querySelectorAll("input")) node.checked = Boolean(frame[node.dataset.key]);
    forgetSaid.textContent = trial ? "Really run, on tensors of its own: yours stay as they are." : "";
    forget.hidden = columns;
    sliders.hidden = choose.parentElement.hidden = trial;
    happened.textContent = frame.happened ? `This is what then happens:\n${frame.happened}` : "";
    happened.hidden = !frame.happened;
    if (graph) {
      graph.light(frame.lit, frame.litEdges, columns ? "the tangent" : "the cotangent");
      const reached = about.forward ? "what the tangent u reaches" : "what is computed from the inputs that u moves";
      const path = !frame.lit.length ? "the graph" : columns ? reached : "where the cotangent of v arrives";
      graphSaid.textContent = path + (about.graph.folded ? `, ${about.graph.folded} nodes folded` : "");
    }
    coloursButton.setAttribute("aria-pressed", String(groups !== null));
    const ended = model.get("ended");
    root.toggleAttribute("data-ended", ended);
    if (ended) fail("This view was closed and its graph let go. Run the cell again.");
    [
      [stepButton, frame.done],
      [playButton, frame.done],
      [speed, frame.done],
      [fillButton, frame.known || trial],
      [resetButton, !filled && !result.length],
    ].forEach(([node, no]) => disable(node, Boolean(no) || ended));
    if (!playing)
      spoken.textContent =
        at >= 0
          ? `${one()} ${name(at)}, ${filled} of ${all} filled: ${Array.from(result.slice(0, 8), number).join(", ")}`
          : frame.happened || "";
  }

  function showColours(answer) {
    groups = answer.groupCells;
    groupList.replaceChildren(
      html(
        "div",
        { class: "gl-dim" },
        `${grouped(answer.entries)} entries can be nonzero; ${answer.by} of one colour share no ` +
          `${answer.by === "rows" ? "column" : "row"}, so all takes ${plural(answer.sweeps, "sweep")}`,
      ),
    );
    answer.groups.forEach(({ size: members, members: some }, k) => {
      const swatch = html("i", {}, String(k));
      swatch.style.background = GROUPS[k % GROUPS.length];
      groupList.append(
        html(
          "button",
          { type: "button", [SUPPRESS]: "true", title: "sweep this colour", onclick: () => ask("group", { colour: k }) },
          swatch,
          ` ${plural(members, answer.by.slice(0, -1))}: `,
          some.map((one) => short(one, 12)).join(", ") + (members > some.length ? ", …" : ""),
        ),
      );
    });
    if (answer.sweeps > answer.groups.length)
      groupList.append(html("div", { class: "gl-dim" }, `and ${answer.sweeps - answer.groups.length} more colours`));
    groupList.hidden = false;
    update();
  }

  // Put a frame's lines, or all its cells, into what is shown.
  function take(answer, buffers) {
    answer.arrays.forEach(([key, kind], k) => {
      answer[key] = typed(kind, buffers[k]);
    });
    if (answer.groupCells) {
      showColours(answer);
      return;
    }
    const old = frame;
    const { low, high, flags, rowBins, columnBins } = answer.whole ? answer : old;
    if (!answer.whole && answer.lines.length) {
      const m = rowBins.length,
        n = columnBins.length;
      let from = 0;
      for (const [isColumn, k] of answer.lines) {
        const length = isColumn ? m : n;
        for (let p = 0; p < length; p++, from++) {
          const to = isColumn ? p * n + k : k * n + p;
          low[to] = answer.low[from];
          high[to] = answer.high[from];
          flags[to] = answer.flags[from];
        }
      }
    }
    frame = { ...answer, low, high, flags, rowBins, columnBins };
    if (answer.ask === "window" && groups) {
      groups = null;
      ask("colours");
    } else if (answer.whole && groups && groups.length !== low.length) groups = null;
    if (groups === null) groupList.hidden = true;
    if (!queued) {
      weights = new Map(Array.from(frame.picked, (i, k) => [i, frame.weights[k]]));
      const turned = old.by !== frame.by;
      if (turned) {
        first = 0;
        column = null;
      } else if (answer.ask === "window") column = null;
      const to = frame.at < 0 ? first : Math.floor(frame.at / SLIDERS) * SLIDERS;
      if (to !== first || turned || !sliders.children.length) {
        first = to;
        makeSliders();
      } else setSliders();
    }
    update();
  }

  function heard(answer, buffers) {
    if (!answer || answer.answer === undefined) return;
    const mine = answer.answer === flying;
    if (mine) landed();
    if (answer.error) {
      fail(answer.error);
      play("");
      update();
    } else if (answer.arrays && answer.ask !== "gone" && (answer.ask !== "colours" || mine)) {
      if (!problem.hidden) fail("");
      take(answer, buffers ?? []);
    }
    if (!mine) return;
    if (queued) {
      const next = queued;
      queued = null;
      ask(...next);
      return;
    }
    const finished = playing === "fill" ? frame.known : frame.done || frame.happened;
    if (playing && finished) play("");
    else if (playing)
      timer = setTimeout(
        () => {
          if (playing) ask(playing, { swift: true });
        },
        playing === "fill" ? 0 : Number(speed.value),
      );
  }

  const resized = new ResizeObserver(() => {
    if (frame.rowBins.length) draw();
  });
  model.on("msg:custom", heard);
  model.on("change:ended", update);
  views.set(token, (views.get(token) ?? 0) + 1);
  el.append(root);
  update();
  resized.observe(root);
  ask("hello");
  return () => {
    playing = "";
    for (const each of [timer, patience, late]) clearTimeout(each);
    resized.disconnect();
    model.off("msg:custom", heard);
    model.off("change:ended", update);
    views.set(token, views.get(token) - 1);
    // A cell that is moved, or a page that is scrolled, may draw the view anew at once; only then is nobody left to look.
    setTimeout(() => {
      if (views.get(token) > 0) return;
      try {
        model.send({ ask: "gone", id: `${me}:gone` });
      } catch {
        /* the model went with its view */
      }
    }, LINGER);
    root.remove();
  };
}

export default { render };
