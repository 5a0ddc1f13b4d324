SELECT id, name, 'customer' AS kind
FROM customers
WHERE active = TRUE

UNION ALL

SELECT id, name, 'supplier' AS kind
FROM suppliers
WHERE active = TRUE AND name IS NOT NULL

UNION

SELECT employee_id, full_name, 'employee'
FROM employees AS e
WHERE e.left_on IS NULL
    OR e.left_on > TODAY()

EXCEPT

SELECT b.id, b.name, b.kind
FROM blocked b
WHERE b.until >= NOW()

EXCEPT ALL

SELECT t.id, t.name, t.kind
FROM (
    SELECT id, name, kind
    FROM trash
    ORDER BY id
    LIMIT 10
) AS t

INTERSECT DISTINCT

SELECT DISTINCT
    "key",
    "name with \"quotes\"",
    "kind"
FROM everything

UNION DISTINCT

SELECT 1, 'nobody', '' FROM nothing -- the empty text
ORDER BY kind, name DESC
LIMIT 50
;
