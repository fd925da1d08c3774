/** Starts the page. */
import { render } from "preact";
import { App } from "./app.tsx";
import { startKeys } from "./keys.tsx";
import { start } from "./state.ts";
import { takeTokenFromAddress } from "./token.ts";

const root = document.getElementById("app");
if (root) {
  takeTokenFromAddress();
  start();
  startKeys();
  render(<App />, root);
}
