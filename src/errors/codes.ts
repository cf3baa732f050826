/**
 * Every code an error of Millrace can carry: its HTTP status, whether trying
 * again without a change can help, and what it means. docs/errors.md is made
 * from this table, and a test holds the two together.
 */
export const errorCodes = {
  BAD_REQUEST: {
    status: 400,
    retryable: false,
    title: 'The request cannot be read as what it claims to be.',
  },
  INVALID_INPUT: {
    status: 400,
    retryable: false,
    title: 'A field has a value that is not allowed; `field` names it.',
  },
  INVALID_JSON: { status: 400, retryable: false, title: 'The text is not one JSON document.' },
  JSON_TOO_DEEP: { status: 400, retryable: false, title: 'The JSON is nested deeper than 512 levels.' },
  INVALID_NAME: { status: 400, retryable: false, title: 'A name breaks the naming rule.' },
  TARGET_FORBIDDEN: { status: 400, retryable: false, title: 'The target guard forbids this webhook URL.' },
  OFFSET_AHEAD: {
    status: 400,
    retryable: false,
    title: 'The offset lies beyond everything this database has ever numbered.',
  },
  UNAUTHORIZED: { status: 401, retryable: false, title: 'No valid API key came with the request.' },
  WEBHOOK_INVALID: {
    status: 401,
    retryable: false,
    title: 'A received webhook is not authentic, or not fresh; `details.reason` says why.',
  },
  FORBIDDEN: { status: 403, retryable: false, title: 'The API key does not cover this action.' },
  NOT_FOUND: { status: 404, retryable: false, title: 'There is nothing at this address.' },
  ENDPOINT_NOT_FOUND: {
    status: 404,
    retryable: false,
    title: 'The queue that a bus service sends to or reads is not there, or not bound to what it handles.',
  },
  METHOD_NOT_ALLOWED: { status: 405, retryable: false, title: 'The address exists, the method does not.' },
  CONFLICT: { status: 409, retryable: false, title: 'The state of the resource does not allow this.' },
  IDEMPOTENCY_CONFLICT: {
    status: 409,
    retryable: false,
    title: 'The idempotency key was used with other content.',
  },
  BODY_TOO_LARGE: { status: 413, retryable: false, title: 'The request body is over the limit.' },
  PAYLOAD_TOO_LARGE: { status: 413, retryable: false, title: 'A notification carries at most 7999 bytes.' },
  UNSUPPORTED_MEDIA_TYPE: {
    status: 415,
    retryable: false,
    title: 'The Content-Type is not one this address takes.',
  },
  ISOLATION_LEVEL: {
    status: 400,
    retryable: false,
    title: 'At READ COMMITTED only: reading a stream, settling a message that has a key.',
  },
  TRANSACTION_UNSUPPORTED: {
    status: 400,
    retryable: false,
    title: 'This driver has no interactive transactions.',
  },
  LISTEN_UNSUPPORTED: { status: 400, retryable: false, title: 'This connection cannot LISTEN.' },
  CODEC_FAILED: {
    status: 400,
    retryable: false,
    title: 'The codec of the stream could not encode or decode a value.',
  },
  LEASE_LOST: { status: 409, retryable: false, title: 'The lease is held by another worker, or by nobody.' },
  STORE_CLOSED: { status: 503, retryable: false, title: 'The store was closed.' },
  ABORTED: { status: 499, retryable: false, title: 'The caller aborted the call.' },
  NOT_MIGRATED: {
    status: 503,
    retryable: false,
    title: 'The tables are missing or of another version: run `millrace migrate`.',
  },
  MIGRATION_CHANGED: {
    status: 500,
    retryable: false,
    title: 'A migration that was applied differs from the file of this version.',
  },
  WRONG_ENVIRONMENT: {
    status: 409,
    retryable: false,
    title: 'The database belongs to another environment: nothing is claimed, fired or delivered there.',
  },
  PERMISSION_DENIED: { status: 500, retryable: false, title: 'The database role lacks a grant.' },
  DATABASE_UNAVAILABLE: { status: 503, retryable: true, title: 'The database cannot be reached.' },
  DATABASE_BUSY: {
    status: 503,
    retryable: true,
    title: 'The database gave up on a lock, a deadlock or a conflict.',
  },
  DATABASE_ERROR: { status: 500, retryable: false, title: 'The database refused a statement.' },
  DATA_FOLDER_IN_USE: {
    status: 409,
    retryable: false,
    title: 'Another process holds the embedded database.',
  },
  SERVER_UNREACHABLE: { status: 503, retryable: true, title: 'The Millrace server gives no answer.' },
  INVALID_SETTING: { status: 500, retryable: false, title: 'A setting has a value that is not allowed.' },
  INTERNAL: { status: 500, retryable: false, title: 'Something that should not happen happened.' },
} as const satisfies Record<string, { status: number; retryable: boolean; title: string }>

/** One of the stable codes in {@link errorCodes}. */
export type ErrorCode = keyof typeof errorCodes
