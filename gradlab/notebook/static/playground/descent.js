// A descent path: optimizer, learning rate, and buttons.

import { SUPPRESS, button, disable, hasFocus, html } from "../kit/dom.js";
import { clamp } from "../kit/ranges.js";

/** @typedef {(what: string, more?: object) => void} Ask */

const NOTCHES = 100; // of the learning rate's slider, between two powers of ten

/**
 * @param {{ optimizers: string[], rates: [number, number], recorded: boolean }} about
 * @param {Ask} ask
 */
function descent({ optimizers, rates, recorded }, ask) {
  const [low, high] = rates.map(Math.log10);
  let lr = 0.1;
  const choice = html(
    "select",
    { [SUPPRESS]: "true", "aria-label": "optimizer", onchange: () => ask("optimizer", { name: choice.value }) },
    ...optimizers.map((name) => html("option", { value: name }, name)),
  );
  const slide = html("input", {
    ...{ type: "range", min: low * NOTCHES, max: high * NOTCHES, step: 5, "aria-label": "learning rate", [SUPPRESS]: "true" },
    oninput: () => set(Number((10 ** (Number(slide.value) / NOTCHES)).toPrecision(2)), true),
  });
  const typed = html("input", {
    ...{ type: "number", min: 0, step: "any", "aria-label": "learning rate as a number", [SUPPRESS]: "true" },
    oninput: () => {
      const chosen = Number(typed.value);
      if (typed.value !== "" && chosen > 0 && Number.isFinite(chosen)) set(chosen, true);
    },
    onchange: () => write(),
  });
  const step = button("step ▸", "one step of the optimizer", () => ask("step"), "gl-first"),
    run = button("run", "100 steps, or until the point stops moving", () => ask("run")),
    reset = button("reset", "back to the start", () => ask("reset"));
  step.setAttribute("aria-label", "step");
  const course = html("p", { class: "gl-summary" }),
    code = html("pre", { tabindex: "0", role: "group", "aria-label": "equivalent code of the descent", [SUPPRESS]: "true" });
  if (recorded) for (const node of [choice, slide, typed]) node.setAttribute("disabled", "");

  /**
   * @param {number} to
   * @param {boolean} notify
   */
  function set(to, notify) {
    lr = to;
    write();
    if (notify) ask("rate", { lr });
  }
  function write() {
    const at = clamp(Math.log10(lr), low, high);
    slide.value = String(at * NOTCHES);
    slide.setAttribute("aria-valuetext", String(lr));
    slide.style.setProperty("--gl-from", "0%");
    slide.style.setProperty("--gl-to", `${(100 * (at - low)) / (high - low)}%`);
    if (!hasFocus(typed)) typed.value = String(lr);
  }

  return {
    root: html(
      "section",
      { class: "gl-descent", "aria-label": "descent" },
      html("div", { class: "gl-caption" }, "Descent from the point"),
      html("div", { class: "gl-buttons" }, choice, step, run, reset),
      html("div", { class: "gl-slider" }, html("code", {}, "lr"), slide, typed),
      course,
      code,
    ),

    /**
     * @param {{ optimizer: string, lr: number, steps: number, ended: string, course: string, descentCode: string, running: boolean }} frame
     * @param {boolean} follow whether the controls take over the frame's settings
     */
    update(frame, follow) {
      if (follow) {
        choice.value = frame.optimizer;
        set(frame.lr, false);
      }
      course.textContent = frame.course;
      code.textContent = frame.descentCode;
      run.textContent = frame.running ? "running …" : "run";
      for (const node of [step, run]) disable(node, frame.ended !== "");
      disable(reset, frame.steps === 0 && !frame.ended);
    },
  };
}

export { descent };
