// Talking with the kernel. A view asks by a message and is answered by one that carries the same id. One question is in flight
// at a time; of the wishes of one kind that come meanwhile only the newest is asked, when the answer has come: a slow sweep can
// never be flooded by a fast slider. An answer that another view asked for is heard too, since all views of a widget show the same.
//
// When no answer comes, the view says so first as a note and then as a fault. A kernel that was only busy answers later, and
// then all is well again; meanwhile a new question is sent at once, since the first may never be answered.
//
// A view that goes tells the kernel only if no other view of its widget is left on the page a little later: moving a cell, or
// scrolling in a long notebook, takes a view away and draws it anew.

/**
 * What anywidget hands to a view as its model.
 * @typedef {object} Model
 * @property {(key: string) => any} get
 * @property {(event: string, listener: (...given: any[]) => void) => void} on
 * @property {(event: string, listener: (...given: any[]) => void) => void} off
 * @property {(content: object, callbacks?: unknown, buffers?: ArrayBuffer[]) => void} send
 */

/** @typedef {"f8" | "i4" | "u1"} Kind of numbers: float64, int32, uint8, little-endian */

/**
 * The kernel's answer to a question: `ask` repeats what was asked for, `arrays` names the buffers.
 * @typedef {{ answer: string, ask: string, error?: string, arrays?: [string, Kind][], [key: string]: any }} Answer
 */

/**
 * Who is told of what happens.
 * @typedef {object} Listener
 * @property {(on: boolean) => void} busy a question is in flight, or no longer
 * @property {() => void} waiting it has been for a while
 * @property {(text: string) => void} silent the kernel does not answer: why, perhaps
 * @property {() => void} back it answers again
 * @property {(answer: Answer, buffers: DataView[], mine: boolean) => void} heard an answer, to this view's question or not
 * @property {() => void} idle its own question has been answered, and nothing is left to be asked
 */

const PATIENCE = 1500; // ms until a view says that it waits
const LINGER = 2000; // ms after which a view that is gone is not coming back
const UNANSWERED =
  "The kernel does not answer. It is busy with another cell, or it has ended. " +
  "A busy kernel answers when it is free; after a restart, run the cell again.";
const TYPES = { f8: Float64Array, i4: Int32Array, u1: Uint8Array };

/**
 * How many views of each widget the page has, whichever copy of this text draws them.
 * @type {Map<string, number>}
 */
const views = (Object(globalThis)[Symbol.for("gradlab.views")] ??= new Map());

class Kernel {
  #model;
  #listener;
  #count = 0;
  /** @type {string | null} */
  #flying = null; // the id of the question in flight
  /** @type {Map<string, Parameters<Kernel["ask"]>>} */
  #queued = new Map(); // the newest wish of each kind after it
  #late = false; // it was said, and is still shown, that the kernel does not answer
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
    model.on("msg:custom", this.#hear);
    this.#attend(1);
  }

  /** Whether a wish waits for its turn. */
  get wishes() {
    return this.#queued.size > 0;
  }

  /**
   * Ask for something, now or when the question in flight has been answered.
   * @param {string} what
   * @param {object} more further keys of the message
   * @param {ArrayBuffer[]} buffers
   */
  ask(what, more = {}, buffers = []) {
    if (this.#flying && !this.#late) {
      this.#queued.delete(what); // it goes to the end
      this.#queued.set(what, [what, more, buffers]);
      return;
    }
    this.#flying = `${this.id}:${++this.#count}`;
    this.#listener.busy(true);
    this.#timers.forEach(clearTimeout);
    this.#timers = [
      setTimeout(this.#listener.waiting, PATIENCE),
      setTimeout(() => this.#silence(UNANSWERED), 1000 * this.#model.get("timeout")),
    ];
    try {
      this.#model.send({ ask: what, id: this.#flying, ...more }, undefined, buffers);
    } catch (trouble) {
      this.#landed();
      const why = trouble instanceof Error ? trouble.message : trouble;
      this.#silence(`The kernel does not answer (${why}). After a restart, run the cell again.`);
    }
  }

  /** Something else than the kernel's silence is shown now. */
  forgive() {
    this.#late = false;
  }

  /** The view goes: stop listening, and tell the kernel unless another view of the widget is there a little later. */
  leave() {
    this.#timers.forEach(clearTimeout);
    this.#model.off("msg:custom", this.#hear);
    this.#attend(-1);
    setTimeout(() => {
      if (this.#attend(0) > 0) return;
      try {
        this.#model.send({ ask: "gone", id: `${this.id}:gone` });
      } catch {
        /* the model went with its view */
      }
    }, LINGER);
  }

  /**
   * How many views the widget has after this one came, or went.
   * @param {number} more
   */
  #attend(more) {
    const token = this.#model.get("token"),
      count = (views.get(token) ?? 0) + more;
    views.set(token, count);
    return count;
  }

  /** @param {string} text */
  #silence(text) {
    this.#late = true;
    this.#listener.silent(text);
  }

  #landed() {
    this.#flying = null;
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
  #hear = (answer, buffers) => {
    if (!answer || answer.answer === undefined) return;
    const mine = answer.answer === this.#flying;
    if (mine) this.#landed();
    this.#listener.heard(answer, buffers ?? [], mine);
    if (!mine) return;
    const [next] = this.#queued.values();
    if (next) {
      this.#queued.delete(next[0]);
      this.ask(...next);
    } else this.#listener.idle();
  };
}

/**
 * The arrays of an answer, as properties of it by their names.
 * @param {Answer} answer
 * @param {(DataView | ArrayBuffer)[]} buffers
 */
function unpack(answer, buffers) {
  (answer.arrays ?? []).forEach(([key, kind], k) => {
    answer[key] = typed(kind, buffers[k]);
  });
}

/**
 * A buffer as a typed array. The bytes are copied: a DataView may begin anywhere in its buffer.
 * @param {Kind} kind
 * @param {DataView | ArrayBuffer} data
 */
function typed(kind, data) {
  const view = data instanceof ArrayBuffer ? new DataView(data) : data;
  return new TYPES[kind](/** @type {ArrayBuffer} */ (view.buffer).slice(view.byteOffset, view.byteOffset + view.byteLength));
}

export { Kernel, unpack };
