-- Money that is moved between accounts: the sum of all balances is always 0.
CREATE TABLE transfers (
  sender STRING,
  receiver STRING,
  amount BIGINT
) WITH ('connector' = 'filesystem', 'path' = 'transfers.csv', 'format' = 'csv');

CREATE VIEW credits AS SELECT receiver AS account, SUM(amount) AS amount FROM transfers GROUP BY receiver;
CREATE VIEW debits AS SELECT sender AS account, SUM(amount) AS amount FROM transfers GROUP BY sender;
CREATE VIEW balances AS
SELECT COALESCE(c.account, d.account) AS account, COALESCE(c.amount, 0) - COALESCE(d.amount, 0) AS balance
FROM credits c FULL JOIN debits d ON c.account = d.account;

SET 'sql-client.execution.result-mode' = 'changelog';

-- Each transfer reaches `balances` on two ways, and by default every step shows: sums that no bank ever had.
-- Held back until all ways have seen the same transfers, only true results are shown. How often, the interval says.
SET 'table.exec.consistent-results' = 'true';
SET 'table.exec.consistent-results.interval' = '1 min';

SELECT SUM(balance) AS total, COUNT(*) AS accounts FROM balances;
