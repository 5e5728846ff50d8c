-- Two results out of one pass over the input: a statement set is one job, its source is read once, and one checkpoint
-- covers both sinks.
CREATE TABLE clicks (
  `user` STRING,
  url STRING,
  cTime TIMESTAMP(3)
) WITH ('connector' = 'filesystem', 'path' = 'clicks.csv', 'format' = 'csv');

CREATE TABLE by_user (`user` STRING, cnt BIGINT) WITH ('connector' = 'print', 'print-identifier' = 'user');

CREATE TABLE carts (`user` STRING, cTime TIMESTAMP(3)) WITH ('connector' = 'print', 'print-identifier' = 'cart');

EXECUTE STATEMENT SET
BEGIN
  INSERT INTO by_user SELECT `user`, COUNT(*) FROM clicks GROUP BY `user`;
  INSERT INTO carts SELECT `user`, cTime FROM clicks WHERE url = './cart';
END;
