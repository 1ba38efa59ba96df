-- breaking: no
-- since: 0.2.0

-- Whether a review in the project is for a person other than those behind the claim.
ALTER TABLE project ADD COLUMN "review_other_person" boolean NOT NULL DEFAULT false;
