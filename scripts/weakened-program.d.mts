export interface Change {
  readonly file: string;
  readonly from: string;
  readonly to: string;
}
export declare function copyProgram(root: string, folder: string): void;
export declare function weaken(copy: string, folder: string, changes: readonly Change[]): Promise<void>;
