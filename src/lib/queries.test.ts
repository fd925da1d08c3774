import { expect, it } from "vitest";
import { TroupeError } from "../protocol/errors.ts";
import { isOutage } from "./queries.ts";

const failed = (code: string | undefined, message = "failed"): Error => Object.assign(new Error(message), { code });

it("distinguishes an outage of the server from errors that would repeat", () => {
  const outages = [
    ...["53100", "53300", "57P01", "57P03", "58030", "08006", "ECONNREFUSED", "EHOSTUNREACH"].map((code) =>
      failed(code),
    ),
    failed(undefined, "Connection terminated unexpectedly"),
    new TroupeError("storage", "Could not open the session.", { cause: failed("53100") }),
  ];
  const others = [
    ...["23505", "42P01", "57014", "ENOSPC"].map((code) => failed(code)),
    ...[new TroupeError("storage", "Another process has taken over."), new TypeError("x is undefined"), "text"],
  ];
  expect(outages.map(isOutage)).toEqual(outages.map(() => true));
  expect(others.map(isOutage)).toEqual(others.map(() => false));
});
