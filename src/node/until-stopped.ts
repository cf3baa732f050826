/**
 * Resolves with the signal that asks the process to end. A second one ends it at once: whoever presses
 * Ctrl-C twice does not want to wait.
 */
export function untilStopped(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let asked = false
    const onSignal = (signal: NodeJS.Signals): void => {
      if (asked) process.exit(130)
      asked = true
      resolve(signal)
    }
    process.on('SIGINT', onSignal)
    process.on('SIGTERM', onSignal)
    // the terminal was closed: there is nobody left to print for
    process.on('SIGHUP', onSignal)
    process.stdout.on('error', () => onSignal('SIGHUP'))
    process.stderr.on('error', () => {})
  })
}
