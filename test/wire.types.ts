/** Compile-time: every event of ours that the wire knows is, to the compiler, an event of the published SDK. */
import type * as Wire from "@github/copilot-sdk";
import type * as Next from "copilot-sdk-1.0.14";
import type { EventType, SessionEvent } from "../src/protocol/event.ts";

type WireEvent = Wire.SessionEvent;
type Ours = Extract<EventType, `troupe.${string}`>;
type Shared = Exclude<EventType, Ours>;

/** Events that came with SDK 1.0.14, and those of releases after it. */
type NextEvent = Exclude<Extract<Shared, Next.SessionEvent["type"]>, WireEvent["type"]>;
type LaterEvent = "factory.run_started" | "factory.run_settled" | "session.model_deselected" | `workflow.${string}`;

/** Names that are neither the wire's nor prefixed. */
type Missing = Exclude<Shared, WireEvent["type"] | NextEvent | LaterEvent>;
export const noneMissing: [Missing] extends [never] ? true : Missing = true;

/** What releases after the published one have words for, and the published one shows as it is. */
type Later = { kind: "extension-env-access" };
type Known<D> = D extends { permissionRequest: infer P }
  ? Omit<D, "permissionRequest"> & { permissionRequest: Exclude<P, Later> }
  : D extends { result: infer R }
    ? Omit<D, "result"> & { result: Remembered<R> }
    : D;
type Remembered<R> = R extends { approval: infer A } ? Omit<R, "approval"> & { approval: Exclude<A, Later> } : R;

/** Names whose data the wire would not accept. */
type Drift = {
  [T in Shared]: Known<Extract<SessionEvent, { type: T }>["data"]> extends Extract<WireEvent, { type: T }>["data"]
    ? never
    : T;
}[Exclude<Shared, NextEvent | LaterEvent>];
export const noDrift: [Drift] extends [never] ? true : Drift = true;

/** Names of SDK 1.0.14 whose data it would not accept. */
type NextDrift = {
  [T in NextEvent]: Extract<SessionEvent, { type: T }>["data"] extends Extract<Next.SessionEvent, { type: T }>["data"]
    ? never
    : T;
}[Exclude<NextEvent, LaterEvent>];
export const noNextDrift: [NextDrift] extends [never] ? true : NextDrift = true;

/** The envelope itself. */
type Envelope = Pick<Extract<SessionEvent, { type: "session.idle" }>, "id" | "timestamp" | "parentId">;
type WireEnvelope = Pick<Extract<WireEvent, { type: "session.idle" }>, "id" | "timestamp" | "parentId">;
export const sameEnvelope: Envelope extends WireEnvelope ? true : false = true;
