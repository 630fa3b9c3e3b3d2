// What a view of a Jacobian says: its sentences, each from what is shown. Nothing here touches the page.

import { names } from "../kit/arrays.js";
import { KNOWN, oddities, worth } from "../kit/cells.js";
import { exact, grouped, number, plural, short, weight } from "../kit/format.js";
import { binRange, rangeText } from "../kit/ranges.js";

/** @import { Cell } from "../kit/grid.js" */
/** @import { By, Shown } from "./shown.js" */

const NUMBERS = 12; // of the result written out
const TERMS = 6; // of a mix written out
const WEIGHTS = 12; // of v or u read out
const SPOKEN = 8; // numbers of a line read out

/** How a line is computed. @param {By} by */
function sweepName(by) {
  return by === "columns" ? "forward sweep" : "weighted backward";
}

/** The view's name. @param {Shown} shown */
function titleText({ about }) {
  return `Jacobian of ${names(about.outputs)} by ${names(about.inputs)}`;
}

/** Beside the title: which line this is, and what it cost. @param {Shown} shown */
function headline(shown) {
  const { frame, line, trial } = shown,
    { at, by, filled, of: all, sweeps } = frame,
    result = frame.result ?? [],
    sweep = sweepName(by);
  const every = filled === all && !trial ? "all is known" : `${grouped(filled)} of ${plural(all, line)}`;
  if (frame.ask === "fill") return `— ${every} · ${sweeps ? `${plural(sweeps, "sweep")} by the plan` : "no sweep"}`;
  const cost = sweeps === 1 ? `one ${sweep}` : sweeps ? plural(sweeps, "sweep") : "from what is known already";
  const how = trial
    ? "on tensors of its own"
    : result.length
      ? cost
      : filled === all
        ? "no sweep is needed"
        : `one ${sweep} a ${line}`;
  const elsewhere = result.length ? `a mix of ${by}` : filled ? every : `no ${line} yet`;
  const where = at >= 0 ? `${line} ${grouped(at + 1)} of ${grouped(all)}` : elsewhere;
  return `— ${where} · ${how}${at >= 0 && filled === all && !trial ? ` · all ${by} known` : ""}`;
}

/** What the numbers of the result are. @param {Shown} shown */
function meaning(shown) {
  const { frame, line, weights } = shown,
    { at, trial } = frame,
    result = frame.result ?? [];
  if (!result.length) return "nothing yet: step, click the map, or move a slider";
  const unused = frame.unused.length ? `. ${frame.unused.join(", ")}: not used by the output, so zero.` : "";
  if (shown.trial) return `= ${trial}${trial.includes("+") ? `, and not row ${shown.name(at)}` : ""}${unused}`;
  const length = grouped(shown.length),
    from = frame.start ? `${NUMBERS} of ${length} from ${shown.elementName(frame.start)}` : `the first ${NUMBERS} of ${length}`,
    rest = (shown.length > NUMBERS ? `, ${from}` : "") + unused;
  if (at >= 0) return `= ${line} ${shown.name(at)}${rest}`;
  if (!weights.size) return `= 0${rest}`;
  const terms = [...weights].map(
    ([i, w], k) => `${w < 0 ? "−" : k ? "+ " : ""}${weight(Math.abs(w))} · ${line} ${shown.name(i)}`,
  );
  return `= ${terms.slice(0, TERMS).join(" ")}${terms.length > TERMS ? " + …" : ""}${rest}`;
}

/** v or u for a screen reader. @param {Shown} shown */
function weightsText(shown) {
  const some = [...shown.weights].slice(0, WEIGHTS).map(([i, value]) => `${weight(value)} at ${shown.name(i)}`);
  return some.length ? `${shown.letter} is ${some.join(", ")}, elsewhere 0` : `${shown.letter} is 0 everywhere`;
}

/** What is read out after a step. @param {Shown} shown */
function spokenText(shown) {
  const { at, filled, of: all, result, happened } = shown.frame;
  if (at < 0) return happened;
  const numbers = Array.from((result ?? []).slice(0, SPOKEN), number);
  return `${shown.line} ${shown.name(at)}, ${filled} of ${all} filled: ${numbers.join(", ")}`;
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

/** The extremes of the whole, and of the part that is in view. @param {Shown} shown */
function extremesText(shown) {
  const { frame } = shown,
    [low, high] = frame.extent;
  if (!anyKnown(shown)) return "";
  const finite = low === high ? `all ${number(low)}` : `least ${number(low)} · greatest ${number(high)}`,
    nans = frame.nans ? `${grouped(frame.nans)} NaN` : "";
  return [low <= high ? finite + inView(shown) : "", nans].filter(Boolean).join(" · ");
}

/** @param {Shown} shown */
function inView(shown) {
  if (!isPart(shown)) return "";
  const low = shown.frame.low.reduce((a, b) => Math.min(a, b), Infinity),
    high = shown.frame.high.reduce((a, b) => Math.max(a, b), -Infinity);
  return low <= high ? ` · in view ${number(low)} to ${number(high)}` : "";
}

/** Which part of the matrix is shown, and what a cell stands for. @param {Shown} shown */
function windowText(shown) {
  const { frame, about } = shown,
    [top, bottom, left, right] = frame.window,
    sides = [(bottom - top) / frame.rowBins.length, (right - left) / frame.columnBins.length];
  const extent = isPart(shown)
    ? `rows ${top}–${bottom - 1}, columns ${left}–${right - 1}`
    : `${grouped(about.rows)} × ${grouped(about.columns)}`;
  const block = sides.some((side) => side > 1) ? `, each cell the largest of ${sides.map(Math.ceil).join(" × ")}` : "";
  return extent + block;
}

/**
 * One cell: which derivative it is, and its value or extremes.
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

/** Above the graph: what is lit in it. @param {Shown} shown */
function graphText({ about, frame, across }) {
  const reached = about.forward ? "what the tangent u reaches" : "what is computed from the inputs that u moves";
  const path = !frame.lit.length ? "the graph" : across ? reached : "where the cotangent of v arrives";
  return path + (about.graph?.folded ? `, ${about.graph.folded} nodes folded` : "");
}

/**
 * Some of the lines of one colour.
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
  meaning,
  weightsText,
  spokenText,
  mapText,
  anyKnown,
  extremesText,
  windowText,
  cellText,
  graphText,
  membersText,
};
