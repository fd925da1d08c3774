/** The session's memory and plan, which workers can read and cannot change. */
export interface SessionKnowledge {
  /** The memory section of the system prompt. Empty when memory is off or nothing is stored. */
  memory(): string;
  /** The text of the session's plan. Empty when there is no plan. */
  plan(): Promise<string>;
}
