// Draws the charts and writes the tables again from the results that are kept: `node bench/report.ts`.
import { readResults } from './harness/results.ts'
import { writeReport } from './report/write-report.ts'

await writeReport(await readResults())
