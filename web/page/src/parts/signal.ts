/** Who wants to hear that something changed, and work that waits for the next frame. */

export class Signal {
  #listeners = new Set<() => void>();

  /** Calls back at every change until the result is called. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  emit(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}

/** A function that does its work once in the next frame, however often it is called before. */
export function eachFrame(work: () => void): () => void {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      work();
    });
  };
}
