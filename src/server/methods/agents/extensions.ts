/** Extensions of a session, and extensions of the user. */
import * as z from "zod";
import { Attachment } from "../../../protocol/define-event.ts";
import { TroupeError } from "../../../protocol/errors.ts";
import { changeOwnSettings, ownExtensions, readOwnSettings } from "../../../runtime/workspace/discovery.ts";
import { type Call, type MethodTable, method, noParams, nothing, sessionMethod } from "../method.ts";

const byId = () => ({ id: z.string().min(1) });
const byIds = () => z.object({ ids: z.array(z.string().min(1)).max(1_000) });
const hostOf = ({ server }: Call) => ({ runtime: server.runtime, environment: server.options.environment });

export const extensionsMethods: MethodTable = {
  "session.extensions.list": sessionMethod(nothing, (_, { hosted }) => ({ extensions: hosted.extensions.list })),
  "session.extensions.enable": sessionMethod(byId, ({ id }, { hosted }) => hosted.extensions.setEnabled(id, true)),
  "session.extensions.disable": sessionMethod(byId, ({ id }, { hosted }) => hosted.extensions.setEnabled(id, false)),
  "session.extensions.reload": sessionMethod(nothing, (_, { hosted }) => hosted.extensions.reload()),
  // The clients that show the session to a user add them to the next message.
  "session.extensions.sendAttachmentsToMessage": sessionMethod(
    () => ({ attachments: z.array(Attachment).min(1).max(100) }),
    ({ attachments }, { connection, hosted }) => {
      if (!connection.extension) {
        throw new TroupeError(
          "usage",
          "Only an extension can send attachments to a message, and this client is not an extension.",
        );
      }
      if (hosted.clients.attached.every(({ extension }) => extension !== undefined)) {
        throw new TroupeError("usage", "No attached client can put attachments into a message.", {
          hint: "Send them with a message: session.send.",
        });
      }
      hosted.announce("session.extensions.attachments_pushed", { attachments });
    },
  ),
  "extensions.discover": method(noParams, async (_, call) => {
    const disabled = disabledIds(call);
    const { extensions, isOn } = await ownExtensions(hostOf(call), call.server.options.cwd);
    return {
      extensions: extensions.map(({ id, name, path, source, pluginName }) => ({
        id,
        name,
        path,
        source,
        enabled: !disabled.includes(id),
        ...(pluginName !== undefined && { plugin: { name: pluginName } }),
      })),
      mode: isOn ? "load_only" : "disabled",
    };
  }),
  "extensions.enable": method(byIds, ({ ids }, call) =>
    remember(
      disabledIds(call).filter((id) => !ids.includes(id)),
      call,
    ),
  ),
  "extensions.disable": method(byIds, ({ ids }, call) => remember([...new Set([...disabledIds(call), ...ids])], call)),
  registerExtensionLaunchProvider: method(noParams, (_, { hub, connection }) => hub.launcher.register(connection)),
};

function disabledIds(call: Call): string[] {
  const { value } = readOwnSettings(hostOf(call)).disabledExtensions ?? { value: null };
  return Array.isArray(value) ? value.map(String) : [];
}

/** Stores the setting for future sessions. Open sessions have their own state. */
async function remember(ids: readonly string[], call: Call): Promise<void> {
  await changeOwnSettings(hostOf(call), { disabledExtensions: ids.length > 0 ? [...ids] : null });
}
