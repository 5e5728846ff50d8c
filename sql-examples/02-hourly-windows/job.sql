-- Clicks per user and hour. WATERMARK says which column is the event's time and how late a row may come: not at all.
CREATE TABLE clicks (
  `user` STRING,
  url STRING,
  cTime TIMESTAMP(3),
  WATERMARK FOR cTime AS cTime
) WITH ('connector' = 'filesystem', 'path' = 'clicks.csv', 'format' = 'csv');

SET 'sql-client.execution.result-mode' = 'changelog';

-- An hour's answer comes once, when event time has passed its end, and is never taken back: only +I. Therefore a sink
-- that can only append takes it, and the state of an hour is dropped with the hour.
SELECT `user`, TUMBLE_END(cTime, INTERVAL '1' HOUR) AS endT, COUNT(url) AS cnt
FROM clicks
GROUP BY `user`, TUMBLE(cTime, INTERVAL '1' HOUR);
