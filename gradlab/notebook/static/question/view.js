// The live view of a lesson's question. Python parses and stores the guess (homework/questions.py behind
// notebook/question_widget.py); this module shows the stored guess, wherever it was set.

import { SUPPRESS, html } from "../kit/dom.js";
import { Kernel } from "../kit/kernel.js";

/** @import { Model } from "../kit/kernel.js" */

/** @typedef {{ key: string, numbers: number | null, choices: string[], rows: string[], wanted: string, typing: string }} About */
/** @typedef {{ chosen: string[], text: string, problem: string, noted: string }} State */

/** @type {Record<string, [number, number]>} */
const ARROWS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

/**
 * Render a view of the widget; anywidget calls the returned function to end it.
 * @param {{ model: Model, el: HTMLElement }} widget
 */
function render({ model, el }) {
  /** @type {About} */
  const about = model.get("about");
  const status = html("p", { class: "gl-summary", role: "status", "aria-live": "polite" }),
    problem = html("p", { class: "gl-error", role: "alert", hidden: "" });

  const kernel = new Kernel(model, {
    busy(on) {
      root.toggleAttribute("data-busy", on);
    },
    waiting() {
      say("It is saved when the kernel is free …");
    },
    silent(text) {
      fail(text);
      root.setAttribute("data-silent", "");
    },
    back() {
      fail("");
      root.removeAttribute("data-silent");
    },
    receive(answer, _, mine) {
      fail(answer.error ?? "");
      if (mine && answer.ask === "look") say(answer.problem || "Press Enter to save it.");
      else if (mine) show();
    },
    idle() {},
  });

  /** @param {string} text */
  function say(text) {
    status.replaceChildren(...withCode(text));
  }
  /** @param {string} text */
  function fail(text) {
    problem.textContent = text;
    problem.hidden = !text;
  }

  /**
   * Save a guess, without waiting for an earlier answer: the cell that reveals the result may run at once, and would overtake it.
   * @param {object} guess
   */
  function submit(guess) {
    const busy = root.hasAttribute("data-busy");
    kernel.ask("said", guess);
    if (busy) model.send({ ask: "said", id: "", ...guess });
  }

  const parts = about.choices.length ? choices(about, submit) : field(about, kernel, submit, say);
  const root = html(
    "div",
    { class: "gl-view gl-question", role: "group", "aria-label": "your guess" },
    html("div", { class: "gl-head" }, html("b", {}, "Your guess")),
    html("div", { class: "gl-body" }, parts.root, status, problem),
  );
  function show() {
    /** @type {State} */
    const state = model.get("state");
    parts.show(state);
    root.toggleAttribute("data-noted", Boolean(state.noted));
    say(state.noted || state.problem);
  }
  model.on("change:state", show);
  show();
  el.append(root);
  return () => {
    model.off("change:state", show);
    kernel.leave();
    root.remove();
  };
}

/**
 * Buttons for one of several words, or one for each row.
 * @param {About} about
 * @param {(guess: object) => void} submit
 */
function choices({ choices, rows }, submit) {
  const labels = rows.length ? rows : [""];
  /** @type {string[]} */
  let chosen = labels.map(() => "");
  const table = labels.map((label, row) =>
    choices.map((word) =>
      html(
        "button",
        {
          ...{ type: "button", [SUPPRESS]: "true", "aria-pressed": "false", "aria-label": label ? `${label}: ${word}` : word },
          onclick() {
            chosen = chosen.map((one, at) => (at !== row ? one : one === word ? "" : word));
            press();
            submit({ chosen });
          },
        },
        word,
      ),
    ),
  );
  const lines = table.map((buttons, row) =>
    html(
      "div",
      { class: "gl-row" },
      ...(labels[row] ? [html("code", {}, labels[row])] : []),
      html("div", { class: "gl-choices" }, ...buttons),
    ),
  );
  function press() {
    table.forEach((buttons, row) => {
      buttons.forEach((node, k) => node.setAttribute("aria-pressed", String(chosen[row] === choices[k])));
    });
  }
  return {
    root: html("div", { class: rows.length ? "gl-rows" : "gl-one", onkeydown: move }, ...lines),
    /** @param {State} state */
    show(state) {
      chosen = labels.map((_, row) => state.chosen[row] ?? "");
      press();
    },
  };

  /** @param {KeyboardEvent} event */
  function move(event) {
    const by = ARROWS[event.key];
    if (!by || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const row = table.findIndex((buttons) => buttons.some((node) => node === event.target)),
      column = table[row]?.findIndex((node) => node === event.target);
    const next = table[row + by[0]]?.[column + by[1]];
    if (next) next.focus();
    event.preventDefault();
  }
}

/**
 * A field for numbers or a word.
 * @param {About} about
 * @param {Kernel} kernel
 * @param {(guess: object) => void} submit
 * @param {(text: string) => void} say
 */
function field({ numbers, wanted }, kernel, submit, say) {
  let last = "";
  const input = html("input", {
    ...{ type: "text", [SUPPRESS]: "true", "aria-label": wanted, autocomplete: "off", spellcheck: "false" },
    placeholder: numbers === null ? "a word or a number" : Array.from({ length: numbers }, (_, k) => 5 + k).join(", "),
    oninput: () => (input.value.trim() ? kernel.ask("look", { text: input.value }) : say("")),
    onchange: save,
    onkeydown(/** @type {KeyboardEvent} */ event) {
      if (event.key === "Enter" && !event.shiftKey) save();
    },
  });
  function save() {
    if (input.value.trim() === last) return;
    last = input.value.trim();
    submit({ text: last });
  }
  return {
    root: html(
      "div",
      { class: "gl-field" },
      input,
      html("button", { type: "button", [SUPPRESS]: "true", onclick: save }, "save"),
    ),
    /** @param {State} state */
    show(state) {
      if (!state.text && state.problem) return; // a wrong text stays for the user to correct
      last = input.value = state.text;
    },
  };
}

/**
 * A text with `code` as code elements.
 * @param {string} text
 */
function withCode(text) {
  return text.split("\u0060").map((part, k) => (k % 2 ? html("code", {}, part) : part));
}

export { render };
