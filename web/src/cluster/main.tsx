/** The start of the page of many nodes. */

import "../style.css";
import "./cluster.css";
import { render } from "preact";
import { ClusterApp } from "./app";
import { pressCluster } from "./keys";
import { ClusterModel } from "./model";
import { ClusterServer } from "./source";

const hash = new URLSearchParams(location.hash.slice(1));
// A link to the page of a node that / led here.
if (hash.get("node")) location.replace(`/node${location.hash}`);
const model = new ClusterModel(new ClusterServer(), window);
const root = document.getElementById("app");
if (root) {
  root.replaceChildren();
  render(<ClusterApp model={model} />, root);
}
document.addEventListener("keydown", (event) => pressCluster(model, event));
model.start();
