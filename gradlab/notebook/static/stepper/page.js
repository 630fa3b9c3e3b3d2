// A saved page: its data lie in the page itself.

import { mount } from "./mount.js";

/** Show the steps where the page has a place for them. */
function render() {
  const data = document.getElementById("steps")?.textContent,
    place = document.getElementById("stepper");
  if (data && place) mount(place, JSON.parse(data));
}

export { render };
