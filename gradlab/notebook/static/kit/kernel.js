// Requests to the kernel. A view sends a message, and the answer has the same id. One request is pending at a time. Of the
// requests of one kind that come meanwhile, only the newest is sent, after the answer: so a fast slider cannot flood a slow
// sweep. A view also receives the answers to other views' requests, since all views of a widget show the same.
//
// Without an answer, the view shows first a note and then an error. A kernel that was only busy answers later, and the error
// disappears; meanwhile a new request is sent at once, since the first may never be answered.
//
// A view that is removed notifies the kernel only if no other view of its widget is on the page a little later: moving a cell, or
// scrolling in a long notebook, removes a view and draws it again.

/**
 * The model that anywidget passes to a view.
 * @typedef {object} Model
 * @property {(key: string) => any} get
 * @property {(event: string, listener: (...given: any[]) => void) => void} on
 * @property {(event: string, listener: (...given: any[]) => void) => void} off
 * @property {(content: object, callbacks?: unknown, buffers?: ArrayBuffer[]) => void} send
 */

/** @typedef {"f8" | "i4" | "u1"} Kind of numbers: float64, int32, uint8, little-endian */

/**
 * The kernel's answer to a request: `ask` repeats its kind, `arrays` names the buffers.
 * @typedef {{ answer: string, ask: string, error?: string, arrays?: [string, Kind][], [key: string]: any }} Answer
 */

/**
 * Callbacks of a view.
 * @typedef {object} Listener
 * @property {(on: boolean) => void} busy a request is pending, or no longer
 * @property {() => void} waiting it has been pending for a while
 * @property {(text: string) => void} silent the kernel does not answer; the reason if known
 * @property {() => void} back it answers again
 * @property {(answer: Answer, buffers: DataView[], mine: boolean) => void} receive an answer, to this view's request or another's
 * @property {() => void} idle its own request was answered, and none is queued
 */

const PATIENCE = 1500; // ms until a view shows that it waits
const LINGER = 2000; // ms until a removed view counts as gone
const UNANSWERED =
  "The kernel does not answer. It is busy with another cell, or it has ended. " +
  "A busy kernel answers when it is free; after a restart, run the cell again.";
const TYPES = { f8: Float64Array, i4: Int32Array, u1: Uint8Array };

/**
 * The number of views of each widget on the page, shared by all copies of this module.
 * @type {Map<string, number>}
 */
const views = (Object(globalThis)[Symbol.for("gradlab.views")] ??= new Map());

class Kernel {
  #model;
  #listener;
  #count = 0;
  /** @type {string | null} */
  #pending = null; // the id of the pending request
  /** @type {Map<string, Parameters<Kernel["ask"]>>} */
  #queued = new Map(); // the newest request of each kind after it
  #late = false; // whether the view shows that the kernel does not answer
  /** @type {number[]} */
  #timers = [];

  /**
   * @param {Model} model
   * @param {Listener} listener
   */
  constructor(model, listener) {
    this.id = Math.random().toString(36).slice(2); // of this view
    this.#model = model;
    this.#listener = listener;
    model.on("msg:custom", this.#receive);
    this.#countViews(1);
  }

  /** Whether a request is queued. */
  get wishes() {
    return this.#queued.size > 0;
  }

  /**
   * Send a request, now or after the answer to the pending one.
   * @param {string} what
   * @param {object} more further keys of the message
   * @param {ArrayBuffer[]} buffers
   */
  ask(what, more = {}, buffers = []) {
    if (this.#pending && !this.#late) {
      this.#queued.delete(what); // it moves to the end
      this.#queued.set(what, [what, more, buffers]);
      return;
    }
    this.#pending = `${this.id}:${++this.#count}`;
    this.#listener.busy(true);
    this.#timers.forEach(clearTimeout);
    this.#timers = [
      setTimeout(this.#listener.waiting, PATIENCE),
      setTimeout(() => this.#reportSilence(UNANSWERED), 1000 * this.#model.get("timeout")),
    ];
    try {
      this.#model.send({ ask: what, id: this.#pending, ...more }, undefined, buffers);
    } catch (trouble) {
      this.#settle();
      const why = trouble instanceof Error ? trouble.message : trouble;
      this.#reportSilence(`The kernel does not answer (${why}). After a restart, run the cell again.`);
    }
  }

  /** The view no longer shows that the kernel does not answer. */
  clearSilence() {
    this.#late = false;
  }

  /** Stop listening, and notify the kernel unless the widget has another view a little later. */
  leave() {
    this.#timers.forEach(clearTimeout);
    this.#model.off("msg:custom", this.#receive);
    this.#countViews(-1);
    setTimeout(() => {
      if (this.#countViews(0) > 0) return;
      try {
        this.#model.send({ ask: "gone", id: `${this.id}:gone` });
      } catch {
        /* the model was removed with its view */
      }
    }, LINGER);
  }

  /**
   * The number of views of the widget after `more` were added.
   * @param {number} more
   */
  #countViews(more) {
    const token = this.#model.get("token"),
      count = (views.get(token) ?? 0) + more;
    views.set(token, count);
    return count;
  }

  /** @param {string} text */
  #reportSilence(text) {
    this.#late = true;
    this.#listener.silent(text);
  }

  #settle() {
    this.#pending = null;
    this.#timers.forEach(clearTimeout);
    this.#listener.busy(false);
    if (this.#late) {
      this.#late = false;
      this.#listener.back();
    }
  }

  /**
   * @param {Answer} [answer]
   * @param {DataView[]} [buffers]
   */
  #receive = (answer, buffers) => {
    if (!answer || answer.answer === undefined) return;
    const mine = answer.answer === this.#pending;
    if (mine) this.#settle();
    this.#listener.receive(answer, buffers ?? [], mine);
    if (!mine) return;
    const [next] = this.#queued.values();
    if (next) {
      this.#queued.delete(next[0]);
      this.ask(...next);
    } else this.#listener.idle();
  };
}

/**
 * Set the arrays of an answer as its properties, by their names.
 * @param {Answer} answer
 * @param {(DataView | ArrayBuffer)[]} buffers
 */
function unpack(answer, buffers) {
  (answer.arrays ?? []).forEach(([key, kind], k) => {
    answer[key] = toTypedArray(kind, buffers[k]);
  });
}

/**
 * A buffer as a typed array. The bytes are copied: a DataView may begin anywhere in its buffer.
 * @param {Kind} kind
 * @param {DataView | ArrayBuffer} data
 */
function toTypedArray(kind, data) {
  const view = data instanceof ArrayBuffer ? new DataView(data) : data;
  return new TYPES[kind](/** @type {ArrayBuffer} */ (view.buffer).slice(view.byteOffset, view.byteOffset + view.byteLength));
}

export { Kernel, unpack };
