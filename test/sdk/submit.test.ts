import { describe, expect, it } from "vitest";
import { approveAll, type PermissionHandler } from "../../src/sdk/index.ts";
import { calls, forAgent, says } from "../../src/testing/index.ts";
import { sdkStage, ways } from "./stage.ts";

describe.each(ways)("text that a user typed, submitted to %s", (way) => {
  it("a submitted command returns its text without a model call", async () => {
    await using stage = await sdkStage(way);
    await using client = await stage.client();
    const session = await client.createSession({ provider: stage.provider, onPermissionRequest: approveAll });
    const submitted = await session.submit("/plan");
    expect(submitted).toEqual({ kind: "said", text: expect.stringMatching(/plan/i) });
    expect(await session.rpc.mode.get()).toBe("plan");
    await expect(session.submit("/no-such-command")).rejects.toThrow(/There is no command \/no-such-command here/);
    expect(stage.model.requests.filter(({ wire }) => wire !== undefined)).toEqual([]);
  });

  it("a submitted command sends its prompt, and other text is a prompt, with the data after it", async () => {
    await using stage = await sdkStage(way, says("Reviewed."), says("Hello."));
    await using client = await stage.client();
    const session = await client.createSession({ provider: stage.provider, onPermissionRequest: approveAll });
    const reviewed = await session.submit("/review the last change", { data: "/plan is only data" });
    expect(reviewed).toMatchObject({ kind: "answered", message: { data: { content: "Reviewed." } } });
    const shown = JSON.stringify(stage.model.requests.at(-1)?.body);
    expect(shown).toContain("/plan is only data");
    expect(shown).not.toContain("/review the last change");
    expect(await session.submit("Hello")).toMatchObject({ message: { data: { content: "Hello." } } });
    expect(await session.rpc.mode.get()).toBe("interactive");
  });

  it("a submitted command calls the client's handler, unless troupe has a command of that name", async () => {
    await using stage = await sdkStage(way);
    await using client = await stage.client();
    const called: string[] = [];
    const handler = ({ command, args }: { command: string; args: string }): void => {
      if (args === "never") throw new Error("The answer is no.");
      called.push(command);
    };
    const commands = ["deploy", "plan"].map((name) => ({ name, handler }));
    const session = await client.createSession({ provider: stage.provider, commands });
    const { commands: listed } = await session.rpc.commands.list();
    expect(listed.find(({ name }) => name === "rename")?.input?.hint).toEqual(expect.any(String));
    expect(await session.submit("/deploy now")).toEqual({ kind: "said", text: "" });
    await expect(session.submit("/deploy never")).rejects.toThrow("/deploy failed: The answer is no.");
    await session.submit("/plan");
    expect(called).toEqual(["/deploy now"]);
  });
});

it("the permission handler learns which agent asks", async () => {
  const isHelper = ({ messages }: { readonly messages: readonly { readonly role: string }[] }): boolean =>
    JSON.stringify(messages.find(({ role }) => role === "user")).includes("Write b.txt.");
  const task = { agent_type: "general-purpose", name: "helper", description: "Writes", prompt: "Write b.txt." };
  await using stage = await sdkStage(
    "this process",
    calls(["task", task]),
    forAgent(isHelper, calls(["create", { path: "b.txt", file_text: "x" }]), says("Written.")),
    calls(["create", { path: "c.txt", file_text: "x" }]),
    says("Done."),
  );
  await using client = await stage.client();
  const asked: (string | undefined)[] = [];
  const onPermissionRequest: PermissionHandler = (request, { agentId }) => {
    if (request.kind === "write") asked.push(agentId);
    return { kind: "approve-once" };
  };
  const session = await client.createSession({ provider: stage.provider, onPermissionRequest });
  await session.sendAndWait("Have both written.");
  expect(asked).toEqual(["helper", undefined]);
});

it("an image that a tool returned can be read, and an unknown asset is refused", async () => {
  await using stage = await sdkStage("this process", calls(["view", { path: "red.png" }]), says("Red."));
  const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg==";
  await stage.folder.files({ "work/red.png": Buffer.from(pixel, "base64") });
  await using client = await stage.client();
  const session = await client.createSession({ provider: stage.provider, onPermissionRequest: approveAll });
  const images: string[] = [];
  session.on("tool.execution_complete", ({ data }) => {
    for (const { assetId } of data.result?.binaryResultsForLlm ?? []) images.push(assetId);
  });
  await session.sendAndWait("Look.");
  expect(await session.rpc.assets.read({ assetId: images[0] ?? "" })).toEqual({ data: pixel });
  const missing = `sha256:${"0".repeat(64)}`;
  await expect(session.rpc.assets.read({ assetId: missing })).rejects.toThrow(/has no asset/);
});
