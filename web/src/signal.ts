/** A list of listeners: the smallest thing that connects the model with what draws it. */

export class Signal<T> {
  private readonly ears = new Set<(value: T) => void>();

  on(ear: (value: T) => void): () => void {
    this.ears.add(ear);
    return () => this.ears.delete(ear);
  }

  send(value: T): void {
    for (const ear of this.ears) ear(value);
  }
}
