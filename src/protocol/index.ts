/** The entry point `troupe/protocol`: the protocol without the runtime. */
export * from "./errors.ts";
export * from "./event.ts";
export * from "./event-kind.ts";
export * from "./message.ts";
export * from "./permission.ts";
