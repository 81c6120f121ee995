import "uplot/dist/uPlot.min.css";
import "./style.css";
import { render } from "preact";
import { Server } from "./api";
import { App } from "./app";
import { press } from "./keys";
import { Model } from "./model";
import { Carrier, readCarried } from "./offline";

const carried = readCarried(document);
// The server asks the model which node is looked at, and the model asks the server.
const model: Model = new Model(carried ? new Carrier(carried) : new Server(() => model.view.node));
const root = document.getElementById("app");
if (root) {
  root.replaceChildren();
  render(<App model={model} />, root);
}
document.addEventListener("keydown", (event) => press(model, event));
model.start();
