// The numbers of the step in view, layer by layer, with histograms of the nearest step that has them.

import { html, svg } from "../kit/dom.js";
import { exact, withCommas, weight } from "../kit/format.js";
import { lastMeasured, stepsOf } from "./run.js";

/** @import { Series, Spread, Run, Values } from "./run.js" */

const WIDE = 64,
  TALL = 20; // px of a histogram

/** The table of one column's numbers. */
function numbers() {
  const caption = html("div", { class: "gl-caption" }),
    body = html("tbody"),
    units = html("div", { class: "gl-dim gl-units" }),
    heads = ["layer", "‖gradient‖", "÷ ‖weights‖", "gradients", "weights"].map((text) => html("th", { scope: "col" }, text));
  const table = html("table", { class: "gl-layers" }, html("thead", {}, html("tr", {}, ...heads)), body);
  const root = html("div", { class: "gl-side" }, caption, html("div", { class: "gl-scroll" }, table), units);

  return {
    root,

    /**
     * @param {Run} run
     * @param {number} column
     * @param {boolean} last whether it is the newest
     */
    show(run, column, last) {
      const [from, to] = stepsOf(run, column),
        which = from === to ? `step ${withCommas(from)}` : `steps ${withCommas(from)} to ${withCommas(to)}, means`;
      const moment = nearest(run, (from + to) / 2 - 1);
      const loss = latestText(run.loss.mean, column, false),
        rate = latestText(run.rate.mean, column, true);
      caption.replaceChildren(
        html("b", {}, last ? `Latest: ${which}` : which),
        ...(loss ? [html("span", {}, `${run.called} `, html("span", { class: "gl-forward" }, loss))] : []),
        ...(rate ? [html("span", {}, `lr ${rate}`)] : []),
        ...(moment ? [html("span", {}, `histograms of step ${withCommas(moment[0] + 1)}`)] : []),
      );
      const [low, high] = run.usual;
      body.replaceChildren(
        ...run.layers.map((layer, k) => {
          const at = lastMeasured(layer.ratio.mean, column),
            ratio = at === null ? null : layer.ratio.mean[at],
            arrow = ratio === null ? "" : ratio > high ? " ↑" : ratio < low ? " ↓" : "";
          const bad = isBad(layer.gradient, column);
          return html(
            "tr",
            {},
            html(
              "th",
              { scope: "row" },
              html("span", { class: "gl-dim" }, run.numbered ? `${k} ` : ""),
              html("code", {}, run.names[k]),
            ),
            bad ? html("td", { class: "gl-back" }, "not finite") : cell(layer.gradient.mean, column, "gl-back", ""),
            cell(layer.ratio.mean, column, "", arrow),
            html("td", {}, histogram(moment?.[1][k] ?? null, "gl-back")),
            html("td", {}, histogram(moment?.[2][k] ?? null, "gl-forward")),
          );
        }),
      );
      const shares = run.activations.flatMap(({ dead, saturated }, k) => {
        const parts = [share(dead, column, "dead"), share(saturated, column, "saturated")].filter(Boolean);
        return parts.length ? [`${run.units[k][0]} (${run.units[k][1]}): ${parts.join(", ")}`] : [];
      });
      units.textContent = shares.join(" · ");
    },
  };
}

/**
 * Whether the last measurement up to a column is not finite.
 * @param {Series} series
 * @param {number} column
 */
function isBad({ mean, bad }, column) {
  const last = lastMeasured(mean, column) ?? -1;
  return Boolean(bad?.slice(last + 1, column + 1).some(Boolean));
}

/**
 * @param {Values} list
 * @param {number} column
 * @param {string} kind
 * @param {string} more
 */
function cell(list, column, kind, more) {
  const at = lastMeasured(list, column);
  if (at === null) return html("td", {}, "none");
  const value = Number(list[at]),
    node = html("td", { class: kind, title: exact(value) }, weight2(value));
  if (at !== column) node.setAttribute("data-earlier", "");
  if (more) node.append(more);
  return node;
}

/**
 * @param {Values} list
 * @param {number} column
 * @param {boolean} earlier whether an earlier measurement may be shown
 */
function latestText(list, column, earlier) {
  const at = lastMeasured(list, column);
  return at === null || (at !== column && !earlier) ? "" : weight(Number(list[at]));
}

/**
 * @param {Values} list
 * @param {number} column
 * @param {string} word
 */
function share(list, column, word) {
  const at = lastMeasured(list, column);
  return at === null || !list[at] ? "" : `${weight(Number((100 * Number(list[at])).toPrecision(2)))} % ${word}`;
}

/**
 * The moment nearest to a step, counted from 0.
 * @param {Run} run
 * @param {number} step
 */
function nearest(run, step) {
  let found = null;
  for (const one of run.moments) if (!found || Math.abs(one[0] - step) < Math.abs(found[0] - step)) found = one;
  return found;
}

/**
 * @param {Spread} spread
 * @param {string} kind
 */
function histogram(spread, kind) {
  if (!spread) return "";
  const [low, high, bins] = spread,
    most = Math.max(...bins, 1),
    each = WIDE / bins.length;
  const name = `from ${weight2(low)} to ${weight2(high)}`;
  const bars = bins.map((many, k) =>
    many ? `M${k * each} ${TALL}v-${Math.max(1, (TALL * many) / most)}h${each - 0.6}V${TALL}z` : "",
  );
  const size = { width: WIDE, height: TALL, viewBox: `0 0 ${WIDE} ${TALL}`, role: "img", "aria-label": name };
  return svg("svg", { class: "gl-histogram", ...size }, svg("title", {}, name), svg("path", { class: kind, d: bars.join("") }));
}

/**
 * Two digits, as in the picture: "0.031", "120", "3.1e−6".
 * @param {number} value
 */
function weight2(value) {
  const rounded = Number(value.toPrecision(2)),
    size = Math.abs(rounded);
  if (size === 0 || (size >= 1e-4 && size < 1e4)) return exact(rounded);
  return rounded.toExponential().replaceAll("-", "−").replace("e+", "e");
}

export { numbers };
