-- breaking: no
-- since: 0.2.0

ALTER TABLE usage ADD COLUMN operation text COLLATE "C" NOT NULL DEFAULT '';
