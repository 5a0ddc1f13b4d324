-- Sales of every month with the running total and the rank of the month.
SELECT
    m.month_name AS month,
    m.region,
    SUM(s.amount) AS revenue,
    SUM(s.amount * s.discount) AS rebates,
    COUNT(*) AS orders,
    COUNT(DISTINCT s.customer_id) AS customers,
    AVG(s.amount) AS mean_order,
    MIN(s.amount) AS smallest,
    MAX(s.amount) AS largest,
    RANK() OVER (
        PARTITION BY m.region
        ORDER BY SUM(s.amount) DESC
    ) AS place,
    DENSE_RANK() OVER (ORDER BY m.month_name) AS position,
    SUM(s.amount) OVER (
        PARTITION BY m.region, m.year_name
        ORDER BY m.month_no ASC
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS running_total,
    AVG(s.amount) OVER (
        ORDER BY m.month_no
        ROWS BETWEEN 2 PRECEDING AND 2 FOLLOWING
    ) AS smooth
FROM
    months AS m
    LEFT OUTER JOIN sales AS s ON s.month_id = m.id AND s.cancelled = FALSE
    INNER JOIN customers AS c ON c.id = s.customer_id
WHERE
    m.year_name BETWEEN 2019 AND 2024
    AND c.country IN ('DE', 'AT', 'CH', 'FR')
    AND s.amount >= 0.5
    AND c.name NOT LIKE 'test%'
GROUP BY
    m.month_name,
    m.region,
    m.month_no
HAVING
    SUM(s.amount) > 1000
    AND COUNT(*) >= 10
ORDER BY
    m.region,
    revenue DESC,
    m.month_no ASC
LIMIT 100
OFFSET 20;
