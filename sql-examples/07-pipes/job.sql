-- Standard input and output are tables too, so that a query stands in a pipe:
--
--   cat input.csv | ebbflow run job.sql | sort
CREATE TABLE clicks (
  `user` STRING,
  url STRING,
  cTime TIMESTAMP(3)
) WITH ('connector' = 'stdin', 'format' = 'csv');

CREATE TABLE products (`user` STRING, url STRING) WITH ('connector' = 'stdout', 'format' = 'json');

INSERT INTO products SELECT `user`, url FROM clicks WHERE url LIKE './prod%';
