import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { SessionEvent } from "../../src/protocol/event.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { encodeLog } from "../store/support.ts";
import { troupe } from "../support/troupe.ts";

const SESSION = "00000000-0000-4000-8000-000000000001";

/** A log of 17 MiB that was compacted before its last message. */
function longLog(): Buffer {
  const said = (content: string) => ({ type: "user.message" as const, data: { content } });
  const summaryContent = "<overview>\nMuch was said.\n</overview>";
  const compacted = { success: true, trigger: "threshold", messagesRemoved: 17, summaryContent } as const;
  const what = [
    ...Array.from({ length: 17 }, (_, n) => said(`message ${n} ${"x".repeat(1024 * 1024)}`)),
    { type: "session.compaction_complete" as const, data: compacted },
    said("the last message"),
  ];
  const events = what.map((one, n) => ({
    ...{ id: `e${n}`, timestamp: "2026-01-01T00:00:00.000Z", parentId: n === 0 ? null : `e${n - 1}` },
    ...one,
  }));
  return Buffer.concat(encodeLog(events as SessionEvent[]));
}

it("troupe sessions show prints a long session from its last compaction, and all of it with --all", async () => {
  await using folder = await tempFolder();
  const home = join(folder.path, "home");
  const directory = join(home, "session-state", SESSION);
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  writeFileSync(join(directory, "events.jsonl"), longLog(), { mode: 0o600 });
  const show = (...more: string[]) => troupe(["sessions", "show", SESSION, ...more], { cwd: folder.path, home });

  const recent = await show();
  expect(recent).toMatchObject({ code: 0 });
  expect(recent.stdout).toBe(
    `# Session ${SESSION}\n\n# 17 earlier events: troupe sessions show ${SESSION} --all\n\n` +
      "<overview>\nMuch was said.\n</overview>\n\n> the last message\n",
  );
  const all = await show("--all");
  expect(all.stdout).toContain("message 0 ");
  expect(all.stdout).toContain("> the last message\n");
});
