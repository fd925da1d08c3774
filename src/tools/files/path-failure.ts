import { PathError } from "../../lib/node/paths.ts";
import { ToolError } from "../tool-error.ts";

/** For `.catch`: rethrows a `PathError` as a `ToolError` for the model, and other errors unchanged. */
export function pathFailure(error: unknown): never {
  if (!(error instanceof PathError)) throw error;
  throw new ToolError(error.message, { code: error.problem === "outside" ? "denied" : "failure", cause: error });
}

export function isMissingPath(error: unknown): boolean {
  return error instanceof ToolError && error.cause instanceof PathError && error.cause.problem === "missing";
}
