/** Errors that no code handles must not end the process: a defect in one session is no reason to lose the others. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import { expect, test } from "vitest";
import { encodeFrame } from "../../src/protocol/rpc/frame.ts";
import { tempFolder } from "../../src/testing/index.ts";
import { script, troupe } from "../support/troupe.ts";

/** Makes one mistake of each kind as soon as a file called "now" lies beside it. */
const slips = `
  import { existsSync } from "node:fs";
  const timer = setInterval(() => {
    if (!existsSync(new URL("now", import.meta.url))) return;
    clearInterval(timer);
    void Promise.reject(new Error("first slip"));
    setImmediate(() => { throw new Error("second slip"); });
  }, 5);
  timer.unref();
`;

test("a server reports an unhandled rejection and an unhandled exception, and keeps serving", async () => {
  await using folder = await tempFolder({ "slips.mjs": slips });
  const child = spawn(
    process.execPath,
    ["--import", folder.at("slips.mjs"), resolve("bin/troupe.js"), "--headless", "--stdio"],
    {
      cwd: folder.path,
      env: {
        PATH: process.env.PATH ?? "",
        HOME: folder.path,
        TROUPE_HOME: folder.at("home"),
        TROUPE_NO_DISCOVERY: "1",
      },
    },
  );
  try {
    let [said, answered] = ["", ""];
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      answered += text;
    });
    const ask = (id: number): boolean =>
      child.stdin.write(encodeFrame({ jsonrpc: "2.0", id, method: "ping", params: {} }));
    ask(6);
    await expect.poll(() => answered).toContain('"id":6');
    await folder.files({ now: "" });
    await expect.poll(() => said).toMatch(/rejection without a handler.*first slip/s);
    await expect.poll(() => said).toMatch(/exception without a handler.*second slip/s);
    ask(7);
    await expect.poll(() => answered).toContain('"id":7');
    child.stdin.end();
    expect(await once(child, "exit")).toEqual([0, null]);
  } finally {
    child.kill("SIGKILL");
  }
});

test("a prompt is answered despite a rejection without a handler", async () => {
  const slip = `
    const timer = setInterval(() => {
      if (process.listenerCount("unhandledRejection") === 0) return;
      clearInterval(timer);
      void Promise.reject(new Error("a slip"));
    }, 1);
  `;
  await using folder = await tempFolder({ "slip.mjs": slip });
  const model = script(folder.at("scripts"), [{ say: "All the same." }]);
  const ended = await troupe(["-p", "Hello", "--model", model], {
    cwd: folder.path,
    home: folder.at("home"),
    environment: { NODE_OPTIONS: `--import ${folder.at("slip.mjs")}` },
  });
  expect(ended).toMatchObject({ code: 0, stdout: "All the same.\n" });
  expect(ended.stderr).toContain("a slip");
});
