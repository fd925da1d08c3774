import type { exitCodes } from "../exit-codes.ts";

export const exitCodeMeanings: Readonly<Record<keyof typeof exitCodes, string>> = {
  done: "done",
  failed: "failed; `troupe doctor` found a problem",
  usage: "wrong usage or configuration",
  provider: "the model provider failed",
  limit: "a limit was reached: turns, tokens or cost",
  blocked: "autopilot is blocked and needs a person",
  unverified: "autopilot could not verify its work",
  authentication: "the provider rejected the key",
  interrupted: "interrupted",
};
