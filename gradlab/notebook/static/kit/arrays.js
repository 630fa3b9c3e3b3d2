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

export { shapeText, names, label, partOf };
