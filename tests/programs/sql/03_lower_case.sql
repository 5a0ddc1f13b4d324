-- everything in lower case, joins of all kinds
select
  a.id, b.id, c.id, d.id, e.id, f.id,
  a.name as name_a,
  b.name name_b,
  c.*,
  d.value * e.value / f.value + 1.5 - a.value as score,
  coalesce(a.note, b.note, c.note, 'none') as note,
  dense_rank() over (partition by a.kind order by b.value desc) as place,
  today() as today_,
  now() moment,
  case
    when a.value > 10 then 'high'
    when a.value between 5 and 10 then 'middle'
    when a.value is null then 'unknown'
    when a.name like '%low%' then 'low by name'
    else 'low'
  end as level
from
  alpha a
  join beta b on a.id = b.alpha_id
  inner join gamma c on b.id = c.beta_id and c.kind <> 'x'
  left join delta d on c.id = d.gamma_id
  right join epsilon e on d.id = e.delta_id
  full join zeta f on e.id = f.epsilon_id
  left outer join eta g on f.id = g.zeta_id
  full outer join theta h on g.id = h.eta_id
  outer join iota i on h.id = i.theta_id,
  kappa k,
  lambda
where
  (a.id = 1 or a.id = 2)
  and (b.kind = 'p' and b.kind != 'q' or c.kind = 'r')
  and d.value not in (3, 5, 7, 11)
  and exists (select m.id from mu m where m.id = a.id)
  and e.id in (select n.epsilon_id from nu n where n.weight < 2.5e-3)
  and f.id not in (
    select x.zeta_id
    from xi x
    group by x.zeta_id
    having count(distinct x.id) > 3
  )
group by a.id, b.id, c.id
order by score desc, note asc, a.id
limit 7
