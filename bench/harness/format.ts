/** A number to be read by a person: three digits that count, thousands parted. */
export function compact(value: number): string {
  if (value === 0) return '0'
  const size = Math.abs(value)
  if (size >= 1000) return Number(value.toPrecision(3)).toLocaleString('en')
  if (size >= 100) return value.toFixed(0)
  return size >= 0.01 ? String(Number(value.toPrecision(3))) : value.toPrecision(2)
}
