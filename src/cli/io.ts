/** Where text goes. */
export interface TextOutput {
  write(text: string): void
  /** Resolves once the reader has caught up; at once where nothing piles up. */
  drained(): Promise<void>
  /** A person watches. */
  readonly isTTY: boolean
  /** The width of the terminal; 80 where there is none. */
  readonly columns: number
}

/** Everything a command needs of the process that runs it. */
export interface Io {
  stdin: AsyncIterable<Uint8Array> & { readonly isTTY: boolean }
  stdout: TextOutput
  stderr: TextOutput
  env: Record<string, string | undefined>
  /** Aborts on Ctrl-C and on termination: stop, clean up, return. */
  signal: AbortSignal
  fetch: typeof globalThis.fetch
  /** Milliseconds since 1970-01-01T00:00:00Z. */
  now(): number
}

/** What a run of the command line is about. */
export interface Cli {
  readonly io: Io
  /** What the process ends with when no error was thrown. Default 0. */
  exitCode: number
}
