// The live view of a Jacobian. Python computes (explore/jacobian/view_model.py behind notebook/jacobian_widget.py); this module
// draws the frames that it sends and reports clicks. Each part draws itself from the shared state and sends its requests to the
// kernel; this module assembles the parts and updates them.

import { shapeText } from "../kit/arrays.js";
import { SUPPRESS, html } from "../kit/dom.js";
import { graph } from "../kit/graph.js";
import { Kernel, unpack } from "../kit/kernel.js";
import { clamp } from "../kit/ranges.js";
import { axis } from "./axis.js";
import { colouring } from "./colouring.js";
import { controls } from "./controls.js";
import { map } from "./map.js";
import { whatIf } from "./what_if.js";
import { Shown } from "./shown.js";
import { sliders } from "./sliders.js";
import { vectors } from "./vectors.js";
import { graphText, headline, spokenText, titleText } from "./words.js";

/** @import { Part } from "../kit/arrays.js" */
/** @import { Figure } from "../kit/graph.js" */
/** @import { Answer, Model } from "../kit/kernel.js" */
/** @import { Ask } from "./controls.js" */

const WIDE = 420; // px; a wider graph gets a row of its own, at the bottom
const NEAR = 24; // px by which the map may be too wide or too narrow
const ENDED = "This view was closed and its graph was freed. Run the cell again.";

/**
 * Render a view of the widget; anywidget calls the returned function to end it.
 * @param {{ model: Model, el: HTMLElement }} widget
 */
function render({ model, el }) {
  const shown = new Shown(model.get("about")),
    { about } = shown;
  const sentence = html("span", { class: "gl-dim gl-sentence" }),
    waiting = html("span", { class: "gl-dim gl-waiting", role: "status" }),
    spoken = html("span", { class: "gl-spoken", role: "status" }),
    problem = html("p", { class: "gl-error", role: "alert", hidden: "" });
  const title = html("b", {}, ...list(about.outputs), " with respect to ", ...list(about.inputs));

  const kernel = new Kernel(model, {
    busy(on) {
      if (on) root.setAttribute("aria-busy", "true");
      else {
        root.removeAttribute("aria-busy");
        waiting.textContent = "";
      }
    },
    waiting() {
      waiting.textContent = "waiting for the kernel …";
    },
    silent(text) {
      show(text);
      buttons.stop();
      root.setAttribute("data-silent", "");
    },
    back: () => fail(""),
    receive(answer, buffers, mine) {
      if (answer.error) {
        fail(answer.error);
        buttons.stop();
        update();
      } else if (answer.arrays && answer.ask !== "gone" && (answer.ask !== "colours" || mine)) {
        if (!problem.hidden) fail("");
        unpack(answer, buffers);
        take(answer);
        update();
      }
    },
    idle() {
      fit();
      buttons.next();
    },
  });
  /** @type {Ask} */
  const ask = (what, more, buffers) => {
    asked = room();
    kernel.ask(what, { ...more, room: asked }, buffers);
  };
  let asked = 0; // px of the map in the last frame

  /** The space for the map, in px. */
  function room() {
    return clamp(root.clientWidth - (root.clientWidth > 720 ? 370 : 30), 200, 440);
  }
  /** Request the map for the space that it has now, unless a request is pending. */
  function fit() {
    if (Math.abs(room() - asked) > NEAR && !root.hasAttribute("aria-busy") && !model.get("ended")) ask("room");
  }

  /** @param {string} text */
  function show(text) {
    problem.textContent = text;
    problem.hidden = !text;
  }
  /** @param {string} text of an error; empty: none */
  function fail(text) {
    kernel.clearSilence();
    show(text);
    root.removeAttribute("data-silent");
  }

  // ------------------------------------------------------------------------------------------------ the parts
  const buttons = controls(shown, ask),
    { wish } = buttons;
  const axes = axis(shown, kernel.id, wish),
    colours = colouring(shown, ask, () => update()),
    vector = vectors(shown),
    weights = sliders(shown, wish),
    trial = whatIf(shown, wish),
    picture = about.graph ? graphBox(about.graph) : null;
  const matrix = map(shown, {
    ask,
    wish,
    say(text) {
      spoken.textContent = text;
    },
  });
  const side = html(
    "div",
    { class: "gl-side" },
    html("div", { class: "gl-buttons" }, ...buttons.nodes, colours.toggle),
    problem,
    ...axes.nodes,
    vector.root,
    trial.happened,
    html("div", { class: "gl-caption" }, "Equivalent code"),
    vector.code,
    weights.caption,
    weights.root,
    trial.root,
    spoken,
  );
  const left = html("div", { class: "gl-left" }, ...matrix.nodes, colours.root);
  const root = html(
    "div",
    { class: "gl-view gl-jacobian", role: "group", "data-by": "rows", "aria-label": titleText(shown) },
    html("div", { class: "gl-head" }, title, " ", sentence, waiting),
    html("div", { class: "gl-body" }, left, side, ...(picture ? [picture.root] : [])),
  );
  root.addEventListener("keydown", (event) => event.stopPropagation()); // the page has its own shortcuts

  // ------------------------------------------------------------------------------------------------ frames
  /** @param {Answer} answer */
  function take(answer) {
    matrix.take(answer);
    if (answer.groupCells) {
      colours.show(/** @type {any} */ (answer));
      return;
    }
    const turned = shown.take(answer);
    colours.follow(answer);
    if (kernel.wishes) return; // the user is still moving a slider, and an older frame must not move it back
    shown.follow(answer, turned);
    weights.follow(turned);
  }

  function update() {
    const ended = model.get("ended");
    root.dataset.by = shown.frame.by;
    axes.update();
    vector.update();
    colours.update();
    matrix.update();
    sentence.textContent = headline(shown);
    weights.update();
    trial.update();
    picture?.update();
    root.toggleAttribute("data-ended", ended);
    if (ended) fail(ENDED);
    buttons.update(ended);
    if (!buttons.playing()) spoken.textContent = spokenText(shown);
  }

  /** @param {Figure} figure */
  function graphBox(figure) {
    const drawing = graph(figure),
      caption = html("div", { class: "gl-caption" });
    const scroll = { class: "gl-scroll", tabindex: "0", role: "group", "aria-label": "the graph", [SUPPRESS]: "true" };
    return {
      root: html(
        "div",
        { class: figure.width > WIDE ? "gl-graph gl-wide" : "gl-graph" },
        caption,
        html("div", scroll, drawing.root),
      ),
      update() {
        drawing.light(shown.frame.lit, shown.frame.litEdges, shown.across ? "the tangent" : "the cotangent");
        caption.textContent = graphText(shown);
      },
    };
  }

  const resized = new ResizeObserver(fit);
  model.on("change:ended", update);
  el.append(root);
  update();
  resized.observe(root);
  ask("hello");
  return () => {
    buttons.end();
    resized.disconnect();
    model.off("change:ended", update);
    kernel.leave();
    root.remove();
  };
}

/**
 * "x (2×3), w (3)"
 * @param {Part[]} parts
 */
function list(parts) {
  return parts.flatMap(({ name, shape }, k) => [k ? ", " : "", html("code", {}, name), ` (${shapeText(shape)})`]);
}

export { render };
