// The buttons that fill the matrix: one line, one line after another, all lines by the plan, or that clear it.
//
// Playing requests the next frame a moment after the last one arrived; filling requests it at once. Any other request of the user
// stops both.

import { SUPPRESS, button, disable, html } from "../kit/dom.js";
import { sweepName } from "./words.js";

/** @import { Shown } from "./shown.js" */
/** @typedef {(what: string, more?: object, buffers?: ArrayBuffer[]) => void} Ask */

const SPEEDS = { "1/s": 1000, "3/s": 333, "10/s": 100, fastest: 0 }; // ms between two frames
const USUAL = "333";

/**
 * @param {Shown} shown
 * @param {Ask} ask
 */
function controls(shown, ask) {
  /** @type {"" | "step" | "fill"} */
  let playing = "";
  let timer = 0;
  const { plan } = shown.about;
  const stepButton = button("step ▸", "", () => wish("step"), "gl-first");
  const playButton = button("play", "fill one by one", () => play(playing === "step" ? "" : "step"));
  const resetButton = button("reset", "clear the view", () => wish("reset"));
  const fillButton = button("fill", plan ? `compute the rest: ${plan}` : "show all known entries", () =>
    play(playing === "fill" ? "" : "fill"),
  );
  const speed = html(
    "select",
    { [SUPPRESS]: "true", "aria-label": "playback speed", title: "playback speed" },
    ...Object.entries(SPEEDS).map(([text, value]) => html("option", { value }, text)),
  );
  speed.value = USUAL;

  /** @param {typeof playing} how */
  function play(how) {
    const { known, done } = shown.frame,
      was = playing;
    clearTimeout(timer);
    playing = how && !(how === "fill" ? known : done) ? how : "";
    playButton.textContent = playing === "step" ? "pause" : "play";
    fillButton.textContent = playing === "fill" ? "stop" : "fill";
    if (playing) ask(playing, { swift: true });
    else if (was && !done) ask("pause");
  }

  /** @type {Ask} */
  function wish(what, more, buffers) {
    play("");
    ask(what, more, buffers);
  }

  return {
    nodes: [stepButton, playButton, speed, fillButton, resetButton],

    playing: () => playing !== "",

    /** Stop playing. */
    stop: () => play(""),

    /** Stop playing, and send another request. */
    wish,

    /** Continue playing after a frame, when no request is queued. */
    next() {
      const { known, done, happened } = shown.frame;
      if (!playing) return;
      if (playing === "fill" ? known : done || happened) play("");
      else
        timer = setTimeout(
          () => {
            if (playing) ask(playing, { swift: true });
          },
          playing === "fill" ? 0 : Number(speed.value),
        );
    },

    /** @param {boolean} ended whether the graph was freed, so that nothing works */
    update(ended) {
      const { by, done, known, filled, result } = shown.frame;
      stepButton.title = `fill the next ${shown.line} by one ${sweepName(by)}`;
      for (const node of [stepButton, playButton, speed]) disable(node, done || ended);
      disable(fillButton, known || shown.trial || ended);
      disable(resetButton, (!filled && !result?.length) || ended);
    },

    /** Stop without notifying the kernel. */
    end() {
      playing = "";
      clearTimeout(timer);
    },
  };
}

export { controls };
