// Variables that configure troupe or a model provider on the developer's machine must not reach the tests.
const foreign = /_API_KEY$|^(TROUPE|COPILOT|OPENAI|ANTHROPIC|AZURE|GEMINI|GOOGLE|OLLAMA)_/;
/** Makes every Node read all certificates at its start, which takes longer than the start itself; no test connects to others. */
const slow = "NODE_EXTRA_CA_CERTS";
const kept = new Set(["TROUPE_SLOW", "TROUPE_SEED", "TROUPE_TWICE"]);

/** Returns the environment for a test run whose troupe home is `home`. */
export function cleanEnvironment(home) {
  const own = Object.entries(process.env).filter(([name]) => kept.has(name) || !(name === slow || foreign.test(name)));
  return { ...Object.fromEntries(own), TROUPE_HOME: home, TROUPE_NO_DISCOVERY: "1" };
}
