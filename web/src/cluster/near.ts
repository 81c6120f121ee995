/** Which rows are on the screen or within half a screen of it; a row that comes near is told. */

const MARGIN = "50% 0px";

export class Nearness {
  private readonly far = new Set<Element>();
  private readonly wakes = new Map<Element, () => void>();
  private readonly observer = new IntersectionObserver((rows) => rows.forEach((row) => this.note(row.target, row.isIntersecting)), { rootMargin: MARGIN });

  /** Of one that was not seen yet nobody knows: it counts as near. */
  isFar(row: Element | null): boolean {
    return row !== null && this.far.has(row);
  }

  watch(row: Element, wake: () => void): () => void {
    this.wakes.set(row, wake);
    this.observer.observe(row);
    return () => {
      this.observer.unobserve(row);
      this.wakes.delete(row);
      this.far.delete(row);
    };
  }

  private note(row: Element, isNear: boolean): void {
    if (!isNear) this.far.add(row);
    else if (this.far.delete(row)) this.wakes.get(row)?.();
  }
}
