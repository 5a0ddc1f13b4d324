SELECT outermost.department,
       outermost.best,
       (SELECT MAX(limits.top) FROM limits) AS company_best,
       (
           SELECT COUNT(*)
           FROM people AS p
           WHERE p.department = outermost.department
       ) AS heads
FROM (
    SELECT middle.department AS department,
           MAX(middle.salary) AS best
    FROM (
        SELECT inner_most.department,
               inner_most.salary
        FROM (
            SELECT d.name AS department,
                   p.salary AS salary,
                   RANK() OVER (PARTITION BY d.name ORDER BY p.salary DESC) AS place
            FROM people AS p
            JOIN departments AS d ON p.department_id = d.id
            WHERE p.salary > (
                SELECT AVG(q.salary)
                FROM people AS q
                WHERE q.department_id = p.department_id
            )
        ) AS inner_most
        WHERE inner_most.place <= 3
    ) AS middle
    GROUP BY middle.department
    HAVING MAX(middle.salary) > 1000.0
) AS outermost
WHERE EXISTS (
    SELECT 1
    FROM budgets AS b
    WHERE b.department = outermost.department
      AND b.amount >= outermost.best
      AND EXISTS (
          SELECT 1
          FROM approvals AS a
          WHERE a.budget_id = b.id
            AND a.granted IN (
                SELECT g.id
                FROM grants AS g
                WHERE g.year_no NOT IN (SELECT y.year_no FROM lean_years AS y)
            )
      )
)
ORDER BY outermost.best DESC, outermost.department
LIMIT 5;
