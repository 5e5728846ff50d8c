-- Writing files, exactly once. Run it with
--
--   ebbflow run job.sql --var OUT=/tmp/hours --checkpoint-dir /tmp/hours-checkpoints
--
-- Rows are first written to files that nobody sees. A checkpoint makes them visible, all or none. Kill the process
-- whenever you like and run the same command again: it goes on from the last checkpoint, and no row is lost or doubled.
CREATE TABLE clicks (
  `user` STRING,
  url STRING,
  cTime TIMESTAMP(3),
  WATERMARK FOR cTime AS cTime
) WITH ('connector' = 'filesystem', 'path' = 'clicks.csv', 'format' = 'csv');

CREATE TABLE hours (
  `user` STRING,
  endT TIMESTAMP(3),
  cnt BIGINT
) WITH ('connector' = 'filesystem', 'path' = '${OUT}', 'format' = 'csv');

SET 'execution.checkpointing.interval' = '1 s';

-- `table.dml-sync` makes the script wait here until the job has ended; without it, INSERT jobs run beside each other.
SET 'table.dml-sync' = 'true';

INSERT INTO hours
SELECT `user`, TUMBLE_END(cTime, INTERVAL '1' HOUR), COUNT(url)
FROM clicks
GROUP BY `user`, TUMBLE(cTime, INTERVAL '1' HOUR);

SET 'sql-client.execution.result-mode' = 'table';

SELECT COUNT(*) AS windows, SUM(cnt) AS clicks FROM hours;
