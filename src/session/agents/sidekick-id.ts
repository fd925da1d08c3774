/** The ids of sidekicks. */

/** Whether this is the id of a sidekick's run. Ids of tasks never contain `#`. */
export const isSidekickId = (agentId: string | undefined): boolean => agentId?.includes("#") ?? false;
