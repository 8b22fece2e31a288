-- Rules that many statements ask for, each in one place. The first two are single expressions, which the planner puts in where they are
-- called: they cost what they did when they were written out.

-- What the cheapest option costs, specials included; medical only where there is no recreational price.
CREATE FUNCTION effective_price(rec numeric, rec_special numeric, med numeric, med_special numeric) RETURNS numeric
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT coalesce(least(rec, rec_special), least(med, med_special)) $$;

-- Whether a change is of that kind (operations/changes.py, `Kind`); every change is of no kind in particular. The prices are effective ones.
CREATE FUNCTION change_is(kind text, price_changed boolean, stock_changed boolean, price_before numeric, price_after numeric,
                          status_before text, status_after text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE kind
           WHEN 'price' THEN price_changed
           WHEN 'stock' THEN stock_changed
           WHEN 'price_drop' THEN price_after < price_before
           WHEN 'price_rise' THEN price_after > price_before
           WHEN 'out_of_stock' THEN status_after = 'oos' AND status_before <> 'oos'
           WHEN 'back_in_stock' THEN status_after = 'in_stock' AND status_before = 'oos'
           ELSE true END
$$;

-- The prices and the stock of a state, option by option, as objects.
CREATE FUNCTION prices_by_option(prices jsonb) RETURNS json LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT coalesce(json_agg(json_build_object('option', e -> 0, 'price_rec', e -> 1, 'price_rec_special', e -> 2, 'price_med', e -> 3,
                                             'price_med_special', e -> 4)), '[]')
    FROM jsonb_array_elements(prices) e
$$;
CREATE FUNCTION stock_by_option(stock jsonb) RETURNS json LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT coalesce(json_agg(json_build_object('option', e -> 0, 'stock_status', e -> 1, 'quantity', e -> 2, 'capped', e -> 3)), '[]')
    FROM jsonb_array_elements(stock) e
$$;
