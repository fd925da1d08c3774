import { setMaxListeners } from "node:events";

/**
 * Creates a controller without a listener limit: the model decides how many calls of a run listen, so many are not a leak.
 */
export function stoppable(): AbortController {
  const controller = new AbortController();
  setMaxListeners(0, controller.signal);
  return controller;
}
