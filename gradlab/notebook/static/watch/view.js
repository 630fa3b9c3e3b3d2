// The live view of the training runs of a cell, and of a saved run. Each of several runs has a tab; the newest is shown until
// another one is selected.

import { SUPPRESS, html } from "../kit/dom.js";
import { training } from "./training.js";

/** @import { Model } from "../kit/kernel.js" */
/** @import { Run } from "./run.js" */

const ONLY = "run"; // the key of the first run in the model

/**
 * Render a view of the widget; anywidget calls the returned function to end it.
 * @param {{ model: Model, el: HTMLElement }} widget
 */
function render({ model, el }) {
  const live = Boolean(model.get("live"));
  /** @type {string | null} */
  let chosen = null; // null: the newest
  const strip = html("div", { class: "gl-tabs", role: "tablist", "aria-label": "training runs of the cell", hidden: "" }),
    rest = html("div", { class: "gl-dim gl-rest", hidden: "" });
  const root = html("div", { class: "gl-view gl-watch" }, strip, rest);
  /** @type {Map<string, { tab: HTMLButtonElement, label: Text, mark: HTMLElement, view: ReturnType<typeof training>, run: Run }>} */
  const shown = new Map();

  /** @param {string} key */
  function add(key) {
    const label = document.createTextNode(""),
      mark = html("span", { class: "gl-mark" });
    const tab = html("button", { type: "button", role: "tab", onclick: () => choose(key), [SUPPRESS]: "true" }, label, mark);
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const keys = [...shown.keys()],
        next = keys[(keys.indexOf(key) + step + keys.length) % keys.length];
      choose(next);
      shown.get(next)?.tab.focus();
      event.preventDefault();
    });
    const view = training(part(model, key), (run) => {
      const known = shown.get(key);
      if (known) known.run = run;
      marks();
    });
    view.root.hidden = true;
    shown.set(key, { tab, label, mark, view, run: model.get(key) });
    strip.append(tab);
    rest.before(view.root);
  }

  /** @param {string} key */
  function choose(key) {
    chosen = key === [...shown.keys()].at(-1) ? null : key;
    select();
  }

  function select() {
    const newest = [...shown.keys()].at(-1),
      current = chosen ?? newest;
    for (const [key, { tab, view }] of shown) {
      tab.setAttribute("aria-selected", String(key === current));
      tab.tabIndex = key === current ? 0 : -1;
      view.root.hidden = key !== current;
    }
  }

  /** Mark the tabs of runs that have problems or are still running. */
  function marks() {
    for (const { tab, mark, run } of shown.values()) {
      const problems = run.findings.filter(({ severity }) => severity === "problem").length;
      mark.textContent = problems ? " ■" : "";
      tab.title = problems ? `${problems} ${problems === 1 ? "problem" : "problems"}` : "";
      tab.toggleAttribute("data-running", live && !run.ended);
    }
    root.toggleAttribute("data-running", live && [...shown.values()].some(({ run }) => !run.ended));
  }

  function update() {
    /** @type {[string, string][]} */
    const tabs = model.get("tabs") ?? [];
    const several = tabs.length ? tabs : [[ONLY, ""]];
    for (const [key] of several) if (!shown.has(key) && model.get(key)) add(key);
    for (const [key, text] of several) {
      const known = shown.get(key);
      if (known) known.label.data = text;
    }
    strip.hidden = shown.size < 2;
    rest.textContent = model.get("rest") ?? "";
    rest.hidden = !rest.textContent;
    select();
    marks();
  }

  for (const event of ["change:tabs", "change:rest"]) model.on(event, update);
  el.append(root);
  update();
  return () => {
    for (const event of ["change:tabs", "change:rest"]) model.off(event, update);
    for (const { view } of shown.values()) view.end();
    root.remove();
  };
}

/**
 * The part of the widget's model that is about one run.
 * @param {Model} model
 * @param {string} key of the run
 * @returns {Model}
 */
function part(model, key) {
  const own = (/** @type {string} */ event) => (event === "change:run" ? `change:${key}` : event);
  /** @type {Map<(...given: any[]) => void, (...given: any[]) => void>} */
  const filters = new Map();
  return {
    get: (name) => model.get(name === ONLY ? key : name),
    on(event, listener) {
      if (event !== "msg:custom") return model.on(own(event), listener);
      /** @param {any[]} given */
      const filter = (...given) => {
        if ((given[0]?.run ?? ONLY) === key) listener(...given);
      };
      filters.set(listener, filter);
      model.on(event, filter);
    },
    off(event, listener) {
      model.off(own(event), filters.get(listener) ?? listener);
      filters.delete(listener);
    },
    send: (content, ...more) => model.send({ ...content, run: key }, ...more),
  };
}

export { render };
