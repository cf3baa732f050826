CREATE SEQUENCE "millrace"."lock_fence" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1;--> statement-breakpoint
CREATE TABLE "millrace"."locks" (
	"name" text PRIMARY KEY NOT NULL,
	"token" uuid,
	"fence" bigint NOT NULL,
	"until" timestamp with time zone NOT NULL,
	"acquired_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "millrace"."schedules" (
	"name" text PRIMARY KEY NOT NULL,
	"target_kind" text NOT NULL,
	"target" text NOT NULL,
	"cron" text,
	"time_zone" text,
	"every_ms" bigint,
	"catch_up" text NOT NULL,
	"type" text,
	"key" text,
	"data" json NOT NULL,
	"paused" boolean DEFAULT false NOT NULL,
	"next_at" timestamp with time zone,
	"last_at" timestamp with time zone,
	"revision" uuid DEFAULT gen_random_uuid() NOT NULL,
	"failures" integer DEFAULT 0 NOT NULL,
	"last_error" text,
	"retry_at" timestamp with time zone,
	"created_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	CONSTRAINT "schedules_timing" CHECK (("millrace"."schedules"."cron" is null) <> ("millrace"."schedules"."every_ms" is null)),
	CONSTRAINT "schedules_type" CHECK ("millrace"."schedules"."type" is not null or "millrace"."schedules"."target_kind" = 'queue'),
	CONSTRAINT "schedules_time_zone" CHECK (("millrace"."schedules"."cron" is null) = ("millrace"."schedules"."time_zone" is null))
);
--> statement-breakpoint
CREATE INDEX "locks_until" ON "millrace"."locks" USING btree ("until");--> statement-breakpoint
CREATE INDEX "schedules_due" ON "millrace"."schedules" USING btree (greatest("next_at", "retry_at")) WHERE not "millrace"."schedules"."paused" and "millrace"."schedules"."next_at" is not null;