// The user's source beside the graph. The expression of the selected node is marked, selecting a line marks its nodes, and each
// line shows the norm of the gradient of its result.

import { SUPPRESS, html, scrollWithin } from "../kit/dom.js";
import { shortNumber } from "../kit/format.js";
import { scaleOf } from "./data.js";

/** @import { Data } from "./data.js" */

/**
 * @param {Data} data
 * @param {(nodes: number[], title: string) => void} chosen
 */
function sourceView(data, chosen) {
  const { sources, spans, unrecorded } = data.about;
  /** @type {Map<string, number[]>} the nodes of each line, by source and number */
  const byLine = new Map();
  for (let i = 0; i < data.count; i++) {
    if (data.isLeaf(i) || data.isOutput(i)) continue;
    for (const at of new Set([data.nodes.place[i], data.nodes.cell[i]])) {
      if (at < 0) continue;
      const [source, first] = spans[at],
        key = `${source}:${first}`;
      byLine.set(key, [...(byLine.get(key) ?? []), i]);
    }
  }
  const ends = [...byLine].map(
      ([key, nodes]) =>
        /** @type {[string, number | null]} */ ([key, data.norms[data.outputOf(nodes.flatMap((i) => [i, 1]))] ?? null]),
    ),
    norms = new Map(ends),
    scale = scaleOf(ends.map(([, norm]) => norm));
  /** @type {Map<string, HTMLElement>} */
  const lines = new Map();
  const root = html("div", { class: "gl-pane" });
  sources.forEach((source, k) => {
    if (sources.length > 1) root.append(html("div", { class: "gl-caption" }, source.title));
    const listing = html("div", { class: "gl-code", role: "group", "aria-label": source.title });
    for (const [number, text] of source.lines) {
      const key = `${k}:${number}`,
        nodes = byLine.get(key),
        norm = norms.get(key) ?? null;
      const line = html(
        "div",
        {
          class: nodes ? "gl-pane-line gl-live" : "gl-pane-line",
          ...(nodes
            ? {
                role: "button",
                tabindex: "0",
                [SUPPRESS]: "true",
                "aria-label": `line ${number}: ${text}${norm === null ? "" : `, norm of the gradient ${shortNumber(norm, 3)}`}`,
              }
            : {}),
        },
        html("span", { class: "gl-number" }, String(number)),
        html("code", {}, text || " "),
        norm === null || !nodes
          ? ""
          : html(
              "span",
              { class: "gl-line-norm" },
              html("b", {}, shortNumber(norm, 3)),
              html("span", { class: "gl-track" }, html("i", { style: `width:${100 * (scale?.part(norm) ?? 0)}%` })),
            ),
      );
      if (nodes) {
        const act = () => chosen(nodes, `line ${number}`);
        line.addEventListener("click", act);
        line.addEventListener("keydown", (event) => {
          if (event.key === "Enter" || event.key === " ") {
            event.preventDefault();
            act();
          }
        });
      }
      lines.set(key, line);
      listing.append(line);
    }
    root.append(listing);
  });
  if (unrecorded) root.append(html("div", { class: "gl-dim" }, unrecorded));

  return {
    root,

    /**
     * Mark the expression of a node; −1: none.
     * @param {number} i
     */
    mark(i) {
      for (const line of lines.values()) {
        line.classList.remove("gl-marked");
        const text = line.querySelector("code");
        if (text?.querySelector("mark")) text.replaceChildren(text.textContent ?? "");
      }
      if (i < 0) return;
      for (const at of new Set([data.nodes.place[i], data.nodes.cell[i]])) {
        if (at < 0) continue;
        const [source, first, last, start, end, expression] = spans[at];
        for (let number = first; number <= last; number++) {
          const line = lines.get(`${source}:${number}`),
            code = line?.querySelector("code"),
            text = code?.textContent ?? "";
          if (!line || !code) continue;
          line.classList.add("gl-marked");
          let [from, to] = [start !== null && number === first ? start : 0, end !== null && number === last ? end : text.length];
          if (start === null) {
            from = text.indexOf(expression);
            to = from + expression.length;
          }
          if (from >= 0 && to > from)
            code.replaceChildren(text.slice(0, from), html("mark", {}, text.slice(from, to)), text.slice(to));
          scrollWithin(root, line);
        }
      }
    },
  };
}

export { sourceView };
