/** Starts the page. */
import { render } from "preact";
import { App } from "./app.tsx";
import { startKeys } from "./keys.tsx";
import { start } from "./state.ts";

const root = document.getElementById("app");
if (root) {
  start();
  startKeys();
  render(<App />, root);
}
