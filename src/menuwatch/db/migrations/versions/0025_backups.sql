-- The newest backup into each folder. `made_at` is the moment whose rows it holds; `folder` is what whoever made it called it, absolute, on `host`.
CREATE TABLE backups (
  host text NOT NULL,
  folder text NOT NULL,
  backup text NOT NULL,
  made_at timestamptz NOT NULL,
  rows bigint NOT NULL CHECK (rows >= 0),
  files bigint NOT NULL CHECK (files >= 0),
  bytes bigint NOT NULL CHECK (bytes >= 0),
  missing integer NOT NULL CHECK (missing >= 0),
  PRIMARY KEY (host, folder)
);
