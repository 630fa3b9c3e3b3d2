// A saved page, which contains its data.

import { mount } from "./mount.js";

/** Show the steps if the page has an element for them. */
function render() {
  const data = document.getElementById("steps")?.textContent,
    place = document.getElementById("stepper");
  if (data && place) mount(place, JSON.parse(data));
}

export { render };
