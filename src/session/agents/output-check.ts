import type { OutputCheck } from "./agent-run.ts";
import { MAX_REPAIRS, outputContract, repairMessage } from "./typed-output.ts";

/** What an agent's answer must fit: it is told so, corrected a few times, and then taken as it is. */
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
