-- The tasks that a process has the turn of: few, and looked for every second where several share a store.
CREATE INDEX task_by_runner ON task (runner) WHERE runner IS NOT NULL;
