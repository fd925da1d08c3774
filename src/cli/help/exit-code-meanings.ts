import type { exitCodes } from "../exit-codes.ts";

export const exitCodeMeanings: Readonly<Record<keyof typeof exitCodes, string>> = {
  done: "done",
  failed: "failed: a defect, a disk error, a failed --check, or a finding of `troupe doctor`",
  usage: "wrong usage or configuration",
  provider: "the model provider failed",
  limit: "a limit was reached: turns, tokens or cost",
  blocked: "autopilot is blocked: nothing changes any more",
  unverified: "the work is done, but its check could not run",
  authentication: "the provider rejected the key",
  interrupted: "interrupted",
};
