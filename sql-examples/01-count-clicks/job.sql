-- A table is declared over a file: its columns, and where its rows are.
CREATE TABLE clicks (
  `user` STRING,
  url STRING,
  cTime TIMESTAMP(3)
) WITH ('connector' = 'filesystem', 'path' = 'clicks.csv', 'format' = 'csv');

-- How often has each user clicked? The answer is a table that changes with every click, and what comes out are its
-- changes: +I a row comes, -U the old and +U the new image of a row that is updated.
SET 'sql-client.execution.result-mode' = 'changelog';

SELECT `user`, COUNT(url) AS cnt FROM clicks GROUP BY `user`;
