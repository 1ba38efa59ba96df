-- breaking: no
-- since: 0.2.0

-- Whether a review in the project is for a person other than those behind the claim.
ALTER TABLE "project" ADD COLUMN IF NOT EXISTS "review_other_person" TINYINT NOT NULL DEFAULT FALSE;
