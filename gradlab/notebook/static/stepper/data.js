// The steps as Python sends them (explore/steps/view), and sentences that describe them.

import { shortNumber } from "../kit/format.js";
import { parenthesize, scalar, text, times } from "./numbers.js";

/** @import { Figure } from "../kit/graph.js" */
/** @import { Formula } from "../kit/math.js" */
/** @import { Held, Real } from "./numbers.js" */

/** @typedef {{ text: string, number?: Real | null, matrix?: Real[][] }} Local */
/** @typedef {{ symbol: string, name: string, numbers: Held, first: boolean, turned: boolean }} Factor of a product of small matrices */
/**
 * @typedef {object} Share
 * @property {number} to a node
 * @property {string} name
 * @property {Local | null} local
 * @property {Factor | null} factor
 * @property {Held | null} downstream
 * @property {Held | null} total
 * @property {number} sum which sum it is a term of
 * @property {number} term which one
 */
/** @typedef {[number, number, number, number | null, number | null, string]} Span source, lines, columns, text */
/**
 * @typedef {object} Step
 * @property {number} node
 * @property {string} label
 * @property {string} operation
 * @property {string} name
 * @property {number | null} line
 * @property {string} where
 * @property {Span | null} span
 * @property {string} module
 * @property {(Held | null)[]} upstream one for each output
 * @property {boolean} hooked
 * @property {Formula[] | null} rule with the operation's arguments
 * @property {Share[]} shares
 */
/**
 * @typedef {object} Data
 * @property {string} out
 * @property {string} library
 * @property {number[]} shape
 * @property {Held | null} start
 * @property {boolean} linear
 * @property {boolean} values
 * @property {number} count
 * @property {Figure | null} figure of the whole graph
 * @property {Record<string, [string, string, string, Held?]>} nodes kind, label, name; the value, if there is no figure
 * @property {number} root
 * @property {{ title: string, lines: [number, string][] }[]} sources
 * @property {Step[]} steps
 * @property {[number, Held | null][][]} sums
 * @property {Record<string, Formula[]>} rules
 * @property {string} code
 * @property {string[]} notes
 */

const TERMS = 4; // of a sum that are written out

class Steps {
  factor = 1; // by which the start was multiplied

  /** @param {Data} data */
  constructor(data) {
    this.data = data;
    this.last = data.steps.length;
    /** @type {Map<number, number>} */
    this.turns = new Map(data.steps.map((step, i) => [step.node, i + 1]));
  }

  /** Step number k; null before the first. */
  step(/** @type {number} */ k) {
    return k > 0 ? this.data.steps[k - 1] : null;
  }

  /** @param {Held | null} held */
  scale(held) {
    return times(held, this.factor);
  }

  /** The starting gradient now. */
  get start() {
    return this.scale(this.data.start);
  }

  /**
   * The name of a node, or its label if it has none.
   * @param {number} node
   */
  nameOf(node) {
    const [, label, name] = this.data.nodes[node] ?? ["", "", ""];
    return name || label;
  }

  /**
   * The gradient at each node after step k.
   * @param {number} k
   */
  gradientsAfter(k) {
    /** @type {Map<number, Held | null>} */
    const found = new Map();
    const { steps, nodes } = this.data;
    for (const [node, [kind]] of Object.entries(nodes)) if (kind === "output") found.set(Number(node), this.start);
    for (const step of steps.slice(0, k)) {
      found.set(step.node, this.scale(step.upstream.find(Boolean) ?? null));
      for (const share of step.shares) found.set(share.to, this.scale(share.total));
    }
    return found;
  }

  /**
   * "−3·2 = −6" for scalars, "C.grad @ B.T" for small matrices, else the gradient of the input; for larger tensors its norm.
   * @param {Step} step
   * @param {Share} share
   */
  product(step, share) {
    if (share.factor?.name) {
      const { symbol, name, first, turned } = share.factor,
        arrived = `${step.name ? `${step.name}.grad` : "grad"}${turned ? ".T" : ""}`;
      return first ? `${name} ${symbol} ${arrived}` : `${arrived} ${symbol} ${name}`;
    }
    const local = share.local?.number,
      upstream = step.upstream.length === 1 ? scalar(this.scale(step.upstream[0])) : null,
      downstream = text(this.scale(share.downstream)).replace(/^.*, ‖/, "‖");
    if (local === undefined || local === null || upstream === null) return this.data.values ? downstream : "";
    return `${shortNumber(Number(local))}·${parenthesize(shortNumber(upstream))} = ${downstream}`;
  }

  /**
   * The sum at a share's node up to this share: "24 − 6 = 18"; empty for one term, or if a term is not a scalar.
   * @param {Share} share
   */
  sum(share) {
    const terms = this.data.sums[share.sum].slice(0, share.term + 1).map(([, held]) => scalar(this.scale(held))),
      total = scalar(this.scale(share.total));
    if (terms.length < 2 || total === null || terms.includes(null)) return "";
    const shown = terms.slice(-TERMS).map((x) => shortNumber(Number(x)));
    const rest = shown
      .slice(shown.length === terms.length ? 1 : 0)
      .map((x) => (x.startsWith("−") ? ` − ${x.slice(1)}` : ` + ${x}`));
    return `${shown.length === terms.length ? shown[0] : "…"}${rest.join("")} = ${shortNumber(total)}`;
  }

  /**
   * The sum before a share was added; null if it is the first.
   * @param {Share} share
   */
  before(share) {
    if (!share.term) return null;
    const [number] = this.data.sums[share.sum][share.term - 1],
      step = this.data.steps[number - 1];
    const found = step?.shares.find((other) => other.sum === share.sum && other.term === share.term - 1);
    return found ? this.scale(found.total) : null;
  }

  /**
   * A sentence on step k.
   * @param {number} k
   */
  sentence(k) {
    const step = this.step(k),
      { data } = this;
    if (!step) {
      const start = data.values ? ` with gradient=${text(this.start)}` : "";
      return this.last
        ? `Backward from ${data.out} starts${start}.`
        : `${data.out} is a leaf: there is no operation to step through.`;
    }
    const place = step.where ? ` from ${step.where}` : "",
      names = [...new Set(step.shares.map((share) => share.name))],
      passed = names.length === 1 ? "a gradient" : "gradients",
      passes = names.length ? `passes ${passed} to ${joinNames(names)}` : "passes no gradient",
      sums = step.shares.filter((share) => share.term).map((share) => this.#meeting(share));
    return `Step ${k} of ${this.last}: ${step.label} ${step.operation}${place} ${passes}${sums.length ? `; ${sums.join("; ")}` : ""}.`;
  }

  /** @param {Share} share */
  #meeting(share) {
    const sum = this.sum(share),
      count = share.term + 1,
      paths = count === 2 ? "two paths meet" : `${count} paths meet`;
    return `at ${share.name} ${paths}${sum ? `: ${sum}` : ""}`;
  }
}

/**
 * "a, b and c"
 * @param {string[]} names
 */
function joinNames(names) {
  return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names[names.length - 1]}`;
}

export { Steps };
