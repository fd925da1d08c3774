import type { Command } from "./command.ts";

export const models: Command = {
  name: "models",
  group: "Setup",
  summary: "list usable models, and why the others cannot be used",
  flags: { json: "print one JSON array" },
  examples: [["troupe models", "which model is used, and what the others need"]],
  notes: ["Choose a model with --model, TROUPE_MODEL, or defaultModel in providers.json. See `troupe help models`."],
  load: async () => (await import("../commands/models.ts")).modelsCommand,
};

export const login: Command = {
  name: "login",
  group: "Setup",
  summary: "enter the key of a model provider",
  arguments: [{ name: "provider", optional: true }],
  examples: [
    ["troupe login", "choose a provider and enter its key"],
    ["troupe login anthropic < key.txt", "read the key from a file"],
  ],
  notes: [
    "The key is tested with one short request and stored in providers.json in the state folder, which only you can read. " +
      "It takes precedence over an environment variable.",
  ],
  load: async () => (await import("../commands/login.ts")).loginCommand,
};

export const logout: Command = {
  name: "logout",
  group: "Setup",
  summary: "remove the stored keys of model providers, or of one",
  arguments: [{ name: "provider", optional: true }],
  examples: [
    ["troupe logout", "remove all keys from providers.json"],
    ["troupe logout anthropic", "remove one"],
  ],
  notes: ["Keys in environment variables, and commands that print a key, are not removed. The output names them."],
  load: async () => (await import("../commands/logout.ts")).logoutCommand,
};
