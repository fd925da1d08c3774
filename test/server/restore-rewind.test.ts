import { expect, it } from "vitest";
import { createClient } from "../../src/sdk/sdk.ts";
import { inProcess } from "../../src/server/in-process.ts";
import { says } from "../../src/testing/index.ts";
import { modelServer } from "../../src/testing/model-server.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";

it("clients see the whole conversation again after a rewind was undone", async () => {
  await using folder = await tempFolder({ "work/a.txt": "a" });
  await using model = await modelServer({ steps: [says("one"), says("two"), says("three")] });
  const environment = {
    PATH: process.env.PATH ?? "",
    TROUPE_HOME: folder.at("home"),
    TROUPE_BASE_URL: model.baseUrl,
    TROUPE_MODEL: "scripted",
    TROUPE_NO_DISCOVERY: "1",
    TROUPE_SANDBOX: "off",
  };
  await using client = await createClient({ connection: inProcess({ environment, cwd: folder.at("work") }) });
  const session = await client.createSession({ workingDirectory: folder.at("work") });
  for (const prompt of ["first", "second"]) await session.sendAndWait({ prompt });
  const said = async (): Promise<string[]> =>
    (await session.getEvents()).flatMap((event) => {
      if (event.type === "troupe.rewound") return ["rewound"];
      return event.type === "user.message" || event.type === "assistant.message" ? [event.data.content] : [];
    });
  const { points } = (await session.request("session.history.listRewindPoints", {})) as {
    points: readonly { eventId: string }[];
  };
  const rewind = (index: number) =>
    session.request("session.history.rewind", { eventId: points[index]?.eventId ?? "", mode: "conversation" });
  await rewind(0);
  expect(await said()).toEqual(["rewound"]);
  await session.request("session.history.restoreRewind", {});
  expect(await said()).toEqual(["first", "one", "second", "two", "rewound"]);
  await rewind(1);
  expect(await said()).toEqual(["first", "one", "rewound"]);
  await session.request("session.history.restoreRewind", {});
  await session.sendAndWait({ prompt: "third" });
  expect(await said()).toEqual(["first", "one", "second", "two", "rewound", "rewound", "third", "three"]);
});
