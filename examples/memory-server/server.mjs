/**
 * A reference for the contract in docs/how-to/memory.md: facts in one JSON file, no packages.
 *
 *   MEMORY_TOKEN=… MEMORY_ADMIN_TOKEN=… node server.mjs --port 8787 --file memories.json
 *
 * Agents come with the first token: they may read, propose and vote. A person comes with the second and accepts.
 */
import { randomUUID, timingSafeEqual } from "node:crypto";
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { parseArgs } from "node:util";

const MAX_BODY_BYTES = 16 * 1024;
const MAX_FACTS = 300;
const MAX_CONTEXT_CHARACTERS = 3000;
const LIMITS = { subject: 80, fact: 500, citations: 1000, reason: 1000 };

const { values } = parseArgs({ options: { port: { type: "string", default: "8787" }, file: { type: "string" } } });
const file = values.file;
const tokens = { agent: process.env.MEMORY_TOKEN, person: process.env.MEMORY_ADMIN_TOKEN };
const facts = file && existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : [];

const routes = {
  "GET /memory/prompt": (url) => {
    const told = visible(url.searchParams).filter(({ status }) => status === "accepted");
    const lines = told.map(({ subject, fact, author }) => `- ${subject}: ${JSON.stringify(fact)} (by ${author})`);
    return reply(200, {
      ...(told.length > 0 && { memoriesContext: lines.join("\n").slice(0, MAX_CONTEXT_CHARACTERS) }),
      memoryCount: told.length,
      storeDefinition: { version: 1, scopes: ["repository", "user"] },
      voteDefinition: { version: 1 },
      storeInstructions: "This memory is shared: store only what everyone who works here should know.",
    });
  },
  "GET /memory": (url) => reply(200, { facts: visible(url.searchParams) }),
  "POST /memory": (_, body, role) => {
    if (!isFact(body))
      return reply(400, { error: "subject, fact, citations, reason, scope, and repo for a repository" });
    const { subject, fact, citations, reason, scope, repo = null, author = "agent" } = body;
    const same = facts.find((known) => known.repo === repo && known.scope === scope && known.fact === fact);
    if (same) return reply(200, { id: same.id, status: "known" });
    if (facts.filter((known) => known.repo === repo).length >= MAX_FACTS) return reply(507, { error: "full" });
    // What the client says was agreed to on its side; with the token of a person it was.
    const status = role === "person" || body.status === "accepted" ? "accepted" : "proposed";
    const added = { id: randomUUID(), subject, fact, citations, reason, scope, repo, author, status, votes: {} };
    facts.push({ ...added, createdAt: new Date().toISOString() });
    save();
    return reply(201, { id: added.id, status });
  },
  "POST /memory/votes": (_, { fact, direction, voter, repo = null }) => {
    const found = facts.find((known) => known.fact === fact && (known.repo === repo || known.scope === "user"));
    if (!found || !["upvote", "downvote"].includes(direction) || typeof voter !== "string") return reply(404, {});
    if (found.votes[voter] === direction) return reply(409, { error: "already voted" });
    found.votes[voter] = direction;
    save();
    return reply(200, {});
  },
  "POST /memory/accept": (_, { id }, role) => {
    if (role !== "person") return reply(403, { error: "only a person accepts" });
    const found = facts.find((known) => known.id === id);
    if (!found) return reply(404, {});
    found.status = "accepted";
    save();
    return reply(200, { id, status: "accepted" });
  },
};

const server = createServer(async (request, response) => {
  const { status, body } = await answer(request).catch(() => reply(400, { error: "bad request" }));
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
});
server.requestTimeout = 10_000;
server.listen(Number(values.port), "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}`));

async function answer(request) {
  const role = roleOf(request.headers.authorization ?? "");
  if (role === undefined) return reply(401, { error: "unknown token" });
  const url = new URL(request.url, "http://localhost");
  const name = `${request.method} ${url.pathname}`;
  const route = Object.hasOwn(routes, name) ? routes[name] : undefined;
  if (route === undefined) return reply(404, { error: "no such route" });
  const body = request.method === "POST" ? await readJson(request) : {};
  return body === undefined ? reply(413, { error: "too long" }) : route(url, body, role);
}

async function readJson(request) {
  const pieces = [];
  let size = 0;
  for await (const piece of request) {
    size += piece.length;
    if (size > MAX_BODY_BYTES) return undefined;
    pieces.push(piece);
  }
  return JSON.parse(Buffer.concat(pieces).toString("utf8"));
}

/** Without tokens in its environment the server is open, to this machine alone. */
function roleOf(header) {
  if (tokens.person && isSame(header, `Bearer ${tokens.person}`)) return "person";
  return !tokens.agent || isSame(header, `Bearer ${tokens.agent}`) ? "agent" : undefined;
}

function isSame(one, other) {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
}

function visible(query) {
  const repo = query.get("repo");
  return facts.filter((fact) => fact.scope === "user" || (repo !== null && fact.repo === repo));
}

function isFact(body) {
  const texts = Object.entries(LIMITS).every(
    ([name, most]) => typeof body[name] === "string" && body[name].length <= most,
  );
  const isPlaced = body.scope === "user" || (body.scope === "repository" && typeof body.repo === "string");
  return texts && isPlaced && body.subject !== "" && body.fact !== "";
}

function save() {
  if (!file) return;
  writeFileSync(`${file}.tmp`, JSON.stringify(facts, null, 2), { mode: 0o600 });
  renameSync(`${file}.tmp`, file);
}

function reply(status, body) {
  return { status, body };
}
