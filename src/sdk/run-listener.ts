/** Runs a listener of the program. An error that it throws becomes a process warning. */
export function runListener(run: () => void): void {
  try {
    run();
  } catch (error) {
    process.emitWarning(error instanceof Error ? error : String(error), "TroupeListenerDefect");
  }
}
