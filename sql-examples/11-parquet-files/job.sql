-- Parquet in, Parquet out. Run it with
--
--   ebbflow run job.sql --var OUT=/tmp/days --checkpoint-dir /tmp/days-checkpoints
--
-- A table names the columns it wants and nothing else is decoded; they are found by name, and one that a file does not
-- have (`tip` here) is NULL. A type must hold what the file has: `distance` is a FLOAT there, and a DOUBLE here.
CREATE TABLE trips (
  started TIMESTAMP(3),
  distance DOUBLE,
  fare DECIMAL(8, 2),
  tip DECIMAL(8, 2)
) WITH ('connector' = 'filesystem', 'path' = 'trips.parquet', 'format' = 'parquet');

-- Partition columns stand in the path (day=2026-01-02/…), not in the files. A checkpoint ends the files that are open,
-- since a Parquet file cannot be added to, and makes them visible.
CREATE TABLE days (
  miles DOUBLE,
  fare DECIMAL(8, 2),
  `day` DATE
) PARTITIONED BY (`day`)
WITH (
  'connector' = 'filesystem',
  'path' = '${OUT}',
  'format' = 'parquet',
  'parquet.compression' = 'ZSTD'
);

SET 'table.dml-sync' = 'true';

INSERT INTO days
SELECT distance, fare + COALESCE(tip, 0), CAST(started AS DATE) FROM trips WHERE distance > 1;

SET 'execution.runtime-mode' = 'batch';

SELECT `day`, COUNT(*) AS trips, ROUND(SUM(miles), 1) AS miles, SUM(fare) AS fare FROM days GROUP BY `day` ORDER BY `day`;
