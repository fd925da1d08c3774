/**
 * `troupe/testing`: tools to test agents offline and repeatably. It has a scripted model, the same model behind a real
 * HTTP server with faults, controllable clocks, temporary folders, and assertions on events.
 */
export * from "../model/faux/faux-model.ts";
export {
  type AgentSteps,
  type Fallback,
  forAgent,
  otherwise,
  type PlainStep,
  type Step,
} from "../model/faux/faux-plan.ts";
export * from "../model/faux/faux-script.ts";
export {
  breaksOff,
  calls,
  callsWithText,
  type FailsOptions,
  fails,
  type Move,
  type Moves,
  rateLimited,
  type SaysOptions,
  says,
  stalls,
  thinks,
  throws,
  together,
  type WantedCall,
  withUsage,
} from "../model/faux/faux-step.ts";
export * from "./fault-disk.ts";
export * from "./faux-stamp.ts";
export {
  type Faults,
  type FaultyReply,
  type HttpPlay,
  type HttpStep,
  httpStatus,
  type RawReply,
  rawBytes,
  withFaults,
} from "./http-reply.ts";
export * from "./model-server.ts";
export * from "./power-loss-disk.ts";
export * from "./replay.ts";
export * from "./story.ts";
export * from "./temp-folder.ts";
