SELECT
    order_id,
    CASE
        WHEN status = 1 THEN 'offen'
        WHEN status = 2 THEN 'bezahlt'
        WHEN status = 3 THEN 'versandt ✈'
        WHEN status = 4 THEN 'zurück'
        ELSE 'unbekannt'
    END AS status_text,
    CASE
        WHEN total < 10 THEN 4.99
        WHEN total < 50 AND country = 'DE' THEN 2.99
        WHEN total < 50 OR express = FALSE THEN 3.5
        ELSE
            CASE
                WHEN country IN ('AT', 'CH', 'LI') THEN 1.
                WHEN country NOT IN ('GB', 'IE') THEN .5
                ELSE 1e1
            END
    END AS shipping,
    SUM(
        CASE
            WHEN kind = 'credit' THEN amount
            ELSE amount * 1.19
        END
    ) AS gross,
    -- one column for every month
    SUM(
        CASE
            WHEN month_no = 1 THEN amount
            ELSE 0.0
        END
    ) AS jan,
    SUM(
        CASE
            WHEN month_no = 2 THEN amount
            ELSE 0.0
        END
    ) AS feb,
    SUM(
        CASE
            WHEN month_no = 3 THEN amount
            ELSE 0.0
        END
    ) AS mar,
    SUM(
        CASE
            WHEN month_no = 4 THEN amount
            ELSE 0.0
        END
    ) AS apr,
    SUM(
        CASE
            WHEN month_no = 5 THEN amount
            ELSE 0.0
        END
    ) AS may_,
    SUM(
        CASE
            WHEN month_no = 6 THEN amount
            ELSE 0.0
        END
    ) AS jun,
    SUM(
        CASE
            WHEN month_no = 7 THEN amount
            ELSE 0.0
        END
    ) AS jul,
    SUM(
        CASE
            WHEN month_no = 8 THEN amount
            ELSE 0.0
        END
    ) AS aug,
    SUM(
        CASE
            WHEN month_no = 9 THEN amount
            ELSE 0.0
        END
    ) AS sep,
    SUM(
        CASE
            WHEN month_no = 10 THEN amount
            ELSE 0.0
        END
    ) AS okt,
    SUM(
        CASE
            WHEN month_no = 11 THEN amount
            ELSE 0.0
        END
    ) AS nov,
    SUM(
        CASE
            WHEN month_no = 12 THEN amount
            ELSE 0.0
        END
    ) AS dez,
    SUM(CASE WHEN amount IS NULL THEN 1 ELSE 2 END) AS weights,
    COUNT(CASE WHEN paid_on IS NOT NULL THEN order_id ELSE parent_id END) AS paid,
    COALESCE(
        CASE WHEN nick <> '' THEN nick ELSE "first name" END,
        "last name",
        'n/a'
    ) AS caller,
    AVG(
        CASE WHEN flag = TRUE THEN 1 ELSE 2 END
    ) OVER (PARTITION BY country) AS flag_mean
FROM orders
WHERE
    CASE WHEN archived = TRUE THEN archive_year ELSE order_year END >= 2020
    AND CASE
        WHEN a = 1 THEN b
        WHEN a = 2 THEN c
        ELSE d
    END = (
        SELECT CASE WHEN MAX(x) > 5 THEN 'big' ELSE 'small' END
        FROM sizes
    )
GROUP BY order_id, status
ORDER BY
    CASE WHEN status = 3 THEN 1 ELSE 2 END,
    CASE
        WHEN country = 'DE'
        THEN total
        ELSE total / 2
    END DESC
