// A playground on a saved page, without a kernel: requests are answered from frames that were computed when the page was saved.

import { render } from "./view.js";

/**
 * The data of the page: for each input the places of its slider, a frame for each combination of places (the last input varies
 * fastest), and the frames of the path from the first point, by steps.
 * @typedef {{ about: any, places: number[][], frames: any[], path: any[], still: any }} Saved `still`: of the picture, what stays
 */

const TIMEOUT = 10; // seconds

/**
 * Draw the view of the page's record in place of the element with this id.
 * @param {string} place
 * @param {string} data
 */
function open(place, data) {
  const record = JSON.parse(document.getElementById(data)?.textContent ?? "{}"),
    el = document.getElementById(place);
  if (!el) return;
  el.replaceChildren();
  render({ model: modelOf(record), el });
}

/**
 * A model whose kernel is the record.
 * @param {Saved} saved
 */
function modelOf({ about, places, frames, path, still }) {
  /** @type {((answer: object, buffers: DataView[]) => void)[]} */
  const listeners = [];
  let steps = 0,
    frame = path[0];
  const state = { about: { ...about, inputs: about.inputs.map(withStep) }, token: "page", timeout: TIMEOUT };

  /**
   * An input with the distance between its places as its step.
   * @param {{ low: number, high: number }} input
   * @param {number} k
   */
  function withStep(input, k) {
    return { ...input, step: Number(((input.high - input.low) / (places[k].length - 1)).toPrecision(3)) };
  }

  /** @param {number[]} point */
  function nearest(point) {
    let at = 0;
    point.forEach((value, k) => {
      const far = places[k].map((place) => Math.abs(place - value));
      at = at * places[k].length + far.indexOf(Math.min(...far));
    });
    return frames[at];
  }

  /** @param {any} message */
  function answer(message) {
    if (message.ask === "move") {
      frame = nearest(message.point);
      steps = 0;
      if (frame.point.every((/** @type {number} */ value, /** @type {number} */ k) => value === path[0].point[k]))
        frame = path[0];
      else
        frame = {
          ...frame,
          ended: "elsewhere",
          course: "This saved page has only the path from its first point. Reset returns there.",
        };
    } else if (["step", "run", "reset"].includes(message.ask)) {
      steps = message.ask === "reset" ? 0 : Math.min(message.ask === "run" ? path.length - 1 : steps + 1, path.length - 1);
      frame = path[steps];
      if (steps === path.length - 1 && !frame.ended) frame = { ...frame, ended: "over" };
    }
    return message.ask === "hello" ? { ...frame, picture: { ...frame.picture, ...still } } : frame;
  }

  return {
    get: (/** @type {string} */ key) => /** @type {any} */ (state)[key],
    on: (/** @type {string} */ event, /** @type {any} */ listener) => {
      if (event === "msg:custom") listeners.push(listener);
    },
    off: () => {},
    send: (/** @type {any} */ message) => {
      if (message.ask === "keep" || message.ask === "gone") {
        setTimeout(() => listeners.forEach((listener) => listener({ answer: message.id, ask: message.ask, arrays: [] }, [])));
        return;
      }
      const content = { ...answer(message), answer: message.id, ask: message.ask, arrays: [], more: false, running: false };
      setTimeout(() => listeners.forEach((listener) => listener(content, [])));
    },
  };
}

export { open };
