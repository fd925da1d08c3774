import type { OutputCheck } from "./agent-run.ts";
import { MAX_REPAIRS, outputContract, repairMessage } from "./typed-output.ts";

/** Checks an agent's answer against a schema and asks for a few corrections. */
export function outputCheck(schema: unknown): OutputCheck {
  const { instruction, check } = outputContract(schema);
  let repairs = 0;
  return {
    instruction,
    async next(response) {
      const output = await check(response);
      if (output.ok || repairs >= MAX_REPAIRS) return undefined;
      return repairMessage(output.problem, MAX_REPAIRS - repairs++);
    },
    async judge(response) {
      const output = await check(response);
      return output.ok ? { ok: true, response: JSON.stringify(output.value) } : { ok: false, problem: output.problem };
    },
  };
}
