/** Every seeded defect of `npm run test:mutation`. */
import type { Defect } from "./defect.ts";
import { agentsDefects } from "./defects-agents.ts";
import { auditDefects } from "./defects-audit.ts";
import { featureDefects } from "./defects-features.ts";
import { recordsDefects } from "./defects-records.ts";
import { rightsDefects } from "./defects-rights.ts";
import { wiresDefects } from "./defects-wires.ts";

export const defects: readonly Defect[] = [
  ...rightsDefects,
  ...recordsDefects,
  ...agentsDefects,
  ...wiresDefects,
  ...auditDefects,
  ...featureDefects,
];
