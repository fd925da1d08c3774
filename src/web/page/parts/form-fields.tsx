/** The form of an MCP server. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { sanitise } from "../../../lib/text.ts";
import type { AttentionItem } from "../../../view/view.ts";

interface Property {
  readonly type?: string;
  readonly title?: string;
  readonly description?: string;
  readonly enum?: readonly unknown[];
}

export interface FormProps {
  readonly item: AttentionItem;
  readonly isBusy: boolean;
  onAnswer(result: Readonly<Record<string, unknown>>): void;
}

export function FormFields({ item, isBusy, onAnswer }: FormProps): JSX.Element {
  const [content, setContent] = useState<Readonly<Record<string, unknown>>>({});
  const schema = item.request?.type === "elicitation.requested" ? item.request.data.requestedSchema : undefined;
  const fields = Object.entries(schema?.properties ?? {}) as [string, Property][];
  const set = (name: string, value: unknown): void => setContent({ ...content, [name]: value });
  return (
    <form
      class="answers form"
      onSubmit={(event) => {
        event.preventDefault();
        onAnswer({ action: "accept", content });
      }}
    >
      {fields.map(([name, property]) => (
        <div key={name} class="field">
          <span>{sanitise(property.title ?? name)}</span>
          <Field
            label={sanitise(property.title ?? name)}
            property={property}
            value={content[name]}
            onChange={(value) => set(name, value)}
          />
          {property.description !== undefined && <span class="hint">{sanitise(property.description)}</span>}
        </div>
      ))}
      <button type="submit" class="primary" disabled={isBusy}>
        Send
      </button>
      <button
        type="button"
        class="danger"
        data-answer="no"
        disabled={isBusy}
        onClick={() => onAnswer({ action: "decline" })}
      >
        Decline
      </button>
    </form>
  );
}

interface FieldProps {
  readonly label: string;
  readonly property: Property;
  readonly value: unknown;
  onChange(value: unknown): void;
}

function Field({ label, property, value, onChange }: FieldProps): JSX.Element {
  if (property.enum) {
    return (
      <select
        aria-label={label}
        value={String(value ?? "")}
        onChange={({ currentTarget }) => onChange(currentTarget.value)}
      >
        <option value="">choose</option>
        {property.enum.map((one) => (
          <option key={String(one)} value={String(one)}>
            {sanitise(String(one))}
          </option>
        ))}
      </select>
    );
  }
  if (property.type === "boolean") {
    return (
      <input
        type="checkbox"
        aria-label={label}
        checked={value === true}
        onChange={({ currentTarget }) => onChange(currentTarget.checked)}
      />
    );
  }
  const text = value === undefined ? "" : String(value);
  if (property.type === "number" || property.type === "integer") {
    return (
      <input
        type="number"
        aria-label={label}
        value={text}
        onInput={({ currentTarget }) => onChange(Number(currentTarget.value))}
      />
    );
  }
  return (
    <input type="text" aria-label={label} value={text} onInput={({ currentTarget }) => onChange(currentTarget.value)} />
  );
}
