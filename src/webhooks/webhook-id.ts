const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
/** 62^20 is 119 bits: nobody guesses one, and two never meet. */
const randomCharacters = 20

/** A new webhook's id: `wh_` and 20 random letters and digits. */
export function createWebhookId(): string {
  let id = ''
  while (id.length < randomCharacters) {
    for (const byte of crypto.getRandomValues(new Uint8Array(randomCharacters))) {
      // 248 is the largest multiple of 62 below 256: what lies above would make some characters likelier
      if (byte < 248 && id.length < randomCharacters) id += alphabet[byte % alphabet.length]
    }
  }
  return `wh_${id}`
}

/** Whether a text has the form of a webhook's id; any other names none. */
export function isWebhookId(text: string): boolean {
  return /^wh_[0-9A-Za-z]{20}$/.test(text)
}
