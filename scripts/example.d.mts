export declare const exampleNames: readonly string[];
export declare function compileExample(name: string, folder: string): Promise<string>;
