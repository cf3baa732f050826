import { defineConfig } from 'drizzle-kit'

export default defineConfig({
  dialect: 'postgresql',
  schema: './src/schema/default-tables.ts',
  out: './drizzle',
  schemaFilter: ['millrace'],
})
