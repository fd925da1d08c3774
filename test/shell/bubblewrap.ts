import { createSandbox } from "../../src/tools/shell/sandbox/sandbox.ts";

/** Whether the sandbox can be tested here; says so by name when not. */
export async function hasBubblewrap(): Promise<boolean> {
  const probe = await createSandbox({ mode: "required", stateRoot: "/nonexistent" }).probe();
  if (!probe.available) console.log(`skipped, all tests with a sandbox: ${probe.reason}`);
  return probe.available;
}
