/** The ids of sidekicks. */

/** Whether this is the id of a sidekick's run: no task has such a sign in its id. */
export const isSidekickId = (agentId: string | undefined): boolean => agentId?.includes("#") ?? false;
