// Named arrays laid one after another, as a Jacobian's rows and columns are: which element is the i-th.

/** @typedef {{ name: string, shape: number[] }} Part */

/**
 * How many elements a shape has.
 * @param {number[]} shape
 */
function size(shape) {
  return shape.reduce((a, b) => a * b, 1);
}

/**
 * "2×3", "scalar"
 * @param {number[]} shape
 */
function shapeText(shape) {
  return shape.join("×") || "scalar";
}

/**
 * "x, w"
 * @param {Part[]} parts
 */
function names(parts) {
  return parts.map(({ name }) => name).join(", ");
}

/**
 * The label of element i: "x[0,2]".
 * @param {Part[]} parts
 * @param {number} i
 */
function label(parts, i) {
  for (const { name, shape } of parts) {
    const count = size(shape);
    if (i >= count) {
      i -= count;
      continue;
    }
    if (!shape.length) return name;
    const index = [];
    for (const length of [...shape].reverse()) {
      index.unshift(i % length);
      i = Math.floor(i / length);
    }
    return `${name}[${index.join(",")}]`;
  }
  return "";
}

/**
 * The number of the element that a text names, as labels do ("x[0, 2]") or by its number from 0; −1 if there is none.
 * @param {Part[]} parts
 * @param {string} text
 */
function indexOf(parts, text) {
  const bare = text.replace(/\s/g, "");
  if (/^\d+$/.test(bare)) return Number(bare) < parts.reduce((sum, { shape }) => sum + size(shape), 0) ? Number(bare) : -1;
  let start = 0;
  for (const { name, shape } of parts) {
    const front = name.replace(/\s/g, ""),
      [all, index] = (bare.startsWith(front) && bare.slice(front.length).match(/^(?:\[(\d+(?:,\d+)*)\])?$/)) || [],
      places = index ? index.split(",").map(Number) : [];
    if (all !== undefined && places.length === shape.length && places.every((place, k) => place < shape[k]))
      return start + places.reduce((sum, place, k) => sum * shape[k] + place, 0);
    start += size(shape);
  }
  return -1;
}

/**
 * Round elements that are at least `least` apart, counted anew in each part and along its last axis: every 1st, 2nd, 5th, 10th …;
 * where that axis is shorter than `least`, every 1st, 2nd, 5th … beginning of it.
 * @param {Part[]} parts
 * @param {number} from
 * @param {number} to the end
 * @param {number} least
 */
function roundElements(parts, from, to, least) {
  const found = [];
  let start = 0;
  for (const { shape } of parts) {
    const end = start + size(shape),
      last = Math.max(1, shape.length ? shape[shape.length - 1] : 1),
      within = least <= last || shape.length < 2,
      [line, step] = within ? [last, roundUp(least)] : [last * roundUp(least / last), Infinity];
    for (let at = start + Math.floor((Math.max(from, start) - start) / line) * line; at < Math.min(to, end); at += line)
      for (
        let i = at + (within ? Math.floor(Math.max(0, from - at) / step) * step : 0);
        i < Math.min(to, end, at + line);
        i += step
      )
        if (i >= from && (i === at || at + line - i >= least || at + line >= end)) found.push(i);
    start = end;
  }
  return found;
}

/**
 * 1, 2, 5, 10, 20, …: the first that is not less.
 * @param {number} value
 */
function roundUp(value) {
  for (let power = 1; ; power *= 10) for (const step of [1, 2, 5]) if (step * power >= value) return step * power;
}

/**
 * Which part element i belongs to.
 * @param {Part[]} parts
 * @param {number} i
 */
function partOf(parts, i) {
  let k = 0;
  for (const { shape } of parts) {
    i -= size(shape);
    if (i < 0) return k;
    k++;
  }
  return k - 1;
}

export { shapeText, names, label, indexOf, roundElements, partOf };
