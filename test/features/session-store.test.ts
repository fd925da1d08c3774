import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { describe, expect, it } from "vitest";
import { calls, says } from "../../src/model/faux/faux-step.ts";
import { submit } from "../../src/runtime/submit.ts";
import { onStage, resultsOf, type Stage } from "./stage.ts";

const SUMMARY = `<overview>
The user wants a greeting.
</overview>
<history>
1. wrote the file
</history>
<work_done>
hello.txt holds the greeting
</work_done>
<next_steps>
translate it into Esperanto
</next_steps>
<checkpoint_title>
A friendly greeting
</checkpoint_title>`;

const work = [
  calls(["create", { path: "docs/hello.txt", file_text: "Saluton" }]),
  calls(["bash", { command: "echo 'see https://github.com/octo/demo/pull/12'; echo '[main 1a2b3c4] done'" }]),
  says("The greeting is in docs/hello.txt."),
  says(SUMMARY),
  says("You are welcome."),
];

async function converse({ session }: Stage): Promise<void> {
  await session.sendAndWait({ prompt: "Write a xylophone greeting" });
  await submit(session, "/compact");
  await session.sendAndWait({ prompt: "Thanks" });
}

const asks = (query: string) => calls(["sql", { query, description: "the past", database: "session_store" }]);

describe("the session store", () => {
  it("MEM-53 the session store has turns, checkpoints, files and references, and agents can read them", async () => {
    const questions = [
      "SELECT turn_index, user_message, assistant_response FROM turns ORDER BY turn_index",
      "SELECT checkpoint_number, title, overview, work_done, next_steps FROM checkpoints",
      "SELECT file_path, tool_name, turn_index FROM session_files",
      "SELECT ref_type, ref_value FROM session_refs ORDER BY ref_type",
      "SELECT source_type, source_id FROM search_index WHERE search_index MATCH 'xylophone OR esperanto OR docs' ORDER BY 1",
      "SELECT summary, branch IS NULL AS plain FROM sessions",
    ];
    await onStage([...work, ...questions.map(asks), says("done")], {}, async (stage) => {
      await converse(stage);
      const again = await stage.reopen();
      await again.sendAndWait({ prompt: "What happened before?" });
      expect(resultsOf(again.events, "sql")).toEqual([
        [
          "turn_index | user_message | assistant_response",
          "1 | Write a xylophone greeting | The greeting is in docs/hello.txt.",
          "2 | Thanks | You are welcome.",
          "3 | What happened before? | ",
          "(3 rows)",
        ].join("\n"),
        [
          "checkpoint_number | title | overview | work_done | next_steps",
          "1 | A friendly greeting | The user wants a greeting. | hello.txt holds the greeting | translate it into Esperanto",
          "(1 row)",
        ].join("\n"),
        "file_path | tool_name | turn_index\ndocs/hello.txt | create | 1\n(1 row)",
        "ref_type | ref_value\ncommit | 1a2b3c4\npr | octo/demo#12\n(2 rows)",
        "source_type | source_id\ncheckpoint | 1\nfile | 1\nturn | 1\n(3 rows)",
        "summary | plain\nWrite a xylophone greeting | 1\n(1 row)",
      ]);
    });
  });

  it("MEM-53 the session store is updated automatically while a session is open", async () => {
    await onStage(work, {}, async (stage) => {
      await converse(stage);
      const file = join(stage.home, "session-store.db");
      await expect
        .poll(() => rowsOf(file, "SELECT user_message FROM turns ORDER BY turn_index"))
        .toEqual(["Write a xylophone greeting", "Thanks"]);
      expect(rowsOf(file, "SELECT title FROM checkpoints")).toEqual(["A friendly greeting"]);
      expect(statSync(file).mode & 0o777).toBe(0o600);
    });
  });

  it("the session store can only be read by agents, one statement at a time, within limits", async () => {
    const attacks = [
      "DELETE FROM turns",
      "INSERT INTO turns (session_id, turn_index, user_message, assistant_response, timestamp) VALUES ('x', 1, '', '', '')",
      "UPDATE sessions SET summary = 'x'",
      "DROP TABLE turns",
      "INSERT INTO search_index (search_index) VALUES ('delete-all')",
      "PRAGMA writable_schema = ON",
      "ATTACH 'x.db' AS x",
      "WITH x AS (SELECT 1) DELETE FROM turns",
      "SELECT 1; DELETE FROM turns",
    ];
    const many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) SELECT i FROM n";
    const steps = [...work, ...attacks.map(asks), asks(many), asks("SELECT count(*) FROM turns"), says("done")];
    await onStage(steps, {}, async (stage) => {
      await converse(stage);
      await stage.session.sendAndWait({ prompt: "attack" });
      const results = resultsOf(stage.session.events, "sql");
      for (const refusal of results.slice(0, attacks.length)) expect(refusal).toMatch(/can only be read|one SELECT/);
      expect(results.at(-2)).toContain("[4800 more rows not shown");
      expect(results.at(-1)).toBe("count(*)\n3\n(1 row)");
    });
  });

  it("the session store shows an agent only the sessions of its own repository, whatever it asks", async () => {
    const secret = "the vault code is kumquat";
    const attacks = [
      "SELECT user_message FROM turns",
      "SELECT content FROM search_index WHERE search_index MATCH 'kumquat'",
      "SELECT * FROM search_index_content",
      "SELECT id, hex(block) FROM search_index_data LIMIT 200",
      "SELECT sql FROM sqlite_master",
      "SELECT * FROM main.sessions UNION ALL SELECT * FROM main.sessions",
      "WITH sessions AS (SELECT user_message FROM main.turns) SELECT * FROM sessions",
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50) SELECT user_message FROM n, turns",
      "SELECT * FROM pragma_database_list",
      "SELECT * FROM temp.turns",
      "ATTACH 'HOME/session-store.db' AS x",
      "SELECT * FROM sqlite_dbpage",
      "SELECT * FROM indexed",
      "SELECT count(*) FROM sessions",
    ];
    const steps = [
      says("noted"),
      ...attacks.map(asks),
      says("done"),
      asks("SELECT user_message FROM turns"),
      says("done"),
    ];
    const remote = '[remote "origin"]\n\turl = https://github.com/octo/demo.git\n';
    const files = { ".git/config": remote, ".git/HEAD": "ref: refs/heads/main\n" };
    await onStage(steps, { files }, async ({ session, runtime, folder, home }) => {
      await session.sendAndWait({ prompt: secret });
      await session.close();
      // Another folder may claim any remote; it is another repository all the same.
      const other = join(folder, "../other");
      mkdirSync(join(other, ".git"), { recursive: true });
      for (const [path, text] of Object.entries(files)) writeFileSync(join(other, path), text);
      const wish = { cwd: other, model: { name: "alpha/large" }, permissions: { allTools: true } };
      const hostile = await runtime.createSession(wish);
      await hostile.sendAndWait({ prompt: "look around" });
      const results = resultsOf(hostile.events, "sql");
      expect(results).toHaveLength(attacks.length);
      for (const [index, result] of results.entries()) {
        const shown = { attack: attacks[index], found: result.match(/kumquat|6b756d71756174/i)?.[0] };
        if (!attacks[index]?.includes("MATCH")) expect(shown).toEqual({ attack: attacks[index], found: undefined });
      }
      expect(results[0]).toBe("user_message\nlook around\n(1 row)");
      expect(results[1]).toBe("No rows.");
      expect(results.at(-1)).toBe("count(*)\n1\n(1 row)");
      await hostile.close();

      writeFileSync(join(home, "settings.json"), JSON.stringify({ sessionStore: "all" }));
      const open = await runtime.createSession(wish);
      await open.sendAndWait({ prompt: "again" });
      expect(resultsOf(open.events, "sql")[0]).toContain(secret);
    });
  });

  it("the session store shows an agent outside of repositories only the sessions of its folder and below", async () => {
    const steps = ["top", "deep", "beside"].map(() => says("ok"));
    await onStage([...steps, asks("SELECT user_message FROM turns ORDER BY 1"), says("done")], {}, async (stage) => {
      const { runtime, folder, session } = stage;
      await session.close();
      for (const name of ["x", "x/deep", "xx"]) {
        mkdirSync(join(folder, name));
        const one = await runtime.createSession({ cwd: join(folder, name), model: { name: "alpha/large" } });
        await one.sendAndWait({ prompt: `in ${name}` });
        await one.close();
      }
      const wish = { cwd: join(folder, "x"), model: { name: "alpha/large" }, permissions: { allTools: true } };
      const last = await runtime.createSession(wish);
      await last.sendAndWait({ prompt: "what was?" });
      expect(resultsOf(last.events, "sql")).toEqual(["user_message\nin x\nin x/deep\nwhat was?\n(3 rows)"]);
    });
  });

  it("the session store finds sessions by words, repository, folder and time, with the ids to resume them", async () => {
    const remote = '[remote "origin"]\n\turl = https://github.com/octo/demo.git\n';
    const files = { ".git/config": remote, ".git/HEAD": "ref: refs/heads/main\n" };
    await onStage(work, { files }, async (stage) => {
      await converse(stage);
      await stage.session.close();
      const { past } = stage.runtime;
      const [best, ...others] = await past.search({ words: "xyloph greet" });
      expect(best).toMatchObject({
        sessionId: stage.session.id,
        source: "turn",
        number: 1,
        repository: "octo/demo",
        branch: "main",
        title: "Write a xylophone greeting",
        snippet: expect.stringContaining("»xylophone« »greeting«"),
      });
      expect(others).toEqual([]);
      expect(await past.search({ words: "esperanto" })).toMatchObject([{ source: "checkpoint", number: 1 }]);
      expect(await past.search({ words: "docs/hello" })).toMatchObject(
        expect.arrayContaining([expect.objectContaining({ source: "file" })]),
      );
      const narrowed = async (more: object): Promise<number> =>
        (await past.search({ words: "xylophone", ...more })).length;
      expect(await narrowed({ repository: "Octo/Demo" })).toBe(1);
      expect(await narrowed({ repository: "octo/other" })).toBe(0);
      expect(await narrowed({ cwd: stage.folder })).toBe(1);
      expect(await narrowed({ cwd: join(stage.folder, "..") })).toBe(1);
      expect(await narrowed({ cwd: stage.folder.slice(0, -1) })).toBe(0);
      expect(await narrowed({ since: "2020-01-01T00:00:00.000Z" })).toBe(1);
      expect(await narrowed({ since: new Date(Date.now() + 1_000).toISOString() })).toBe(0);
    });
  });

  it("the session store is rebuilt from the logs with the same content, and contains no secret", async () => {
    const token = `ghp_${"wJ4kQ8zT2mB6xR9cV5nL1pS7dF3gH0yA4eUi"}`;
    const steps = [says(`never show ${token}`), ...work.slice(3)];
    await onStage(steps, {}, async (stage) => {
      await stage.session.sendAndWait({ prompt: `my token is ${token}` });
      await submit(stage.session, "/compact");
      await stage.session.sendAndWait({ prompt: "Thanks" });
      await stage.session.close();
      const { past } = stage.runtime;
      await past.refresh();
      const everything = () => [
        rowsOf(
          past.path,
          "SELECT json_array(session_id, turn_index, user_message, assistant_response) FROM turns ORDER BY 1",
        ),
        rowsOf(past.path, "SELECT json_array(session_id, checkpoint_number, overview) FROM checkpoints ORDER BY 1"),
        rowsOf(
          past.path,
          "SELECT json_array(content, session_id, source_type, source_id) FROM search_index ORDER BY 1",
        ),
      ];
      const before = everything();
      expect(await past.reindex()).toMatchObject({ changed: 1, left: 0, failed: [] });
      expect(everything()).toEqual(before);
      await past.close();
      for (const suffix of ["", "-wal"]) expect(readFileSync(`${past.path}${suffix}`).includes(token)).toBe(false);
      for (const suffix of ["", "-wal", "-shm"]) rmSync(`${past.path}${suffix}`, { force: true });
      expect(await past.search({ words: "thanks" })).toHaveLength(1);
      expect(everything()).toEqual(before);
    });
  });
});

function rowsOf(path: string, query: string): string[] {
  const database = new DatabaseSync(path, { readOnly: true });
  try {
    return database
      .prepare(query)
      .all()
      .map((row) => String(Object.values(row)[0]));
  } catch {
    return [];
  } finally {
    database.close();
  }
}
