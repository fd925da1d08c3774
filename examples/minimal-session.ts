/** The smallest program: start troupe, open a session, ask, print the answer. */
import { approveAll, createClient } from "troupe/sdk";

// Starts a troupe process of its own. `await using` ends it when the program is done.
await using client = await createClient();

// Without `model` the session uses the model you have configured. With none, the offline understudy answers.
const session = await client.createSession({ onPermissionRequest: approveAll });

// Resolves when the agent, and every agent it started, is done.
const answer = await session.sendAndWait("How is this repository organised?");
console.log(answer?.data.content);
