CREATE SCHEMA IF NOT EXISTS "millrace";
--> statement-breakpoint
CREATE SEQUENCE "millrace"."event_offset" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1;--> statement-breakpoint
CREATE TABLE "millrace"."api_keys" (
	"id" text PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"hash" text NOT NULL,
	"scopes" text[] NOT NULL,
	"stream_prefix" text,
	"created_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	CONSTRAINT "api_keys_hash_unique" UNIQUE("hash")
);
--> statement-breakpoint
CREATE TABLE "millrace"."attempts" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "millrace"."attempts_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"webhook_id" text NOT NULL,
	"offset" bigint NOT NULL,
	"attempt" integer NOT NULL,
	"at" timestamp with time zone NOT NULL,
	"duration_ms" integer NOT NULL,
	"outcome" text NOT NULL,
	"status" integer,
	"error" text,
	"answer" text
);
--> statement-breakpoint
CREATE TABLE "millrace"."deliveries" (
	"webhook_id" text NOT NULL,
	"offset" bigint NOT NULL,
	"unit" text,
	"state" text NOT NULL,
	"attempts" integer DEFAULT 0 NOT NULL,
	"due_at" timestamp with time zone,
	"last_status" integer,
	"last_error" text,
	"last_answer" text,
	"created_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	CONSTRAINT "deliveries_webhook_id_offset_pk" PRIMARY KEY("webhook_id","offset")
);
--> statement-breakpoint
CREATE TABLE "millrace"."events" (
	"stream_id" integer NOT NULL,
	"offset" bigint NOT NULL,
	"type" text NOT NULL,
	"key" text,
	"data" json NOT NULL,
	"headers" json,
	"published_at" timestamp with time zone NOT NULL,
	CONSTRAINT "events_stream_id_offset_pk" PRIMARY KEY("stream_id","offset")
);
--> statement-breakpoint
CREATE TABLE "millrace"."horizon_marks" (
	"stream_id" integer NOT NULL,
	"at" timestamp with time zone NOT NULL,
	"horizon" bigint NOT NULL,
	CONSTRAINT "horizon_marks_stream_id_at_pk" PRIMARY KEY("stream_id","at")
);
--> statement-breakpoint
CREATE TABLE "millrace"."installation" (
	"singleton" integer PRIMARY KEY DEFAULT 1 NOT NULL,
	"id" uuid DEFAULT gen_random_uuid() NOT NULL,
	"environment" text,
	"created_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	CONSTRAINT "installation_one_row" CHECK ("millrace"."installation"."singleton" = 1)
);
--> statement-breakpoint
CREATE TABLE IF NOT EXISTS "millrace"."migrations" (
	"name" text PRIMARY KEY NOT NULL,
	"hash" text NOT NULL,
	"applied_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "millrace"."offsets" (
	"stream_id" integer NOT NULL,
	"consumer" text NOT NULL,
	"offset" bigint NOT NULL,
	"updated_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	CONSTRAINT "offsets_stream_id_consumer_pk" PRIMARY KEY("stream_id","consumer")
);
--> statement-breakpoint
CREATE TABLE "millrace"."publish_keys" (
	"stream_id" integer NOT NULL,
	"key" text NOT NULL,
	"content_hash" text NOT NULL,
	"offsets" bigint[],
	"expires_at" timestamp with time zone NOT NULL,
	CONSTRAINT "publish_keys_stream_id_key_pk" PRIMARY KEY("stream_id","key")
);
--> statement-breakpoint
CREATE TABLE "millrace"."streams" (
	"id" integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "millrace"."streams_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 2147483647 START WITH 1 CACHE 1),
	"name" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"retain_age_ms" bigint,
	"retain_count" bigint,
	"keep_unread" boolean DEFAULT false NOT NULL,
	CONSTRAINT "streams_name_unique" UNIQUE("name"),
	CONSTRAINT "streams_retain_age" CHECK ("millrace"."streams"."retain_age_ms" > 0),
	CONSTRAINT "streams_retain_count" CHECK ("millrace"."streams"."retain_count" >= 0)
);
--> statement-breakpoint
CREATE TABLE "millrace"."webhook_secrets" (
	"id" text PRIMARY KEY NOT NULL,
	"webhook_id" text NOT NULL,
	"sealed" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"expires_at" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "millrace"."webhooks" (
	"id" text PRIMARY KEY NOT NULL,
	"stream_id" integer NOT NULL,
	"url" text NOT NULL,
	"types" text[],
	"ordering" text NOT NULL,
	"format" text NOT NULL,
	"signature" text NOT NULL,
	"state" text NOT NULL,
	"state_reason" text,
	"max_attempts" integer NOT NULL,
	"schedule_ms" bigint[],
	"jitter_percent" integer DEFAULT 20 NOT NULL,
	"timeout_ms" integer NOT NULL,
	"rate_limit" integer,
	"headers" json,
	"offset" bigint NOT NULL,
	"due_at" timestamp with time zone,
	"saturated" boolean DEFAULT false NOT NULL,
	"failing_since" timestamp with time zone,
	"lease_token" uuid,
	"lease_until" timestamp with time zone,
	"lease_fence" bigint DEFAULT 0 NOT NULL,
	"created_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	CONSTRAINT "webhooks_offset" CHECK ("millrace"."webhooks"."offset" >= 0)
);
--> statement-breakpoint
ALTER TABLE "millrace"."attempts" ADD CONSTRAINT "attempts_webhook_id_webhooks_id_fk" FOREIGN KEY ("webhook_id") REFERENCES "millrace"."webhooks"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "millrace"."deliveries" ADD CONSTRAINT "deliveries_webhook_id_webhooks_id_fk" FOREIGN KEY ("webhook_id") REFERENCES "millrace"."webhooks"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "millrace"."offsets" ADD CONSTRAINT "offsets_stream_id_streams_id_fk" FOREIGN KEY ("stream_id") REFERENCES "millrace"."streams"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "millrace"."webhook_secrets" ADD CONSTRAINT "webhook_secrets_webhook_id_webhooks_id_fk" FOREIGN KEY ("webhook_id") REFERENCES "millrace"."webhooks"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "attempts_webhook" ON "millrace"."attempts" USING btree ("webhook_id","id");--> statement-breakpoint
CREATE INDEX "attempts_at" ON "millrace"."attempts" USING btree ("at");--> statement-breakpoint
CREATE INDEX "deliveries_due" ON "millrace"."deliveries" USING btree ("webhook_id","due_at") WHERE "millrace"."deliveries"."state" = 'retrying';--> statement-breakpoint
CREATE INDEX "deliveries_unit" ON "millrace"."deliveries" USING btree ("webhook_id","unit","offset") WHERE "millrace"."deliveries"."state" <> 'dead';--> statement-breakpoint
CREATE INDEX "publish_keys_expires" ON "millrace"."publish_keys" USING btree ("expires_at");--> statement-breakpoint
CREATE INDEX "webhook_secrets_webhook" ON "millrace"."webhook_secrets" USING btree ("webhook_id");--> statement-breakpoint
CREATE INDEX "webhooks_stream" ON "millrace"."webhooks" USING btree ("stream_id","id");--> statement-breakpoint
CREATE INDEX "webhooks_due" ON "millrace"."webhooks" USING btree ("due_at") WHERE "millrace"."webhooks"."state" = 'active';--> statement-breakpoint
CREATE INDEX "webhooks_leased" ON "millrace"."webhooks" USING btree ("lease_until") WHERE "millrace"."webhooks"."lease_token" is not null;