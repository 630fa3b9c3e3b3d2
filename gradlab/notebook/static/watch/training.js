// One training as a view shows it, live or saved. The loop feeds it: frames come from inside of it, ten a second at most, while
// the kernel is busy with it. A frame has the picture, drawn in Python, and what changed of the numbers. So history, hover and sliding
// back in time live here, and nothing of them asks the kernel. A click on pause only sets a flag there; where the kernel hears
// nothing while it runs, the view says so.

import { axes } from "../kit/axes.js";
import { SUPPRESS, button, disable, html, svgFrom } from "../kit/dom.js";
import { grouped } from "../kit/format.js";
import { Kernel } from "../kit/kernel.js";
import { numbers } from "./numbers.js";
import { merged, stepsOf } from "./run.js";

/** @import { Model } from "../kit/kernel.js" */
/** @import { Finding, Told } from "./run.js" */

const SHOWN = 3; // findings that are not folded
const LATER = "The kernel runs the loop and hears nothing meanwhile: this takes effect after the loop.";

/**
 * @param {Model} model which says of the training alone
 * @param {(run: Told) => void} tell of what was told anew
 */
function training(model, tell) {
  /** @type {Told} */
  let run = model.get("run");
  const live = Boolean(model.get("live"));
  /** @type {number | null} */
  let chosen = null; // a step, from 0; null: the newest
  /** @type {number | null} */
  let hovered = null;
  let wished = false; // whether the loop is to pause

  const sentence = html("div", {}),
    findings = html("div", { class: "gl-findings", role: "status", hidden: "" }),
    note = html("span", { class: "gl-dim gl-waiting", role: "status" }),
    cost = html("span", { class: "gl-dim gl-cost" }),
    report = html("pre", { hidden: "", tabindex: "0", [SUPPRESS]: "true" }),
    code = html("pre", { tabindex: "0", [SUPPRESS]: "true" });
  const table = numbers();
  /** @type {ReturnType<typeof axes> | null} */
  let plane = null;
  const stage = html("div", { class: "gl-stage" });
  stage.addEventListener("pointermove", (event) => {
    hovered = stepAt(event);
    look();
  });
  stage.addEventListener("pointerleave", () => {
    hovered = null;
    look();
  });
  stage.addEventListener("click", (event) => {
    chosen = stepAt(event) ?? chosen;
    look();
  });

  const pause = button("Pause", "Hold the loop between two steps: w.pause()", () => {
    wished = !(wished || run.paused);
    kernel?.ask(wished ? "pause" : "resume");
    buttons();
  });
  const once = button("One step", "Let the loop make one step: w.resume(once=True)", () => kernel?.ask("once")),
    replay = button("Replay", "Compute the first step with a NaN or an infinity again: w.replay()", () => kernel?.ask("replay"));
  const slider = html("input", { type: "range", min: 0, max: 0, value: 0, "aria-label": "step", [SUPPRESS]: "true" });
  slider.addEventListener("input", () => {
    chosen = Number(slider.value) >= run.count - 1 ? null : Number(slider.value) * run.width;
    look();
  });
  const newest = button("Newest", "Back to the newest step", () => {
    chosen = null;
    look();
  });
  const where = html("label", { class: "gl-time" }, "step ", slider);
  const bar = html("div", { class: "gl-buttons" }, ...(live ? [pause, once, replay] : []), where, newest, note, cost);
  const root = html(
    "div",
    { class: "gl-run", role: "group", "aria-label": "a training over its steps" },
    html("div", { class: "gl-head" }, sentence),
    findings,
    bar,
    html(
      "div",
      { class: "gl-body" },
      stage,
      html("div", { class: "gl-aside" }, table.root, report, html("details", {}, html("summary", {}, "Code"), code)),
    ),
  );

  const kernel = live
    ? new Kernel(model, {
        busy() {},
        waiting: () => (note.textContent = run.ended ? "waiting for the kernel …" : LATER),
        silent: (text) => (note.textContent = run.ended ? text : LATER),
        back() {},
        heard(answer, _buffers, mine) {
          if (!mine) return;
          note.textContent = answer.error ?? "";
          if (typeof answer.paused === "boolean") {
            run = { ...run, paused: answer.paused };
            wished = answer.paused;
          }
          if (typeof answer.report === "string") {
            report.textContent = answer.report;
            report.hidden = false;
          }
          buttons();
        },
        idle() {},
      })
    : null;

  /** @param {PointerEvent | MouseEvent} event */
  function stepAt(event) {
    return plane?.value(event)?.[0] ?? null;
  }

  /** Show what is looked at: under the pointer, chosen, or the newest. */
  function look() {
    const last = Math.max(0, run.count - 1),
      columnOf = (/** @type {number | null} */ step) => (step === null ? last : Math.min(last, Math.floor(step / run.width))),
      unmarked = hovered === null && chosen === null,
      column = columnOf(hovered ?? chosen);
    slider.max = String(last);
    slider.value = String(columnOf(chosen));
    const share = last ? (100 * Number(slider.value)) / last : 100;
    slider.style.setProperty("--gl-from", "0%");
    slider.style.setProperty("--gl-to", `${share}%`);
    const [from, to] = stepsOf(run, columnOf(chosen));
    slider.setAttribute("aria-valuetext", from === to ? `step ${grouped(from)}` : `steps ${grouped(from)} to ${grouped(to)}`);
    disable(newest, chosen === null);
    plane?.mark(unmarked ? null : Math.min((column + 0.5) * run.width, run.steps));
    if (run.count) table.show(run, column, unmarked);
  }

  function buttons() {
    const held = wished || run.paused;
    pause.textContent = held ? "Go on" : "Pause";
    pause.setAttribute("aria-pressed", String(held));
    disable(pause, run.ended);
    disable(once, run.ended || !held);
    replay.hidden = !run.replay;
    for (const one of [pause, once]) one.hidden = run.ended;
  }

  /** Everything that was told anew. */
  function update() {
    sentence.replaceChildren(...run.head.flatMap(([text, kind]) => spans(text, kind)));
    findings.hidden = run.findings.length === 0;
    const rows = run.findings.map(row);
    findings.replaceChildren(...rows.slice(0, SHOWN));
    if (rows.length > SHOWN) {
      const open = findings.dataset.open !== undefined,
        more = html("details", {}, html("summary", {}, `${rows.length - SHOWN} more`), ...rows.slice(SHOWN));
      more.open = open;
      more.addEventListener("toggle", () => findings.toggleAttribute("data-open", more.open));
      findings.append(more);
    }
    cost.textContent = run.cost;
    code.textContent = run.code;
    buttons();
    const drawing = svgFrom(run.picture);
    stage.replaceChildren(drawing);
    plane = axes(drawing);
    look();
    tell(run);
  }

  /** @param {any} message */
  function heard(message) {
    if (!message?.frame) return;
    run = merged(run, message.frame);
    update();
  }
  function told() {
    run = model.get("run");
    update();
  }
  model.on("msg:custom", heard);
  model.on("change:run", told);
  update();
  return {
    root,
    end() {
      model.off("msg:custom", heard);
      model.off("change:run", told);
      kernel?.leave();
      root.remove();
    },
  };
}

/**
 * @param {string} text
 * @param {string} kind
 * @returns {(string | HTMLElement)[]}
 */
function spans(text, kind) {
  const classes = { strong: "gl-strong", dim: "gl-dim", value: "gl-forward", code: "gl-code" };
  const name = classes[/** @type {keyof typeof classes} */ (kind)];
  if (kind === "code") return [html("code", {}, text)];
  return name ? [html(kind === "strong" ? "b" : "span", { class: name }, text)] : [text];
}

/**
 * A finding: a sentence with its line and kind, and what to do.
 * @param {Finding} finding
 */
function row({ severity, message, fix, line, kind, meaning, url }) {
  const where = line !== null && !message.includes(`line ${line}`) ? [html("span", { class: "gl-dim" }, `  line ${line}`)] : [];
  const name = url ? html("a", { href: url, target: "_blank", rel: "noopener" }, kind) : kind;
  return html(
    "div",
    {},
    html("b", {}, severity === "problem" ? "■ Problem" : "□ Note"),
    "  ",
    ...coded(message),
    ...where,
    ...(kind ? [html("span", { class: "gl-dim gl-kind", title: meaning }, "  [", name, "]")] : []),
    ...(fix ? [html("div", { class: "gl-dim gl-fix" }, ...coded(fix))] : []),
  );
}

/**
 * A text in which code stands between backticks.
 * @param {string} text
 */
function coded(text) {
  return text.split("\u0060").map((part, k) => (k % 2 ? html("code", {}, part) : part));
}

export { training };
