/** The theme (dark, light, or that of the system), and its colours for a canvas, which cannot use CSS variables. */

import { DARK, LIGHT, type Ink } from "./colour";
import type { Theme } from "./view";

export interface Look {
  dark: boolean;
  text: string;
  faint: string;
  grid: string;
  harm: string;
  note: string;
  ground: string;
}

export const THEMES: readonly Theme[] = ["system", "light", "dark"];

export function nextTheme(theme: Theme): Theme {
  return THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? "system";
}

export function isDark(theme: Theme, page: Window = window): boolean {
  return theme === "dark" || (theme === "system" && page.matchMedia("(prefers-color-scheme: dark)").matches);
}

export function applyTheme(theme: Theme, page: Window = window): void {
  page.document.documentElement.dataset["theme"] = isDark(theme, page) ? "dark" : "light";
}

export function readLook(page: Window = window): Look {
  const style = page.getComputedStyle(page.document.documentElement);
  const colour = (name: string): string => style.getPropertyValue(name).trim();
  return {
    dark: page.document.documentElement.dataset["theme"] === "dark",
    text: colour("--text"),
    faint: colour("--faint"),
    grid: colour("--grid"),
    harm: colour("--harm"),
    note: colour("--note"),
    ground: colour("--ground"),
  };
}

export function stroke(ink: Ink, dark: boolean): string {
  return (dark ? DARK : LIGHT)[ink.slot] ?? "#888888";
}
