/** Every method of the server. A resource is a file; a new one is a line here. */
import { connectionMethods } from "./connection.ts";
import type { MethodTable } from "./method.ts";
import { sessionMethods } from "./session.ts";
import { sessionsMethods } from "./sessions.ts";

export const methods: MethodTable = {
  ...connectionMethods,
  ...sessionMethods,
  ...sessionsMethods,
};
