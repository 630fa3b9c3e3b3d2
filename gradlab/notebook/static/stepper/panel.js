// Beside the picture: the source with the operation marked, the rule that ran, a row for each input with its contribution and its
// sum so far, the sum where cotangents meet, and equivalent code.

import { SUPPRESS, html } from "../kit/dom.js";
import { shortNumber } from "../kit/format.js";
import { math } from "../kit/math.js";
import { grid, gridOrText } from "./grids.js";
import { rows, scalar, text } from "./numbers.js";

/** @import { Factor, Share, Step, Steps } from "./data.js" */

const LINES = 14, // of a source that are shown
  TERMS = 3; // matrices in a sum
const MARK = "\u25ca"; // placeholder of the start in the code

/** @param {Steps} steps */
function panel(steps) {
  const { data } = steps;
  const source = html("div", { class: "gl-source" }),
    rule = html("div", { class: "gl-rule" }),
    table = html("div", {
      class: "gl-scroll gl-shares",
      tabindex: "0",
      role: "group",
      "aria-label": "gradients of the inputs",
      [SUPPRESS]: "true",
    }),
    sums = html("div", { class: "gl-sums" }),
    remark = html("p", { class: "gl-dim", hidden: "" }),
    code = html("pre", { tabindex: "0" }),
    byHand = html("details", { class: "gl-byhand" }, html("summary", {}, "Equivalent code"), code),
    notes = html("div", { class: "gl-dim" }, ...data.notes.map((note) => html("p", {}, note)));
  const root = html("div", { class: "gl-stepper-panel" }, source, rule, table, sums, remark, byHand, notes);
  byHand.hidden = !data.code;

  return {
    root,
    /** @param {number} k */
    update(k) {
      const step = steps.step(k);
      source.replaceChildren(...(step ? sourceOf(step) : []));
      const rules = (step && (step.rule ?? data.rules[step.operation])) || [];
      rule.replaceChildren(...rules.map((formula) => html("p", {}, math(formula))));
      table.replaceChildren(...(step && step.shares.length ? [tableOf(step)] : []));
      table.hidden = !step || !step.shares.length;
      sums.replaceChildren(...(step ? step.shares.filter((share) => share.term).map(sumOf) : []));
      remark.hidden = !!step && !step.hooked;
      remark.textContent = step
        ? "A hook changed the gradient that arrived here."
        : `The sweep goes through ${steps.last === 1 ? "1 operation" : `${steps.last} operations`}, from the output back to the leaves.`;
      if (data.count > steps.last) {
        remark.hidden = false;
        remark.textContent += ` These are the first ${steps.last.toLocaleString("en")} of ${data.count.toLocaleString("en")} steps.`;
      }
      code.textContent = withStart(data.code);
    },
  };

  /** @param {Step} step */
  function sourceOf(step) {
    if (!step.span) return step.module ? [html("p", { class: "gl-dim" }, `computed in ${step.module}`)] : [];
    const [at, first, last, from, to, part] = step.span,
      { title, lines } = data.sources[at];
    const middle = lines.findIndex(([number]) => number >= first),
      begin = Math.max(0, Math.min(middle - Math.floor(LINES / 2), lines.length - LINES));
    return [
      html("div", { class: "gl-caption" }, step.module ? `${title}, in ${step.module}` : title),
      ...lines.slice(begin, begin + LINES).map(([number, line]) => {
        const here = number >= first && number <= last;
        let start = from,
          end = to;
        if (here && start === null && part && line.includes(part)) {
          start = line.indexOf(part);
          end = start + part.length;
        }
        const marked = here && start !== null && end !== null && first === last;
        return html(
          "div",
          { class: here ? "gl-here" : "" },
          html("span", { class: "gl-number" }, String(number)),
          html(
            "code",
            {},
            ...(marked && start !== null && end !== null
              ? [line.slice(0, start), html("mark", {}, line.slice(start, end)), line.slice(end)]
              : [line || " "]),
          ),
        );
      }),
    ];
  }

  /** @param {Step} step */
  function tableOf(step) {
    const sums = step.shares.some((share) => share.term),
      wide = step.shares.some((share) => rows(share.total)), // the sums are shown at the nodes and below the table
      there = wide ? [] : sums ? ["sum before", "sum now"] : ["sum now"],
      heads = data.values ? ["goes to", "local · upstream", "", "downstream", ...there] : ["goes to"];
    return html(
      "table",
      {},
      html("thead", {}, html("tr", {}, ...heads.map((head, k) => html("th", { scope: "col", colspan: k === 1 ? 3 : 1 }, head)))),
      html("tbody", {}, ...step.shares.map((share) => rowOf(step, share, there.length))),
    );
  }

  /**
   * @param {Step} step
   * @param {Share} share
   * @param {number} there how many columns show the sum: now, and before
   */
  function rowOf(step, share, there) {
    const parts = share.name.split(/(?=[.[])/).flatMap((part) => [html("wbr"), part]),
      name = html("th", { scope: "row" }, html("code", {}, ...parts));
    if (!data.values) return html("tr", {}, name);
    const cell = (/** @type {string | Node} */ inner, kind = "") => html("td", { class: kind }, inner),
      { factor, local } = share,
      known = factor ?? local;
    const factors = [
      cell(factor ? factorOf(factor) : localOf(share), "gl-local"),
      cell(factor?.symbol ?? (local ? "·" : ""), "gl-dim"),
      html("td", { class: "gl-back" }, ...upstreamOf(step, factor?.turned ?? false)),
    ];
    return html(
      "tr",
      {},
      name,
      ...(factor && !factor.first ? factors.reverse() : factors),
      cell(known ? "=" : "", "gl-dim"),
      cell(gridOrText(steps.scale(share.downstream)), "gl-back"),
      ...(there > 1 ? [cell(text(steps.before(share)), "gl-dim")] : []),
      ...(there ? [cell(text(steps.scale(share.total)), "gl-back gl-now")] : []),
    );
  }

  /**
   * The upstream gradient of a step; `turned`: transposed.
   * @param {Step} step
   * @param {boolean} turned
   */
  function upstreamOf(step, turned) {
    const parts = step.upstream.map((part) => gridOrText(steps.scale(part)));
    const suffix = turned ? [html("code", {}, ".T")] : [];
    return [...parts.flatMap((part, k) => (k ? ["; ", part] : [part])), ...suffix];
  }

  /** @param {Factor} factor */
  function factorOf({ name, numbers }) {
    return html("span", {}, ...(name ? [html("code", {}, name)] : []), gridOrText(numbers));
  }

  /** @param {Share} share */
  function localOf({ local }) {
    if (!local) return "";
    if (!local.matrix || local.matrix.length < 2) return local.text;
    return html("details", {}, html("summary", {}, local.text), grid(local.matrix));
  }

  /** @param {Share} share */
  function sumOf(share) {
    const sum = steps.sum(share),
      parts = data.sums[share.sum].slice(0, share.term + 1),
      over = data.sums[share.sum].length - parts.length,
      terms = parts.map(([, held]) => rows(steps.scale(held))),
      total = rows(steps.scale(share.total));
    const matrices = total && terms.length <= TERMS ? terms.flatMap((term, i) => (term ? [i ? " + " : "", grid(term)] : [])) : [];
    const from = parts.map(([number, held]) => {
      const step = data.steps[number - 1],
        amount = scalar(steps.scale(held));
      return `${amount === null ? text(steps.scale(held)) : shortNumber(amount)} from step ${number}${step?.line ? `, line ${step.line}` : ""}`;
    });
    const rest = over
      ? `${over === 1 ? "one more path" : `${over} more paths`} will arrive`
      : "no other path arrives, so this is final";
    return html(
      "p",
      { class: "gl-sum" },
      html("span", {}, "at ", html("code", {}, share.name), sum ? ": " : `, ${parts.length} contributions so far`),
      html("b", { class: "gl-back" }, sum),
      ...(total && matrices.length
        ? [html("span", { class: "gl-terms gl-back" }, ...matrices, " = ", grid(total))]
        : [html("br")]),
      html("span", { class: "gl-dim" }, `${data.values ? `${from.slice(-4).join("; ")}; ` : ""}${rest}`),
    );
  }

  /** @param {string} given */
  function withStart(given) {
    const { start } = steps,
      ones = start?.numbers?.every((x) => Number(x) === 1) && !start.shape.length;
    if (ones) return given.replaceAll(`, ${MARK}`, "");
    const literal = start?.numbers ? nestedList(start.numbers.map(Number), start.shape) : "v";
    const alias = data.library === "gradlab" ? "gl" : data.library;
    const argument = start?.numbers ? `${alias}.tensor(${literal}, dtype=${data.out}.dtype)` : literal;
    return given.replaceAll(MARK, argument);
  }
}

/**
 * Numbers as Python writes nested lists.
 * @param {number[]} numbers
 * @param {number[]} shape
 * @returns {string}
 */
function nestedList(numbers, shape) {
  if (!shape.length) return python(numbers[0]);
  const step = numbers.length / shape[0];
  return `[${Array.from({ length: shape[0] }, (_, i) => nestedList(numbers.slice(i * step, (i + 1) * step), shape.slice(1))).join(", ")}]`;
}

/** @param {number} x */
function python(x) {
  if (!Number.isFinite(x)) return `float("${Number.isNaN(x) ? "nan" : x > 0 ? "inf" : "-inf"}")`;
  return Number.isInteger(x) && Math.abs(x) < 1e15 ? `${x}.0` : String(x);
}

export { panel };
