// Named arrays in sequence, as the rows and columns of a Jacobian: labels and numbers of their elements.

/** @typedef {{ name: string, shape: number[] }} Part */

/**
 * The number of elements of a shape.
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
 * The number of the element with a label ("x[0, 2]") or a number from 0; −1 if there is none.
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

export { shapeText, names, label, indexOf };
