// The sentences of a Jacobian view. Nothing here touches the page.

import { names } from "../kit/arrays.js";
import { KNOWN, oddities, worth } from "../kit/cells.js";
import { exact, withCommas, number, plural, short, weight } from "../kit/format.js";
import { binRange, rangeText } from "../kit/ranges.js";

/** @import { By, Cell, Shown } from "./shown.js" */

const NUMBERS = 12; // at most, of a result, as in explore.jacobian.view_model
const TERMS = 6; // at most, of a mix
const SPOKEN = 8; // numbers of a line for screen readers
const ENTERED = 4; // names of elements where v enters the graph

/** How a line is computed. @param {By} by */
function sweepName(by) {
  return by === "columns" ? "forward sweep" : "weighted backward";
}

/** The view's name. @param {Shown} shown */
function titleText({ about }) {
  return `Jacobian of ${names(about.outputs)} with respect to ${names(about.inputs)}`;
}

/** Beside the title: the line, its cost, and how much is known. @param {Shown} shown */
function headline(shown) {
  const { frame, line, trial } = shown,
    { at, by, filled, of: all, sweeps } = frame,
    mixed = (frame.result ?? []).length > 0,
    sweep = sweepName(by);
  const known =
    filled === all ? `all ${by} known` : filled ? `${withCommas(filled)} of ${plural(all, line)} known` : `no ${line} yet`;
  if (frame.ask === "fill") return `${known} · ${sweeps ? `${plural(sweeps, "sweep")} by the plan` : "no sweep"}`;
  if (at < 0 && !mixed) return `${known} · ${filled === all ? "no sweep is needed" : `one ${sweep} per ${line}`}`;
  const cost = sweeps === 1 ? `one ${sweep}` : sweeps ? plural(sweeps, "sweep") : "from known entries";
  return `${at >= 0 ? shown.title(at) : `a mix of ${by}`} · ${trial ? "in a separate .grad" : cost} · ${known}`;
}

/** The lines of J that v (or u) weights. @param {Shown} shown */
function weighting(shown) {
  const { weights, line } = shown,
    parts = [...weights].map(([i, w]) => `${shown.title(i)} by ${weight(w)}`);
  if (!parts.length) return `weights each ${line} of J by an element of ${shown.letter}`;
  const more = parts.length - TERMS;
  if (more > 0) return `weights ${parts.slice(0, TERMS).join(", ")} and ${plural(more, `more ${line}`)}`;
  const listed = parts.length > 1 ? `${parts.slice(0, -1).join(", ")} and ${parts[parts.length - 1]}` : parts[0];
  return `weights ${listed}${shown.many > parts.length ? ", the others by 0" : ""}`;
}

/** The meaning of the result. @param {Shown} shown */
function meaning(shown) {
  const { frame, product, weights, line } = shown,
    { at, trial } = frame;
  if (!frame.result?.length || (shown.trial && !trial)) return "nothing yet: step, click the map, or move a slider";
  const unused = frame.unused.length ? `. ${frame.unused.join(", ")}: not used by the output, so zero.` : "";
  if (shown.trial) return `${product} = ${trial}${trial.includes("+") ? `, and not ${shown.title(at)}` : ""}${unused}`;
  const rest = partText(shown) + unused;
  if (at >= 0) return `${product} = ${shown.title(at)}${rest}`;
  if (!weights.size) return `${product} = 0${rest}`;
  const terms = [...weights].map(
    ([i, w], k) => `${w < 0 ? (k ? "− " : "−") : k ? "+ " : ""}${weight(Math.abs(w))} · ${line} ${shown.name(i)}`,
  );
  return `${product} = ${terms.slice(0, TERMS).join(" ")}${terms.length > TERMS ? " + …" : ""}${rest}`;
}

/** The part of a long result that is shown. @param {Shown} shown */
function partText(shown) {
  const { frame, length } = shown,
    places = frame.places ?? [],
    all = withCommas(length);
  if (length <= places.length) return "";
  if (!frame.nonzero) return `; all ${all} are zero`;
  if (places.length >= frame.nonzero)
    return `; ${withCommas(frame.nonzero)} of ${all} ${frame.nonzero === 1 ? "is" : "are"} not zero`;
  return `; ${places.length} of ${withCommas(frame.nonzero)} nonzero elements, from ${shown.elementName(places[0])}`;
}

/** The text for screen readers after a step. @param {Shown} shown */
function spokenText(shown) {
  const { at, filled, of: all, result = [], happened, places = [] } = shown.frame;
  if (at < 0) return happened;
  const numbers = Array.from(places.slice(0, SPOKEN), (i, k) => `${shown.elementName(i)} ${number(result[k])}`);
  return `${shown.title(at)}, ${filled} of ${all} known: ${numbers.join(", ")}`;
}

/** The heat map's name. @param {Shown} shown */
function mapText(shown) {
  const { at, by, filled } = shown.frame,
    outlined = at >= 0 ? `, ${shown.line} ${shown.name(at)} outlined` : "";
  return `heat map, ${shown.about.rows} by ${shown.about.columns}, ${filled} ${by} filled${outlined}. Arrow keys move.`;
}

/** Whether the window is a part of the matrix. @param {Shown} shown */
function isPart({ frame: { window }, about }) {
  return window[1] - window[0] < about.rows || window[3] - window[2] < about.columns;
}

/** Whether any entry is known. @param {Shown} shown */
function anyKnown({ frame }) {
  return frame.flags.some((flag) => (flag & KNOWN) > 0) || frame.filled > 0;
}

/** The extremes of the whole matrix, and of the part in view. @param {Shown} shown */
function extremesText(shown) {
  const { frame } = shown,
    [low, high] = frame.extent;
  if (!anyKnown(shown)) return "";
  const finite = low === high ? `all ${number(low)}` : `least ${number(low)} · greatest ${number(high)}`,
    nans = frame.nans ? `${withCommas(frame.nans)} NaN` : "";
  return [low <= high ? finite + inView(shown) : "", nans].filter(Boolean).join(" · ");
}

/** @param {Shown} shown */
function inView(shown) {
  if (!isPart(shown)) return "";
  const low = shown.frame.low.reduce((a, b) => Math.min(a, b), Infinity),
    high = shown.frame.high.reduce((a, b) => Math.max(a, b), -Infinity);
  return low <= high ? ` · in view ${number(low)} to ${number(high)}` : "";
}

/** The part of the matrix that is shown, and the entries per cell. @param {Shown} shown */
function windowText(shown) {
  const { frame, about, rowLabel, columnLabel } = shown,
    [top, bottom, left, right] = frame.window,
    sides = [(bottom - top) / frame.rowBins.length, (right - left) / frame.columnBins.length];
  const extent = isPart(shown)
    ? `rows ${rangeText(rowLabel, [top, bottom])}, columns ${rangeText(columnLabel, [left, right])}`
    : `${withCommas(about.rows)} × ${withCommas(about.columns)}`;
  const block = sides.some((side) => side > 1) ? `, each cell the largest of ${sides.map(Math.ceil).join(" × ")}` : "";
  return extent + block;
}

/**
 * One cell: its derivative, and its value or extremes.
 * @param {Shown} shown
 * @param {Cell} cell
 */
function cellText(shown, { i, j }) {
  const { frame, classes, rowLabel, columnLabel } = shown,
    rows = i < 0 ? null : binRange(frame.rowBins, i, frame.window[1]),
    columns = j < 0 ? null : binRange(frame.columnBins, j, frame.window[3]),
    row = rows ? rangeText(rowLabel, rows) : "",
    column = columns ? rangeText(columnLabel, columns) : "";
  const strip = !rows || !columns,
    what = strip ? `${shown.product} at ${row || column}` : `∂${row}/∂${column}`,
    k = i < 0 ? j : j < 0 ? i : i * frame.columnBins.length + j;
  if (classes && !strip)
    return `${what}: ${classes[k] === -1 ? "always zero" : classes[k] === -2 ? "several colours" : `colour ${classes[k]}`}`;
  const [low, high, flags] = strip
    ? [frame.stripLow?.[k] ?? NaN, frame.stripHigh?.[k] ?? NaN, frame.stripFlags?.[k] ?? 0]
    : [frame.low[k], frame.high[k], frame.flags[k]];
  if (!(flags & KNOWN)) return `${what}: ${strip ? "nothing yet" : "not computed yet"}`;
  const single = [rows, columns].every((range) => !range || range[1] - range[0] === 1);
  if (single) return `${what} = ${exact(worth(low, high, flags))}`;
  const also = oddities(flags),
    finite = low <= high ? `least ${number(low)}, greatest ${number(high)}` : "no finite value";
  return `${what}: ${finite}${also ? `, also ${also}` : ""}`;
}

/** Above the graph: where v (or u) enters, and what it reaches. @param {Shown} shown */
function graphText(shown) {
  const { about, frame, across, weights } = shown,
    folded = about.graph?.folded ? `, ${about.graph.folded} nodes folded` : "";
  if (!frame.lit.length) return `the graph${folded}`;
  const entered = [...weights.keys()],
    named = entered.slice(0, ENTERED).map((i) => shown.name(i)),
    from = named.join(", ") + (entered.length > ENTERED ? ", …" : ""),
    ends = frame.lit.map((k) => about.graph?.nodes[k]).filter((node) => node?.kind === (across ? "output" : "leaf")),
    to = ends.map((node) => node?.label).join(", ");
  if (across)
    return `where u arrives: from ${from} ${to ? `on to ${to}` : "no further"}${about.forward ? "" : ", at most"}${folded}`;
  return `where v arrives: from ${from} ${to ? `back to ${to}` : "no further"}${folded}`;
}

/**
 * The lines that the box accepts.
 * @param {Shown} shown
 */
function linesText(shown) {
  return `${shown.name(0)} to ${shown.name(shown.many - 1)}`;
}

/**
 * The message for a text that does not name a line.
 * @param {Shown} shown
 * @param {string} text
 */
function refusalText(shown, text) {
  const last = shown.many - 1;
  return `There is no ${shown.line} ${short(text, 24)}: ${shown.frame.by} go from 0 (${shown.name(0)}) to ${last} (${shown.name(last)}).`;
}

/**
 * Some lines of one colour.
 * @param {string[]} some
 * @param {number} all
 */
function membersText(some, all) {
  return some.map((one) => short(one, 12)).join(", ") + (all > some.length ? ", …" : "");
}

export {
  NUMBERS,
  sweepName,
  titleText,
  headline,
  weighting,
  meaning,
  linesText,
  refusalText,
  spokenText,
  mapText,
  anyKnown,
  extremesText,
  windowText,
  cellText,
  graphText,
  membersText,
};
