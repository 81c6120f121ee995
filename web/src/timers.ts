/** Timers by name: a new one of the same name replaces the one before. */

export class Timers {
  private readonly ids = new Map<string, number>();

  constructor(private readonly page: Window) {}

  soon(name: string, milliseconds: number, run: () => void): void {
    this.page.clearTimeout(this.ids.get(name));
    this.ids.set(name, this.page.setTimeout(run, milliseconds));
  }
}

export function now(): number {
  return Date.now() / 1000;
}
