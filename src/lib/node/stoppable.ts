import { setMaxListeners } from "node:events";

/** Everything a run starts listens to it; how many that are is the model's choice, and no leak. */
export function stoppable(): AbortController {
  const controller = new AbortController();
  setMaxListeners(0, controller.signal);
  return controller;
}
