// The axes of a picture that Python drew: the position of the pointer in their units, and a vertical line there. The SVG has them
// as attributes: data-frame (left, top, width and height in px), data-x and data-y (the ranges).

import { svg } from "./dom.js";
import { clamp } from "./ranges.js";

/** @param {SVGSVGElement} drawing */
function axes(drawing) {
  const numbers = (/** @type {string} */ key) => (drawing.dataset[key] ?? "0 1").split(" ").map(Number);
  const [left, top, width, height] = numbers("frame"),
    ends = [numbers("x"), numbers("y")];
  const hair = svg("line", { class: "gl-hair", y1: top, y2: top + height, visibility: "hidden" });
  drawing.append(hair);

  return {
    ends,

    /**
     * The position of a pointer in units of the axes; null outside them.
     * @param {PointerEvent | MouseEvent} event
     * @param {boolean} held whether a position outside is moved to the nearest one inside
     */
    value(event, held = false) {
      const box = drawing.getBoundingClientRect(),
        scale = box.width / drawing.viewBox.baseVal.width;
      const shares = [
        ((event.clientX - box.left) / scale - left) / width,
        1 - ((event.clientY - box.top) / scale - top) / height,
      ];
      if (!held && shares.some((share) => share < -0.01 || share > 1.01)) return null;
      return ends.map(([low, high], way) => low + clamp(shares[way], 0, 1) * (high - low));
    },

    /** @param {number | null} x of the line; null hides it */
    mark(x) {
      hair.setAttribute("visibility", x === null ? "hidden" : "visible");
      const [low, high] = ends[0],
        at = String(left + (width * ((x ?? low) - low)) / (high - low));
      hair.setAttribute("x1", at);
      hair.setAttribute("x2", at);
    },
  };
}

export { axes };
