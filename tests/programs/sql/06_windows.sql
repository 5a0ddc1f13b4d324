SELECT station, day_no,
  temperature AS "temperature in °C",

  -- the same rows in all frames
  AVG(temperature) OVER (PARTITION BY station ORDER BY day_no ROWS 6 PRECEDING) AS week_mean,
  AVG(temperature) OVER (PARTITION BY station ORDER BY day_no ROWS UNBOUNDED PRECEDING) AS mean_so_far,
  MIN(temperature) OVER (
    PARTITION BY station
    ORDER BY day_no
    ROWS BETWEEN CURRENT ROW AND 3 FOLLOWING
  ) AS coldest_ahead,
  MAX(temperature) OVER (
    PARTITION BY station
    ORDER BY day_no
    ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING
  ) AS hottest_ahead,
  SUM(rain) OVER (
    PARTITION BY station, year_no, month_no
    ORDER BY day_no DESC, hour_no ASC, minute_no
    RANGE BETWEEN 30 PRECEDING AND 30 FOLLOWING
  ) AS rain_around,
  SUM(rain) OVER (ORDER BY day_no RANGE UNBOUNDED PRECEDING) AS rain_until,
  SUM(rain) OVER (PARTITION BY station) AS rain_of_station,
  SUM(rain) OVER () AS rain_everywhere,
  COUNT(*) OVER (PARTITION BY station, kind) AS readings,
  COUNT(DISTINCT sensor) OVER (PARTITION BY station) AS sensors,

  -- ranks
  RANK() OVER (ORDER BY temperature DESC) AS rank_hot,
  RANK() OVER (PARTITION BY station ORDER BY temperature) AS rank_cold,
  DENSE_RANK() OVER (
    PARTITION BY
      station,
      CASE WHEN month_no < 7 THEN 'first half' ELSE 'second half' END
    ORDER BY
      rain DESC,
      temperature
  ) AS rank_rain,
  SUM(wind) OVER (
    ORDER BY wind * wind + 1
  ) - 1.25 + rain * 2 AS mixture
FROM readings AS r
JOIN (
    SELECT id, name AS station, kind
    FROM stations
    WHERE name LIKE 'Zürich%' OR name LIKE '北京%'
) AS s ON r.station_id = s.id
WHERE temperature BETWEEN 1 AND 40 AND rain IS NOT NULL
ORDER BY station, day_no DESC LIMIT 365 OFFSET 1

