import type { JSX } from "preact";
import type { TabProps } from "./lazy.tsx";

export function MemoryTab({ model }: TabProps): JSX.Element {
  return <p>{model.id}</p>;
}
