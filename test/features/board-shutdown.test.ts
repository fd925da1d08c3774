import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { says } from "../../src/model/faux/faux-step.ts";
import {
  consolidateAtShutdown,
  type ShutdownConsolidation,
} from "../../src/runtime/knowledge/shutdown-consolidation.ts";
import { dataOf } from "../support/stage.ts";
import { HANG_MS } from "../support/work.ts";
import { onStage, type Stage, type StageOptions } from "./stage.ts";

/** Without the sidekick that looks at the board by itself. */
const environment = { COPILOT_SUBCONSCIOUS: "on", SIDEKICK_AGENTS: "off" };

/** In the place of troupe: writes down how it was started and what it finds, and then takes its time. */
const RECORDER = `
  const { readFileSync, writeFileSync, renameSync } = require("node:fs");
  const [, , out, sessions, ...args] = process.argv;
  const { TROUPE_DETACHED_PARENT_SESSION_ID: parent, TROUPE_ENGAGEMENT_ID: engagement, COPILOT_SUBCONSCIOUS: flag } = process.env;
  const log = readFileSync(sessions + "/" + parent + "/events.jsonl", "utf8");
  const { DatabaseSync } = require(${JSON.stringify(createRequire(import.meta.url).resolve("@photostructure/sqlite"))});
  const store = new DatabaseSync(sessions + "/../session-store.db", { readOnly: true });
  const turns = store.prepare("SELECT user_message FROM turns WHERE session_id = ? ORDER BY turn_index").all(parent);
  const started = { turns: turns.map((turn) => turn.user_message), args, parent, engagement, flag, cwd: process.cwd(), log, pid: process.pid, tty: process.stdout.isTTY };
  writeFileSync(out + ".tmp", JSON.stringify(started));
  renameSync(out + ".tmp", out);
  setTimeout(() => {}, 60_000);
`;

interface Recorded {
  readonly args: string[];
  readonly parent: string;
  readonly engagement: string;
  readonly flag: string;
  readonly cwd: string;
  readonly log: string;
  readonly turns: string[];
  readonly pid: number;
}

async function ending(
  messages: number,
  look: (what: { outcome: string; recorded: Recorded | undefined; stage: Stage; ms: number }) => Promise<void>,
  more: Omit<StageOptions, "model" | "program"> &
    Partial<Pick<ShutdownConsolidation, "program" | "model">> & { parent?: string } = {},
): Promise<void> {
  const { program, model, parent, ...options } = more;
  const script = Array.from({ length: messages }, (_, index) => says(`answer ${index + 1}`));
  await onStage(script, { environment, ...options }, async (stage) => {
    for (let index = 1; index <= messages; index++) await stage.session.sendAndWait({ prompt: `question ${index}` });
    const [recorder, out] = [join(stage.home, "recorder.cjs"), join(stage.home, "started.json")];
    writeFileSync(recorder, RECORDER);
    const began = performance.now();
    const outcome = await consolidateAtShutdown({
      session: stage.session,
      environment: { PATH: process.env.PATH, ...(parent && { TROUPE_DETACHED_PARENT_SESSION_ID: parent }) },
      program: program ?? [process.execPath, recorder, out, join(stage.home, "session-state")],
      ...(model !== undefined && { model }),
    });
    const ms = performance.now() - began;
    if (outcome === "spawned") await expect.poll(() => existsSync(out)).toBe(true);
    const recorded = existsSync(out) ? (JSON.parse(readFileSync(out, "utf8")) as Recorded) : undefined;
    try {
      await look({ outcome, recorded, stage, ms });
    } finally {
      if (recorded) process.kill(recorded.pid, "SIGKILL");
    }
  });
}

describe("the end of an interactive session", () => {
  it("MEM-39 MEM-40 MEM-43 MEM-44 ORC-81 the end of a session after three messages starts a consolidation that finds them", async () => {
    await ending(
      3,
      async ({ outcome, recorded, stage }) => {
        const { session, folder } = stage;
        expect(outcome).toBe("spawned");
        expect(recorded?.args).toEqual([
          ...["--agent", "rem-agent", "-p", expect.stringMatching(/context board.*`add` and `prune`/)],
          ...["--yolo", "--silent", "--model", "alpha/large"],
        ]);
        expect(recorded).toMatchObject({ parent: session.id, engagement: session.id, flag: "on", cwd: folder });
        expect(recorded?.log).toMatch(/"content":"question 3"[\s\S]*"content":"answer 3"/);
        expect(dataOf(session.events, "troupe.shutdown_consolidation")).toEqual([
          { outcome: "spawned", pid: recorded?.pid },
        ]);
        // The session store had the last turn before the child was there.
        expect(recorded?.turns).toEqual(["question 1", "question 2", "question 3"]);
      },
      { model: "alpha/large" },
    );
  });

  it("MEM-39 MEM-43 the end of a session after two messages starts no consolidation, and the log says so", async () => {
    await ending(2, async ({ outcome, recorded, stage }) => {
      expect([outcome, recorded]).toEqual(["below_min_turns", undefined]);
      expect(dataOf(stage.session.events, "troupe.shutdown_consolidation")).toEqual([{ outcome: "below_min_turns" }]);
    });
  });

  it("MEM-41 MEM-43 the end of a session in a process for consolidation starts no other one", async () => {
    await ending(
      3,
      async ({ outcome, recorded, stage }) => {
        expect([outcome, recorded]).toEqual(["detached_child", undefined]);
        expect(dataOf(stage.session.events, "troupe.shutdown_consolidation")).toEqual([{ outcome: "detached_child" }]);
      },
      { parent: "another" },
    );
  });

  it("MEM-42 the end of a session starts a process in its own process group, and does not wait for it", async () => {
    await ending(3, async ({ recorded, stage, ms }) => {
      expect(ms).toBeLessThan(HANG_MS);
      await stage.session.close();
      const { pid = 0 } = recorded ?? {};
      expect(process.kill(pid, 0)).toBe(true);
      if (process.platform !== "linux") return;
      const [, group] = /^\d+ \(.*\) \S \d+ (\d+)/.exec(readFileSync(`/proc/${pid}/stat`, "utf8")) ?? [];
      expect(Number(group)).toBe(pid);
    });
  });

  it("the end of a session starts no consolidation while the flag is off", async () => {
    await ending(
      3,
      async ({ outcome, recorded, stage }) => {
        expect([outcome, recorded]).toEqual(["off", undefined]);
        expect(dataOf(stage.session.events, "troupe.shutdown_consolidation")).toEqual([]);
      },
      { environment: {} },
    );
  });

  it("the end of a session passes the trust of this run to the consolidation process", async () => {
    await ending(3, async ({ recorded }) => expect(recorded?.args.at(-1)).toBe("--trust-folder"), {
      workspace: { trustFolder: true },
    });
  });

  it("MEM-43 a consolidation process that cannot be started is recorded, and nothing else fails", async () => {
    await ending(
      3,
      async ({ outcome, stage }) => {
        expect(outcome).toBe("failed");
        expect(dataOf(stage.session.events, "troupe.shutdown_consolidation")).toEqual([
          { outcome: "failed", reason: expect.stringContaining("ENOENT") },
        ]);
      },
      { program: ["/nowhere/troupe"] },
    );
  });
});
