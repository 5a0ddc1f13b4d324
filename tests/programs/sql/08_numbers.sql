SELECT
1,
10,
1234567890123456789012345678901234567890,
0.0,
0.25,
.5,
5.,
00.1,
1e3,
1E3,
1e+3,
1e-3,
1.5e10,
1.5E-10,
.5e+2,
5.e1,
1+1,
1 + 1,
1-1,
2*3,
2 * 3 / 4 * 5,
1+2*3-4/5,
x+1,
x*y+z,
(x+1),
(x*2)*3,
((x+1)*2)/3,
(((x-1)*y)+z),
a.b*c.d-e.f/g.h,
(a.b-1.5)*(c.d-2.5),
SUM(x*2),
SUM((x+1)*2),
SUM(x)+y*2,
SUM(x)-1,
MAX(a)-b AS spread, alla, distincter,
(SELECT 1 FROM one)+1,
CAST(1 AS int),
CAST(1.5 AS float32),
CAST(x+1 AS int64),
CAST('2.5' AS float),
CAST(TRUE AS int16),
COALESCE(1,2.5,'x',NOW()),
COALESCE(x),
1 one,
2 AS two,
3three
FROM
t1,t2 AS u,t3 v
WHERE
1=1 AND 1<2 AND 2>1 AND 1<=1 AND 1>=1 AND 1<>2 AND 1!=2
AND x BETWEEN 1 AND 2 AND y BETWEEN .5 AND 1.5
AND z IN (1) AND z IN (1,2,3) AND z NOT IN (4 , 5 , 6)
AND x+1=y*2 OR x-1<y/2
AND (x=1 OR y=2) AND ((x=1 AND y=2)OR z=3)
GROUP BY 1,2,3
HAVING COUNT(*)>1 AND SUM(x)<1e6
ORDER BY 1 DESC,2 ASC,x+y,SUM(z) DESC
LIMIT 1 OFFSET 99;
