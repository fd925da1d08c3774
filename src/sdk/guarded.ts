/** Runs a listener of the program: what it throws is its own defect, told as a warning of the process. */
export function guarded(run: () => void): void {
  try {
    run();
  } catch (error) {
    process.emitWarning(error instanceof Error ? error : String(error), "TroupeListenerDefect");
  }
}
