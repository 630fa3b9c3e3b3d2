// A saved page: its data lie in the page itself.

import { mount } from "./mount.js";

const data = JSON.parse(document.getElementById("steps")?.textContent ?? "{}"),
  place = document.getElementById("stepper");
const view = place ? mount(place, data) : null;

export { view };
