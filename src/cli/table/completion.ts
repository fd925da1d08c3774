import type { Command } from "./command.ts";

export const completion: Command = {
  name: "completion",
  group: "Setup",
  summary: "print a completion script for your shell",
  arguments: [{ name: "bash|zsh|fish", values: ["bash", "zsh", "fish"] }],
  examples: [
    ["echo 'source <(troupe completion bash)' >> ~/.bashrc", "bash"],
    ["echo 'source <(troupe completion zsh)' >> ~/.zshrc", "zsh, after compinit"],
    ["troupe completion fish > ~/.config/fish/completions/troupe.fish", "fish"],
  ],
  load: async () => (await import("../completion/scripts.ts")).completionCommand,
};
