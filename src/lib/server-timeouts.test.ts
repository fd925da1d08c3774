import { expect, it } from "vitest";
import { withServerTimeouts } from "./server-timeouts.ts";

it("the timeouts are added to the address of a database, and given options win", () => {
  const own =
    "-c idle_in_transaction_session_timeout=10s -c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_user_timeout=20s";
  const given = "postgres://me:p%40ss@db.example.com:5433/troupe?sslmode=require&options=-c%20tcp_user_timeout%3D1min";
  const { href, searchParams } = new URL(withServerTimeouts(given));
  expect(searchParams.get("options")).toBe(`${own} -c tcp_user_timeout=1min`);
  expect(searchParams.get("sslmode")).toBe("require");
  expect(href.startsWith("postgres://me:p%40ss@db.example.com:5433/troupe?")).toBe(true);
});
