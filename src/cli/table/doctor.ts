import type { Command } from "./command.ts";

export const doctor: Command = {
  name: "doctor",
  group: "Setup",
  summary: "check the installation, models, sandbox and state",
  flags: {
    fix: true,
    online: true,
    json: "print one JSON object",
    "reset-terminal": true,
  },
  examples: [
    ["troupe doctor", "check everything; changes nothing"],
    ["troupe doctor --online", "also send one short request to each provider"],
    ["troupe doctor --reset-terminal", "repair a terminal after a session was killed"],
  ],
  notes: ["Exit code 0: no problem, perhaps warnings. Exit code 1: at least one problem."],
  load: async () => (await import("../doctor/doctor.ts")).doctorCommand,
};
