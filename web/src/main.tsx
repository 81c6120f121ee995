/** The start of the page, served or from a file. */

import "uplot/dist/uPlot.min.css";
import "./style.css";
import { render } from "preact";
import { Server } from "./api";
import { App } from "./app";
import { press } from "./keys";
import { loadAhead } from "./lazy";
import { Model } from "./model";
import { OfflineSource, readOfflineAnswers } from "./offline";

const answers = readOfflineAnswers(document);
const model: Model = new Model(answers ? new OfflineSource(answers) : new Server(() => model.view.node));
const root = document.getElementById("app");
if (root) {
  root.replaceChildren();
  render(<App model={model} />, root);
}
document.addEventListener("keydown", (event) => press(model, event));
model.start();
loadAhead();
