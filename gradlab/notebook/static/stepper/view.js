// The live view of the steps: the widget around `mount`. For another start, the kernel computes all steps again.

import { html } from "../kit/dom.js";
import { Kernel } from "../kit/kernel.js";
import { mount } from "./mount.js";

/** @import { Model } from "../kit/kernel.js" */

const ENDED = "This view was closed and its graph was freed. You can still step; run the cell again for another start.";

/**
 * Render a view of the widget; anywidget calls the returned function to end it.
 * @param {{ model: Model, el: HTMLElement }} widget
 */
function render({ model, el }) {
  const waiting = html("p", { class: "gl-dim gl-waiting", role: "status" }),
    root = html("div", { class: "gl-view" });
  const view = mount(root, model.get("about"), {
    restart(numbers) {
      if (model.get("ended")) view.fail(ENDED);
      else kernel.ask("start", { numbers });
    },
  });
  root.append(waiting);
  const kernel = new Kernel(model, {
    busy(on) {
      root.toggleAttribute("aria-busy", on);
      if (!on) waiting.textContent = "";
    },
    waiting() {
      waiting.textContent = "waiting for the kernel …";
    },
    silent: view.fail,
    back: () => view.fail(""),
    receive(answer, _, mine) {
      if (answer.error && mine) view.fail(answer.error);
      else if (answer.data) view.take(answer.data);
    },
    idle() {},
  });
  const ended = () => root.toggleAttribute("data-ended", model.get("ended"));
  model.on("change:ended", ended);
  ended();
  el.append(root);
  return () => {
    model.off("change:ended", ended);
    view.end();
    kernel.leave();
    root.remove();
  };
}

export { render };
