-- Looking at one row at a time needs no state: each input row gives one output row or none, and a filter over rows that
-- only come gives rows that only come.
CREATE TABLE clicks (
  `user` STRING,
  url STRING,
  cTime TIMESTAMP(3)
) WITH ('connector' = 'filesystem', 'path' = 'clicks.csv', 'format' = 'csv');

SET 'sql-client.execution.result-mode' = 'changelog';

SELECT UPPER(`user`) AS visitor, CHAR_LENGTH(url) AS characters, cTime
FROM clicks
WHERE url LIKE './prod%';
