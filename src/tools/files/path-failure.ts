import { PathError } from "../../lib/node/paths.ts";
import { ToolError } from "../tool-error.ts";

/** For `.catch`: what the path module refuses becomes a failure the model can read; the rest passes through. */
export function pathFailure(error: unknown): never {
  if (!(error instanceof PathError)) throw error;
  throw new ToolError(error.message, { code: error.problem === "outside" ? "denied" : "failure", cause: error });
}

export function isMissingPath(error: unknown): boolean {
  return error instanceof ToolError && error.cause instanceof PathError && error.cause.problem === "missing";
}
