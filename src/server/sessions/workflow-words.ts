/** Renames factories to workflows for SDK 1.0.15: the same responses, events and errors under other names. */
import { defined } from "../../lib/defined.ts";
import { isObject } from "../../lib/json.ts";
import { RpcError } from "../../protocol/rpc/errors.ts";

/** Renames the members of a response about runs. Values that factories produce stay unchanged. */
export function inWorkflowWords(answer: unknown): unknown {
  if (!isObject(answer)) return answer;
  const { factoryName, failure, terminal, run, runs, ...rest } = answer;
  return {
    ...rest,
    ...defined({ workflowName: factoryName }),
    ...(isObject(failure) && { failure: renamed(failure, "type") }),
    ...(terminal !== undefined && { terminal: inWorkflowWords(terminal) }),
    ...(run !== undefined && { run: inWorkflowWords(run) }),
    ...(Array.isArray(runs) && { runs: runs.map(inWorkflowWords) }),
  };
}

/** Renames the code of an error; other errors are returned unchanged. */
export function workflowError(error: unknown): unknown {
  if (!(error instanceof RpcError) || !isObject(error.data)) return error;
  return new RpcError(error.code, error.message, renamed(error.data, "code"));
}

function renamed<T>(value: Record<string, T>, member: string): Record<string, T | string> {
  const word = value[member];
  return typeof word === "string" ? { ...value, [member]: word.replace(/^factory_/, "workflow_") } : value;
}
