-- Who looks at the public site, without saying who: salts that do not last, visits, and their sums.
SELECT 1;
