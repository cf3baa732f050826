/** Light and dark, by what the reader's system says. Met and missed differ in more than their colour. */
const style = `
  text { font: 12px system-ui, sans-serif; fill: #24292f }
  .small { font-size: 11px; fill: #57606a }
  .axis { stroke: #d0d7de; stroke-width: 1 }
  .bound { stroke: #24292f; stroke-width: 2 }
  .a { fill: #1f6feb; stroke: #1f6feb }
  .b { fill: #bf5700; stroke: #bf5700 }
  .missed { fill: none; stroke: #bf5700; stroke-width: 1.5 }
  .line { fill: none; stroke-width: 2 }
  .back { fill: #ffffff }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .small { fill: #8d96a0 } .axis { stroke: #3d444d } .bound { stroke: #e6edf3 }
    .back { fill: #0d1117 }
  }`

/** A whole picture. */
export function picture(width: number, height: number, title: string, content: string[]): string {
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="${escaped(title)}">
<style>${style}
</style>
<rect class="back" width="${width}" height="${height}"/>
${content.join('\n')}
</svg>
`
}

/** One element without children. */
export function element(name: string, attributes: Record<string, string | number>): string {
  const pairs = Object.entries(attributes).map(
    ([key, value]) => `${key}="${typeof value === 'number' ? Number(value.toFixed(1)) : escaped(value)}"`,
  )
  return `<${name} ${pairs.join(' ')}/>`
}

/** A line of text. `anchor` is what of it stands at x. */
export function label(
  x: number,
  y: number,
  text: string,
  { anchor = 'start', small = false }: { anchor?: 'start' | 'middle' | 'end'; small?: boolean } = {},
): string {
  const look = small ? ' class="small"' : ''
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}"${look}>${escaped(text)}</text>`
}

/** Maps values to positions, in powers of ten. */
export function logScale(from: number, to: number, start: number, end: number): (value: number) => number {
  const [low, high] = [Math.log10(from), Math.log10(to)]
  return (value) => {
    const share = (Math.log10(Math.min(to, Math.max(from, value))) - low) / (high - low)
    return start + share * (end - start)
  }
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
}
