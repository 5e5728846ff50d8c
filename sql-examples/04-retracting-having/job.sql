-- HAVING is a filter over a table that changes: a group comes in when it passes for the first time, and goes out when
-- it no longer passes. Here users with exactly two clicks: Mary has them for a while, Bob at the end.
CREATE TABLE clicks (
  `user` STRING,
  url STRING,
  cTime TIMESTAMP(3)
) WITH ('connector' = 'filesystem', 'path' = 'clicks.csv', 'format' = 'csv');

SET 'sql-client.execution.result-mode' = 'changelog';

SELECT `user`, COUNT(*) AS cnt FROM clicks GROUP BY `user` HAVING COUNT(*) = 2;

-- The same, as the table that all these changes leave behind.
SET 'sql-client.execution.result-mode' = 'table';

SELECT `user`, COUNT(*) AS cnt FROM clicks GROUP BY `user` HAVING COUNT(*) = 2;
