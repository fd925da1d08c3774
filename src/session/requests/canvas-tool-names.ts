/** Built-in tools that require permission like client tools, although no client runs them. */
export const canvasToolNames = { open: "open_canvas", act: "invoke_canvas_action" } as const;

export const isCanvasTool = (name: string): boolean => Object.values<string>(canvasToolNames).includes(name);
