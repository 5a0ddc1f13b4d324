SELECT
	"select", "from"."where", "group by".*,
	'a single quoted text -- not a comment',
	'two
lines',
	'tab	inside, "double quotes" inside, \ a backslash',
	'Ünïcödé: ß, é, 漢字, русский, עברית, 🎉🎊',
	'%_[]{}()<>=!*/+-,.;:',
	'',
	'/* neither is this */' AS "/* name */",
	"a \"quoted\" name",
	"back\\slash" AS "ends with a backslash \\",
	"naïve café" cafe,
	"日本語"."列" AS "別名",
	"" AS empty_name, -- "an open quote
	selected, fromage, wherever, grouped, orderly, limited, unionised, -- it's only a prefix
	ascending, descend, asset, android, oracle, innocent, likely, betweens,
	nullable, notable, isolated, existsing, truely, falsey, cases, whenever, thenceforth, elsewhere, ending,
	overt, rowsy, ranges, current_row, casting, coalesced, ranked, dense, nowhere, todays,
	a.lla, sums, average, minimal, maximum, counted, -- longer than a keyword
	x1, _x, x_1_y, X, __
	"one more line",
	'and "another" one',
	'three',
	"four"
FROM "my table" AS "t 1",
	"schema.table" "t 2",
	joiner, crossing, lefty, right_, fully, outermost, innerly
CROSS JOIN tiny
WHERE "t 1"."Größe" LIKE '%ö%'
	AND "t 2".x NOT LIKE '_%'
	AND a = '' -- nothing
	OR 'x' = 'x'
	AND 'b' <> 'a'
	AND name IN ('Anna', 'Björn', 'Zoë', '李', '')
	AND "or" != "and"
	OR "not" IS NULL
	OR "null" IS NOT NULL
GROUP BY "a", 'b', "c"."d", TRUE, 17, 1.5
ORDER BY 'x' DESC, "desc" DESC, "asc" ASC
-- a last comment, without a line end after it; it's "the end'