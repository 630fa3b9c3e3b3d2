// Stepping through backward: the view that the widget, a saved page and the explorer share. It gets plain data and reports the
// user's wishes by callbacks; it does not use the kernel.

import { SUPPRESS, button, disable, hasFocus, html, readByTitle } from "../kit/dom.js";
import { Steps } from "./data.js";
import { exact, parseNumbers } from "./start.js";
import { panel } from "./panel.js";
import { stage } from "./stage.js";

/** @import { Data } from "./data.js" */

/**
 * @typedef {object} Wishes
 * @property {(numbers: number[]) => void} [restart] run backward from another start; without it, a scalar start scales all gradients
 * @property {(node: number | null) => void} [stepped] another node is active now
 */

const PACE = 1100; // ms of a step while it plays
const MARKS = 60; // steps that have a mark each

/**
 * @param {HTMLElement} container
 * @param {Data} data
 * @param {Wishes} [wishes]
 */
function mount(container, data, wishes = {}) {
  let steps = new Steps(data),
    k = 0,
    /** @type {ReturnType<typeof setInterval> | null} */ playing = null;
  const sentence = html("span", { class: "gl-sentence" }),
    spoken = html("span", { class: "gl-spoken", role: "status", "aria-live": "polite" }),
    problem = html("p", { class: "gl-error", role: "alert", hidden: "" }),
    hint = html("span", { class: "gl-dim gl-scaled" });
  const back = button("◂ back", "back (←)", () => go(k - 1)),
    next = button("next ▸", "next (→)", () => go(k + 1), "gl-first"),
    play = button("play", "play (space)", toggle),
    reset = button("reset", "back to the start (Home)", () => go(0)),
    end = button("to the leaves", "to the end (End)", () => go(steps.last));
  const marks = html("span", { class: "gl-marks", role: "group", "aria-label": "steps" });
  const start = html("input", {
    type: "text",
    class: "gl-start",
    inputmode: "text",
    spellcheck: "false",
    [SUPPRESS]: "true",
    onchange: restart,
  });
  const label = html("label", { class: "gl-start-label" }, html("code", {}, "gradient="), start);
  const buttons = html("div", { class: "gl-buttons" }, back, next, play, end, reset, marks, label, hint);
  readByTitle(buttons);
  start.setAttribute("aria-label", "starting gradient");
  let picture = stage(steps, runTo),
    beside = panel(steps);
  const body = html("div", { class: "gl-stepper-body" }, picture.root, beside.root);
  const root = html(
    "div",
    {
      class: "gl-stepper",
      role: "group",
      "aria-label": `stepping through backward from ${data.out}`,
      tabindex: "-1",
      onkeydown: key,
    },
    html("div", { class: "gl-head" }, sentence),
    buttons,
    problem,
    body,
    spoken,
  );
  container.append(root);
  draw();
  update();

  /** @param {Data} given */
  function take(given) {
    const active = steps.step(k)?.node;
    steps = new Steps(given);
    const pictured = stage(steps, runTo),
      described = panel(steps);
    body.replaceChildren(pictured.root, described.root);
    [picture, beside] = [pictured, described];
    k = active === undefined ? 0 : (steps.turns.get(active) ?? 0);
    fail("");
    draw();
    update();
  }

  /** Draw the parts that are the same for all steps. */
  function draw() {
    const few = steps.last <= MARKS;
    marks.replaceChildren(
      ...(few
        ? Array.from({ length: steps.last }, (_, i) => {
            const mark = button("", `step ${i + 1}`, () => go(i + 1), "gl-mark");
            mark.setAttribute("aria-label", mark.title);
            mark.tabIndex = -1;
            return mark;
          })
        : [html("progress", { max: steps.last, value: 0, "aria-label": "progress" })]),
    );
    const size = steps.data.start?.numbers?.length ?? 0,
      can =
        steps.data.values &&
        size > 0 &&
        (!!wishes.restart || (steps.data.linear && Number(steps.data.start?.numbers?.[0]) !== 0));
    label.hidden = !steps.data.values || !size;
    start.readOnly = !can;
    start.title = can ? "the gradient that backward starts with" : "this start cannot be changed here";
    writeStart();
  }

  function writeStart() {
    start.value = exact(steps.start);
    const scaled = steps.factor !== 1;
    hint.textContent = scaled ? "Backward is linear in its start: every gradient here is scaled." : "";
  }

  function update() {
    const text = steps.sentence(k);
    sentence.textContent = text;
    spoken.textContent = text;
    picture.update(k);
    beside.update(k);
    disable(back, k === 0);
    disable(reset, k === 0);
    disable(next, k === steps.last);
    disable(end, k === steps.last);
    disable(play, k === steps.last && playing === null);
    play.textContent = playing === null ? "play" : "pause";
    marks.querySelectorAll(".gl-mark").forEach((mark, i) => {
      mark.classList.toggle("gl-passed", i < k);
      if (i === k - 1) mark.setAttribute("aria-current", "step");
      else mark.removeAttribute("aria-current");
    });
    marks.querySelector("progress")?.setAttribute("value", String(k));
    root.dataset.step = String(k);
  }

  /** @param {number} to */
  function go(to) {
    const there = Math.max(0, Math.min(steps.last, to));
    if (there === k) {
      stop();
      return;
    }
    k = there;
    if (k === steps.last) stop();
    update();
    wishes.stepped?.(steps.step(k)?.node ?? null);
  }

  /** @param {number} node */
  function runTo(node) {
    const turn = steps.turns.get(node);
    if (turn) {
      stop();
      go(turn);
    }
  }

  function toggle() {
    if (playing !== null) {
      stop();
      update();
    } else if (k < steps.last) {
      playing = setInterval(() => go(k + 1), PACE);
      go(k + 1);
      update();
    }
  }

  function stop() {
    if (playing !== null) clearInterval(playing);
    playing = null;
  }

  function restart() {
    const wanted = steps.data.start?.numbers?.length ?? 0,
      numbers = parseNumbers(start.value, wanted);
    if (!numbers) {
      fail(
        `The starting gradient must be ${wanted === 1 ? "one number" : `${wanted} numbers, separated by commas`}, not “${start.value}”.`,
      );
      return;
    }
    fail("");
    if (wishes.restart) {
      wishes.restart(numbers);
      return;
    }
    steps.factor = numbers[0] / Number(steps.data.start?.numbers?.[0] ?? 1);
    writeStart();
    update();
  }

  /** @param {string} text of an error; empty: none */
  function fail(text) {
    problem.textContent = text;
    problem.hidden = !text;
  }

  /** @param {KeyboardEvent} event */
  function key(event) {
    event.stopPropagation(); // the page has its own shortcuts
    if (event.altKey || event.ctrlKey || event.metaKey || hasFocus(start)) return;
    const onButton = event.target instanceof HTMLElement && event.target.matches("button, summary");
    /** @type {Record<string, () => void>} */
    const acts = {
      ArrowRight: () => go(k + 1),
      ArrowLeft: () => go(k - 1),
      Home: () => go(0),
      End: () => go(steps.last),
      " ": toggle,
    };
    if (!(event.key in acts) || (event.key === " " && onButton)) return;
    event.preventDefault();
    if (event.key !== " ") stop();
    acts[event.key]();
  }

  return {
    root,
    take,
    fail,
    runTo,
    go,
    /** Whether a node has a step. @param {number} node */
    has: (node) => steps.turns.has(node),
    end() {
      stop();
      root.remove();
    },
  };
}

export { mount };
