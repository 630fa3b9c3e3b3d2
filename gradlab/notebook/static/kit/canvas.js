// A drawing that can be moved and zoomed: by dragging, buttons, keys, and the wheel with Ctrl (⌘). The wheel alone scrolls the
// page, as everywhere in a notebook.

import { SUPPRESS, button, html, readByTitle } from "./dom.js";
import { clamp } from "./ranges.js";

/** @typedef {{ x: number, y: number, wide: number, high: number }} Box in the drawing's own units */

const STEP = 1.25; // factor of a zoom
const LARGEST = 4; // times its own size
const READABLE = 0.7; // of its own size
const FAR = 60; // px of a step by keys
const NEAR = 24; // px of margin around a box that is scrolled into view
const DRAG = 4; // px of movement from which a click is a drag

/** @param {string} name for screen readers */
function canvas(name) {
  /** @type {SVGSVGElement | null} */
  let drawing = null;
  let wide = 1,
    high = 1, // of the drawing
    x = 0,
    y = 0, // its visible upper left corner
    scale = 1, // px of a unit
    fitted = true; // not moved since it was fitted
  const tools = html(
    "div",
    { class: "gl-zoom", role: "group", "aria-label": "zoom" },
    button("−", "zoom out (−)", () => zoom(1 / STEP)),
    button("+", "zoom in (+)", () => zoom(STEP)),
    button("fit", "show all (f)", () => fit()),
  );
  readByTitle(tools);
  const stage = html("div", { class: "gl-stage", tabindex: "0", role: "group", "aria-label": name, [SUPPRESS]: "true" });
  const root = html("div", { class: "gl-canvas" }, stage, tools);

  function place() {
    if (!drawing) return;
    const room = size();
    drawing.setAttribute("width", String(room.wide));
    drawing.setAttribute("height", String(room.high));
    drawing.setAttribute("viewBox", `${x} ${y} ${room.wide / scale} ${room.high / scale}`);
  }

  function size() {
    return { wide: Math.max(stage.clientWidth, 50), high: Math.max(stage.clientHeight, 50) };
  }

  /** Show the whole drawing, centred, at most at its own size. */
  function fit() {
    const room = size();
    scale = Math.min(1, room.wide / wide, room.high / high);
    x = (wide - room.wide / scale) / 2;
    y = room.high / scale > high ? Math.min(0, (high - room.high / scale) / 2) : 0;
    fitted = true;
    place();
  }

  /**
   * @param {number} factor
   * @param {number} [atX] px from the left that stays fixed; by default the middle
   * @param {number} [atY]
   */
  function zoom(factor, atX = size().wide / 2, atY = size().high / 2) {
    const room = size(),
      least = Math.min(0.1, room.wide / wide, room.high / high),
      next = clamp(scale * factor, least, LARGEST);
    x += atX / scale - atX / next;
    y += atY / scale - atY / next;
    scale = next;
    fitted = false;
    place();
  }

  /**
   * @param {number} right px
   * @param {number} down
   */
  function pan(right, down) {
    x += right / scale;
    y += down / scale;
    fitted = false;
    place();
  }

  /** @type {{ x: number, y: number, id: number, moved: boolean } | null} */
  let held = null;
  let dragged = false;
  stage.addEventListener("pointerdown", (event) => {
    if (event.button === 0) held = { x: event.clientX, y: event.clientY, id: event.pointerId, moved: false };
  });
  stage.addEventListener("pointermove", (event) => {
    if (!held || event.pointerId !== held.id) return;
    const right = event.clientX - held.x,
      down = event.clientY - held.y;
    if (!held.moved && Math.hypot(right, down) < DRAG) return;
    if (!held.moved) stage.setPointerCapture(held.id);
    pan(-right, -down);
    held = { x: event.clientX, y: event.clientY, id: held.id, moved: true };
  });
  for (const end of ["pointerup", "pointercancel"])
    stage.addEventListener(end, () => {
      dragged = held?.moved ?? false;
      held = null;
    });
  stage.addEventListener(
    "click",
    (event) => {
      if (dragged) event.stopPropagation(); // the end of a drag selects nothing
      dragged = false;
    },
    { capture: true },
  );
  stage.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const at = stage.getBoundingClientRect();
      zoom(Math.exp(-event.deltaY / 300), event.clientX - at.left, event.clientY - at.top);
    },
    { passive: false },
  );
  const resized = new ResizeObserver(() => {
    if (fitted) fit();
    else place();
  });
  resized.observe(stage);

  return {
    root,
    stage,
    fit,

    /**
     * Show a whole drawing; one that replaces another is shown at a readable size.
     * @param {SVGSVGElement} shown
     * @param {number} itsWidth
     * @param {number} itsHeight
     */
    show(shown, itsWidth, itsHeight) {
      const again = drawing !== null,
        before = scale;
      drawing = shown;
      wide = itsWidth;
      high = itsHeight;
      stage.replaceChildren(shown);
      fit();
      if (again && scale < READABLE) zoom(clamp(before, READABLE, 1) / scale);
    },

    /**
     * Scroll as little as possible to show a box.
     * @param {Box} box
     */
    reveal(box) {
      const room = size(),
        near = NEAR / scale,
        seenWide = room.wide / scale,
        seenHigh = room.high / scale;
      const to = (
        /** @type {number} */ at,
        /** @type {number} */ start,
        /** @type {number} */ long,
        /** @type {number} */ seen,
      ) => (start - near < at ? start - near : start + long + near > at + seen ? start + long + near - seen : at);
      const [newX, newY] = [to(x, box.x, box.wide, seenWide), to(y, box.y, box.high, seenHigh)];
      if (newX === x && newY === y) return;
      [x, y] = [newX, newY];
      fitted = false;
      place();
    },

    /**
     * Handle a key; returns whether the canvas uses it.
     * @param {KeyboardEvent} event
     */
    key(event) {
      /** @type {Record<string, () => void>} */
      const known = {
        "+": () => zoom(STEP),
        "=": () => zoom(STEP),
        "-": () => zoom(1 / STEP),
        f: fit,
        0: fit,
      };
      if (event.shiftKey)
        Object.assign(known, {
          ArrowLeft: () => pan(-FAR, 0),
          ArrowRight: () => pan(FAR, 0),
          ArrowUp: () => pan(0, -FAR),
          ArrowDown: () => pan(0, FAR),
        });
      const action = event.ctrlKey || event.metaKey || event.altKey ? undefined : known[event.key];
      action?.();
      return action !== undefined;
    },

    end: () => resized.disconnect(),
  };
}

export { canvas };
