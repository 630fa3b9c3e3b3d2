// A run as the kernel sends it (explore/watch/page.py): columns of several steps each. A frame has the columns from the first one
// that changed, or all of them after columns were pooled.

/** @typedef {(number | null)[]} Values */
/** @typedef {{ mean: Values, bad?: number[] }} Series `bad`: how many were not finite */
/** @typedef {{ gradient: Series, ratio: Series }} Layer */
/** @typedef {[number, number, number[]] | null} Spread low, high, how many in each part between */
/** @typedef {[number, Spread[], Spread[]]} Moment the step, counted from 0; of gradients, of weights */

/**
 * @typedef {object} Finding
 * @property {"problem" | "note"} severity
 * @property {string} message
 * @property {string} fix
 * @property {number | null} line
 * @property {string} kind
 * @property {string} meaning of the kind
 * @property {string} url of its page
 */

/**
 * @typedef {object} Run
 * @property {string} picture as SVG
 * @property {boolean} numbered whether layers have numbers in it
 * @property {[string, string][]} head
 * @property {string} called the loss
 * @property {string} optimizer
 * @property {[number, number]} usual
 * @property {string[]} names of the layers
 * @property {[string, string][]} units names and kinds of activations
 * @property {Finding[]} findings
 * @property {string} code
 * @property {string} cost
 * @property {boolean} replay
 * @property {boolean} ended
 * @property {boolean} paused
 * @property {number} first the first column that was sent
 * @property {number} steps
 * @property {number} width steps a column
 * @property {number} count columns in all
 * @property {Series} loss
 * @property {Series} rate
 * @property {Layer[]} layers
 * @property {{ dead: Values, saturated: Values }[]} activations
 * @property {Moment[]} moments
 */

/**
 * Merge a frame into the known run. The frame has columns from its `first` on, and moments later than the known ones.
 * @param {Run} known
 * @param {Run} frame
 * @returns {Run}
 */
function merge(known, frame) {
  if (frame.first === 0 || frame.width !== known.width) return { ...known, ...frame, moments: frame.moments ?? known.moments };
  const at = frame.first;
  return {
    ...known,
    ...frame,
    first: 0,
    loss: series(known.loss, frame.loss, at),
    rate: series(known.rate, frame.rate, at),
    layers: known.layers.map(({ gradient, ratio }, i) => ({
      gradient: series(gradient, frame.layers[i].gradient, at),
      ratio: series(ratio, frame.layers[i].ratio, at),
    })),
    activations: known.activations.map((one, i) => ({
      dead: values(one.dead, frame.activations[i].dead, at),
      saturated: values(one.saturated, frame.activations[i].saturated, at),
    })),
    moments: frame.moments ?? known.moments,
  };
}

/**
 * @param {Series} known
 * @param {Series} more
 * @param {number} at
 * @returns {Series}
 */
function series(known, more, at) {
  const mean = values(known.mean, more.mean, at);
  if (!known.bad && !more.bad) return { mean };
  const none = (/** @type {Series} */ { mean }) => mean.map(() => 0);
  return { mean, bad: [...(known.bad ?? none(known)).slice(0, at), ...(more.bad ?? none(more))] };
}

/**
 * @param {Values} known
 * @param {Values} more
 * @param {number} at
 */
function values(known, more, at) {
  return [...known.slice(0, at), ...more];
}

/**
 * The first and the last step of a column, counted from 1.
 * @param {Run} run
 * @param {number} column
 * @returns {[number, number]}
 */
function stepsOf(run, column) {
  return [column * run.width + 1, Math.max(column * run.width + 1, Math.min((column + 1) * run.width, run.steps))];
}

/**
 * The last column, up to the given one, with a number; null if there is none.
 * @param {Values} list
 * @param {number} column
 */
function lastMeasured(list, column) {
  for (let at = Math.min(column, list.length - 1); at >= 0; at--) if (list[at] !== null) return at;
  return null;
}

export { merge, stepsOf, lastMeasured };
