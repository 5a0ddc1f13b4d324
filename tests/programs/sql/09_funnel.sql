-----------------------------------------------------------------------
-- Funnel: who came, who looked, who bought -- and who came back again.
-----------------------------------------------------------------------
SELECT
    visits.week_no,                                  -- calendar week
    visits.people                        AS came,
    looks.people                         AS looked,
    buys.people                          AS bought,
    returns.people                       AS came_back,
    looks.people / visits.people         AS look_rate,
    buys.people / looks.people           AS buy_rate,
    COALESCE(returns.people / buys.people, 0.0) AS return_rate
FROM
    (
        SELECT e.week_no, COUNT(DISTINCT e.visitor) AS people
        FROM events AS e
        WHERE e.kind = 'visit'
        GROUP BY e.week_no
    ) AS visits
LEFT JOIN
    (
        SELECT e.week_no, COUNT(DISTINCT e.visitor) AS people
        FROM events AS e
        WHERE e.kind = 'look' OR e.kind = 'zoom'
        GROUP BY e.week_no
    ) AS looks ON looks.week_no = visits.week_no
LEFT JOIN
    (
        SELECT e.week_no, COUNT(DISTINCT e.visitor) AS people
        FROM events AS e
        JOIN baskets AS b ON b.visitor = e.visitor AND b.week_no = e.week_no
        WHERE e.kind = 'pay' AND b.total > 0.5
        GROUP BY e.week_no
    ) AS buys ON buys.week_no = visits.week_no
LEFT JOIN
    (
        SELECT second.week_no, COUNT(DISTINCT second.visitor) AS people
        FROM events AS first
        JOIN events AS second
            ON second.visitor = first.visitor
            AND second.day_no > first.day_no + 7
        WHERE first.kind = 'pay'
          AND second.kind IN ('visit', 'look', 'pay')
        GROUP BY second.week_no
    ) AS returns ON returns.week_no = visits.week_no
WHERE
    visits.people > 50
    AND visits.week_no BETWEEN 1 AND 53

-- now the same for all weeks together
UNION

SELECT
    99,
    COUNT(DISTINCT v.visitor),
    COUNT(DISTINCT l.visitor),
    COUNT(DISTINCT p.visitor),
    COUNT(DISTINCT r.visitor),
    1.0,
    1.0,
    1.0
FROM
    (people AS v JOIN looks AS l ON l.visitor = v.visitor) AS pairs,
    (payers AS p JOIN returners AS r) AS others,
    weeks
WHERE
    weeks.finished = TRUE
    AND weeks.ended_on < TODAY()
    AND weeks.started_at < NOW()
ORDER BY week_no DESC
LIMIT 53;

-- end of the report
