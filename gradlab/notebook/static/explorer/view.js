// The live explorer of a graph. It opens with plain data from Python (explore/explorer/model.py behind notebook/graph_widget.py),
// and searches and colours without the kernel, which computes pictures with other folds open, details of a node, paths and steps.

import { SUPPRESS, button, html } from "../kit/dom.js";
import { Kernel } from "../kit/kernel.js";
import { term } from "../kit/terms.js";
import { Data, scaleOf } from "./data.js";
import { operationsView } from "./operations.js";
import { panelView } from "./panel.js";
import { rowsView } from "./rows.js";
import { sourceView } from "./source.js";
import { mount } from "../stepper/mount.js";

/** @import { Model } from "../kit/kernel.js" */
/** @import { About } from "./data.js" */

const ENDED =
    "This view was closed and its graph was freed. Recorded data is still shown; run the cell again for steps, paths and values.",
  OF_GRAPH = ["steps", "paths"], // requests that need the graph
  NAMES = { code: "Code", modules: "Modules", operations: "Operations" },
  COLOURS = { nothing: "nothing", gradient: "‖grad‖", nan: "NaN", bytes: "bytes" },
  DEEPEST = 8;

/**
 * Render a view of the widget; anywidget calls the returned function to end it.
 * @param {{ model: Model, el: HTMLElement }} widget
 */
function render({ model, el }) {
  /** @type {About} */
  const about = model.get("about"),
    data = new Data(about);
  let level = about.level,
    chosen = -1,
    depth = 0;
  /** @type {import("./rows.js").Fold | null} */
  let fold = null;
  /** @type {number[]} */
  let hits = [];
  let hit = -1;
  let prompted = false; // whether the user has requested something; only then a missing kernel is reported
  /** @type {(() => void)[]} update the state of each switch */
  const checks = [];

  const problem = html("p", { class: "gl-error", role: "alert", hidden: "" }),
    waiting = html("span", { class: "gl-dim gl-waiting", role: "status" }),
    spoken = html("span", { class: "gl-spoken", role: "status" });

  const kernel = new Kernel(model, {
    busy(on) {
      root.toggleAttribute("aria-busy", on);
      if (on) root.setAttribute("aria-busy", "true");
      else waiting.textContent = "";
    },
    waiting() {
      if (prompted) waiting.textContent = "waiting for the kernel …";
    },
    silent(text) {
      if (!prompted) return;
      say(text);
      root.setAttribute("data-silent", "");
    },
    back: () => fail(""),
    receive(answer, _, mine) {
      if (!mine) return;
      if (answer.error) fail(answer.error);
      else {
        if (!problem.hidden) fail("");
        if (answer.figure) operations.show(answer.figure);
        if (answer.rows) rows.show(answer.rows);
        if (answer.paths) showPaths(answer.paths);
        if (answer.steps) showSteps(answer.steps);
        if (answer.panel && answer.panel.node === chosen) panel.show(answer.panel, answer.panel.fold ? fold : null);
      }
    },
    idle() {},
  });

  /** @param {string} text */
  function say(text) {
    problem.textContent = text;
    problem.hidden = !text;
  }
  /** @param {string} text */
  function fail(text) {
    kernel.clearSilence();
    say(text);
    root.removeAttribute("data-silent");
  }
  /** @param {string} what @param {object} wish @param {boolean} [own] whether the view asks, not the user */
  function ask(what, wish, own = false) {
    prompted ||= !own;
    if (model.get("ended") && OF_GRAPH.includes(what)) say(ENDED);
    else kernel.ask(what, wish);
  }

  // ------------------------------------------------------------------------------------------------------ the parts
  const choosing = {
    choose,
    enter: () => panel.focus(),
    /** @param {object} wish */
    fold: (wish) => ask("fold", wish),
  };
  const rows = rowsView(data, { ...choosing, fold: (wish, own) => ask("rows", wish, own) }),
    operations = operationsView(data, choosing),
    panel = panelView(data, (node) => goTo(node)),
    source = sourceView(data, (nodes, title) => {
      markNodes(nodes);
      spoken.textContent = `${title}: ${nodes.length} operations`;
      const end = data.outputOf(nodes.flatMap((i) => [i, 1]));
      if (end >= 0) goTo(end);
    });

  /** @param {number} node @param {import("./rows.js").Fold | null} [together] the fold it stands for */
  function choose(node, together = null) {
    chosen = node;
    fold = together;
    source.mark(node);
    panel.wait(node, fold);
    ask("node", { node, members: fold?.members ?? null });
  }

  /** Choose a node wherever it is. @param {number} node @param {boolean} [unfold] */
  function goTo(node, unfold = false) {
    if (node < 0) return;
    choose(node);
    if (level === "operations") {
      if (unfold && !operations.shows(node)) operations.reveal(node);
      else operations.follow(node);
    } else if (unfold && !rows.shows(node)) rows.reveal(node);
    else rows.follow(node);
  }

  /** @param {number[]} nodes */
  function markNodes(nodes) {
    operations.mark(nodes);
    rows.mark(nodes);
  }

  // ------------------------------------------------------------------------------------------------------- controls
  const levels = html("div", { class: "gl-switch", role: "radiogroup", "aria-label": "level of detail" });
  for (const name of about.levels) {
    const text = NAMES[/** @type {keyof typeof NAMES} */ (name)];
    levels.append(
      choice(
        text,
        () => level === name,
        () => turn(name),
      ),
    );
  }
  const colours = html(
    "select",
    { "aria-label": "colour by", [SUPPRESS]: "true" },
    ...Object.entries(COLOURS).map(([name, text]) => html("option", { value: name }, text)),
  );
  colours.addEventListener("change", () => paint(colours.value));

  /** @param {string} text @param {() => boolean} on @param {() => void} action */
  function choice(text, on, action) {
    const node = html(
      "button",
      { type: "button", role: "radio", "aria-checked": "false", [SUPPRESS]: "true", onclick: action },
      text,
    );
    checks.push(() => node.setAttribute("aria-checked", String(on())));
    return node;
  }
  function update() {
    for (const check of checks) check();
  }

  const found = html("span", { class: "gl-dim gl-found", role: "status" }),
    search = html("input", {
      type: "text",
      class: "gl-search",
      placeholder: "/ name, line 6, g<1e-6, nan",
      "aria-label": "find by name, operation, module, line or size",
      [SUPPRESS]: "true",
    });
  search.addEventListener("input", () => {
    hits = data.find(search.value);
    hit = -1;
    found.textContent = search.value.trim()
      ? hits.length
        ? `${hits.length.toLocaleString("en")} found (Enter)`
        : "nothing found"
      : "";
    markNodes(hits);
  });
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && hits.length) {
      hit = (hit + (event.shiftKey ? hits.length - 1 : 1)) % hits.length;
      found.textContent = `${hit + 1} of ${hits.length.toLocaleString("en")}`;
      goTo(hits[hit], true);
    } else if (event.key === "Escape") {
      search.value = "";
      hits = [];
      found.textContent = "";
      markNodes([]);
      focusMain();
    } else return;
    event.preventDefault();
  });

  const folding = html(
    "div",
    { class: "gl-pager", role: "group", "aria-label": "depth of open folds" },
    button("fold", "close one level of folds", () => toDepth(depth - 1)),
    button("unfold", "open one more level of folds", () => toDepth(depth + 1)),
  );

  /** @param {number} to */
  function toDepth(to) {
    depth = Math.max(0, Math.min(DEEPEST, to));
    if (level === "operations") ask("fold", { depth });
    else rows.unfoldTo(depth);
  }

  /** @param {string} name */
  function turn(name) {
    level = name;
    depth = 0;
    const both = level === "operations";
    operations.root.hidden = !both;
    rows.root.hidden = both;
    hint.textContent = both
      ? "arrow keys move along edges · → opens a fold, ← closes it · /: search · f: fit · Enter: panel"
      : "↑ ↓ move · → opens a row, ← closes it · /: search · Enter: panel";
    if (!both) {
      rows.turn(level, about.rows[level]);
      if (chosen >= 0) rows.follow(chosen);
    } else {
      operations.fit();
      if (chosen >= 0) operations.follow(chosen);
    }
    update();
  }

  /** @param {string} name */
  function paint(name) {
    const bytes = data.nodes.bytes.map((b) => (b > 0 ? b : null)),
      numbers = name === "bytes" ? bytes : data.norms,
      scale = scaleOf(numbers);
    /** @param {number} i */
    const strength = (i) => {
      if (name === "nothing") return null;
      if (name === "nan") return data.odd.has(i) ? -1 : null;
      const number = numbers[i];
      if (number === null) return null;
      return Number.isFinite(number) ? (scale?.part(number) ?? 0) : -1;
    };
    operations.tint(strength);
    rows.tint((i) => {
      const t = strength(i);
      return t === null
        ? ""
        : t < 0
          ? "color-mix(in srgb, var(--gl-ink) 24%, var(--gl-paper))"
          : `color-mix(in srgb, var(--gl-gradient) ${Math.round(4 + 40 * t)}%, var(--gl-paper))`;
    });
    const odd = [...data.odd.keys()].length;
    legend.textContent =
      name === "nan"
        ? odd
          ? `${odd} with NaN or infinity`
          : "no NaN, no infinity"
        : name === "nothing" || !scale
          ? ""
          : name === "bytes"
            ? `${Math.min(...bytes.filter((b) => b !== null)).toLocaleString("en")} to ${Math.max(...bytes.filter((b) => b !== null)).toLocaleString("en")} bytes, log`
            : `colours: log ${scale.text}`;
  }

  // ------------------------------------------------------------------------------------------------ paths and steps
  const summary = html("div", { class: "gl-summary gl-dim", role: "status", hidden: "" }),
    leaf = html(
      "select",
      { "aria-label": "paths to", [SUPPRESS]: "true" },
      html("option", { value: "" }, "no leaf"),
      ...about.leaves.map(([i, label]) => html("option", { value: i }, label)),
    );
  leaf.addEventListener("change", () => {
    if (leaf.value === "") showPaths(null);
    else ask("paths", { node: Number(leaf.value) });
  });

  /** @param {import("./paths.js").Paths | null} paths */
  function showPaths(paths) {
    if (paths && level !== "operations") turn("operations");
    operations.paths(paths);
    summary.textContent = paths ? paths.head.join(" ") : "";
    summary.hidden = !paths;
  }

  /** @type {ReturnType<typeof mount> | null} */
  let stepper = null;
  const stage = html("div", { class: "gl-steps", hidden: "" }),
    stepping = button("step", "step through backward", () => {
      if (!stepper) ask("steps", {});
      else look(Boolean(stage.hidden));
    });
  stepping.setAttribute("aria-pressed", "false");

  /** @param {any} steps */
  function showSteps(steps) {
    if (stepper) stepper.take(steps);
    else stepper = mount(stage, steps, { restart: (numbers) => ask("steps", { numbers }) });
    look(true);
  }

  /** Show the steps, or the graph again. @param {boolean} steps */
  function look(steps) {
    stage.hidden = !steps;
    whole.hidden = steps;
    stepping.setAttribute("aria-pressed", String(steps));
  }

  function focusMain() {
    (level === "operations" ? operations.stage : rows.list).focus();
  }

  // ------------------------------------------------------------------------------------------------------ the whole
  const { head } = about,
    hint = html("span", {}),
    legend = html("span", { role: "status" }),
    sentence = html(
      "div",
      { class: "gl-head" },
      html("code", {}, head.out),
      head.value ? html("b", {}, ` = ${head.value}`) : "",
      ` with respect to `,
      ...(head.by.length ? list(head.by) : [`${head.many} `, term(about.terms, "leaf", "leaves")]),
      html("span", { class: "gl-dim" }, ` · ${head.parts.join(" · ")}`),
      memoryText(),
      " ",
      waiting,
    );
  const main = html(
      "div",
      { class: "gl-main" },
      summary,
      operations.root,
      rows.root,
      html("div", { class: "gl-dim gl-hint" }, hint, legend),
    ),
    whole = html("div", { class: "gl-body" }, main, html("div", { class: "gl-side" }, source.root, panel.root));
  const root = html(
    "div",
    { class: "gl-view gl-explorer", role: "group", "aria-label": `the graph of ${head.out}` },
    sentence,
    html(
      "div",
      { class: "gl-bar-tools" },
      levels,
      search,
      found,
      html("label", { class: "gl-group gl-dim" }, "colour by", colours),
      about.leaves.length ? html("label", { class: "gl-group gl-dim" }, "paths to", leaf) : "",
      folding,
      about.steps ? stepping : "",
    ),
    problem,
    whole,
    stage,
    spoken,
  );

  function memoryText() {
    return head.held
      ? html("span", { class: "gl-dim gl-held" }, ` · holds the graph, ${head.held}, until `, html("code", {}, "close()"))
      : html("span", {});
  }

  root.addEventListener("keydown", (event) => {
    event.stopPropagation(); // the page has its own shortcuts
    const typing = event.target instanceof HTMLInputElement;
    if (event.key === "/" && !typing) {
      event.preventDefault();
      search.focus();
      search.select();
    } else if (event.key === "Escape" && !typing && panel.root.contains(/** @type {Node} */ (event.target))) focusMain();
  });

  function ended() {
    if (!model.get("ended")) return;
    root.setAttribute("data-ended", "");
    say(ENDED);
    sentence.querySelector(".gl-held")?.remove();
  }

  operations.show(about.figure);
  panel.whole();
  model.on("change:ended", ended);
  el.append(root);
  turn(level);
  paint("nothing");
  ended();
  return () => {
    operations.end();
    rows.end();
    stepper?.end();
    model.off("change:ended", ended);
    kernel.leave();
    root.remove();
  };
}

/** @param {string[]} names */
function list(names) {
  return names.flatMap((name, k) => [k ? (k === names.length - 1 ? " and " : ", ") : "", html("code", {}, name)]);
}

export { render };
