/** Bundles an entry as `wrangler deploy` does; `inputs` says how many bytes of the output each file has. */
export function bundleEdge(
  entry: string,
  options?: { minify?: boolean },
): Promise<{ code: string; inputs: Record<string, { bytesInOutput: number }> }>
