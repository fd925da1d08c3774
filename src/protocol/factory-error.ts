/** A failed operation on a run, with the code by which programs distinguish it. */
export class FactoryError extends Error {
  override readonly name = "FactoryError";
  readonly code: FactoryErrorCode;
  readonly runId: string | undefined;

  constructor(code: FactoryErrorCode, message: string, runId?: string) {
    super(message);
    this.code = code;
    this.runId = runId;
  }
}

export type FactoryErrorCode =
  | "not_found"
  | "non_resumable"
  | "already_active"
  | "factory_not_found"
  | "factory_already_running"
  | "factory_limits_invalid"
  | "factory_limit_reached"
  | "factory_session_disposed"
  | "factory_execution_stale"
  | "factory_value_too_large"
  | "factory_cancelled";
