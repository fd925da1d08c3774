/** A policy in code: reading is allowed, notes may be written, everything else is refused with a reason. */
import { createClient, type PermissionHandler, permissionText } from "troupe/sdk";
import { calls, modelServer, says, tempFolder } from "troupe/testing";

const policy: PermissionHandler = (request) => {
  // `permissionText` turns a request into a title and a text for people.
  const { title } = permissionText(request);
  const isNote = request.kind === "write" && request.fileName.endsWith("notes.txt");
  if (request.kind === "read" || isNote) {
    console.log(`allowed: ${title}`);
    return { kind: "approve-once" };
  }
  console.log(`refused: ${title}`);
  // The model reads the feedback and can choose another way.
  return { kind: "reject", feedback: "This session may only read and write notes.txt." };
};

await using model = await modelServer({
  steps: [
    calls(["create", { path: "notes.txt", file_text: "Remember the milk.\n" }]),
    calls(["bash", { command: "rm -rf build", description: "Remove the build" }]),
    says("I wrote the note. I was not allowed to remove the build."),
  ],
});
await using folder = await tempFolder();

await using client = await createClient({ workingDirectory: folder.path });
const session = await client.createSession({
  provider: { baseUrl: model.baseUrl, modelId: "scripted" },
  workingDirectory: folder.path,
  onPermissionRequest: policy,
});
const answer = await session.sendAndWait("Write a note, then clean up.");
console.log(answer?.data.content);
