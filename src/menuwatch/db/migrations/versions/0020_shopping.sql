-- The public site: what makes its searches fast, and what visitors want to be told of.
SELECT 1;
