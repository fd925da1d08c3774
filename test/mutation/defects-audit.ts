/** Defects of the feature audit whose tests are being repaired: they may survive until these tests are merged. */
import type { Defect } from "./defect.ts";

export const auditDefects: readonly Defect[] = [
  {
    id: "artifact-cap-100-times",
    file: "src/tools/coordination/submission.ts",
    find: "const MAX_CONTENT = 4000;",
    replace: "const MAX_CONTENT = 400_000;",
    test: "test/features/coordinated-results.test.ts",
    title: "BLX-16",
    why: "One worker could fill the context of the coordinator.",
  },
  {
    id: "collect-for-1-ms",
    file: "src/cli/output/screen.ts",
    find: "const COLLECT_MS = 50;",
    replace: "const COLLECT_MS = 1;",
    test: "test/cli/progress.test.ts",
    title: "BLX-30",
    why: "Every event of a worker would redraw the screen.",
  },
  {
    id: "collect-for-120-ms",
    file: "src/cli/output/screen.ts",
    find: "const COLLECT_MS = 50;",
    replace: "const COLLECT_MS = 120;",
    test: "test/cli/progress.test.ts",
    title: "BLX-30",
    why: "The screen would lag behind the workers.",
  },
  {
    id: "agent-description-dropped",
    file: "src/hooks/fire.ts",
    find: "const payload = payloadFor(point, input, {",
    replace: "const payload = payloadFor(point, { ...input, agentDescription: undefined } as typeof input, {",
    test: "test/features/hooks.test.ts",
    title: "ORC-54",
    why: "Hooks would not learn the agent's description.",
  },
  {
    id: "subconscious-prompt-replaced",
    file: "src/commands/delegation/subconscious.ts",
    find: 'import prompt from "./subconscious.md";',
    replace: 'const prompt = "Say hello and start nobody.";',
    test: "test/features/board-consolidation.test.ts",
    title: "ORC-63",
    why: "The command would start nobody.",
  },
];
