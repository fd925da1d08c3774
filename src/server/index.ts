/** The entry `troupe/server`: a server inside a program of your own. */
export { type InProcessOptions, inProcess } from "./in-process.ts";
