// Terms with an explanation that is shown on hover and focus; see explore/terms.py.

import { html } from "./dom.js";

/**
 * @param {Record<string, string>} terms the explanations by name
 * @param {string} name
 * @param {string} [text] the visible text
 */
function term(terms, name, text = name) {
  return html("abbr", { tabindex: "0", title: terms[name], "data-gradlab-term": name }, text);
}

export { term };
