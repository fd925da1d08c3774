import { statSync } from "node:fs";
import { expect, it } from "vitest";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { Output } from "../../src/tools/shell/process/output.ts";
import { shellStage } from "./stage.ts";

const MIB = 1024 * 1024;
const slow = process.env.TROUPE_SLOW !== undefined;

it.each([...(slow ? [1024] : []), 64])(
  "the head and tail of %i MiB are kept in little memory, with a responsive event loop (R22)",
  async (size) => {
    await using stage = await shellStage();
    await stage.run("head -c 3000000 /dev/zero"); // what is allocated once does not count
    let peak = 0;
    const before = process.memoryUsage.rss();
    // Processor time between two ticks, not wall time: a busy machine keeps the loop waiting without any work of ours.
    const busy: number[] = [];
    let used = process.cpuUsage();
    const sampler = setInterval(() => {
      peak = Math.max(peak, process.memoryUsage.rss());
      const { user, system } = process.cpuUsage(used);
      busy.push((user + system) / 1000);
      used = process.cpuUsage();
    }, 10);
    const begun = performance.now();
    const reply = await stage.run(
      `echo first; yes 'a line of text that is repeated' | head -c ${size * MIB}; echo; echo last`,
      {
        waitMs: 120_000,
      },
    );
    const seconds = (performance.now() - begun) / 1000;
    clearInterval(sampler);
    const growth = (peak - before) / MIB;
    const p99 = busy.sort((a, b) => a - b)[Math.floor(busy.length * 0.99)] ?? Number.POSITIVE_INFINITY;
    console.log(`${size} MiB: ${seconds.toFixed(2)} s, rss +${growth.toFixed(1)} MiB, busy p99 ${p99.toFixed(1)} ms`);
    expect(reply).toMatchObject({ state: "exited", exitCode: 0 });
    expect(reply.output.length).toBeLessThan(513 * 1024);
    expect(reply.output.startsWith("first\na line")).toBe(true);
    expect(reply.output.endsWith("last\n")).toBe(true);
    const [, left, path = ""] = /\[(\d+) bytes left out here\. .* is in (.*)\]/.exec(reply.output) ?? [];
    expect(Number(left)).toBe(size * MIB + "first\n\nlast\n".length - 512 * 1024);
    expect(statSync(path).size).toBe(64 * MIB);
    expect(growth).toBeLessThanOrEqual(64);
    expect(p99).toBeLessThanOrEqual(100);
  },
  150_000,
);

it("the newest part of a flood is shown while it runs, a few times a second", async () => {
  await using stage = await shellStage();
  const said: string[] = [];
  await stage.run("timeout 1 yes", { onOutput: (text) => void said.push(text) });
  expect(said.length).toBeGreaterThan(2);
  expect(said.length).toBeLessThan(16);
  expect(Math.max(...said.map((text) => text.length))).toBeLessThan(17 * 1024);
});

it("every byte is given once when output is read piece by piece, in whole characters", async () => {
  await using folder = await tempFolder();
  const output = new Output({ path: folder.at("out") });
  const text = "zwölf Äpfel 🍎 ".repeat(3);
  let seen = "";
  let from = 0;
  for (const byte of Buffer.from(text)) {
    output.push(Uint8Array.of(byte));
    const piece = output.textFrom(from, { ended: false });
    from = piece.next;
    seen += piece.text;
  }
  expect(seen).toBe(text);
});

it("a command continues when the disk is full, and the result says that nothing was saved", async () => {
  await using folder = await tempFolder();
  const output = new Output({ path: folder.at("missing/out") });
  for (let round = 0; round < 10; round++) output.push(Buffer.alloc(100_000, "x"));
  await output.close();
  expect(output.textFrom(0, { ended: true }).text).toMatch(/475712 bytes left out here. It could not be saved: ENOENT/);
});
