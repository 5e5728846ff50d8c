-- What people did in one go. A row may come five minutes late.
CREATE TABLE visits (
  ts TIMESTAMP(3),
  who STRING,
  page STRING,
  WATERMARK FOR ts AS ts - INTERVAL '5' MINUTE
) WITH ('connector' = 'filesystem', 'path' = 'visits.csv', 'format' = 'csv');

SET 'sql-client.execution.result-mode' = 'changelog';

-- A session ends after five minutes without a row of its visitor. Mary's visit to /help at 09:08 comes late and makes one
-- session of two: until a session's end has passed nothing is told, then once.
SELECT who, window_start, window_end, COUNT(*) AS pages, LISTAGG(page, ' ') AS path
FROM TABLE(SESSION(TABLE visits PARTITION BY who, DESCRIPTOR(ts), INTERVAL '5' MINUTE))
GROUP BY who, window_start, window_end;

-- The rows themselves, each with the session it ended up in.
SELECT who, page, window_start
FROM TABLE(SESSION(TABLE visits PARTITION BY who, DESCRIPTOR(ts), INTERVAL '5' MINUTE));
