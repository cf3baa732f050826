/** Base64 with padding, as secrets and signatures carry it. */
export function encodeBase64(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
}

/**
 * The bytes of canonical base64, or null. `atob` alone would also take missing
 * padding, white space and stray trailing bits, so that one key had many spellings.
 */
export function decodeBase64(text: string): Uint8Array<ArrayBuffer> | null {
  if (text.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(text)) return null
  const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0))
  return encodeBase64(bytes) === text ? bytes : null
}
