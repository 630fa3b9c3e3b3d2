// The live view of the steps: the widget around `mount`. Another start is asked of the kernel, which answers with all steps anew.

import { html } from "../kit/dom.js";
import { Kernel } from "../kit/kernel.js";
import { mount } from "./mount.js";

/** @import { Model } from "../kit/kernel.js" */

const ENDED = "This view was closed and its graph let go. Run the cell again for another start; stepping goes on.";

/**
 * What anywidget calls for each view of the widget; the function returned ends the view.
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
    heard(answer, _, mine) {
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
