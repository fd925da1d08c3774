/** Turns the keys of a card, and the words that were typed for it, into answers of the contract. */
import { chosenValue, type FormField, fieldAnswer, formFields } from "../lib/form-fields.ts";
import type { AttentionItem } from "../view/view.ts";
import { addressOf, type CardAnswer } from "./attention.ts";
import type { Host } from "./host.ts";
import { Pager } from "./overlays/pager.ts";
import { addressLines, wholeRequest } from "./panels/request-lines.ts";
import { mainTarget, type Target } from "./prompt-target.ts";
import { safeCode, safeLine } from "./screen/safe.ts";
import { markdownText } from "./transcript/tool-cards.ts";

export function answerCard(app: Host, answer: CardAnswer): void {
  const item = app.attention.current;
  if (!item) return;
  switch (answer.kind) {
    case "approve":
      settle(app, app.session?.decide(item, approval(item, answer.how)));
      return;
    case "deny":
      deny(app, item);
      return;
    case "choice":
      choose(app, item, answer.index);
      return;
    case "words":
      app.aim(
        item.kind === "question"
          ? { kind: "answer", label: "answer ›", draft: "", item }
          : { kind: "feedback", label: "why not ›", draft: "", item },
      );
      return;
    case "fill":
      fill(app, item);
      return;
    case "view":
      app.openOverlay(new Pager({ title: item.title, style: app.style, lines: () => wholeText(app, item) }));
      return;
    case "open-agent":
      if (item.agentId !== undefined) app.commands.openAgent(item.agentId);
  }
}

const wholeText = ({ style }: Host, item: AttentionItem): readonly string[] =>
  item.kind === "plan"
    ? markdownText(item.text, style)
    : [...wholeRequest(item.text), ...addressLines(addressOf(item))].map(safeCode);

/** Sends what was typed for a request. Returns false when the prompt is for the main agent. */
export function answerWords(app: Host, target: Target, text: string): boolean {
  switch (target.kind) {
    case "feedback":
      app.aim(mainTarget);
      if (target.item.kind === "plan")
        settle(app, app.session?.answerPlan(target.item, { approved: false, feedback: text }));
      else settle(app, app.session?.decide(target.item, { kind: "reject", feedback: text }));
      return true;
    case "answer":
      app.aim(mainTarget);
      settle(app, app.session?.answerQuestion(target.item, text, true));
      return true;
    case "field":
      nextField(app, target, text);
      return true;
    default:
      return false;
  }
}

/** The decision for an approval, once or for longer. */
export function approval(item: AttentionItem, how: "once" | "session" | "always"): Readonly<Record<string, unknown>> {
  if (how === "once") return { kind: "approve-once" };
  if (how === "session") return { kind: "approve-for-session" };
  const asked = item.request?.type === "permission.requested" ? item.request.data.permissionRequest : undefined;
  return { kind: "approve-permanently", ...(asked?.kind === "url" && { domain: new URL(asked.url).host }) };
}

function deny(app: Host, item: AttentionItem): void {
  if (item.kind === "plan") settle(app, app.session?.answerPlan(item, { approved: false }));
  else if (item.kind === "elicitation") settle(app, app.session?.answerForm(item, { action: "decline" }));
  else settle(app, app.session?.decide(item, { kind: "reject" }));
}

function choose(app: Host, item: AttentionItem, index: number): void {
  const choice = item.choices[index];
  if (choice === undefined || app.attention.answerLocal(item, index, app.view)) return;
  if (item.kind === "plan") settle(app, app.session?.answerPlan(item, { approved: true, selectedAction: choice }));
  else if (item.kind === "limit") settle(app, app.session?.answerLimit(item, choice));
  else if (item.kind === "question") settle(app, app.session?.answerQuestion(item, choice, false));
}

/** Asks for the fields of a form one after the other. An address is shown; the user opens it. */
function fill(app: Host, item: AttentionItem): void {
  if (item.request?.type !== "elicitation.requested") return;
  const [first, ...rest] = formFieldsOf(item);
  if (!first) settle(app, app.session?.answerForm(item, { action: "accept", content: {} }));
  else app.aim({ kind: "field", label: labelOf(first), draft: "", item, field: first, rest, content: {} });
}

const formFieldsOf = ({ request }: AttentionItem): readonly FormField[] =>
  request?.type === "elicitation.requested" ? formFields(request.data.requestedSchema) : [];

function nextField(app: Host, target: Extract<Target, { kind: "field" }>, text: string): void {
  const { item, field, rest } = target;
  const answer = fieldAnswer(field, chosenValue(field, text));
  if (answer.kind === "problem") {
    app.editor.set(text);
    app.hint(safeLine(answer.problem));
    return;
  }
  const content = { ...target.content, ...(answer.kind === "value" && { [field.name]: answer.value }) };
  const [next, ...others] = rest;
  if (next) {
    const count = formFieldsOf(item).length;
    app.hint(`field ${count - others.length} of ${count}`);
    app.target = { ...target, label: labelOf(next), field: next, rest: others, content };
    return;
  }
  app.aim(mainTarget);
  app.hint("the form is sent");
  settle(app, app.session?.answerForm(item, { action: "accept", content }));
}

const labelOf = ({ label, hint }: FormField): string =>
  `${safeLine(label).slice(0, 40)} (${safeLine(hint).slice(0, 60)}) ›`;

/** An answer that came too late is said; the card closes by the event in any case. */
function settle(app: Host, answered: Promise<boolean> | undefined): void {
  answered?.then(
    (wasFirst) => {
      if (!wasFirst) app.hint("it was answered elsewhere");
    },
    (error: unknown) => app.fail(error),
  );
}
