-- Events of alert rules and their deliveries.

-- name: deliveries
SELECT d.id, d.rule_id, r.name AS rule, d.kind, d.channel, d.status, cardinality(d.event_ids) AS events, d.event_ids, d.attempts, d.replays,
       d.next_attempt_at, d.response_code, d.error, d.tries, d.key::text AS key, d.payload, d.created_at, d.delivered_at
  FROM alert_deliveries d JOIN alert_rules r ON r.id = d.rule_id
 WHERE (%(rule_id)s::integer IS NULL OR d.rule_id = %(rule_id)s) AND (%(status)s::text IS NULL OR d.status = %(status)s)
   AND (%(ids)s::bigint[] IS NULL OR d.id = ANY (%(ids)s))
   AND (%(after)s::bigint IS NULL OR d.id < %(after)s)
 ORDER BY d.id DESC LIMIT %(limit)s;

-- name: events
SELECT e.id, e.rule_id, r.name AS rule, r.condition, e.product_id, e.dispensary_id AS store_id, e.fired_at, e.due_at,
       CASE WHEN NOT e.notified THEN 'pending' WHEN e.muted THEN 'muted' WHEN d.n = 0 THEN 'no_channel' WHEN d.failed > 0 THEN 'failed'
            WHEN d.delivered < d.n THEN 'pending' ELSE 'delivered' END AS delivery,
       d.deliveries, e.facts
  FROM alert_events e JOIN alert_rules r ON r.id = e.rule_id
 CROSS JOIN LATERAL (
   SELECT count(*) AS n, count(*) FILTER (WHERE status = 'failed') AS failed, count(*) FILTER (WHERE status = 'delivered') AS delivered,
          coalesce(jsonb_agg(jsonb_build_object('id', id, 'channel', channel, 'status', status, 'error', error) ORDER BY id), '[]')
            AS deliveries
     FROM alert_deliveries WHERE event_ids @> ARRAY[e.id]) d
 WHERE (%(rule_id)s::integer IS NULL OR e.rule_id = %(rule_id)s) AND (%(after)s::bigint IS NULL OR e.id < %(after)s)
 ORDER BY e.id DESC LIMIT %(limit)s;
