import { availableParallelism } from "node:os";
import { defineConfig, type Plugin } from "vitest/config";
import { LongestFirst } from "./test/support/longest-first.ts";

/** Prompts are markdown beside the code; the build inlines them as text, and so do the tests. */
const markdownAsText: Plugin = {
  name: "markdown-as-text",
  transform: (code, id) => (id.endsWith(".md") ? `export default ${JSON.stringify(code)};` : undefined),
};

/** Whether every test can be looked at a second time: none may depend on what its first run left behind. */
const TWICE = process.env.TROUPE_TWICE !== undefined;

export default defineConfig({
  plugins: [markdownAsText],
  test: {
    include: ["src/**/*.test.ts", "test/**/*.test.ts"],
    // For tests that hang. A test that takes 5 s on an idle machine took more than 120 s on one with 25 busy processes.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    // What is waited for comes at once on an idle machine; on a busy one a second is nothing.
    expect: { poll: { timeout: 60_000 } },
    // More than there are cores: most tests wait for processes, disks and sockets rather than compute.
    maxWorkers: availableParallelism() * 2,
    sequence: { sequencer: LongestFirst },
    // One registry of modules per worker instead of one per file: no test changes a module, and to load them again for
    // each of 300 files took a third of the time.
    isolate: false,
    // Kill loops and races on a busy machine get a second look there; what fails twice has failed.
    retry: process.env.CI || TWICE ? 1 : 0,
    setupFiles: TWICE ? ["test/support/first-look-fails.ts"] : [],
  },
});
