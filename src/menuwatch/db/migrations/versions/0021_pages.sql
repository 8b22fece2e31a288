-- What lists and screens of an installation of millions need to answer at once.
SELECT 1;
