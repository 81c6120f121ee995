/** The start of the page, served or from a file. */

import "uplot/dist/uPlot.min.css";
import "./style.css";
import { render } from "preact";
import { Server, type Source } from "./api";
import { App } from "./app";
import { press } from "./keys";
import { loadAhead } from "./lazy";
import { Model } from "./model";

function start(offline?: Source | null): void {
  const model: Model = new Model(offline ?? new Server(() => model.view.node));
  const root = document.getElementById("app");
  if (root) {
    root.replaceChildren();
    render(<App model={model} />, root);
  }
  document.addEventListener("keydown", (event) => press(model, event));
  model.start();
  loadAhead();
}

// A file that carries its answers has them in this element; the served page has none, and loads nothing for it.
if (document.getElementById("nodescope-data")) void import("./offline").then(({ openOffline }) => start(openOffline(document)));
else start();
