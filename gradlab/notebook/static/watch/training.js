// The view of one training run, live or saved. The loop sends frames, at most ten a second, while the kernel is busy with it. A
// frame has the picture, drawn in Python, and the numbers that changed. History, hovering and the slider need no kernel. A click
// on pause only sets a flag in the kernel; if the kernel cannot receive it while the loop runs, the view says so.

import { axes } from "../kit/axes.js";
import { SUPPRESS, button, disable, html, svgFrom } from "../kit/dom.js";
import { withCommas } from "../kit/format.js";
import { Kernel } from "../kit/kernel.js";
import { numbers } from "./numbers.js";
import { merge, stepsOf } from "./run.js";

/** @import { Model } from "../kit/kernel.js" */
/** @import { Finding, Run } from "./run.js" */

const SHOWN = 3; // findings that are not folded
const LATER = "The kernel is busy with the loop, so this takes effect after the loop.";

/**
 * @param {Model} model of this training run alone
 * @param {(run: Run) => void} changed called after each update
 */
function training(model, changed) {
  /** @type {Run} */
  let run = model.get("run");
  const live = Boolean(model.get("live"));
  /** @type {number | null} */
  let chosen = null; // a step, from 0; null: the newest
  /** @type {number | null} */
  let hovered = null;
  let wished = false; // whether the user wants the loop to pause

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

  const pause = button("Pause", "Pause the loop between two steps: w.pause()", () => {
    wished = !(wished || run.paused);
    kernel?.ask(wished ? "pause" : "resume");
    buttons();
  });
  const once = button("One step", "Run one step of the loop: w.resume(once=True)", () => kernel?.ask("once")),
    replay = button("Replay", "Recompute the first step with NaN or infinity: w.replay()", () => kernel?.ask("replay"));
  const slider = html("input", { type: "range", min: 0, max: 0, value: 0, "aria-label": "step", [SUPPRESS]: "true" });
  slider.addEventListener("input", () => {
    chosen = Number(slider.value) >= run.count - 1 ? null : Number(slider.value) * run.width;
    look();
  });
  const newest = button("Newest", "Show the newest step", () => {
    chosen = null;
    look();
  });
  const where = html("label", { class: "gl-time" }, "step ", slider);
  const bar = html("div", { class: "gl-buttons" }, ...(live ? [pause, once, replay] : []), where, newest, note, cost);
  const root = html(
    "div",
    { class: "gl-run", role: "group", "aria-label": "training run" },
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
        receive(answer, _buffers, mine) {
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

  /** Show the step in view: under the pointer, selected, or the newest. */
  function look() {
    const last = Math.max(0, run.count - 1),
      columnOf = (/** @type {number | null} */ step) => (step === null ? last : Math.min(last, Math.floor(step / run.width))),
      unmarked = hovered === null && chosen === null,
      column = columnOf(hovered ?? chosen);
    for (const one of [where, newest, stage, table.root]) one.hidden = !run.count;
    bar.hidden = run.ended && !run.count;
    slider.max = String(last);
    slider.value = String(columnOf(chosen));
    const share = last ? (100 * Number(slider.value)) / last : 100;
    slider.style.setProperty("--gl-from", "0%");
    slider.style.setProperty("--gl-to", `${share}%`);
    const [from, to] = stepsOf(run, columnOf(chosen));
    slider.setAttribute(
      "aria-valuetext",
      from === to ? `step ${withCommas(from)}` : `steps ${withCommas(from)} to ${withCommas(to)}`,
    );
    disable(newest, chosen === null);
    plane?.mark(unmarked ? null : Math.min((column + 0.5) * run.width, run.steps));
    if (run.count) table.show(run, column, unmarked);
  }

  function buttons() {
    const held = wished || run.paused;
    pause.textContent = held ? "Resume" : "Pause";
    pause.setAttribute("aria-pressed", String(held));
    disable(pause, run.ended);
    disable(once, run.ended || !held);
    replay.hidden = !run.replay;
    for (const one of [pause, once]) one.hidden = run.ended;
  }

  /** Show the whole run again. */
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
    changed(run);
  }

  /** @param {any} message */
  function receive(message) {
    if (!message?.frame) return;
    run = merge(run, message.frame);
    update();
  }
  function reload() {
    run = model.get("run");
    update();
  }
  model.on("msg:custom", receive);
  model.on("change:run", reload);
  update();
  return {
    root,
    end() {
      model.off("msg:custom", receive);
      model.off("change:run", reload);
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
 * A finding: the message with its line and kind, and the fix.
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
    ...withCode(message),
    ...where,
    ...(kind ? [html("span", { class: "gl-dim gl-kind", title: meaning }, "  [", name, "]")] : []),
    ...(fix ? [html("div", { class: "gl-dim gl-fix" }, ...withCode(fix))] : []),
  );
}

/**
 * A text with code between backticks.
 * @param {string} text
 */
function withCode(text) {
  return text.split("\u0060").map((part, k) => (k % 2 ? html("code", {}, part) : part));
}

export { training };
