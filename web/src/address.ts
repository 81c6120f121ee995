/** The view in the page's address: read at the start, written with every change, followed when the browser goes back. */

import { Signal } from "./signal";
import { decode, EMPTY, encode, type View } from "./view";

export class Address {
  view: View = EMPTY;
  /** Sent after every change, with the view before it. */
  readonly changed = new Signal<View>();

  constructor(private readonly page: Window) {}

  /** The view that the address names, and the dashboard beside it, if any. */
  read(): { dashboard: string; variables: Record<string, string>; refused: string } {
    const { view, dashboard, rest, refused } = decode(this.page.location.hash);
    this.view = view;
    return { dashboard, variables: rest, refused };
  }

  /** With push, the view before this one is a step back in the browser's history. */
  change(part: Partial<View>, push = true): void {
    const before = this.view;
    this.view = { ...before, ...part };
    if (encode(before) !== encode(this.view)) this.write(push);
    this.changed.send(before);
  }

  /** Back, forward, or a hash typed by hand. */
  follow(): void {
    const before = this.view;
    this.read();
    if (encode(before) !== encode(this.view)) this.changed.send(before);
  }

  /** False at the view that the page began with. */
  back(): boolean {
    if (this.depth === 0) return false;
    this.page.history.back();
    return true;
  }

  private write(push: boolean): void {
    const address = `#${encode(this.view)}`;
    if (push) this.page.history.pushState({ depth: this.depth + 1 }, "", address);
    else this.page.history.replaceState({ depth: this.depth }, "", address);
  }

  private get depth(): number {
    return (this.page.history.state as { depth?: number } | null)?.depth ?? 0;
  }
}
