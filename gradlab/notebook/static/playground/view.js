// The live view of a function. Python computes (explore/playground/view_model.py behind notebook/playground_widget.py); this
// module shows the frames that it sends, and reports moves of the point, button presses and the width of the picture.

import { axes } from "../kit/axes.js";
import { SUPPRESS, html, svgFrom } from "../kit/dom.js";
import { exact } from "../kit/format.js";
import { Kernel, unpack } from "../kit/kernel.js";
import { clamp } from "../kit/ranges.js";
import { descent } from "./descent.js";
import { sliders } from "./sliders.js";

/** @import { Answer, Model } from "../kit/kernel.js" */

/** @typedef {[string, string]} Span text and kind */
/**
 * @typedef {object} Shown the picture of a frame
 * @property {string} [ground] the background, which stays while the point moves, as SVG; only if it is new
 * @property {string} front a `<g>`
 * @property {any} [values] of the background: of a curve at its `xs`, of contours in rows of `side`, from the bottom
 * @property {any} [xs]
 * @property {number} [side]
 */

const REST = 900; // ms of quiet after which the static picture is brought up to date
const KEYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowDown: [0, -1], ArrowUp: [0, 1] };
const KINDS = {
  value: "gl-value",
  gradient: "gl-gradient",
  dim: "gl-dim",
  strong: "gl-strong",
  code: "gl-code",
  warning: "gl-strong",
};

/**
 * Render a view of the widget; anywidget calls the returned function to end it.
 * @param {{ model: Model, el: HTMLElement }} widget
 */
function render({ model, el }) {
  const about = model.get("about"),
    { inputs, recorded } = about;
  /** @type {any} */
  let frame = null;
  /** @type {Shown | null} */
  let ground = null;
  /** @type {ReturnType<typeof axes> | null} */
  let plane = null;
  let drawnWidth = 0; // the width that Python has drawn for, or is drawing for
  let rest = 0;

  const head = html("span"),
    waiting = html("span", { class: "gl-dim gl-waiting", role: "status" }),
    spoken = html("span", { class: "gl-spoken", role: "status", "aria-live": "polite" }),
    problem = html("p", { class: "gl-error", role: "alert", hidden: "" });
  const table = html("tbody"),
    checked = html("p", { class: "gl-note" }),
    holes = html("p", { class: "gl-note" }),
    code = pre("equivalent code of the gradient"),
    differenceCode = pre("equivalent code of the finite difference");

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
      root.setAttribute("data-silent", "");
    },
    back: () => fail(""),
    receive(answer, buffers) {
      if (answer.error) fail(answer.error);
      else if (answer.picture) {
        if (!problem.hidden) fail("");
        unpack(answer, buffers);
        take(answer);
      }
    },
    idle() {
      if (frame?.running) ask("go");
      else if (frame?.more || (box.clientWidth && drawnWidth !== box.clientWidth && !recorded)) ask("refine");
    },
  });

  /** @param {string} what */
  function ask(what, more = {}) {
    drawnWidth = box.clientWidth;
    kernel.ask(what, { ...more, width: drawnWidth });
  }
  /** @param {string} what */
  function wish(what, more = {}) {
    ask(what, more);
    clearTimeout(rest);
    rest = setTimeout(settle, REST);
  }
  function settle() {
    if (frame?.running || frame?.more || root.hasAttribute("aria-busy")) rest = setTimeout(settle, REST);
    else kernel.ask("keep");
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
  const knobs = sliders(inputs, (point) => wish("move", { point })),
    steps = descent(about, wish);
  const read = html("div", { class: "gl-read", "aria-hidden": "true" }),
    stage = html("div");
  const box = html("div", {
    ...{ class: "gl-take", tabindex: "0", role: "group", "aria-roledescription": "movable point", [SUPPRESS]: "true" },
    ...{ onkeydown: (/** @type {KeyboardEvent} */ event) => nudge(event) },
  });
  box.append(stage, read);
  const choices = axisChoice();
  const root = html(
    "div",
    { class: "gl-view gl-playground", role: "group", "aria-label": `playground of ${about.heading}` },
    html("div", { class: "gl-head" }, head, waiting),
    html(
      "div",
      { class: "gl-body" },
      html(
        "div",
        { class: "gl-left" },
        ...choices.nodes,
        box,
        knobs.root,
        html("div", { class: "gl-caption" }, "Equivalent code"),
        code,
        html("details", {}, html("summary", { [SUPPRESS]: "true" }, "code of the difference"), differenceCode),
      ),
      html(
        "div",
        { class: "gl-side" },
        problem,
        html("table", { class: "gl-table" }, html("thead", {}, row("th", ["input", "gradient", "by differences", ""])), table),
        checked,
        holes,
        steps.root,
        spoken,
      ),
    ),
  );
  root.addEventListener("keydown", (event) => event.stopPropagation()); // the page has its own shortcuts

  /** The choice of the inputs on the picture's axes, if there are several. */
  function axisChoice() {
    const names = inputs.map((/** @type {{ name: string }} */ { name }) => name);
    const select = (/** @type {string} */ label, /** @type {string[]} */ options) =>
      html(
        "select",
        { "aria-label": label, [SUPPRESS]: "true", onchange: () => choose() },
        ...options.map((name, k) => html("option", { value: k }, name)),
      );
    const across = select("horizontal axis: input", names),
      up = select("vertical axis: input or value", [...names, "f"]);
    const line = html("div", { class: "gl-tools" }, html("label", {}, "across ", across), html("label", {}, "up ", up));
    line.hidden = recorded || inputs.length < 2;
    function choose() {
      const [k, j] = [Number(across.value), Number(up.value)];
      wish("axes", { axes: j === names.length || j === k ? [k] : [k, j] });
    }
    return {
      nodes: [line],
      update() {
        across.value = String(frame.axes[0]);
        up.value = String(frame.axes[1] ?? names.length);
      },
    };
  }

  // ------------------------------------------------------------------------------------------------ moving the point
  let held = false;
  stage.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || !plane?.value(event)) return;
    held = true;
    stage.setPointerCapture(event.pointerId);
    event.preventDefault();
    box.focus({ preventScroll: true });
    drag(event);
  });
  stage.addEventListener("pointermove", (event) => {
    if (held) drag(event);
    look(plane?.value(event));
  });
  stage.addEventListener("pointerleave", () => look(null));
  for (const end of ["pointerup", "pointercancel"]) stage.addEventListener(end, () => (held = false));

  /** @param {number[] | null | undefined} at where the pointer is */
  function look(at) {
    const text = at ? hoverText(at[0], at[1]) : "";
    read.textContent = text;
    plane?.mark(at && text ? at[0] : null);
  }

  /** @param {PointerEvent} event */
  function drag(event) {
    const at = plane?.value(event, true);
    if (!at || !frame) return;
    const point = [...knobs.point()];
    frame.axes.forEach((/** @type {number} */ k, /** @type {number} */ way) => {
      const { low, high, step } = inputs[k];
      point[k] = clamp(Number((Math.round(at[way] / step) * step).toPrecision(12)), low, high);
    });
    move(point);
  }

  /** @param {KeyboardEvent} event */
  function nudge(event) {
    const way = /** @type {Record<string, number[]>} */ (KEYS)[event.key];
    if (!way || !frame || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const point = [...knobs.point()];
    frame.axes.forEach((/** @type {number} */ k, /** @type {number} */ along) => {
      const { low, high, step } = inputs[k];
      point[k] = clamp(Number((point[k] + way[along] * step * (event.shiftKey ? 10 : 1)).toPrecision(12)), low, high);
    });
    move(point);
  }

  /** @param {number[]} point */
  function move(point) {
    knobs.take(point);
    wish("move", { point });
  }

  // ------------------------------------------------------------------------------------------------ frames
  /** @param {Answer} answer */
  function take(answer) {
    frame = answer;
    const shown = /** @type {Shown} */ (answer.picture);
    if (shown.ground) {
      const whole = (/** @type {any} */ part) => (part?.array === undefined ? part : answer[part.array]);
      const drawing = /** @type {SVGSVGElement} */ (svgFrom(shown.ground));
      ground = { ...shown, values: whole(shown.values), xs: whole(shown.xs) };
      stage.replaceChildren(drawing);
      plane = axes(drawing);
    }
    stage.querySelector(".gl-front")?.remove();
    stage.querySelector(".gl-ground")?.after(svgFrom(`<svg xmlns="http://www.w3.org/2000/svg">${shown.front}</svg>`).children[0]);
    box.setAttribute("aria-label", `the point, ${frame.texts.map(pointText).join(", ")}: the arrow keys move it`);
    const following = !kernel.wishes; // else the user is still moving something, and an older frame must not move it back
    if (following && !held) knobs.take(frame.point);
    steps.update(frame, following);
    choices.update();
    head.replaceChildren(...frame.head.map(spanNode));
    table.replaceChildren(...frame.rows.map((/** @type {string[]} */ cells) => row("td", cells)));
    root.toggleAttribute("data-trouble", frame.trouble !== "");
    checked.textContent = frame.checked;
    holes.textContent = frame.holes;
    holes.hidden = !frame.holes;
    code.textContent = frame.code;
    differenceCode.textContent = frame.differenceCode;
    const sentence = frame.head.map((/** @type {Span} */ [text]) => text).join("");
    spoken.textContent = `${sentence} ${frame.steps ? frame.course : frame.checked}`;
  }

  /**
   * "x = 1.6"
   * @param {string} text
   * @param {number} k
   */
  function pointText(text, k) {
    return `${inputs[k].name} = ${text}`;
  }

  /**
   * The values at a position of the picture.
   * @param {number} x
   * @param {number} y
   */
  function hoverText(x, y) {
    if (!ground || !plane) return "";
    const { values, xs, side } = ground,
      digits = (/** @type {number} */ number) => exact(Number(number.toPrecision(4))),
      valueText = (/** @type {number} */ value) => (Number.isFinite(value) ? digits(value) : "no finite value"),
      [name, other] = frame.axes.map((/** @type {number} */ k) => inputs[k].name);
    if (side) {
      const [column, line] = plane.ends.map(([low, high], way) => Math.round((([x, y][way] - low) / (high - low)) * (side - 1)));
      return `${name} = ${digits(x)}, ${other} = ${digits(y)}: f ≈ ${valueText(values[line * side + column])}`;
    }
    if (!xs.length) return "";
    let after = 0;
    while (after < xs.length - 1 && xs[after] < x) after++;
    const near = after && Math.abs(xs[after - 1] - x) < Math.abs(xs[after] - x) ? after - 1 : after;
    return `${name} = ${digits(xs[near])}: f = ${valueText(values[near])}`;
  }

  el.append(root);
  ask("hello");
  const resized = new ResizeObserver(() => {
    if (box.clientWidth && drawnWidth !== box.clientWidth && !recorded) ask("refine");
  });
  resized.observe(box);
  return () => {
    clearTimeout(rest);
    resized.disconnect();
    kernel.leave();
    root.remove();
  };
}

/** @param {string} label */
function pre(label) {
  return html("pre", { tabindex: "0", role: "group", "aria-label": label, [SUPPRESS]: "true" });
}

/**
 * @param {"th" | "td"} tag
 * @param {string[]} cells
 */
function row(tag, cells) {
  return html("tr", {}, ...cells.map((text) => html(tag, tag === "th" ? { scope: "col" } : {}, text)));
}

/** @param {Span} span */
function spanNode([text, kind]) {
  const names = kind.split(" ").map((one) => /** @type {Record<string, string>} */ (KINDS)[one] ?? "");
  return html(kind.includes("code") ? "code" : "span", { class: names.join(" ") }, text);
}

export { render };
